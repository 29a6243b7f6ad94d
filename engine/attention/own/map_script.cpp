#include "engine/attention/own/map_script.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <numbers>
#include <optional>
#include <regex>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pthread.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/frontend/error_report.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/frontend/sugared_value.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include "engine/attention/interface/parameters.h"
#include "engine/attention/own/allocation_limit.h"
#include "engine/attention/own/allowed_operators.h"
#include "engine/base/text.h"

namespace hydrascope {
namespace {

namespace jit = torch::jit;

// ---- Names: torch, math and torch.nn.functional, as Python has them

std::shared_ptr<jit::SugaredValue> constant(jit::GraphFunction& function, const jit::IValue& value) {
  return std::make_shared<jit::SimpleValue>(function.graph()->insertConstant(value));
}

std::optional<double> number_named(const std::string& name) {
  if (name == "pi") return std::numbers::pi;
  if (name == "e") return std::numbers::e;
  if (name == "inf") return std::numeric_limits<double>::infinity();
  if (name == "nan") return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

class NnModule;

// `torch`, `math` or `torch.nn.functional`: constants, types, and LibTorch's operators.
class OperatorModule : public jit::SugaredValue {
public:
  std::string kind() const override { return "module"; }
  std::shared_ptr<jit::SugaredValue> attr(const jit::SourceRange& place, jit::GraphFunction& function,
                                          const std::string& name) override;
};

class NnModule final : public jit::SugaredValue {
public:
  std::string kind() const override { return "module torch.nn"; }
  std::shared_ptr<jit::SugaredValue> attr(const jit::SourceRange& place, jit::GraphFunction&,
                                          const std::string& name) override {
    if (name == "functional") return std::make_shared<OperatorModule>();
    // NOLINTNEXTLINE(misc-throw-by-value-catch-by-reference,bugprone-exception-copy-constructor-throws)
    throw jit::ErrorReport(place) << "torch.nn." << name << " is not known here, only torch.nn.functional is";
  }
};

std::shared_ptr<jit::SugaredValue> OperatorModule::attr(const jit::SourceRange& place,
                                                        jit::GraphFunction& function,
                                                        const std::string& name) {
  if (const auto number = number_named(name)) return constant(function, *number);
  if (name == "nn") return std::make_shared<NnModule>();
  for (const auto& [known, type] : {std::pair{"float32", at::kFloat}, std::pair{"float64", at::kDouble},
                                    std::pair{"int64", at::kLong}, std::pair{"bool", at::kBool}})
    if (name == known) return constant(function, static_cast<std::int64_t>(type));
  // Refused here and not after: the compiler runs operators on constants.
  if (const std::string why = why_not_allowed(name); !why.empty())
    // NOLINTNEXTLINE(misc-throw-by-value-catch-by-reference,bugprone-exception-copy-constructor-throws)
    throw jit::ErrorReport(place) << why;
  return std::make_shared<jit::BuiltinFunction>(c10::Symbol::fromQualString("aten::" + name), std::nullopt);
}

class Names final : public jit::Resolver {
public:
  std::shared_ptr<jit::SugaredValue> resolveValue(const std::string& name, jit::GraphFunction&,
                                                  const jit::SourceRange&) override {
    const bool known = name == "torch" || name == "math" || name == "F";
    return known ? std::make_shared<OperatorModule>() : nullptr;
  }
  jit::TypePtr resolveType(const std::string&, const jit::SourceRange&) override { return nullptr; }
};

// ---- Messages

// The first line (or, of a traceback, the last one) that a message of TorchScript names; 0 if it names none.
int line_in(const std::string& message, const bool last) {
  static const std::regex pattern(R"re(File "<string>", line (\d+))re");
  int line = 0;
  for (std::sregex_iterator at(message.begin(), message.end(), pattern), end; at != end; ++at) {
    line = whole_number((*at)[1].str()).value_or(0);
    if (!last) break;
  }
  return line;
}

void replace_all(std::string& text, const std::string& what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

// What the compiler says, in one line: "there is no torch.expp; near it: torch.exp, torch.exp2".
std::string compiler_reason(const std::string& message) {
  std::string reason;
  std::vector<std::string> near;
  for (const std::string_view line : split(message, '\n')) {
    const std::string_view words = trimmed(line, " \t:");
    if (words.empty()) continue;
    if (words.starts_with("File ") || words.starts_with("The original call")) break;
    if (reason.empty())
      reason = words;
    else if (words.starts_with("aten::") && !words.ends_with('_'))
      near.emplace_back(words);
    else if (!words.starts_with("Here are some") && near.empty())
      reason += fmt::format(" {}", words);
  }
  constexpr std::string_view unknown = "Unknown builtin op: ";
  if (reason.starts_with(unknown))
    reason = fmt::format("there is no {}", trimmed(std::string_view(reason).substr(unknown.size()), " ."));
  if (reason.ends_with(" here")) reason.resize(reason.size() - std::string(" here").size());
  constexpr std::string_view wrong_arguments = "Arguments for call are not valid";
  constexpr std::size_t shown = 3;
  if (near.size() > shown) near.resize(shown);
  if (reason.starts_with(wrong_arguments))
    reason = fmt::format("the arguments do not fit; it takes {}", fmt::join(near, " or "));
  else if (!near.empty())
    reason += fmt::format("; near it: {}", fmt::join(near, ", "));
  replace_all(reason, "aten::", "torch.");
  return reason;
}

// What the interpreter says, after its traceback.
std::string interpreter_reason(const std::string& message) {
  const std::size_t start = message.rfind("\nRuntimeError: ");
  std::string reason = start == std::string::npos ? message : message.substr(message.find(": ", start) + 2);
  reason = reason.substr(0, reason.find("\nException raised from")); // LibTorch's own stack
  reason = std::string(trimmed(reason));
  return reason.substr(0, reason.find('\n'));
}

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

// Throws SourceError for more numbers than a layer's map may have.
std::vector<std::int64_t> shape_of(const MapParameter& parameter, const std::string& name,
                                   const std::int64_t heads, const std::int64_t head_width) {
  constexpr std::int64_t most = std::int64_t{1} << 24; // D × D for D = 4096
  std::vector<std::int64_t> shape;
  std::int64_t numbers = 1;
  for (const MapParameter::Length& length : parameter.shape) {
    shape.push_back(length_of(length, heads, head_width));
    if (shape.back() > most || shape.back() * numbers > most)
      throw SourceError(name, 0,
                        fmt::format("{} has more than {} numbers for {} heads of {}", parameter.name, most,
                                    heads, head_width));
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

// ---- The line at fault: a rerun, observing each operator

struct Fault {
  const std::string* script = nullptr; // null: nothing is looked for
  std::string first_not_finite;        // operator
  int line_not_finite = 0;
  int last_line = 0;
};
Fault& fault_of_this_thread() {
  thread_local Fault fault;
  return fault;
}

std::unique_ptr<at::ObserverContext> before_operator(const at::RecordFunction&) { return nullptr; }

void after_operator(const at::RecordFunction& operation, at::ObserverContext*) {
  Fault& fault = fault_of_this_thread();
  if (fault.script == nullptr) return;
  const at::DisableRecordFunctionGuard no_recursion;
  int line = 0;
  for (const jit::StackEntry& entry : jit::currentCallstack()) // the innermost first
    if (line == 0) line = line_of(entry.range, *fault.script);
  if (line > 0) fault.last_line = line;
  if (!fault.first_not_finite.empty()) return;
  for (const c10::IValue& output : operation.outputs()) {
    if (!output.isTensor() || !output.toTensor().defined() || !output.toTensor().is_floating_point())
      continue;
    if (at::isfinite(output.toTensor()).all().item<bool>()) continue;
    fault.first_not_finite = python_name(operation.name());
    fault.line_not_finite = line;
  }
}

// Runs `work` on a thread with room for the compiler, whose depth grows with that of brackets and signs.
void on_deep_stack(std::function<void()> work) {
  constexpr std::size_t bytes = std::size_t{512} << 20; // of addresses; memory is taken as it is used
  struct Task {
    std::function<void()> work;
    std::exception_ptr error;
  } task{std::move(work), nullptr};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, bytes);
  pthread_t thread{};
  const int failure = pthread_create(
      &thread, &attributes,
      [](void* argument) -> void* {
        Task& own = *static_cast<Task*>(argument);
        try {
          own.work();
        } catch (...) {
          own.error = std::current_exception();
        }
        return nullptr;
      },
      &task);
  pthread_attr_destroy(&attributes);
  if (failure != 0) throw Error("phi", "no thread could be started to compile it", "close other programs");
  pthread_join(thread, nullptr);
  if (task.error) std::rethrow_exception(task.error);
}

class FaultSearch {
public:
  explicit FaultSearch(const MapSource& source)
      : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(before_operator, after_operator)
                                               .needsOutputs(true)
                                               .scopes({at::RecordScope::FUNCTION}))) {
    fault_of_this_thread() = {};
    fault_of_this_thread().script = &source.script;
  }
  ~FaultSearch() {
    fault_of_this_thread().script = nullptr;
    at::removeCallback(handle_);
  }
  FaultSearch(const FaultSearch&) = delete;
  FaultSearch& operator=(const FaultSearch&) = delete;

private:
  at::CallbackHandle handle_;
};

// A few tokens, for trying a source: values of either sign.
at::Tensor trial(const std::int64_t heads, const std::int64_t tokens, const std::int64_t head_width) {
  return at::sin(at::arange(heads * tokens * head_width, at::kFloat) * 1.7)
      .view({1, heads, tokens, head_width});
}

constexpr std::size_t least_limit = std::size_t{256} << 20;

struct Range {
  double least = 0, most = 0;
};

Range range_of(const at::Tensor& x) {
  const at::NoGradGuard no_gradients;
  const auto [least, most] = at::aminmax(x.detach());
  return {least.item<double>(), most.item<double>()}; // NaN if there is one
}

// Throws SourceError unless y, computed from x, are numbers where x is.
void check_kind(const MapSource& source, const at::Tensor& y, const at::Tensor& x) {
  if (!y.is_floating_point())
    throw SourceError(source.name, 0,
                      fmt::format("it returns {}, not numbers like those of its input; write y.to(x.dtype)",
                                  c10::toString(y.scalar_type())));
  if (y.device() != x.device())
    throw SourceError(
        source.name, 0,
        fmt::format("it returns a tensor on {}, its input is on {}", y.device().str(), x.device().str()));
}

// Throws SourceError unless y, computed from x, is finite and has no negative entry that is not allowed.
// `again` computes it once more.
template <typename Again>
void check_values(const MapSource& source, const at::Tensor& y, const at::Tensor& x, const Again& again) {
  if (!y.is_cpu()) return; // reading a number would wait for the device
  const Range range = range_of(y);
  const bool finite = source.logarithm ? range.most < std::numeric_limits<double>::infinity()
                                       : std::isfinite(range.least) && std::isfinite(range.most);
  const bool negative = !source.negative_features && !source.logarithm && range.least < 0 &&
                        (source.form == MapSource::Form::normalised ||
                         (source.form == MapSource::Form::score && source.divided_by_sums));
  if (finite && !negative) return;
  const Range input = range_of(x);
  if (!std::isfinite(input.least) || !std::isfinite(input.most)) return; // the source is not at fault
  {
    const FaultSearch search(source);
    const at::NoGradGuard no_gradients;
    again();
  }
  const Fault& fault = fault_of_this_thread();
  if (finite)
    throw SourceError(
        source.name, fault.last_line,
        fmt::format("a feature is {:.3g}, and negative ones can make negative weights; set signed = "
                    "True to allow them, or \"features\" if no product of features is negative",
                    range.least));
  throw SourceError(
      source.name, fault.line_not_finite,
      fmt::format("{} gives infinite numbers or NaN, where the input lies between {:.3g} and {:.3g}",
                  fault.first_not_finite.empty() ? "it" : fault.first_not_finite, input.least, input.most));
}

} // namespace

struct MapScript::Compiled {
  struct Function {
    jit::Code code;
    std::vector<std::string> parameters;
  };
  std::map<std::string, Function> functions; // phi, phi_k, score
  mutable std::mutex mutex;
  mutable std::map<std::pair<std::int64_t, std::int64_t>, std::optional<SourceError>> problems; // by H, d
  mutable std::map<std::int64_t, std::int64_t> widths;                                          // by d

