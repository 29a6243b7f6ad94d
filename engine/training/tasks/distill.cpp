#include "engine/training/loop/training.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/measure/teacher_forced_runs.h"
#include "engine/run/pass.h"
#include "engine/run/run.h"
#include "engine/training/data/data_hash.h"
#include "engine/training/data/sampling.h"
#include "engine/training/loop/loop.h"
#include "engine/training/tasks/distill_data.h"
#include "engine/training/tasks/distillation_loss.h"
#include "engine/training/tasks/start_maps.h"

namespace hydrascope {
namespace training {
namespace {

class Distillation final : public TrainingTask {
public:
  Distillation(const DistillRequest& request, std::stop_token stop, ModelStore& models)
      : request_(request),
        settings_(request.settings),
        stop_(std::move(stop)),
        threads_(settings_.execution.threads),
        kernel_(checked_kernel(request.kernel)),
        prepared_(prepare_model(models, settings_.model_folder, settings_.adapters, {},
                                training_placement(settings_.execution), true)),
        data_(make_distill_data(prepared_, request, stop_)),
        read_hash_(hash_of_read().substr(0, 12)) {
    softmax_ = kernel_for(prepared_.model->info(), {});
    kernel_ = kernel_for(prepared_.model->info(), request.kernel);
    split();
    const auto& info = prepared_.model->info();
    for (int layer = 0; layer < info.layers; ++layer)
      for (const auto& [name, value] : initial_layer_kernel(info, layer, kernel_->spec()).parameters)
        leaves_[kernel_parameter_name(layer, *kernel_, name)] =
            value.detach()
                .to(prepared_.model->device(), at::kFloat, false, /*copy=*/true)
                .requires_grad_(true);
    if (!request.start.empty()) {
      std::vector<KernelParameters> layers;
      for (int layer = 0; layer < info.layers; ++layer) layers.push_back(parameters_of(layer));
      set_start_maps(request.start, kernel_->spec(), info, layers);
      start_hash_ = sha256_of_file(request.start).substr(0, 12);
    }
    groups_ = info.heads;
    for (const auto& [name, value] : leaves_) groups_ = std::min(groups_, value.size(0));
  }

  std::vector<std::string> notes() const { return data_->notes(); }
  const NamedTensors& leaves() const override { return leaves_; }
  std::int64_t steps_per_epoch() const override { return static_cast<std::int64_t>(train_.size()); }
  std::int64_t items_of_step(const std::int64_t step) override { return std::ssize(batch_of(step)); }
  double learning_rate(const std::int64_t step, const std::int64_t total) const override {
    return request_.cosine ? warmup_cosine(settings_.learning_rate, step, 0, total) : settings_.learning_rate;
  }

  std::string configuration() const override {
    std::string files;
    for (const auto& file : request_.data) files += file.filename().string() + " ";
    return fmt::format(
        "distill {} of {} over {} on {}({} items{} of hash {}{}, columns {} and {}, chunk {}-{}, "
        "held-out share {}), {} epochs, batch {}{}{}, seed {}",
        request_.kernel.text() + start_text(), prepared_.model->info().name, hashes_text(prepared_), files,
        data_->items(), copies_text(), read_hash_, size_text(), request_.column, request_.pair_column,
        request_.chunk.least, request_.chunk.most, settings_.validation_share, settings_.epochs,
        settings_.batch,
        settings_.accumulate > 1 ? fmt::format(" in {} parts", settings_.accumulate) : std::string(),
        request_.cosine ? ", cosine" : "", settings_.execution.seed);
  }

  // A layer's loss is differentiated while the model runs, as it depends on the maps of this layer alone: no
  // more than one layer's weights exist at once.
  at::Tensor loss(const std::int64_t step, const Gradients&) override {
    const Items& batch = batch_of(step);
    const auto rows = static_cast<double>(rows_of(batch));
    Sums sums = no_sums();
    for (const Items& part : own_parts(batch, settings_))
      visit(part, [&](const int layer, const AttentionInput& input) {
        add(distillation_loss(input, *softmax_, *kernel_, parameters_of(layer), rows), layer, sums);
      });
    const at::Tensor divergence = ((sums.cross_entropy - sums.entropy) / rows).to(at::kDouble);
    return at::cat({sums.cross_entropy.mean().to(at::kDouble).view(1) / rows, divergence.view(-1)});
  }

