// Text that a decoder writes on, token by token: the layers keep a state of the tokens so far (sums of
// features, or keys and values), so that the next token costs one row of the model. Plain header.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "engine/models/model_info.h"
#include "engine/run/model_store.h"
#include "engine/run/run.h"

namespace hydrascope {

// How the next token is chosen from softmax(logits / temperature).
struct Sampling {
  double temperature = 0; // 0: the likeliest
  double top_p = 1; // from the likeliest tokens that together have this probability (Holtzman et al. 2020)
  // A token depends on seed and position alone, so that a text that was stopped goes on alike.
  std::uint64_t seed = 0;

  bool operator==(const Sampling&) const = default;
};
// Throws UsageError that names the value out of range.
void check_sampling(const Sampling& sampling);

struct GenerateRequest {
  std::filesystem::path model_folder;
  AdapterChoice adapters;
  ScheduleChoice schedule;
  std::string text;
  std::vector<int> written = {}; // tokens after the text that were written before: the text goes on from them
  std::int64_t tokens = 100;     // at most, besides those
  Sampling sampling;
  bool stop_at_end = true;       // at a token that ends a text, which is not part of the result
  std::vector<std::string> stop; // … and before the first of these texts
  ExecutionOptions execution;
};

struct GeneratedToken {
  int id = 0;
  std::string text;   // as users see it
  double logprob = 0; // of softmax(logits), nats, whatever the temperature
  double ms = 0; // of the block passes and the choice; in lockstep (lockstep.h) without waiting for the other
};

struct GenerateOutcome {
  std::vector<GeneratedToken> tokens;
  std::string text; // what was written, without the prompt and what was written before
  std::int64_t prompt_tokens = 0;
  double prefill_ms = 0;        // the prompt's pass
  std::int64_t state_bytes = 0; // of all layers at the end
  std::string ended;            // "tokens", "end of text", "stop", "positions": why it ended
  Schedule schedule;
  std::string device, dtype;
  std::vector<AdapterInfo> adapters; // applied
  std::vector<std::string> notes;
};

// The model that a request names, with its adapters, where the request places it: for several texts by the
// same version of the model. Throws as generate().
AppliedModel decoder_of(const GenerateRequest& request, ModelStore& models);

// A decoder and its states after a prompt. For one thread at a time.
class Generation {
public:
  // Reads the prompt. Throws as generate().
  Generation(const GenerateRequest& request, ModelStore& models, const std::stop_token& stop = {});
  // The same by what decoder_of() has returned for a request that differs in its text alone.
  Generation(const GenerateRequest& request, const AppliedModel& model, const std::stop_token& stop = {});
  ~Generation();
  Generation(Generation&&) noexcept;
  Generation& operator=(Generation&&) noexcept;

  // Chooses the next token and adds it to the states. False when the text has ended: outcome().ended says
  // why.
  bool advance(const std::stop_token& stop = {});
  const GenerateOutcome& outcome() const;

private:
  struct State;
  std::unique_ptr<State> state_;
};

// Called after each token with it and the characters that have become whole.
using TokenWritten = std::function<void(const GeneratedToken& token, std::string_view text)>;

// Throws UsageError (no decoder, a kernel that cannot be decoded, an impossible sampling), Error, Cancelled.
GenerateOutcome generate(const GenerateRequest& request, const TokenWritten& written = {},
                         const std::stop_token& stop = {},
                         const std::shared_ptr<ModelStore>& models = make_model_store());
// The same by what decoder_of() has returned for a request that differs in its text alone.
GenerateOutcome generate_by(const AppliedModel& model, const GenerateRequest& request,
                            const TokenWritten& written = {}, const std::stop_token& stop = {});

} // namespace hydrascope
