#include "engine/measure/scaling.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/randn.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <fmt/format.h>

#include "engine/attention/interface/device.h"
#include "engine/attention/interface/kernel.h"
#include "engine/attention/interface/remedies.h"
#include "engine/base/device_error.h"
#include "engine/base/error.h"
#include "engine/models/model_info.h"
#include "engine/run/device_clock.h"
#include "engine/run/run.h"

namespace hydrascope {
namespace {

// Measures the memory of the tensors that the calling thread allocates during its lifetime: LibTorch's CPU
// allocator reports to the profiler's slot. One at a time in a thread.
class AllocationMeter {
public:
  // The most bytes held at once beyond those held at the beginning.
  std::int64_t peak_bytes() const { return count_->peak; }

private:
  struct Count final : c10::MemoryReportingInfoBase {
    std::int64_t held = 0, peak = 0;

    void reportMemoryUsage(void*, const std::int64_t bytes, std::size_t, std::size_t, c10::Device) override {
      held += bytes;
      peak = std::max(peak, held);
    }
    bool memoryProfilingEnabled() const override { return true; }
  };

  std::shared_ptr<Count> count_ = std::make_shared<Count>();
  c10::DebugInfoGuard guard_{c10::DebugInfoKind::PROFILER_STATE, count_};
};

// rows · columns = N with rows ≤ columns, as square as possible.
TokenLayout grid_of(std::int64_t tokens) {
  std::int64_t rows = 1;
  for (std::int64_t side = 1; side * side <= tokens; ++side)
    if (tokens % side == 0) rows = side;
  return {.prefix = 0, .rows = rows, .columns = tokens / rows};
}

AttentionInput random_input(const ScalingSetting& setting, const at::Device device, std::int64_t tokens) {
  const at::ScalarType type = dtype_on(device, setting.dtype);
  const std::int64_t heads = setting.heads, width = setting.head_width;
  // Strided as a model's projections: the heads are slices of rows of D.
  const auto random = [&] { return at::randn({1, tokens, heads, width}, device).to(type).transpose(1, 2); };
  AttentionInput input;
  input.q = random();
  input.k = random();
  input.v = random();
  input.layer_input = at::randn({1, tokens, heads * width}, device).to(type);
  if (setting.image) input.layout = grid_of(tokens);
  return input;
}

// q, k, v, the layer's input and the output, each also in float32, a tile of scores or features, and the
// kernel's maps and sums, whose numbers enter a product with each token.
double bytes_needed(const Kernel& kernel, AttentionShape shape) {
  constexpr double tile = 192.0 * (1 << 20);
  const double of_tokens = 10.0 * static_cast<double>(shape.tokens) * model_width(shape);
  shape.tokens = 1;
  shape.layout = {};
  return (of_tokens + kernel.cost(shape).computed()) * sizeof(float) + tile;
}

} // namespace

void set_heads_of(const ModelInfo& model, ScalingSetting& setting) {
  setting.heads = model.heads;
  setting.head_width = model.width / std::max(model.heads, 1);
  setting.image = model.input == InputKind::image;
}

struct ScalingMeasurer::State {
  std::unique_ptr<Kernel> kernel;
  KernelParameters parameters;
  ScalingSetting setting;
  ScalingLimits limits;
  at::Device device = at::kCPU;
  double seconds = 0, products = 0; // of the last point; 0 before the first

  // The reason why a point is not affordable; empty if it is.
  std::string too_much(const AttentionShape& shape, double new_products) const {
    const double needed = bytes_needed(*kernel, shape);
    constexpr double most = 0.5; // of what is free
    const auto free = static_cast<double>(free_bytes(device, needed / most));
    if (free > 0 && needed > most * free)
      return fmt::format("needs about {:.1f} GiB, {:.1f} GiB are free", needed / (1 << 30), free / (1 << 30));
    const double expected = products > 0 ? seconds * new_products / products : 0;
    if (expected > limits.run_seconds)
      return fmt::format("a run would take about {:.0f} s", std::max(expected, 1.0));
    return {};
  }

