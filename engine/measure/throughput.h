// Pictures or texts per second of a whole model under several schedules, in one run. Plain header.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/attention/interface/schedule.h"
#include "engine/measure/quantiles.h"
#include "engine/run/model_store.h"
#include "engine/run/run.h"

namespace hydrascope {

// The Hydra paper's protocol (Bolya et al. 2022, section 4): for each batch size, the average over 30 batches
// after 10 warm-ups.
struct ThroughputRequest {
  std::filesystem::path model_folder; // without adapters: they change no speed
  std::vector<ScheduleText> schedules;
  std::vector<int> batches = {1, 8, 32};
  int tokens = 128; // of a text
  int warm_ups = 10, runs = 30;
  bool schedules_only = false; // no untapped run and no bounds, whose matrices take memory
  ExecutionOptions execution;  // without a seed
};

struct ThroughputRow {
  enum class Kind {
    schedule,
    untapped, // the first schedule as the program runs it without taps: stoppable, with hidden states kept
    without_attention, // v is the attention's output: the bound of every kernel
    products,          // the blocks' matrix products alone: the bound of everything else
  };
  Kind kind = Kind::schedule;
  std::string schedule; // as written; for a bound its description
  int batch = 1;
  std::int64_t tokens = 0;
  double items_per_second = 0; // batch · runs over the time of all runs
  RepeatedTime time = {};      // of a batch
  std::string paths = {};      // which paths of attention ran, "fused cpu, sdpa"
};

// For each batch size a row per schedule, run by blocks without taps, then (unless `schedules_only`) an
// untapped run of the first schedule and the two bounds. Schedules take turns, batch by batch, so that other
// load affects all of them alike. `progress` is called after every turn with the number done and the total.
// Throws Error and its kinds, UsageError (schedule, dtype, device), Cancelled.
std::vector<ThroughputRow> measure_throughput(
    const ThroughputRequest& request, const std::function<void(std::int64_t, std::int64_t)>& progress = {},
    const std::stop_token& stop = {}, const std::shared_ptr<ModelStore>& models = make_model_store());
// The same in a given placement, whatever the request's device and dtype.
std::vector<ThroughputRow> measure_throughput_in(
    const Placement& placement, const ThroughputRequest& request,
    const std::function<void(std::int64_t, std::int64_t)>& progress = {}, const std::stop_token& stop = {},
    const std::shared_ptr<ModelStore>& models = make_model_store());

} // namespace hydrascope
