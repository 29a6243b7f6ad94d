#include "app/views/timing_record.h"
#include "engine/run/quantities/layer_times.h"

#include <vector>

#include <fmt/format.h>

namespace hydrascope::app {

namespace {
constexpr std::size_t most_subjects = 24;
} // namespace

std::string timing_subject(const RunResult& run) {
  // Hidden word pieces are masked, which kernels pay for; hidden patches are painted over.
  const bool masked = run.model.input == InputKind::text && !run.hidden_tokens.empty();
  return fmt::format("{}\n{} {} {} {} {} {}", run.model.folder.string(), run.tokens.size(),
                     masked ? "masked" : "all", run.muted_heads.empty() ? "" : "muted", run.dtype, run.device,
                     run.threads);
}

void TimingRecord::add(Layers& layers, int layer, const KernelSpec& kernel, double seconds, bool warm) {
  Samples& samples = layers[{layer, kernel}];
  if (samples.first_is_cold && (warm || !samples.seconds.empty())) {
    samples.seconds.clear();
    samples.first_is_cold = false;
  }
  samples.seconds.push_back(seconds);
  if (samples.seconds.size() > most_runs) samples.seconds.pop_front();
}

void TimingRecord::add(const RunResult& run) {
  const std::string subject = timing_subject(run);
  if (!subjects_.contains(subject)) {
    order_.push_back(subject);
    if (order_.size() > most_subjects) {
      subjects_.erase(order_.front());
      order_.pop_front();
    }
  }
  Layers& layers = subjects_[subject];
  for (std::size_t layer = 0; layer < run.layers.size(); ++layer) {
    const LayerRun& ran = run.layers[layer];
    if (!ran.cached && !ran.differentiable)
      add(layers, static_cast<int>(layer), ran.kernel, ran.seconds, false);
    for (const auto& [key, passes] : run.quantities.all<LayerTimesKey>())
      for (const std::vector<double>& pass : *passes)
        add(layers, static_cast<int>(layer), ran.kernel, pass.at(layer), true);
  }
  ++revision_;
}

RepeatedTime TimingRecord::time(const std::string& subject, int layer, const KernelSpec& kernel) const {
  const auto layers = subjects_.find(subject);
  if (layers == subjects_.end()) return {};
  const auto found = layers->second.find({layer, kernel});
  if (found == layers->second.end()) return {};
  return repeated_time({found->second.seconds.begin(), found->second.seconds.end()});
}

} // namespace hydrascope::app