  void repeat(const AttentionInput& input, ScalingPoint& point, const std::stop_token& stop,
              const std::function<std::uint64_t()>& quiet) const {
    const DeviceClock clock(device);
    std::vector<double> times;
    double warm_up = 0, spent = 0;
    bool first = true;
    const auto enough = [&] {
      const auto runs = static_cast<int>(times.size());
      const bool slow = spent > 2 * limits.point_seconds;
      return runs >= limits.most_runs ||
             (spent >= limits.point_seconds && runs >= (slow ? 3 : limits.least_runs));
    };
    while (!enough()) {
      const std::uint64_t before = quiet ? quiet() : 0;
      if (stop.stop_requested()) throw Cancelled();
      std::optional<AllocationMeter> meter;
      if (first) meter.emplace(); // not during the timed runs
      AttentionOutput output;
      const double taken = clock.seconds([&] {
        output = kernel->run(input, parameters);
        output.out = kernel->finish(output.out, input.mask, parameters);
      });
      if (quiet && quiet() != before) continue; // disturbed
      point.path = output.path;
      if (meter) point.peak_bytes = meter->peak_bytes();
      if (std::exchange(first, false)) continue;
      if (warm_up < limits.warm_up_seconds) {
        warm_up += taken;
        continue;
      }
      times.push_back(taken);
      spent += taken;
    }
    point.time = repeated_time(std::move(times));
  }
};

ScalingMeasurer::ScalingMeasurer(const KernelSpec& kernel, ScalingSetting setting, ScalingLimits limits)
    : state_(std::make_unique<State>()) {
  state_->device = device_of(setting.device);
  dtype_on(state_->device, setting.dtype);
  state_->kernel = make_kernel(kernel);
  state_->setting = std::move(setting);
  state_->limits = limits;
}
ScalingMeasurer::~ScalingMeasurer() = default;

ScalingPoint ScalingMeasurer::measure(std::int64_t tokens, const std::stop_token& stop,
                                      const std::function<std::uint64_t()>& quiet) {
  State& state = *state_;
  const ScalingSetting& setting = state.setting;
  ScalingPoint point{.kernel = state.kernel->spec(), .tokens = tokens};
  AttentionShape shape{.heads = setting.heads,
                       .tokens = tokens,
                       .head_width = setting.head_width,
                       .dtype = dtype_on(state.device, setting.dtype),
                       .device = state.device.type(),
                       .has_layer_input = true};
  shape.device_index = state.device.index();
  if (setting.image) shape.layout = grid_of(tokens);
  if (const Support support = state.kernel->supports(shape); !support.ok) {
    point.skipped = support.reason;
    return point;
  }
  const Cost cost = state.kernel->cost(shape);
  point.products = cost.computed();
  point.bytes = cost.bytes;
  point.skipped = state.too_much(shape, point.products);
  if (!point.skipped.empty()) return point;
  const ThreadCount threads(setting.threads);
  const at::NoGradGuard no_gradients;
  try {
    if (state.parameters.empty()) {
      state.parameters = state.kernel->initial_parameters({setting.heads, setting.head_width});
      for (auto& [name, parameter] : state.parameters) parameter = parameter.to(state.device);
    }
    const AttentionInput input = random_input(setting, state.device, tokens);
    state.repeat(input, point, stop, quiet);
  } catch (...) {
    const Failure failure = caught_failure(setting.device);
    // The next point would fail alike.
    if (failure.kind == Failure::Kind::broken_device) throw BrokenDevice(point.kernel.text(), failure.reason);
    point.skipped = failure.reason;
    return point;
  }
  state.seconds = point.time.median;
  state.products = point.products;
  return point;
}

std::vector<KernelSpec> softmax_forms(const std::string& device) {
  std::vector<KernelSpec> forms = {{"softmax", {}}, {"sdpa", {}}};
  if (!device.starts_with("cuda")) forms.push_back({"flash", {}});
  return forms;
}

std::vector<std::int64_t> scaling_lengths() {
  std::vector<std::int64_t> lengths;
  for (std::int64_t tokens = 64; tokens <= 32768; tokens *= 2) lengths.push_back(tokens);
  return lengths;
}

} // namespace hydrascope