  HeldOut validate() override {
    const at::NoGradGuard no_gradients;
    const auto& info = prepared_.model->info();
    const auto heads = static_cast<std::size_t>(info.layers) * static_cast<std::size_t>(info.heads);
    std::vector<double> sums(heads + 1); // of the heads' losses, then of the entropy of softmax's weights
    double items = 0;
    for (const auto& batch : validation_) {
      if (settings_.group == nullptr && stop_.stop_requested()) break;
      items += static_cast<double>(batch.size());
      Sums part = no_sums();
      for (const Items& own : own_parts(batch, settings_))
        visit(own, [&](const int layer, const AttentionInput& input) {
          add(distillation_loss(input, *softmax_, *kernel_, parameters_of(layer), 0), layer, part);
        });
      const double each = static_cast<double>(batch.size()) / static_cast<double>(rows_of(batch));
      const at::Tensor read =
          at::cat({part.cross_entropy.view(-1), part.entropy.mean().view(1)}).to(at::kCPU, at::kDouble);
      const auto* numbers = read.const_data_ptr<double>();
      for (double& sum : sums) sum += each * *numbers++;
    }
    sum_over(settings_.group, sums);
    for (double& sum : sums) sum /= std::max(1.0, items);
    HeldOut held_out;
    held_out.head_losses.assign(sums.begin(), sums.end() - 1);
    held_out.loss = std::accumulate(sums.begin(), sums.end() - 1, 0.0) / static_cast<double>(heads);
    held_out.divergence = held_out.loss - sums[heads];
    return held_out;
  }

  HeldOutMeasure measure() const override { return HeldOutMeasure::divergence; }
  double merit(const HeldOut& held_out) const override { return -held_out.loss; }

  // The loss of the heads that share a key/value head depends on their maps alone, so each such group (every
  // head, if none shares) has its own best state, which may be the initial one.
  bool keep_better(const HeldOut& held_out, HeldOut& best, NamedTensors& best_parameters) const override {
    bool kept = false;
    std::vector<double>& least = best.head_losses;
    const std::ptrdiff_t size = prepared_.model->info().heads / groups_;
    const auto loss_of = [&](const std::vector<double>& losses, const std::ptrdiff_t group) {
      const auto first = losses.begin() + group * size;
      return std::accumulate(first, first + size, 0.0);
    };
    for (std::ptrdiff_t group = 0; group * size < std::ssize(least); ++group) {
      if (!(loss_of(held_out.head_losses, group) < loss_of(least, group))) continue;
      copy_group(group, best_parameters);
      std::copy_n(held_out.head_losses.begin() + group * size, size, least.begin() + group * size);
      best.step = held_out.step;
      kept = true;
    }
    // The entropy of softmax's weights is constant: the divergence decreases with the loss.
    const double loss = std::accumulate(least.begin(), least.end(), 0.0) / static_cast<double>(least.size());
    best.divergence += loss - best.loss;
    best.loss = loss;
    return kept;
  }
  bool start_is_result() const override { return false; }

  void describe(const std::vector<double>& shown, TrainingProgress& progress) const override {
    const auto heads = static_cast<std::size_t>(prepared_.model->info().heads);
    progress.per_head.assign(shown.begin() + 1, shown.end());
    for (std::size_t i = 0; i < progress.per_head.size(); ++i) {
      if (i % heads == 0) progress.per_layer.push_back(0);
      progress.per_layer.back() += progress.per_head[i] / static_cast<double>(heads);
    }
    for (const double layer : progress.per_layer)
      progress.divergence += layer / static_cast<double>(progress.per_layer.size());
  }

