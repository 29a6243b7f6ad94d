#include "engine/measure/teacher_forced.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <fmt/format.h>

#include "engine/attention/interface/remedies.h"
#include "engine/base/error.h"
#include "engine/measure/teacher_forced_runs.h"
#include "engine/run/placement.h"
#include "engine/run/quantities/head_reader.h"
#include "engine/run/quantities/measures.h"
#include "engine/run/run.h"

namespace hydrascope {
namespace {

const std::array<const HeadQuantity*, 4>& measured_quantities() {
  static const std::array<const HeadQuantity*, 4> quantities = {
      &head_quantity("entropy"), &head_quantity("kl"), &head_quantity("monotonicity"),
      &head_quantity("change")};
  return quantities;
}

// A mean over items, which processes can add up.
struct ItemMean {
  double sum = 0, count = 0;

  // One value for each item (B).
  void add(const at::Tensor& items) {
    sum += items.sum().item<double>();
    count += static_cast<double>(items.numel());
  }
  void visit(const std::function<void(double&)>& each) {
    each(sum);
    each(count);
  }
  double value() const { return count > 0 ? sum / count : KernelMeans::undefined; }
};

// One kernel in one layer.
struct LayerMeans {
  ItemMean kl, entropy, spearman, clamped, ratio, cosine, error;

  // `read` by measured_quantities(). Returns the KL of each item (B), undefined for signed weights.
  at::Tensor add(const std::vector<HeadValues>& read, const AttentionInput& input) {
    const auto heads = [](const at::Tensor& values) { return values.mean(1); };
    const auto values = [&](std::size_t quantity) { // read once
      const at::Tensor& own = read[quantity].values;
      return own.defined() ? own.to(at::kCPU) : own;
    };
    const at::Tensor entropies = values(0), divergences = values(1), ranks = values(2), change = values(3);
    if (entropies.defined()) entropy.add(heads(entropies));
    at::Tensor kl_of_items;
    if (divergences.defined()) {
      kl_of_items = heads(divergences);
      kl.add(kl_of_items);
      clamped.sum += read[1].clamped_share * static_cast<double>(input.q.size(0));
      clamped.count += static_cast<double>(input.q.size(0));
    }
    if (ranks.defined() && input.q.size(2) >= 3) spearman.add(heads(ranks));
    ratio.add(heads(change.select(2, 0)));
    error.add(heads(change.select(2, 2)));
    const at::Tensor has_output = change.select(2, 0) != 0;
    const at::Tensor sum = at::where(has_output, change.select(2, 1), 0.0).sum(1);
    const at::Tensor count = has_output.sum(1);
    cosine.add((sum / count).masked_select(count > 0));
    return kl_of_items;
  }

  void visit(const std::function<void(double&)>& each) {
    for (ItemMean* const mean : {&kl, &entropy, &spearman, &clamped, &ratio, &cosine, &error})
      mean->visit(each);
  }

