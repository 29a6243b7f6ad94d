// From the document to requests: what the open panels want, less what has been delivered already.
#pragma once

#include <cstdint>
#include <string>

#include "app/document/document.h"
#include "engine/run/quantities/vectors.h"

namespace hydrascope::app {

// What the open panels want of a run. `first` is what the selection shows and comes as fast as it can; `then`
// is for the overviews over all layers, which take a full backward pass, and is run afterwards.
struct Requested {
  QuantityKeys first;
  QuantityKeys then;
};

// Without what the document's model does not have: of a capture, what needs the model itself.
Requested of_model(const Document& document, Requested requested);

// q and k of every head of the selected layer; softmax has no feature map that would come with them.
VectorsKey queries_and_keys(const Document& document);

// Two requests with the same key differ at most in what they ask for, so that their results can be shown side
// by side.
std::string request_key(const Document& document, Side side);

// The model, as it was opened, and the kind of input: results of another subject are no older ones of this,
// and are not to be seen.
std::string subject_key(const Document& document);

// Throws Error if the scene has no input or no model; ask can_run first.
RunRequest make_run_request(const Document& document, Side side, const QuantityKeys& quantities,
                            std::uint64_t generation);
bool can_run(const Document& document);
// A picture of a folder by A's schedule, with nothing hidden or muted; its input is still to be set.
RunRequest folder_request(const Document& document);

// Before a run has said it: how many tokens the input will have at most.
std::int64_t expected_tokens(const Document& document);
// About how many, to decide whether matrices are shown whole.
std::int64_t likely_tokens(const Document& document);
// Larger matrices are shown as tiles: 600² weights of 12 heads take 17 MB per kernel.
inline constexpr std::int64_t most_tokens_whole = 600;
// What a run for all that is requested takes beside the model, from above; 0 without a model.
double expected_bytes(const Document& document, const Requested& requested);

} // namespace hydrascope::app
