#include "engine/attention/own/map_script.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/jit/runtime/interpreter.h>
#include <torch/csrc/jit/runtime/jit_exception.h>

#include "engine/attention/interface/parameters.h"
#include "engine/attention/linear/feature_map.h"
#include "engine/attention/own/allocation_limit.h"
#include "engine/attention/own/map_compiler.h"
#include "engine/attention/own/value_checks.h"
#include "engine/base/device_error.h"
#include "engine/base/text.h"

namespace hydrascope {
namespace {

namespace jit = torch::jit;

std::string shape_text(const at::Tensor& x) { return fmt::format("({})", fmt::join(x.sizes().vec(), ",")); }

// ---- Values

std::int64_t length_of(const MapParameter::Length& length, const std::int64_t heads,
                       const std::int64_t head_width) {
  using Unit = MapParameter::Length::Unit;
  switch (length.unit) {
    case Unit::heads: return length.factor * heads;
    case Unit::head_width: return length.factor * head_width;
    case Unit::one: break;
  }
  return length.factor;
}

// Of a layer's map, its queries' and keys' together.
constexpr std::int64_t most_numbers = std::int64_t{1} << 24;

// Throws SourceError for more numbers than a layer's map may have.
std::vector<std::int64_t> shape_of(const MapParameter& parameter, const std::string& name,
                                   const std::int64_t heads, const std::int64_t head_width) {
  std::vector<std::int64_t> shape;
  std::int64_t numbers = 1;
  for (const MapParameter::Length& length : parameter.shape) {
    shape.push_back(length_of(length, heads, head_width));
    if (shape.back() > most_numbers || shape.back() * numbers > most_numbers)
      throw SourceError(name, 0,
                        fmt::format("{} has more than {} numbers for {} heads of {}", parameter.name,
                                    most_numbers, heads, head_width));
    numbers *= std::max<std::int64_t>(shape.back(), 1);
  }
  return shape;
}

at::Tensor start_of(const MapParameter& parameter, const std::string& name, const std::int64_t heads,
                    const std::int64_t head_width, const std::string& key, const int layer) {
  const std::vector<std::int64_t> shape = shape_of(parameter, name, heads, head_width);
  switch (parameter.start) {
    case MapParameter::Start::zeros: return at::zeros(shape);
    case MapParameter::Start::ones: return at::ones(shape);
    case MapParameter::Start::normal: {
      const std::uint64_t seed = layer_seed(std::hash<std::string>{}(key), layer);
      return at::randn(shape, at::detail::createCPUGenerator(seed));
    }
    case MapParameter::Start::identity: break;
  }
  const std::size_t dimensions = shape.size();
  if (dimensions < 2)
    throw SourceError(name, 0,
                      fmt::format("{} cannot start as the identity: it has one dimension", parameter.name));
  at::Tensor identity = at::eye(shape[dimensions - 2], shape[dimensions - 1]);
  for (std::size_t i = dimensions - 2; i-- > 0;) {
    std::vector<std::int64_t> repeats(static_cast<std::size_t>(identity.dim()) + 1, 1);
    repeats.front() = shape[i];
    identity = identity.unsqueeze(0).repeat(repeats);
  }
  return identity;
}

// A few tokens, for trying a source: values of either sign.
at::Tensor trial(const std::int64_t heads, const std::int64_t tokens, const std::int64_t head_width) {
  return at::sin(at::arange(heads * tokens * head_width, at::kFloat) * 1.7)
      .view({1, heads, tokens, head_width});
}

// Features and scores are computed for blocks of tokens, for single rows, and for one token after another.
// Throws SourceError with `reason` unless a token by itself gives what it gives among others.
void require_same(const MapSource& source, const at::Tensor& among_others, const at::Tensor& alone,
                  const char* const reason) {
  constexpr double tolerance = 1e-2; // sums in another order, half precision
  const at::Tensor sizes = among_others.abs();
  const double largest = at::where(sizes.isfinite(), sizes, 0).max().item<double>();
  if (!at::allclose(alone, among_others, tolerance, tolerance * std::min(largest, 1.0), true))
    throw SourceError(source.name, 0, reason);
}

bool is_on_accelerator(const jit::Stack& arguments) {
  return std::ranges::any_of(arguments, [](const c10::IValue& argument) {
    return argument.isTensor() && argument.toTensor().defined() && !argument.toTensor().is_cpu();
  });
}

constexpr std::size_t least_limit = std::size_t{256} << 20;
constexpr double trial_seconds = 5; // for all calls of a trial together: a few tokens take milliseconds

} // namespace

struct MapScript::Compiled {
  std::map<std::string, CompiledFunction> functions; // phi, phi_k, score
  mutable std::mutex trying;                         // while it is tried, which may take seconds
  mutable std::mutex mutex;                          // of the following, never for long
  mutable std::map<std::pair<std::int64_t, std::int64_t>, std::optional<SourceError>> problems; // by H, d
  mutable std::map<std::int64_t, std::int64_t> widths;                                          // by d

