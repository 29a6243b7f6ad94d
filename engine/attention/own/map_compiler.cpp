#include "engine/attention/own/map_compiler.h"

#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <numbers>
#include <optional>
#include <regex>
#include <utility>

#include <ATen/core/jit_type.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pthread.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/frontend/error_report.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/frontend/sugared_value.h>
#include <torch/csrc/jit/passes/inliner.h>

#include "engine/attention/own/allocation_limit.h"
#include "engine/attention/own/allowed_operators.h"
#include "engine/attention/own/guarded_operators.h"
#include "engine/attention/own/map_syntax.h"
#include "engine/base/error.h"
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
  for (const auto& [known, type] : named_types)
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

std::map<std::string, CompiledFunction> compile_here(const MapSource& source, const AllocationLimit& limit) {
  std::map<std::string, CompiledFunction> functions;
  const auto unit = std::make_shared<jit::CompilationUnit>();
  try {
    guard_operators();
    check_syntax(source);
    unit->define(std::nullopt, source.script, std::make_shared<Names>(), nullptr);
  } catch (const SourceError&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw; // another time there may be more memory
  } catch (const c10::Error& error) {
    if (limit.no_memory()) throw std::bad_alloc();
    const std::string message = error.what_without_backtrace();
    throw SourceError(source.name, line_in(message, false), compiler_reason(message));
  } catch (const std::exception& error) {
    if (limit.no_memory()) throw std::bad_alloc();
    const std::string message = error.what();
    throw SourceError(source.name, line_in(message, false), compiler_reason(message));
  }
  for (const MapSource::Function& function : source.functions) {
    jit::Function* const compiled = unit->find_function(function.name);
    if (compiled == nullptr)
      throw SourceError(source.name, 0, fmt::format("{} is not defined", function.name));
    check_size(source, *compiled);
    const auto graph = jit::toGraphFunction(*compiled).graph()->copy();
    jit::Inline(*graph);
    check_operators(*graph, source);
    if (function.name != "phi" && function.name != "phi_k" && function.name != "score") continue;
    for (const jit::Value* const input : graph->inputs())
      if (!c10::TensorType::get()->isSubtypeOf(*input->type()))
        throw SourceError(
            source.name, 0,
            fmt::format("the arguments of {} are tensors: write them without types, or as Tensor",
                        function.name));
    if (graph->outputs().size() != 1 ||
        !graph->outputs().front()->type()->isSubtypeOf(*c10::TensorType::get()))
      throw SourceError(source.name, 0, fmt::format("{} does not return a tensor", function.name));
    functions.emplace(function.name, CompiledFunction{jit::Code(graph, function.name), function.parameters});
  }
  return functions;
}

} // namespace

int line_in(const std::string& message, const bool last) {
  // An error's text is the source's: a call for each of 16,000 digits would end the stack.
  static const std::regex pattern(R"re(File "<string>", line (\d{1,9}))re");
  int line = 0;
  for (std::sregex_iterator at(message.begin(), message.end(), pattern), end; at != end; ++at) {
    line = whole_number((*at)[1].str()).value_or(0);
    if (!last) break;
  }
  return line;
}

std::string interpreter_reason(const std::string& message) {
  const std::size_t start = message.rfind("\nRuntimeError: ");
  std::string reason = start == std::string::npos ? message : message.substr(message.find(": ", start) + 2);
  reason = reason.substr(0, reason.find("\nException raised from")); // LibTorch's own stack
  reason = std::string(trimmed(reason));
  return reason.substr(0, reason.find('\n'));
}

std::map<std::string, CompiledFunction> compile(const MapSource& source) {
  std::map<std::string, CompiledFunction> functions;
  on_deep_stack([&] {
    constexpr std::size_t bytes = std::size_t{256} << 20;
    const AllocationLimit limit(bytes); // the compiler computes with the constants it sees
    functions = compile_here(source, limit);
  });
  return functions;
}

} // namespace hydrascope
