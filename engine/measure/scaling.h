// Time and memory of attention alone against the number of tokens, kernel by kernel. Plain header.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/attention/interface/kernel_info.h"
#include "engine/measure/quantiles.h"

namespace hydrascope {

struct ModelInfo;

// What all points of a curve have in common.
struct ScalingSetting {
  int heads = 1, head_width = 1; // H, d of the model
  bool image = false;            // tokens form a grid as square as N allows, without prefix tokens
  std::string dtype = "float32"; // float32 | bfloat16, on a GPU float16, too
  int threads = 0;               // 0: LibTorch's default
  std::string device = "cpu";    // auto | cpu | cuda | cuda:i

  bool operator==(const ScalingSetting&) const = default;
};

// Takes heads, their width and the kind of tokens from a model or a capture.
void set_heads_of(const ModelInfo& model, ScalingSetting& setting);

struct ScalingLimits {
  double run_seconds = 2;             // points whose single run is expected to take longer are skipped
  double warm_up_seconds = 0.2;       // a first run and then runs for so long do not count
  double point_seconds = 0.4;         // … the next are repeated for so long …
  int least_runs = 5, most_runs = 30; // … within these bounds; long runs at least three times
};

// One kernel at one N, batch 1, the attention operation alone: q, k, v given, output projection left out.
struct ScalingPoint {
  KernelSpec kernel;
  std::int64_t tokens = 0;
  RepeatedTime time = {};      // after the warm-up
  double products = 0;         // multiply-accumulates, those that are computed
  double bytes = 0;            // q, k, v read once and the output written once
  std::int64_t peak_bytes = 0; // of tensors beyond q, k, v: the output and intermediates
  std::string path = {};       // that ran
  std::string skipped = {};    // the reason why there is no time; empty if there is one
};

// The forms of softmax that a device has: beside the fastest of them stands what a linear kernel gains. On a
// GPU `flash` is `sdpa`.
std::vector<KernelSpec> softmax_forms(const std::string& device);

// Measures one kernel at increasing N; the time at one N predicts whether the next is affordable.
class ScalingMeasurer {
public:
  // Throws UsageError for a kernel that does not exist or a dtype that does not run on the device, and as
  // device_of.
  ScalingMeasurer(const KernelSpec& kernel, ScalingSetting setting, ScalingLimits limits = {});
  ~ScalingMeasurer();
  ScalingMeasurer(const ScalingMeasurer&) = delete;
  ScalingMeasurer& operator=(const ScalingMeasurer&) = delete;

  // `quiet`, which may be empty, is called before and after each run: it waits until nothing else computes,
  // and returns a count of disturbances; a run during which the count changed is repeated. Sets LibTorch's
  // threads of the calling thread during the call. Throws Cancelled if `stop` is requested (polled between
  // runs), BrokenDevice where nothing more can be measured on the device.
  ScalingPoint measure(std::int64_t tokens, const std::stop_token& stop = {},
                       const std::function<std::uint64_t()>& quiet = {});

private:
  struct State;
  std::unique_ptr<State> state_;
};

// 64, 128, … 32768.
std::vector<std::int64_t> scaling_lengths();

} // namespace hydrascope