  KernelMeans means() const {
    KernelMeans means;
    means.kl = kl.value();
    means.entropy = entropy.value();
    means.spearman = spearman.value();
    means.clamped_share = clamped.value();
    means.ratio = ratio.value();
    means.cosine = cosine.value();
    means.relative_error = error.value();
    return means;
  }
};

// The standard error of a mean KL over items. An item's KL is its mean over the layers, which are added in
// order.
class ItemSpread {
public:
  // The KL of the same items (B) in each layer; undefined for signed weights.
  void add(int layer, int layers, const at::Tensor& kl) {
    if (!kl.defined()) return;
    const at::Tensor share = kl.to(at::kDouble) / layers;
    means_ = layer == 0 ? share : means_ + share;
    if (layer + 1 < layers) return;
    sum_ += means_.sum().item<double>();
    squares_ += means_.square().sum().item<double>();
    count_ += static_cast<double>(means_.numel());
  }
  void visit(const std::function<void(double&)>& each) {
    each(sum_);
    each(squares_);
    each(count_);
  }
  double standard_error() const {
    if (count_ < 2) return KernelMeans::undefined;
    const double mean = sum_ / count_, variance = squares_ / count_ - mean * mean;
    return std::sqrt(std::max(variance, 0.0) / (count_ - 1));
  }

private:
  at::Tensor means_; // (B), of the layers so far
  double sum_ = 0, squares_ = 0, count_ = 0;
};

KernelMeans mean_of(const std::vector<KernelMeans>& layers) {
  KernelMeans mean;
  for (const auto member :
       {&KernelMeans::kl, &KernelMeans::entropy, &KernelMeans::spearman, &KernelMeans::clamped_share,
        &KernelMeans::ratio, &KernelMeans::cosine, &KernelMeans::relative_error}) {
    double sum = 0;
    for (const KernelMeans& layer : layers) sum += layer.*member;
    mean.*member = sum / static_cast<double>(layers.size());
  }
  return mean;
}

std::vector<KernelSpec> kernels_of(const TeacherForcedRequest& request) {
  std::vector<KernelSpec> kernels = request.kernels;
  if (kernels.empty())
    for (const KernelInfo& info : kernel_infos())
      if (has_distributions(info)) kernels.push_back({info.name, {}});
  for (KernelSpec& kernel : kernels) kernel = seeded(kernel, request.execution.seed);
  return kernels;
}

// Sums over one series of sequences.
class Measurement {
public:
  Measurement(const Model& model, const std::vector<KernelSpec>& kernels)
      : kernels_(static_cast<std::size_t>(model.info().layers)),
        sums_(kernels_.size(), std::vector<LayerMeans>(kernels.size())),
        spreads_(kernels.size()),
        zero_denominators_(kernels.size()),
        scores_(kernels_.size(), std::vector<HeadScores>(static_cast<std::size_t>(model.info().heads))) {
    for (std::size_t layer = 0; layer < kernels_.size(); ++layer)
      for (const KernelSpec& kernel : kernels)
        kernels_[layer].push_back(layer_kernel(model, static_cast<int>(layer), kernel));
  }

  void add(int layer, const AttentionInput& input) {
    const auto position = static_cast<std::size_t>(layer);
    const auto read = read_heads(measured_quantities(), input, kernels_[position]);
    for (std::size_t i = 0; i < read.size(); ++i) {
      const at::Tensor kl = sums_[position][i].add(read[i].values, input);
      spreads_[i].add(layer, static_cast<int>(kernels_.size()), kl);
      zero_denominators_[i] += read[i].zero_denominators.read();
    }
    add_scores(scores_[position], score_range(input));
    if (layer != 0) return;
    items_ += input.q.size(0);
    tokens_ += input.q.size(0) * input.q.size(2);
  }

  // By kernel: the reason why it cannot run on such an input, or an empty text.
  std::vector<std::string> reasons_unsupported(const AttentionInput& input) const {
    std::vector<std::string> reasons;
    for (const LayerKernel& one : kernels_.front()) {
      const Support support = one.kernel->supports(shape_of(input));
      reasons.push_back(support.ok
                            ? std::string()
                            : fmt::format("{} was left out: {}", one.kernel->spec().text(), support.reason));
    }
    return reasons;
  }

  // Removes the kernels whose mark is not 0. Call before the first add().
  void drop(const std::vector<double>& marks) {
    for (std::size_t i = marks.size(); i-- > 0;) {
      if (marks[i] == 0) continue;
      const auto at = static_cast<std::ptrdiff_t>(i);
      spreads_.erase(spreads_.begin() + at);
      zero_denominators_.erase(zero_denominators_.begin() + at);
      for (auto& layer : sums_) layer.erase(layer.begin() + at);
      for (auto& layer : kernels_) layer.erase(layer.begin() + at);
    }
  }

  // Adds the sums of the other processes, so that all have the same.
  void combine(const DataShare& share) {
    if (share.size == 1) return;
    std::vector<double> values, extremes;
    visit_sums([&](double& value) { values.push_back(value); });
    share.sum(values);
    auto next = values.begin();
    visit_sums([&](double& value) { value = *next++; });
    for (const std::vector<HeadScores>& heads : scores_)
      for (const HeadScores& head : heads) extremes.insert(extremes.end(), {head.smallest, -head.largest});
    share.smallest(extremes);
    next = extremes.begin();
    for (std::vector<HeadScores>& heads : scores_)
      for (HeadScores& head : heads) {
        head.smallest = *next++;
        head.largest = -*next++;
      }
  }

  std::int64_t items() const { return items_; }

