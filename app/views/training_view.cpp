#include "app/views/training_view.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/figures/scale.h"

namespace hydrascope::app {

namespace {

constexpr Colour training_colour{0.25f, 0.55f, 0.9f, 1}, held_out_colour{0.85f, 0.55f, 0.1f, 1},
    constant_colour{0.5f, 0.5f, 0.5f, 1};

// The loss varies more between batches than it falls in a step, so curves are moving averages.
struct Smoothing {
  std::size_t points = 1;
  std::string x_label = "step";
};

Smoothing smoothing_of(const TrainingCurves& curves) {
  constexpr std::size_t share = 40; // of the curve
  Smoothing smoothing;
  const std::vector<double>& steps = curves.steps();
  smoothing.points = std::max<std::size_t>(1, steps.size() / share);
  if (steps.size() < 2) return smoothing;
  const double mean_of = static_cast<double>(smoothing.points) * (steps.back() - steps[steps.size() - 2]);
  if (mean_of > 1) smoothing.x_label = fmt::format("step (curves: mean of the last {:.0f})", mean_of);
  return smoothing;
}

std::vector<double> smoothed(const std::vector<double>& values, std::size_t points) {
  std::vector<double> result;
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    sum += values[i];
    if (i >= points) sum -= values[i - points];
    result.push_back(sum / static_cast<double>(std::min(i + 1, points)));
  }
  return result;
}

LinesPanel::Line held_out_line(const TrainingReport& report, double HeldOut::*number, double factor) {
  LinesPanel::Line line;
  line.name = "held out";
  line.colour = held_out_colour;
  line.style = LinesPanel::Style::marked;
  for (const HeldOut& each : report.held_out) {
    line.x.push_back(static_cast<double>(each.step));
    line.y.push_back(factor * each.*number);
  }
  return line;
}

HeldOutMeasure measure_of(const TrainingReport& report) {
  return report.held_out.empty() ? report.outcome.held_out.measure : report.held_out.front().measure;
}

const char* loss_name(const HeldOutMeasure measure) {
  switch (measure) {
    case HeldOutMeasure::divergence: return "soft cross-entropy (nats)";
    case HeldOutMeasure::correlation: return "mean squared error (standardised labels)";
    case HeldOutMeasure::perplexity:
    case HeldOutMeasure::accuracy: break;
  }
  return "cross-entropy (nats)";
}

LinesPanel loss_panel(const TrainingReport& report) {
  const Smoothing smoothing = smoothing_of(report.curves);
  LinesPanel panel;
  panel.title = "Loss";
  panel.x_label = smoothing.x_label;
  panel.y_label = loss_name(measure_of(report));
  panel.lines.push_back({.name = "training",
                         .x = report.curves.steps(),
                         .y = smoothed(report.curves.loss(), smoothing.points),
                         .colour = training_colour});
  panel.lines.push_back(held_out_line(report, &HeldOut::loss, 1));
  return panel;
}

LinesPanel layers_panel(const TrainingReport& report) {
  const Smoothing smoothing = smoothing_of(report.curves);
  LinesPanel panel;
  panel.title = "KL from softmax by layer (its number at the end of its line)";
  panel.x_label = smoothing.x_label;
  panel.y_label = "KL (nats)";
  const auto& layers = report.curves.layers();
  const auto last = static_cast<float>(std::max<std::size_t>(1, layers.size() - 1));
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    constexpr float darkest = 0.1f,
                    brightest =
                        0.9f; // the ends of the colour map have little contrast on a light or a dark ground
    const float place = darkest + (brightest - darkest) * static_cast<float>(layer) / last;
    LinesPanel::Line line{.name = fmt::format("layer {}", layer),
                          .x = report.curves.steps(),
                          .y = smoothed(layers[layer], smoothing.points),
                          .colour = colour_of(ColourMap::viridis, place)};
    line.labels.resize(line.x.size()); // the layer's number at the end of its line
    if (!line.labels.empty()) line.labels.back() = fmt::format("{}", layer);
    panel.lines.push_back(std::move(line));
  }
  panel.lines.push_back(held_out_line(report, &HeldOut::divergence, 1));
  panel.lines.back().name = "held out, mean";
  const auto positive = [](const LinesPanel::Line& line) {
    return std::ranges::all_of(line.y, [](double y) { return y > 0; });
  };
  panel.log_y = std::ranges::all_of(panel.lines, positive);
  return panel;
}

