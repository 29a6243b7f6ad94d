// Perplexity of a decoder over a text: windows of consecutive tokens of the whole file (Hedgehog paper,
// tables 7 and 10). Plain header.
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

struct PerplexityRequest {
  std::filesystem::path model_folder;
  AdapterChoice adapters;
  ScheduleChoice schedule;
  std::filesystem::path data;  // a text file, read as one text
  std::int64_t window = 1024;  // tokens
  std::int64_t stride = 0;     // from one window to the next; 0: the window's length, so that none overlap
  std::int64_t limit = 0;      // tokens of the file that are read; 0: all
  std::int64_t characters = 0; // characters of the file that are read; 0: all
  int batch = 0;               // windows that run together; 0: as many as have 2,048 tokens
  ExecutionOptions execution;
};

struct PerplexityOutcome {
  std::int64_t windows = 0;
  std::int64_t tokens = 0; // scored: of a window all but the first; of an overlapping one those that are new
  double nll = 0;          // mean over the scored tokens, nats
  double standard_error = 0;  // of nll, from the windows' sums; NaN for a single window
  double perplexity = 0;      // exp(nll)
  std::vector<double> losses; // mean of each window's scored tokens, nats
  Schedule schedule;
  std::string device, dtype;
  std::vector<AdapterInfo> adapters; // applied
  std::vector<std::string> notes;
};

// Throws Error (missing file, a text of less than two tokens), UsageError (a model that is no decoder, an
// impossible window), Cancelled, and as loading a model does.
PerplexityOutcome measure_perplexity(const PerplexityRequest& request,
                                     const std::function<void(std::int64_t, std::int64_t)>& progress = {},
                                     const std::stop_token& stop = {},
                                     const std::shared_ptr<ModelStore>& models = make_model_store());

} // namespace hydrascope