  std::optional<AdapterRecord> record(const Checkpoint& state, const HeldOut& held_out) const override {
    AdapterRecord record;
    record.role = "maps";
    record.base = base_of(prepared_, record.role);
    const auto& info = prepared_.model->info();
    for (int layer = 0; layer < info.layers; ++layer) record.layers.push_back({layer, request_.kernel});
    if (info.input == InputKind::image) {
      record.image_size = image_size();
      record.tokens = data_->length(0);
    }
    for (const auto& one : request_.data) record.data += (record.data.empty() ? "" : ", ") + last_name(one);
    record.data += fmt::format(" ({} items{})", data_->items(), copies_text());
    record.data_hash = data_hash_;
    record.steps = held_out.step;
    record.loss = held_out.loss;
    record.accuracy = fmt::format("held-out KL(softmax ‖ kernel) {:.4f} nats, {:.4f} before training",
                                  held_out.divergence, state.before.divergence);
    record.command = settings_.command;
    return record;
  }

private:
  struct Sums {
    at::Tensor cross_entropy, entropy; // (L,H), summed over real rows
  };

  // The versions of step 0, 1, …, counted over all epochs.
  const Items& batch_of(const std::int64_t step) {
    const std::int64_t count = steps_per_epoch();
    const auto epoch = static_cast<std::uint64_t>(step / count);
    if (order_.empty() || epoch != epoch_) {
      order_ = shuffled(count, mix({settings_.execution.seed, 2, epoch}));
      epoch_ = epoch;
    }
    return train_[static_cast<std::size_t>(order_[static_cast<std::size_t>(step % count)])];
  }

  static std::shared_ptr<const Kernel> checked_kernel(const KernelSpec& spec) {
    if (spec.name == "t2r")
      throw UsageError("--kernel t2r", "its maps are trained with the task only, by finetune",
                       "t2r-hh is the same map trained by distillation");
    if (!can_be_distilled(kernel_info(spec)))
      throw UsageError("--kernel " + spec.name, "has no feature maps that distillation could train",
                       "try --kernel hedgehog");
    return make_kernel(spec);
  }

  int image_size() const { // 0 of texts
    const auto& info = prepared_.model->info();
    return info.input == InputKind::image ? settings_.execution.image_size.value_or(info.image_size) : 0;
  }

  std::string size_text() const { return image_size() > 0 ? fmt::format(", {} px", image_size()) : ""; }

  // What a resumed run must have in common. A capture's own hash is of a sample of its numbers, so that the
  // bytes of named files are added; a folder may hold other files, such as this training's own.
  std::string hash_of_read() const {
    const std::string hash = data_->hash();
    const bool of_bytes = prepared_.model->info().capture && !names_folder(request_);
    return of_bytes ? sha256_of_text(hash + data_hash_) : hash;
  }

  std::string start_text() const { return start_hash_.empty() ? "" : " from " + start_hash_; }

  // Copies the maps of a group of heads from the leaves; groups are counted over all layers. The first axis
  // of every map is the head, of keys the key/value head.
  void copy_group(const std::ptrdiff_t group, NamedTensors& to) const {
    const at::NoGradGuard no_gradients;
    const std::string prefix = kernel_parameter_name(static_cast<int>(group / groups_), *kernel_, "");
    for (const auto& [name, value] : leaves_) {
      if (!name.starts_with(prefix)) continue;
      const std::int64_t heads = value.size(0) / groups_, first = group % groups_ * heads;
      to.at(name).narrow(0, first, heads).copy_(value.narrow(0, first, heads));
    }
  }