// How the measure of a training is shown.
struct Measure {
  const char* title = ""; // of the plot
  const char* name = "";
  const char* at_start = ""; // of a sentence
  double HeldOut::*number = &HeldOut::accuracy;
  bool share = false; // from 0 to 1, shown in per cent
  const char* unit = "";

  std::string text(const HeldOut& held_out) const {
    return (share ? percent_text(held_out.*number) : number_text(held_out.*number)) + unit;
  }
};

Measure shown_measure(const HeldOutMeasure measure) {
  switch (measure) {
    case HeldOutMeasure::divergence: return {"KL", "KL", "KL", &HeldOut::divergence, false, " nats"};
    case HeldOutMeasure::perplexity: return {"Perplexity", "perplexity", "Perplexity", &HeldOut::perplexity};
    case HeldOutMeasure::correlation:
      return {"Correlation", "Pearson correlation", "Pearson correlation", &HeldOut::pearson};
    case HeldOutMeasure::accuracy: break;
  }
  return {"Accuracy", "top-1", "Top-1", &HeldOut::accuracy, true};
}

LinesPanel measure_panel(const TrainingReport& report) {
  const Measure measure = shown_measure(measure_of(report));
  const double factor = measure.share ? 100 : 1;
  LinesPanel panel;
  panel.title = measure.title;
  panel.x_label = "step";
  panel.y_label = fmt::format("held-out {}{}", measure.name, measure.share ? " (%)" : "");
  panel.lines.push_back(held_out_line(report, measure.number, factor));
  if (measure.share) {
    panel.lines.push_back(held_out_line(report, &HeldOut::constant_answer, factor));
    panel.lines.back().name = "always the commonest class";
    panel.lines.back().colour = constant_colour;
    panel.lines.back().style = LinesPanel::Style::dashed;
  }
  return panel;
}

std::string held_out_text(const HeldOut& held_out) {
  const Measure measure = shown_measure(held_out.measure);
  return fmt::format("held-out {} {}", measure.name, measure.text(held_out));
}

} // namespace

void TrainingCurves::add(std::int64_t step, double loss, std::span<const double> divergences) {
  if (layers_.size() != divergences.size()) { // the first step of a training
    *this = {};
    layers_.resize(divergences.size());
    layer_sums_.resize(divergences.size());
  }
  loss_sum_ += loss;
  for (std::size_t layer = 0; layer < divergences.size(); ++layer) layer_sums_[layer] += divergences[layer];
  if (++summed_ < stride_) return;
  const auto count = static_cast<double>(summed_);
  steps_.push_back(static_cast<double>(step));
  loss_.push_back(loss_sum_ / count);
  loss_sum_ = 0;
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    layers_[layer].push_back(layer_sums_[layer] / count);
    layer_sums_[layer] = 0;
  }
  summed_ = 0;
  if (steps_.size() >= most_points) halve();
}

void TrainingCurves::halve() {
  const auto pairs = [](std::vector<double>& values, bool average) {
    const std::size_t count = values.size() / 2;
    for (std::size_t i = 0; i < count; ++i)
      values[i] = average ? (values[2 * i] + values[2 * i + 1]) / 2 : values[2 * i + 1];
    values.resize(count);
  };
  pairs(steps_, false);
  pairs(loss_, true);
  for (std::vector<double>& layer : layers_) pairs(layer, true);
  stride_ *= 2;
}

