// How fast a decoder reads a prompt and writes the tokens after it, and what it keeps. Plain header.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/models/model_info.h"
#include "engine/run/model_store.h"
#include "engine/run/run.h"

namespace hydrascope {

struct GenerationSpeedRequest {
  std::filesystem::path model_folder;
  AdapterChoice adapters;
  ScheduleChoice schedule;
  std::vector<KernelSpec> kernels; // each in all layers, in place of the schedule; empty: the schedule
  // Tokens before those; empty: 128, 1024 and 8192, shortened to what the model's positions leave for them.
  std::vector<std::int64_t> contexts;
  int tokens = 32; // written after each context
  int rounds = 5;  // schedules and contexts take turns
  ExecutionOptions execution;
};

// Medians over the rounds.
struct GenerationSpeed {
  std::string schedule;
  bool untrained = false; // a replaced kernel in some layer for which no adapter was trained
  std::int64_t context = 0;
  double prefill_tokens_per_second = 0;
  double decode_ms = 0;                           // of a token: the median of a round's tokens
  double decode_ms_least = 0, decode_ms_most = 0; // … over the rounds
  std::int64_t state_bytes = 0;                   // after the last token
  std::int64_t weight_bytes = 0; // that a token reads: all but the embeddings of other tokens
  double read_ms = 0;            // of reading so many bytes once, at read_bandwidth
  double read_all_ms = 0;        // … and the state, which a token reads once, too
};

struct GenerationSpeedOutcome {
  std::vector<GenerationSpeed> speeds; // schedule by schedule, context by context
  double read_bandwidth = 0;           // bytes per second (machine.h), the median of those after each round
  std::string device, dtype;
  int threads = 0;
};

// Tokens are random. Throws UsageError (no decoder, contexts or tokens beyond its positions, kernels that
// cannot be decoded), Cancelled.
GenerationSpeedOutcome measure_generation_speed(
    const GenerationSpeedRequest& request,
    const std::function<void(std::int64_t, std::int64_t)>& progress = {}, const std::stop_token& stop = {},
    const std::shared_ptr<ModelStore>& models = make_model_store());

} // namespace hydrascope
