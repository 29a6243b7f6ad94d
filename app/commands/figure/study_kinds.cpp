// The Hydra paper's studies on the user's own data: heads (Fig. 2), strategies (Fig. 4).
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "app/commands/figure/kinds.h"
#include "app/commands/figure/many_inputs.h"
#include "app/commands/figure/study_points.h"
#include "app/commands/figure/task.h"
#include "app/commands/output.h"
#include "app/commands/training_display.h"
#include "engine/base/error.h"
#include "engine/measure/kernel_support.h"
#include "engine/run/quantities/hidden_states.h"
#include "engine/training/tasks/evaluate.h"

namespace hydrascope::app {
namespace {

std::filesystem::path one_folder(const FigureOptions& options) {
  if (options.data.data.size() != 1 || !std::filesystem::is_directory(options.data.data.front()))
    throw UsageError("--data",
                     "accuracy is measured on one folder with a sub-folder of pictures for each class",
                     "name it with --data, or use --measure similarity");
  return options.data.data.front();
}

// With the adapters of --untrained or --trained, if either is given.
RunRequest study_request(const FigureOptions& options, RunRequest request) {
  if (options.untrained || !options.trained.empty()) request.adapters = study_adapters(options);
  return request;
}

double accuracy(const FigureOptions& options, const ScheduleText& schedule, EvaluateOutcome& outcome) {
  const RunRequest run = study_request(options, make_request(options.common, InputKind::image));
  EvaluateRequest request;
  request.model_folder = run.model_folder;
  request.adapters = run.adapters;
  request.execution = run.execution;
  request.schedule = schedule;
  request.data = one_folder(options);
  request.images_per_class = options.data.limit;
  TrainingDisplay display;
  outcome = evaluate(request, display.observer(), display.stop());
  return outcome.top1 * 100;
}

KernelSpec with_heads(KernelSpec kernel, int heads) {
  kernel.parameters["heads"] = std::to_string(heads);
  return kernel;
}

std::vector<KernelSpec> kernels_of(const FigureOptions& options, const std::string& initial) {
  return parse_kernel_list(options.kernels.empty() ? initial : options.kernels);
}

// The mean over the items of all data sets.
double mean_cosine(const TeacherForcedOutcome& outcome, const KernelSpec& kernel) {
  double sum = 0, items = 0;
  for (const KernelMeasure& measure : outcome.measures) {
    if (measure.kernel != kernel) continue;
    sum += measure.mean.cosine * static_cast<double>(measure.items);
    items += static_cast<double>(measure.items);
  }
  return sum / items;
}

// The subtitle with what marks and rings mean.
std::string with_marks(std::string subtitle, const std::vector<StudySeries>& all) {
  const std::string marks = marks_text(all);
  return marks.empty() ? subtitle : std::move(subtitle) + "; " + marks;
}

} // namespace

Figure draw_heads(FigureTask& task) {
  const FigureOptions& options = task.options;
  const bool by_accuracy = options.measure == "accuracy";
  const auto kernels = kernels_of(options, "softmax,linear-cosine");
  TeacherForcedRequest request;
  if (!by_accuracy) request = measure_request(options.common, options.data);
  if (by_accuracy) request.model_folder = model_folder(options.common, InputKind::image);
  const ModelInfo model = read_model_info(request.model_folder);
  std::vector<int> counts = options.counts;
  if (counts.empty())
    for (const std::int64_t heads : divisors_of(model.width)) counts.push_back(static_cast<int>(heads));
  LinesPanel panel;
  panel.x_label = "number of heads H";
  panel.y_label = by_accuracy ? "top-1 (%)" : "cosine of the output and softmax's";
  panel.log_x = true;
  if (!by_accuracy && (options.untrained || !options.trained.empty()))
    throw UsageError(options.untrained ? "--untrained" : "--trained",
                     "similarity is measured on the softmax run's q, k, v: no adapter has a part in it",
                     "leave it out, or use --measure accuracy");
  std::string hash;
  std::vector<AdapterInfo> adapters;
  std::vector<StudySeries> all;
  for (const KernelSpec& kernel : kernels) {
    if (kernel_info(kernel).parameter("heads") == nullptr)
      throw UsageError("--kernels", kernel.name + " has no number of heads to choose",
                       "use softmax, sdpa, flash or linear-cosine");
    StudySeries series{kernel.label(), kernel_colour(kernel.name), {}};
    for (const int count : counts) {
      const KernelSpec own = with_heads(kernel, count);
      StudyPoint point{.x = static_cast<double>(count)};
      if (by_accuracy) {
        EvaluateOutcome outcome;
        point.y = accuracy(options, {.kernel = own.text()}, outcome);
        set_adapters(point, parse_schedule({.kernel = own.text()}, model.layers), outcome.adapters);
        hash = outcome.model_hash;
      } else {
        request.kernels.push_back(own);
      }
      series.points.push_back(std::move(point));
    }
    all.push_back(std::move(series));
  }
  if (!by_accuracy) {
    const TeacherForcedOutcome outcome = measure_with_progress(request, "figure heads");
    hash = outcome.model_hash;
    adapters = outcome.adapters;
    for (std::size_t index = 0; index < kernels.size(); ++index) {
      for (StudyPoint& point : all[index].points)
        point.y = mean_cosine(outcome, with_heads(kernels[index], static_cast<int>(point.x)));
    }
  }
  Figure figure;
  figure.title = fmt::format("{} · {} against the number of heads", model.name,
                             by_accuracy ? "accuracy" : "similarity to softmax");
  figure.subtitle = with_marks(
      fmt::format("The same {} features split into H heads; the model was trained with {} heads of softmax",
                  model.width, model.heads),
      all);
  panel.lines = lines_of(all);
  figure.panels.emplace_back(std::move(panel));
  figure.provenance = data_provenance(task, request.model_folder, hash, adapters,
                                      by_accuracy ? std::vector{one_folder(options)} : request.data);
  if (by_accuracy) figure.provenance = with_points(figure.provenance, all);
  return figure;
}

namespace {

// The last hidden states summed over the tokens, (D): in a cosine as good as their mean.
std::vector<double> pooled(const RunResult& run) {
  const Array& hidden = run.quantities.find(HiddenStatesKey{})->back();
  const auto width = static_cast<std::size_t>(hidden.extent(2));
  std::vector<double> sums(width, 0);
  for (std::size_t index = 0; index < hidden.values.size(); ++index)
    sums[index % width] += static_cast<double>(hidden.values[index]);
  return sums;
}

double cosine(const std::vector<double>& left, const std::vector<double>& right) {
  const auto dot = [](const auto& x, const auto& y) {
    return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
  };
  return dot(left, right) / std::sqrt(dot(left, left) * dot(right, right));
}

constexpr std::array<const char*, 3> strategy_names = {"front", "back", "interleave"};
constexpr std::array strategy_colours = {category::vermilion, category::blue, category::green};

std::vector<RunRequest> study_inputs(const FigureOptions& options) {
  std::vector<RunRequest> requests;
  if (options.images.empty()) {
    requests.push_back(request_of(options, input_of(options)));
  } else {
    for (const FolderPicture& picture : pictures_of(options.images))
      requests.push_back(request_of(options, read_image(picture.file)));
  }
  for (RunRequest& request : requests) {
    request = study_request(options, std::move(request));
    request.quantities = {HiddenStatesKey{}};
  }
  return requests;
}

// The effect of a schedule on the inputs, or on the accuracy over a folder of classes. Each schedule is
// evaluated once: with none or all of the layers replaced, all strategies have the same.
class ReplacementStudy {
public:
  struct Effect {
    StudyPoint point;                     // y: top-1 in per cent, or the mean cosine with the original
    EvaluateOutcome evaluated;            // by accuracy
    std::shared_ptr<const RunResult> run; // of the last input
  };