std::string training_title(const TrainingReport& report) {
  return report.kind == TrainingKind::distill
             ? fmt::format("distilling {} into {}", report.kernel.label(), report.model)
             : fmt::format("fine-tuning {}", report.model);
}

double training_share(const TrainingReport& report) {
  const TrainingProgress& progress = report.progress;
  if (report.state == TrainingState::finished) return 1;
  const bool features = progress.phase == "features";
  const std::int64_t total = features ? progress.steps : progress.steps * progress.epochs;
  const std::int64_t done = features ? progress.step : progress.total_step;
  return total > 0 ? std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0) : 0;
}

std::string duration_text(const double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds);
  return whole < 3600 ? fmt::format("{}:{:02}", whole / 60, whole % 60)
                      : fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string training_progress_text(const TrainingReport& report) {
  const TrainingProgress& progress = report.progress;
  if (progress.phase.empty()) return "loading the model and the data…";
  if (progress.phase == "features") return fmt::format("features {} of {}", progress.step, progress.steps);
  if (progress.total_step == 0) return "measured before training";
  std::string text = fmt::format("epoch {} of {}, step {} of {}", progress.epoch, progress.epochs,
                                 progress.step, progress.steps);
  if (progress.items_per_second > 0)
    text += fmt::format(", {} items/s", number_text(progress.items_per_second));
  if (report.active() && progress.seconds_left > 0)
    text += fmt::format(", {} left", duration_text(progress.seconds_left));
  if (!report.held_out.empty()) text += ", " + held_out_text(report.held_out.back());
  return text;
}

std::string training_gain_text(const TrainingReport& report) {
  constexpr double minute = 60;
  const HeldOut &before = report.outcome.before, &after = report.outcome.held_out;
  const std::string numbers =
      fmt::format("KL {} → {} nats", number_text(before.divergence), number_text(after.divergence));
  const Measure measure = shown_measure(after.measure);
  const std::string gain =
      report.kind != TrainingKind::distill
          ? fmt::format("{} {} → {}", measure.at_start, measure.text(before), measure.text(after)) +
                (after.constant_answer > 0 ? fmt::format(" ({} for always the commonest class)",
                                                         percent_text(after.constant_answer))
                                           : "")
      : after.divergence < before.divergence
          ? fmt::format("{}'s weights are {} times closer to softmax's: {}", report.kernel.label(),
                        number_text(before.divergence / after.divergence, 2), numbers)
          : fmt::format("{}'s weights are no closer to softmax's: {}", report.kernel.label(), numbers);
  if (report.seconds >= minute) return fmt::format("{} in {} min", gain, duration_text(report.seconds));
  constexpr double few = 10;
  return fmt::format("{} in {:.{}f} s", gain, report.seconds, report.seconds < few ? 1 : 0);
}

std::string training_result_text(const TrainingReport& report) {
  const TrainingOutcome& outcome = report.outcome;
  switch (report.state) {
    case TrainingState::finished:
      return fmt::format("{}, on held-out data, after {} steps.\nKept in {}", training_gain_text(report),
                         outcome.steps, outcome.adapter.path.string());
    case TrainingState::stopped:
      return fmt::format("Stopped after {} steps; {} is kept, Resume goes on from it.", outcome.steps,
                         checkpoint_path(report.output).string());
    case TrainingState::failed: return report.problem;
    default: return {};
  }
}

Figure training_figure(const TrainingReport& report) {
  Figure figure;
  figure.title = training_title(report);
  if (report.curves.steps().empty() && report.held_out.size() < 2) return figure;
  figure.subtitle = training_progress_text(report);
  figure.panels.emplace_back(loss_panel(report));
  if (report.kind == TrainingKind::finetune) {
    figure.panels.emplace_back(measure_panel(report));
  } else if (!report.curves.layers().empty()) {
    figure.panels.emplace_back(layers_panel(report));
  }
  return figure;
}

} // namespace hydrascope::app