  void finish(const SeriesOfData& series, TeacherForcedOutcome& outcome) {
    const auto length = series.series->length();
    for (std::size_t i = 0; i < zero_denominators_.size(); ++i) {
      KernelMeasure measure;
      measure.kernel = kernels_.front()[i].kernel->spec();
      measure.data = series.data;
      measure.length = length;
      measure.items = items_;
      measure.tokens = tokens_;
      for (std::size_t layer = 0; layer < kernels_.size(); ++layer) {
        measure.layers.push_back(sums_[layer][i].means());
        const LayerKernel& kernel = kernels_[layer][i];
        measure.untrained = measure.untrained || (kernel.kernel->info().trainable && !kernel.own_parameters);
      }
      measure.mean = mean_of(measure.layers);
      measure.kl_error = spreads_[i].standard_error();
      check_numbers(measure);
      measure.zero_denominators = zero_denominators_[i];
      outcome.measures.push_back(std::move(measure));
    }
    for (std::vector<HeadScores>& heads : scores_)
      for (HeadScores& head : heads) head.share_below /= static_cast<double>(items_);
    outcome.scores.push_back({series.data, length, std::move(scores_)});
  }

private:
  // Visits all sums, in a fixed order. Counts are exact as doubles.
  void visit_sums(const std::function<void(double&)>& each) {
    const auto count = [&](std::int64_t& number) {
      auto value = static_cast<double>(number);
      each(value);
      number = std::llround(value);
    };
    for (auto& layer : sums_)
      for (LayerMeans& kernel : layer) kernel.visit(each);
    for (ItemSpread& spread : spreads_) spread.visit(each);
    for (std::int64_t& zeros : zero_denominators_) count(zeros);
    for (std::vector<HeadScores>& heads : scores_)
      for (HeadScores& head : heads) each(head.share_below);
    count(items_);
    count(tokens_);
  }

  // The model's own values are finite, so any others come from the kernel's parameters.
  static void check_numbers(const KernelMeasure& measure) {
    const KernelMeans& mean = measure.mean;
    const bool distributions = has_distributions(kernel_info(measure.kernel));
    if (std::isfinite(mean.ratio) && (!distributions || std::isfinite(mean.entropy))) return;
    throw Error(measure.kernel.text(), "its weights or outputs are not finite",
                "see that the adapter's parameters are, or leave the adapter out with --no-adapter");
  }

  static void add_scores(std::vector<HeadScores>& heads, const ScoreRange& range) {
    const at::Tensor read = at::stack({range.smallest, range.largest, range.share_below}).to(at::kCPU);
    for (std::size_t i = 0; i < heads.size(); ++i) {
      const at::Tensor head = read.select(2, static_cast<std::int64_t>(i)); // (3,B)
      heads[i].smallest = std::min(heads[i].smallest, head[0].min().item<double>());
      heads[i].largest = std::max(heads[i].largest, head[1].max().item<double>());
      heads[i].share_below += head[2].sum().item<double>();
    }
  }

  std::vector<std::vector<LayerKernel>> kernels_; // by layer, by kernel
  std::vector<std::vector<LayerMeans>> sums_;
  std::vector<ItemSpread> spreads_;             // by kernel
  std::vector<std::int64_t> zero_denominators_; // by kernel
  std::vector<std::vector<HeadScores>> scores_; // by layer, by head
  std::int64_t items_ = 0, tokens_ = 0;
};

// Progress over all processes. They synchronise a fixed number of times per series, however large their
// shares: none continues for hours after another has ended, or waits for hours.
class SharedProgress {
public:
  SharedProgress(const DataShare& share, const MeasureProgress& progress, std::int64_t total)
      : share_(share), progress_(progress), total_(summed(total)) {}

  void begin(std::int64_t own_of_series) {
    series_ = own_of_series;
    in_series_ = synchronised_ = 0;
  }

  void advance(std::int64_t done) {
    done_ += done;
    in_series_ += done;
    if (share_.size == 1) {
      if (progress_) progress_(done_, total_);
      return;
    }
    while (synchronised_ < in_series_ * kSynchronisations / std::max<std::int64_t>(series_, 1)) synchronise();
  }

  void end() {
    while (share_.size > 1 && synchronised_ < kSynchronisations) synchronise();
  }

private:
  static constexpr std::int64_t kSynchronisations = 32;