  // Without inputs: by accuracy.
  ReplacementStudy(const FigureTask& task, const std::vector<RunRequest>& inputs, int layers)
      : options_(task.options), runner_(task.runner), inputs_(inputs), layers_(layers) {
    for (RunRequest request : inputs_) {
      request.schedule = ScheduleText{.kernel = options_.common.schedule.kernel};
      original_.push_back(pooled(*runner_.run(request)));
    }
  }

  const Effect& of(const ScheduleText& schedule) {
    const auto [found, is_new] = effects_.try_emplace(parse_schedule(schedule, layers_).layers);
    if (is_new) found->second = inputs_.empty() ? evaluated(schedule) : compared(schedule);
    return found->second;
  }

private:
  Effect evaluated(const ScheduleText& schedule) const {
    Effect effect;
    effect.point.y = accuracy(options_, schedule, effect.evaluated);
    set_adapters(effect.point, parse_schedule(schedule, layers_), effect.evaluated.adapters);
    return effect;
  }
  Effect compared(const ScheduleText& schedule) const {
    Effect effect;
    for (std::size_t index = 0; index < inputs_.size(); ++index) {
      RunRequest request = inputs_[index];
      request.schedule = schedule;
      auto run = std::make_shared<RunResult>(*runner_.run(request));
      effect.point.y += cosine(pooled(*run), original_[index]);
      run->quantities = {}; // one copy of the hidden states per schedule would be too much memory
      effect.run = std::move(run);
    }
    effect.point.y /= static_cast<double>(inputs_.size());
    set_adapters(effect.point, effect.run->schedule, effect.run->adapters);
    return effect;
  }

