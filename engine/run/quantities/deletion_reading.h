// What a deletion curve needs of a run: which tokens can be hidden, and the target without them.
#pragma once

#include <functional>
#include <stop_token>
#include <vector>

#include "engine/run/pass.h"
#include "engine/run/quantities/deletion.h"
#include "engine/run/quantities/target.h"
#include "engine/run/run.h"

namespace hydrascope {

// Patches and word pieces that are not hidden already: neither the tokens that results are read from nor
// [SEP].
std::vector<std::int64_t> deletion_candidates(const RunRequest& request, const PreparedInput& input,
                                              const ModelInfo& model);

// The target with its class fixed: what was predicted from these logits.
CheckedTarget fixed_target(CheckedTarget target, const at::Tensor& logits);

// The target of a last hidden state (1,N,D); `other` as target_value's.
DeletionReading deletion_reading(const CheckedTarget& target, const Model& model, const ModelInput& input,
                                 const at::Tensor& output, const at::Tensor& other);

// Runs the pass with more of its input hidden. Nothing of that is kept: these inputs are not seen again.
// Throws as run_pass and check_finite.
DeletionProbe deletion_probe(Pass pass, CheckedTarget target, at::Tensor other, std::stop_token stop,
                             std::function<void()> block_done);

} // namespace hydrascope