  at::Tensor run(const MapSource& source, const Function& function, const jit::Stack& arguments,
                 const std::size_t bytes) const {
    const AllocationLimit limit(bytes);
    try {
      jit::Stack stack = arguments;
      jit::InterpreterState(function.code).run(stack);
      if (stack.size() != 1 || !stack.front().isTensor())
        throw SourceError(source.name, 0, "it returns no tensor");
      return stack.front().toTensor();
    } catch (const SourceError&) {
      throw;
    } catch (const std::exception& error) {
      const std::string message = error.what();
      throw SourceError(source.name, line_in(message, true),
                        limit.exceeded() ? fmt::format("it takes more than {} for this input",
                                                       bytes_text(static_cast<double>(bytes)))
                                         : interpreter_reason(message));
    }
  }
};

MapScript::MapScript(const MapSource& source) : source_(source), compiled_(std::make_unique<Compiled>()) {
  on_deep_stack([this] { compile(); });
}

void MapScript::compile() {
  const auto unit = std::make_shared<jit::CompilationUnit>();
  try {
    check_texts(source_);
    unit->define(std::nullopt, source_.script, std::make_shared<Names>(), nullptr);
  } catch (const SourceError&) {
    throw;
  } catch (const std::exception& error) {
    const std::string message = error.what();
    throw SourceError(source_.name, line_in(message, false), compiler_reason(message));
  }
  for (const MapSource::Function& function : source_.functions) {
    check_size(source_, unit->get_function(function.name));
    const auto graph = jit::toGraphFunction(unit->get_function(function.name)).graph()->copy();
    jit::Inline(*graph);
    check_operators(*graph, source_);
    if (function.name != "phi" && function.name != "phi_k" && function.name != "score") continue;
    if (graph->outputs().size() != 1 ||
        !graph->outputs().front()->type()->isSubtypeOf(*c10::TensorType::get()))
      throw SourceError(source_.name, 0, fmt::format("{} does not return a tensor", function.name));
    compiled_->functions.emplace(function.name,
                                 Compiled::Function{jit::Code(graph, function.name), function.parameters});
  }
}

MapScript::~MapScript() = default;

std::shared_ptr<const MapScript> MapScript::of(const MapSource& source) {
  struct Cache {
    std::mutex mutex;
    std::list<std::shared_ptr<const MapScript>> scripts; // the last one used first
  };
  static Cache cache;
  constexpr std::size_t kept = 64;
  const auto find = [&] {
    return std::ranges::find_if(cache.scripts, [&](const auto& script) {
      return script->source().text == source.text && script->source().name == source.name;
    });
  };
  {
    const std::lock_guard lock(cache.mutex);
    if (const auto found = find(); found != cache.scripts.end()) {
      cache.scripts.splice(cache.scripts.begin(), cache.scripts, found);
      return cache.scripts.front();
    }
  }
  const std::shared_ptr<const MapScript> script(new MapScript(source));
  const std::lock_guard lock(cache.mutex);
  cache.scripts.push_front(script);
  if (cache.scripts.size() > kept) cache.scripts.pop_back();
  return script;
}

at::Tensor MapScript::map(const Side side, const at::Tensor& x, const Positions& positions,
                          const KernelParameters& parameters, const HeadShape& heads) const {
  const bool own_key_map = side == Side::key && source_.function("phi_k") != nullptr;
  const Compiled::Function& function = compiled_->functions.at(own_key_map ? "phi_k" : "phi");
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
  check_kind(source_, y, x);
  check_values(source_, y, x, [&] { compiled_->run(source_, function, arguments, bytes); });
  return y;
}

at::Tensor MapScript::score(const at::Tensor& q, const at::Tensor& k,
                            const KernelParameters& parameters) const {
  const Compiled::Function& function = compiled_->functions.at("score");
  jit::Stack arguments{q, k};
  for (const std::string& name : function.parameters)
    arguments.emplace_back(parameter("", name, q.size(1), {q.size(1), q.size(3)}, parameters, q));
  constexpr std::size_t copies = 64; // of the weights
  const auto weights = static_cast<std::size_t>(q.size(0) * q.size(1) * q.size(2) * k.size(2));
  const std::size_t bytes = least_limit + copies * (weights + q.numel() + k.numel()) * q.element_size();
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

KernelParameters MapScript::initial_parameters(const HeadShape& shape, const int layer) const {
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

std::optional<SourceError> MapScript::problem(const std::int64_t heads, const std::int64_t head_width) const {
  const std::lock_guard lock(compiled_->mutex);
  const auto found = compiled_->problems.find({heads, head_width});
  if (found != compiled_->problems.end()) return found->second;
  std::optional<SourceError> problem;
  try {
    try_out(heads, head_width);
  } catch (const SourceError& error) {
    problem = error;
  } catch (const std::exception& error) {
    problem = SourceError(source_.name, 0, interpreter_reason(error.what()));
  }
  compiled_->problems.insert_or_assign({heads, head_width}, problem);
  return problem;
}

void MapScript::try_out(const std::int64_t heads, const std::int64_t head_width) const {
  const at::NoGradGuard no_gradients;
  constexpr std::int64_t tokens = 3;
  const bool rows = source_.form == MapSource::Form::hydra; // (B,1,N,D)
  const at::Tensor x = rows ? trial(1, tokens, heads * head_width) : trial(heads, tokens, head_width);
  if (source_.form == MapSource::Form::score) {
    score(x.slice(2, 1), x, {});
  } else {
    const at::Tensor i = at::arange(1, tokens + 1, at::kFloat).view({1, 1, tokens, 1});
    const Positions positions{i, i.slice(2, tokens - 1)};
    const at::Tensor query = map(Side::query, x, positions, {}, {x.size(1), x.size(3)}),
                     key = map(Side::key, x, positions, {}, {x.size(1), x.size(3)});
    if (query.size(3) != key.size(3))
      throw SourceError(source_.name, 0,
                        fmt::format("queries have {} features, keys {}", query.size(3), key.size(3)));
    if (rows && query.size(3) != x.size(3))
      throw SourceError(
          source_.name, 0,
          fmt::format("with hydra = True phi keeps the width: x has D = {} features, phi returns {}",
                      x.size(3), query.size(3)));
  }
}

std::string MapScript::refusal(const std::int64_t heads, const std::int64_t head_width) const {
  const std::optional<SourceError> found = problem(heads, head_width);
  if (!found) return {};
  return found->line() > 0 ? fmt::format("line {}: {}", found->line(), found->reason()) : found->reason();
}

std::int64_t MapScript::width(const std::int64_t head_width) const {
  const std::lock_guard lock(compiled_->mutex);
  const auto found = compiled_->widths.find(head_width);
  if (found != compiled_->widths.end()) return found->second;
  const at::NoGradGuard no_gradients;
  std::int64_t width = head_width;
  try {
    const at::Tensor one = at::ones({1, 1, 1, 1});
    width = map(Side::query, trial(1, 1, head_width), {one, one}, {}, {1, head_width}).size(3);
  } catch (const std::exception&) { // NOLINT(bugprone-empty-catch): refusal() says why
  }
  compiled_->widths.insert_or_assign(head_width, width);
  return width;
}

} // namespace hydrascope