  const FigureOptions& options_;
  Runner& runner_;
  const std::vector<RunRequest>& inputs_;
  int layers_;
  std::vector<std::vector<double>> original_; // by input: pooled, without any layer replaced
  std::map<std::vector<KernelSpec>, Effect> effects_;
};

} // namespace

Figure draw_strategies(FigureTask& task) {
  const FigureOptions& options = task.options;
  const bool by_accuracy = options.measure == "accuracy";
  const auto kernels = kernels_of(options, "hydra-cosine");
  if (kernels.size() > 1) throw UsageError("--kernels", "this figure is of one kernel", "name one");
  const std::string kernel = kernels.front().text();
  const std::vector<RunRequest> inputs = by_accuracy ? std::vector<RunRequest>() : study_inputs(options);
  const std::filesystem::path folder =
      by_accuracy ? model_folder(options.common, InputKind::image) : inputs.front().model_folder;
  const ModelInfo model = read_model_info(folder);
  std::vector<int> counts = options.counts;
  for (int count = 0; options.counts.empty() && count <= model.layers; ++count) counts.push_back(count);

  LinesPanel panel;
  panel.x_label = "layers replaced";
  panel.y_label = by_accuracy ? "top-1 (%)" : "cosine of the last hidden states and softmax's";
  ReplacementStudy study(task, inputs, model.layers);
  ReplacementStudy::Effect last;
  ProgressBar bar("figure strategies");
  std::int64_t done = 0;
  std::vector<StudySeries> all;
  for (std::size_t index = 0; index < strategy_names.size(); ++index) {
    StudySeries series{strategy_names[index], strategy_colours[index], {}};
    for (const int count : counts) {
      ScheduleText schedule{.kernel = options.common.schedule.kernel};
      if (count > 0) schedule.replace = {fmt::format("{}:{}={}", strategy_names[index], count, kernel)};
      last = study.of(schedule);
      last.point.x = count;
      series.points.push_back(last.point);
      if (!by_accuracy) bar.show(++done, static_cast<std::int64_t>(counts.size() * strategy_names.size()));
    }
    all.push_back(std::move(series));
  }
  panel.lines = lines_of(all);
  Figure figure;
  figure.title = fmt::format("{} · {} in place of {}", model.name, kernel, options.common.schedule.kernel);
  figure.subtitle = with_marks("Layers replaced from the front, from the back, or every other one", all);
  figure.panels.emplace_back(std::move(panel));
  if (by_accuracy) {
    figure.provenance = data_provenance(task, folder, last.evaluated.model_hash, last.evaluated.adapters,
                                        {one_folder(options)});
    figure.provenance = with_points(figure.provenance, all);
    return figure;
  }
  figure = finished(task, std::move(figure), inputs.front(), *last.run);
  if (!options.images.empty()) {
    std::vector<std::filesystem::path> files;
    for (const RunRequest& request : inputs) files.push_back(picture_of(request)->path);
    figure.provenance = with_files(figure.provenance, files);
  }
  figure.provenance = with_points(figure.provenance, all);
  return figure;
}

} // namespace hydrascope::app