  at::Tensor run(const MapSource& source, const CompiledFunction& function, const jit::Stack& arguments,
                 const std::size_t bytes) const {
    // By far more than new numbers of this size take on the slowest processor.
    constexpr double first_seconds = 5, seconds_per_byte = 10e-9;
    const AllocationLimit limit(bytes, first_seconds + seconds_per_byte * static_cast<double>(bytes));
    try {
      jit::Stack stack = arguments;
      jit::InterpreterState(function.code).run(stack);
      AllocationLimit::check_time(); // what came last may have allocated nothing any more
      if (stack.size() != 1 || !stack.front().isTensor())
        throw SourceError(source.name, 0, "it returns no tensor");
      return stack.front().toTensor();
    } catch (const SourceError&) {
      throw;
    } catch (const std::exception& error) {
      const std::string message = error.what(), reason = interpreter_reason(message);
      // A broken device and a lack of memory are no fault of the source, unless it raises the error itself.
      // The interpreter passes on the text alone.
      if (dynamic_cast<const jit::JITException*>(&error) == nullptr) {
        const bool on_accelerator = is_on_accelerator(arguments);
        if (on_accelerator && lasts_until_restart(reason)) throw BrokenDevice(source.name, reason);
        if (on_accelerator && contains_any_case(reason, "out of memory"))
          C10_THROW_ERROR(OutOfMemoryError, reason);
        if (limit.no_memory() || reason == std::bad_alloc().what()) throw std::bad_alloc();
      }
      throw SourceError(source.name, line_in(message, true),
                        limit.late()       ? "it takes too long for this input"
                        : limit.exceeded() ? fmt::format("it takes more than {} for this input",
                                                         bytes_text(static_cast<double>(bytes)))
                                           : reason);
    }
  }
};

MapScript::MapScript(const MapSource& source) : source_(source), compiled_(std::make_unique<Compiled>()) {
  compiled_->functions = compile(source);
}

MapScript::~MapScript() = default;

at::Tensor MapScript::map(const Side side, const at::Tensor& x, const Positions& positions,
                          const KernelParameters& parameters, const HeadShape& heads) const {
  const bool own_key_map = side == Side::key && source_.function("phi_k") != nullptr;
  const CompiledFunction& function = compiled_->functions.at(own_key_map ? "phi_k" : "phi");
  const std::string prefix = source_.shared ? "" : side == Side::query ? "query." : "key.";
  jit::Stack arguments{x};
  for (const std::string& name : function.parameters) {
    if (name == "i" || name == "n") {
      arguments.emplace_back((name == "i" ? positions.i : positions.n).to(x.scalar_type()));
      continue;
    }
    arguments.emplace_back(parameter(prefix, name, x.size(1), heads, parameters, x));
  }
  constexpr std::size_t copies = 512; // a map may square the head's width
  const std::size_t bytes = least_limit + copies * x.nbytes();
  const at::Tensor y = compiled_->run(source_, function, arguments, bytes);
  if (y.dim() != 4 || y.size(0) != x.size(0) || y.size(1) != x.size(1) || y.size(2) != x.size(2) ||
      y.size(3) < 1)
    throw SourceError(source_.name, 0,
                      fmt::format("x is (B,H,N,d) = {}, and {} returns {}, not (B,H,N,d′)", shape_text(x),
                                  own_key_map ? "phi_k" : "phi", shape_text(y)));
  const std::int64_t most = std::max(most_features, 2 * x.size(3) * x.size(3)); // it may square the width
  if (y.size(3) > most)
    throw SourceError(source_.name, 0,
                      fmt::format("it returns d′ = {} features for each token, and at most {} are accepted",
                                  y.size(3), most));
  check_kind(source_, y, x);
  check_values(source_, y, x, [&] { compiled_->run(source_, function, arguments, bytes); });
  return y;
}

at::Tensor MapScript::score(const at::Tensor& q, const at::Tensor& k,
                            const KernelParameters& parameters) const {
  const CompiledFunction& function = compiled_->functions.at("score");
  jit::Stack arguments{q, k};
  for (const std::string& name : function.parameters)
    arguments.emplace_back(parameter("", name, q.size(1), {q.size(1), q.size(3)}, parameters, q));
  constexpr std::size_t copies = 64; // of the weights
  const std::int64_t weights = q.size(0) * q.size(1) * q.size(2) * k.size(2);
  const std::size_t bytes =
      least_limit + copies * static_cast<std::size_t>(weights + q.numel() + k.numel()) * q.element_size();
  const at::Tensor w = compiled_->run(source_, function, arguments, bytes);
  if (w.dim() != 4 || w.size(0) != q.size(0) || w.size(1) != q.size(1) || w.size(2) != q.size(2) ||
      w.size(3) != k.size(2))
    throw SourceError(source_.name, 0,
                      fmt::format("q is (B,H,R,d) = {}, k is {}, and score returns {}, not (B,H,R,N)",
                                  shape_text(q), shape_text(k), shape_text(w)));
  check_kind(source_, w, q);
  check_values(source_, w, q, [&] { compiled_->run(source_, function, arguments, bytes); });
  return w;
}

// The heads of a side's parameters: of scores those of the queries.
std::int64_t MapScript::heads_with(const std::string& prefix, const HeadShape& shape) const {
  const bool of_queries = prefix == "query." || source_.form == MapSource::Form::score;
  return of_queries ? shape.heads : shape.of_keys();
}

at::Tensor MapScript::parameter(const std::string& prefix, const std::string& name, const std::int64_t heads,
                                const HeadShape& shape, const KernelParameters& parameters,
                                const at::Tensor& like) const {
  const MapParameter& declared = *std::ranges::find(source_.parameters, name, &MapParameter::name);
  const std::int64_t own_heads = heads_with(prefix, shape);
  const auto found = parameters.find(prefix + name);
  at::Tensor value;
  if (found == parameters.end() || !found->second.defined()) {
    value =
        start_of(declared, source_.name, own_heads, shape.head_width, prefix + name, 0).to(like.options());
  } else {
    const std::vector<std::int64_t> sizes = shape_of(declared, source_.name, own_heads, shape.head_width);
    if (found->second.sizes() != at::IntArrayRef(sizes))
      throw UsageError(prefix + name, "its shape is " + shape_text(found->second),
                       fmt::format("for this input it is ({})", fmt::join(sizes, ",")));
    value = found->second.to(like.scalar_type());
  }
  if (own_heads == heads) return value;
  for (std::size_t i = 0; i < declared.shape.size(); ++i) {
    const auto& [factor, unit] = declared.shape[i];
    if (unit != MapParameter::Length::Unit::heads) continue;
    if (factor != 1)
      throw UsageError(prefix + name, fmt::format("it has {} entries for each head", factor),
                       "give parameters that grouped heads share one entry for each head, H");
    value = value.repeat_interleave(heads / own_heads, static_cast<std::int64_t>(i));
  }
  return value;
}

std::vector<std::string> MapScript::prefixes() const {
  if (source_.shared || source_.form == MapSource::Form::score) return {""};
  return {"query.", "key."};
}

void MapScript::limit_parameters(const HeadShape& shape) const {
  std::int64_t numbers = 0;
  for (const std::string& prefix : prefixes())
    for (const MapParameter& one : source_.parameters) {
      std::int64_t own = 1;
      for (const std::int64_t length :
           shape_of(one, source_.name, heads_with(prefix, shape), shape.head_width))
        own *= length;
      numbers += own;
    }
  if (numbers > most_numbers)
    throw SourceError(source_.name, 0,
                      fmt::format("its parameters have more than {} numbers together for {} heads of {}",
                                  most_numbers, shape.heads, shape.head_width));
}

KernelParameters MapScript::initial_parameters(const HeadShape& shape, const int layer) const {
  limit_parameters(shape);
  KernelParameters parameters;
  for (const std::string& prefix : prefixes())
    for (const MapParameter& one : source_.parameters)
      // Random numbers that are not trained are the same for queries and keys, as Performer's are.
      parameters[prefix + one.name] = start_of(one, source_.name, heads_with(prefix, shape), shape.head_width,
                                               one.fixed ? one.name : prefix + one.name, layer);
  return parameters;
}

std::vector<std::string> MapScript::fixed_parameters() const {
  std::vector<std::string> names;
  for (const std::string& prefix : prefixes())
    for (const MapParameter& one : source_.parameters)
      if (one.fixed) names.push_back(prefix + one.name);
  return names;
}

bool MapScript::is_tried(const std::int64_t heads, const std::int64_t head_width) const {
  const std::lock_guard lock(compiled_->mutex);
  return compiled_->problems.contains({heads, head_width});
}

std::optional<SourceError> MapScript::problem(const std::int64_t heads, const std::int64_t head_width) const {
  const auto known = [&] {
    const std::lock_guard lock(compiled_->mutex);
    return compiled_->problems.at({heads, head_width});
  };
  if (is_tried(heads, head_width)) return known();
  const std::lock_guard one_at_a_time(compiled_->trying);
  if (is_tried(heads, head_width)) return known(); // by another thread meanwhile
  const AllocationLimit limit(std::numeric_limits<std::size_t>::max(), trial_seconds);
  std::optional<SourceError> problem;
  try {
    try_out(heads, head_width);
  } catch (const SourceError& error) {
    problem = error;
  } catch (const std::bad_alloc&) {
    throw; // another time there may be more memory
  } catch (const std::exception& error) {
    if (limit.no_memory()) throw std::bad_alloc();
    problem = SourceError(source_.name, 0, interpreter_reason(error.what()));
  }
  const std::lock_guard lock(compiled_->mutex);
  compiled_->problems.insert_or_assign({heads, head_width}, problem);
  return problem;
}

void MapScript::try_out(const std::int64_t heads, const std::int64_t head_width) const {
  const at::NoGradGuard no_gradients;
  constexpr std::int64_t tokens = 3;
  const bool rows = source_.form == MapSource::Form::hydra; // (B,1,N,D)
  const at::Tensor x = rows ? trial(1, tokens, heads * head_width) : trial(heads, tokens, head_width);
  limit_parameters({heads, head_width});
  if (source_.form == MapSource::Form::score) {
    // As the kernel uses them: what all weights of a row have in common cancels.
    const auto weights = [&](const at::Tensor& q) {
      at::Tensor w = score(q, x, {});
      if (source_.logarithm) w = (w - w.amax(-1, true)).exp();
      return source_.divided_by_sums ? w / w.sum(-1, true) : w;
    };
    const at::Tensor q = x.slice(2, 1), all = weights(q);
    for (std::int64_t row = 0; row < q.size(2); ++row)
      require_same(source_, all.slice(2, row, row + 1), weights(q.slice(2, row, row + 1)),
                   "a query's weights depend on the other queries; they are computed for some at a time");
  } else {
    const at::Tensor i = at::arange(1, tokens + 1, at::kFloat).view({1, 1, tokens, 1});
    const Positions positions{i, i.slice(2, tokens - 1)};
    const HeadShape shape{x.size(1), x.size(3)};
    const auto tried = [&](const Side side) {
      const at::Tensor all = map(side, x, positions, {}, shape);
      for (std::int64_t t = 0; t < tokens; ++t)
        require_same(source_, all.slice(2, t, t + 1),
                     map(side, x.slice(2, t, t + 1), {i.slice(2, t, t + 1), positions.n}, {}, shape),
                     "a token's features depend on the other tokens; use only the last dimension");
      return all;
    };
    const at::Tensor query = tried(Side::query), key = tried(Side::key);
    if (query.size(3) != key.size(3))
      throw SourceError(source_.name, 0,
                        fmt::format("queries have {} features, keys {}", query.size(3), key.size(3)));
    if (rows && query.size(3) != x.size(3))
      throw SourceError(
          source_.name, 0,
          fmt::format("with hydra = True phi keeps the width: x has D = {} features, phi returns {}",
                      x.size(3), query.size(3)));
    if (rows) return;
    const std::lock_guard lock(compiled_->mutex);
    compiled_->widths.insert_or_assign(head_width, query.size(3));
  }
}

std::string MapScript::refusal(const std::int64_t heads, const std::int64_t head_width) const {
  const std::optional<SourceError> found = problem(heads, head_width);
  if (!found) return {};
  return found->line() > 0 ? fmt::format("line {}: {}", found->line(), found->reason()) : found->reason();
}

std::int64_t MapScript::width(const std::int64_t head_width) const {
  const auto known = [&]() -> std::optional<std::int64_t> {
    const std::lock_guard lock(compiled_->mutex);
    const auto found = compiled_->widths.find(head_width);
    return found == compiled_->widths.end() ? std::nullopt : std::optional(found->second);
  };
  if (const auto width = known()) return *width;
  const std::lock_guard one_at_a_time(compiled_->trying);
  if (const auto width = known()) return *width;
  const at::NoGradGuard no_gradients;
  const AllocationLimit limit(std::numeric_limits<std::size_t>::max(), trial_seconds);
  std::int64_t width = head_width;
  try {
    const at::Tensor one = at::ones({1, 1, 1, 1});
    width = map(Side::query, trial(1, 1, head_width), {one, one}, {}, {1, head_width}).size(3);
  } catch (const std::bad_alloc&) {
    throw;                          // another time there may be more memory
  } catch (const std::exception&) { // NOLINT(bugprone-empty-catch): refusal() says why
  }
  const std::lock_guard lock(compiled_->mutex);
  compiled_->widths.insert_or_assign(head_width, width);
  return width;
}

} // namespace hydrascope