  // Splits off the held-out items, of which no crop is trained on, and makes batches of similar length.
  void split() {
    const std::int64_t copies = data_->copies();
    if (data_->items() == 1) { // a capture of one sequence
      validation_ = train_ = {{0}};
      return;
    }
    auto [held_out, training] =
        split_items(data_->items(), settings_.validation_share, mix({settings_.execution.seed, 1}));
    for (std::int64_t& item : held_out) item *= copies;
    Items versions;
    for (const std::int64_t item : training)
      for (std::int64_t copy = 0; copy < copies; ++copy) versions.push_back(item * copies + copy);
    const auto length = [&](const std::int64_t version) { return data_->length(version); };
    validation_ = cut_by_length(held_out, settings_.batch, length);
    train_ = cut_by_length(versions, settings_.batch, length);
  }

  // For the words after the number of items.
  std::string copies_text() const {
    return data_->copies() > 1 ? fmt::format(", {} copies each", data_->copies()) : std::string();
  }

  std::int64_t rows_of(const std::vector<std::int64_t>& versions) const {
    std::int64_t rows = 0;
    for (const std::int64_t version : versions) rows += data_->length(version);
    return rows;
  }

  KernelParameters parameters_of(const int layer) const {
    KernelParameters parameters;
    const std::string prefix = kernel_parameter_name(layer, *kernel_, "");
    for (const auto& [name, value] : leaves_)
      if (name.starts_with(prefix)) parameters[name.substr(prefix.size())] = value;
    return parameters;
  }

  Sums no_sums() const {
    const auto& info = prepared_.model->info();
    const auto options = at::TensorOptions(at::kFloat).device(prepared_.model->device());
    return {at::zeros({info.layers, info.heads}, options), at::zeros({info.layers, info.heads}, options)};
  }
  static void add(const DistillationLoss& loss, const int layer, Sums& sums) {
    sums.cross_entropy.select(0, layer).add_(loss.cross_entropy);
    sums.entropy.select(0, layer).add_(loss.entropy);
  }

  // Visits the input of every layer's attention, with softmax in all of them.
  void visit(const Items& versions, const LayerVisitor& visitor) const {
    if (!prepared_.model->info().capture) {
      visit_softmax_run(prepared_.model, data_->batch(versions), visitor);
      return;
    }
    for (const std::int64_t version : versions) // captures differ in length
      visit_softmax_run(data_->capture_of(version), data_->batch({version}), visitor);
  }

  const DistillRequest& request_;
  const TrainingSettings& settings_;
  std::stop_token stop_;
  ThreadCount threads_;
  std::shared_ptr<const Kernel> kernel_, softmax_;
  PreparedModel prepared_;
  std::unique_ptr<DistillData> data_;
  std::string data_hash_ = data_hash(request_.data);
  std::string read_hash_;                 // of the data as it was read
  std::vector<Items> train_, validation_; // batches of versions
  NamedTensors leaves_;
  std::string start_hash_;          // of the adapter that it starts from; empty: none
  std::int64_t groups_ = 1;         // of heads of a layer that share maps: key/value heads
  std::vector<std::int64_t> order_; // of the batches of epoch_
  std::uint64_t epoch_ = 0;
};

} // namespace
} // namespace training

bool can_be_distilled(const KernelInfo& kernel) {
  return kernel.trainable && kernel.normalised && kernel.name != "t2r";
}

TrainingOutcome distill(const DistillRequest& request, const TrainingObserver& observer,
                        const std::stop_token& stop, const std::shared_ptr<ModelStore>& models) {
  return training::with_errors_of("distill", request.settings.execution.device, [&] {
    training::check_settings(request.settings);
    if (const std::string& dtype = request.settings.execution.dtype; dtype != "float32" && dtype != "auto")
      throw UsageError("--dtype " + dtype, "feature maps are distilled in float32", "leave --dtype out");
    std::optional<training::Distillation> task;
    try {
      task.emplace(request, stop, *models);
    } catch (const Cancelled&) { // while pictures were read; other processes fail at their next exchange
      TrainingOutcome outcome;
      outcome.stopped = true;
      return outcome;
    }
    for (const auto& note : task->notes()) training::report_note(observer, note);
    return training::run_training(*task, request.settings, task->notes(), observer, stop);
  });
}

} // namespace hydrascope