  std::int64_t summed(std::int64_t own) const {
    double value = static_cast<double>(own);
    if (share_.size > 1) share_.sum({&value, 1});
    return std::llround(value);
  }

  void synchronise() {
    ++synchronised_;
    const std::int64_t done = summed(done_);
    if (progress_ && done > shown_) progress_(done, total_);
    shown_ = done;
  }

  const DataShare& share_;
  const MeasureProgress& progress_;
  std::int64_t total_, done_ = 0, shown_ = 0;
  std::int64_t series_ = 0, in_series_ = 0, synchronised_ = 0;
};

// Removes the kernels that cannot run on the first input of rank 0, with a note there. Every process calls it
// once; `input` is null on other ranks, and if rank 0 has no input.
void drop_unsupported(Measurement& measurement, std::size_t kernels, const AttentionInput* input,
                      const DataShare& share, std::vector<std::string>& notes) {
  std::vector<double> marks(kernels);
  if (input != nullptr) {
    const std::vector<std::string> reasons = measurement.reasons_unsupported(*input);
    for (std::size_t i = kernels; i-- > 0;) {
      if (reasons[i].empty()) continue;
      marks[i] = 1;
      notes.push_back(reasons[i]);
    }
  }
  if (share.size > 1) share.sum(marks);
  measurement.drop(marks);
}

TeacherForcedOutcome measure(const Placement& placement, const TeacherForcedRequest& request,
                             const MeasureProgress& progress, const std::stop_token& stop,
                             ModelStore& store) {
  const auto base_model = store.base(request.model_folder);
  const ModelInfo& base = base_model->info();
  const Schedule softmax{std::vector<KernelSpec>(static_cast<std::size_t>(base.layers))};
  const AppliedModel applied =
      store.apply(request.model_folder, base_model, request.adapters, softmax, placement);
  const Model& model = *applied.model;
  const std::vector<KernelSpec> kernels = kernels_of(request);
  const DataShare& share = request.share;

  TeacherForcedOutcome outcome;
  outcome.model_hash = base_model->hash();
  for (const AppliedAdapter& adapter : applied.adapters) outcome.adapters.push_back(adapter.info);
  const auto note = [&](const std::string& text) { outcome.notes.push_back(text); };
  const std::vector<SeriesOfData> all = make_series(applied, request, outcome.notes);
  if (share.rank != 0) outcome.notes.clear(); // rank 0 has the same
  const bool skip = request.skip_unsupported || request.kernels.empty();
  std::int64_t total = 0;
  for (const SeriesOfData& series : all) total += series.series->items() * base.layers;
  SharedProgress shared(share, progress, total);
  for (const SeriesOfData& series : all) {
    Measurement measurement(model, kernels);
    bool checked = !skip;
    const auto check = [&](const AttentionInput* input) {
      if (!checked) drop_unsupported(measurement, kernels.size(), input, share, outcome.notes);
      checked = true;
    };
    if (share.rank != 0) check(nullptr);
    shared.begin(series.series->items() * base.layers);
    series.series->visit(
        applied.model,
        [&](int layer, const AttentionInput& input) {
          check(&input);
          measurement.add(layer, input);
          shared.advance(input.q.size(0));
        },
        stop, note);
    check(nullptr);
    shared.end();
    measurement.combine(share);
    if (measurement.items() == 0)
      throw Error(series.data.string(), "holds no picture", "name another folder");
    measurement.finish(series, outcome);
  }
  return outcome;
}

} // namespace

TeacherForcedOutcome measure_teacher_forced(const TeacherForcedRequest& request,
                                            const MeasureProgress& progress, const std::stop_token& stop,
                                            const std::shared_ptr<ModelStore>& models) {
  return measure_teacher_forced_in(placement_of(request.execution), request, progress, stop, models);
}

TeacherForcedOutcome measure_teacher_forced_in(const Placement& placement,
                                               const TeacherForcedRequest& request,
                                               const MeasureProgress& progress, const std::stop_token& stop,
                                               const std::shared_ptr<ModelStore>& models) {
  const ThreadCount threads(request.execution.threads);
  return with_remedies({.subject = "kl",
                        .memory = "use smaller --lengths or fewer kernels",
                        .other = "try shorter texts or fewer kernels",
                        .device = placement.device_name()},
                       [&] { return measure(placement, request, progress, stop, *models); });
}

} // namespace hydrascope
