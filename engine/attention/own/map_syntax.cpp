#include "engine/attention/own/map_syntax.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>

#include <fmt/format.h>
#include <torch/csrc/jit/frontend/lexer.h>
#include <torch/csrc/jit/frontend/parser.h>
#include <torch/csrc/jit/frontend/tree_views.h>

#include "engine/attention/own/allowed_operators.h"

namespace hydrascope {
namespace {

// What the compiler must not see. Texts may only be arguments of a few functions, messages of errors, and
// comments.
class SyntaxCheck {
public:
  explicit SyntaxCheck(const MapSource& source) : source_(source) {}

  void tree(const torch::jit::TreeRef& tree) {
    parts_ += turns_;
    // Of 16 KB without loops there are fewer. An atom has no line.
    if (constexpr std::int64_t most = 65536; parts_ > most && !tree->isAtom())
      fail(*tree, "the loops over tuples come to too much");
    switch (tree->kind()) {
      case torch::jit::TK_STARRED: fail(*tree, "a * in front of a value is not allowed here");
      case torch::jit::TK_DICT_LITERAL:
      case torch::jit::TK_DICT_COMP: fail(*tree, "a dictionary is not allowed here");
      case torch::jit::TK_FOR: {
        const torch::jit::For loop(tree);
        if (loop.targets().size() != loop.itrs().size()) // the compiler would read past the shorter one
          fail(*tree, "a loop's names stand in parentheses, as in for (a, b) in zip((1, 2), (3, 4))");
        const std::int64_t outer = turns_;
        const int outer_loops = loops_;
        for (const torch::jit::Expr& each : loop.itrs()) {
          enter(each.tree());
          loops_ += is_written_out(each.tree()) ? 0 : 1;
        }
        for (const torch::jit::Expr& each : loop.targets()) target(each.tree());
        this->parts(*loop.body().tree());
        loops_ = outer_loops;
        turns_ = outer;
        return;
      }
      case torch::jit::TK_LIST_COMP: {
        const torch::jit::ListComp list(tree);
        const std::int64_t outer = turns_;
        enter(list.iter().tree());
        target(list.target().tree());
        this->tree(list.elt().tree());
        turns_ = outer;
        return;
      }
      case torch::jit::TK_ASSIGN: {
        const torch::jit::Assign assignment(tree);
        for (const torch::jit::Expr& each : assignment.lhs_list()) target(each.tree());
        if (assignment.rhs().present()) this->tree(assignment.rhs().get().tree());
        if (assignment.type().present()) this->tree(assignment.type().get().tree());
        return;
      }
      case torch::jit::TK_TUPLE_LITERAL:
      case torch::jit::TK_LIST_LITERAL: grow(*tree); return parts(*tree);
      // The compiler makes a loop that is left early one without a fixed number of turns.
      case torch::jit::TK_BREAK:
      case torch::jit::TK_CONTINUE: fail(*tree, "break and continue are not allowed here; write if");
      case torch::jit::TK_RETURN:
        if (loops_ > 0) fail(*tree, "a return within a loop over range(…) is not allowed here; write if");
        returns_ += turns_;
        if (constexpr std::int64_t most = 64; returns_ > most) // the compiler's time grows with their cube
          fail(*tree, fmt::format("there are more than {} returns", most));
        return parts(*tree);
      case torch::jit::TK_IS:
      case torch::jit::TK_ISNOT: count_refinement(*tree); return parts(*tree);
      case torch::jit::TK_SUBSCRIPT: // the compiler takes the first index without a check
        if (torch::jit::Subscript(tree).subscript_exprs().empty()) fail(*tree, "an index is missing in []");
        return parts(*tree);
      case torch::jit::TK_PARAM: // the compiler runs defaults before any other check
        if (torch::jit::Param(tree).defaultValue().present())
          fail(*tree, "an argument has no default here; parameters = {…} declares how one starts");
        return parts(*tree);
      case torch::jit::TK_STRINGLITERAL: fail(*tree, texts_are_literals);
      case torch::jit::TK_VAR: return variable(torch::jit::Var(tree));
      case torch::jit::TK_APPLY: return call(torch::jit::Apply(tree), false);
      case torch::jit::TK_ASSERT:
      case torch::jit::TK_EXPR_STMT:
        for (const torch::jit::TreeRef& part : tree->trees()) list_or_text(part);
        return;
      case torch::jit::TK_RAISE:
        for (const torch::jit::TreeRef& part : tree->trees()) {
          if (part->kind() == torch::jit::TK_APPLY) {
            call(torch::jit::Apply(part), true);
          } else {
            this->tree(part);
          }
        }
        return;
      default: parts(*tree);
    }
  }

private:
  void parts(const torch::jit::Tree& tree) {
    for (const torch::jit::TreeRef& part : tree.trees()) this->tree(part);
  }

  [[noreturn]] void fail(const torch::jit::Tree& tree, const std::string& reason) const {
    throw SourceError(source_.name, line_of(tree.range(), source_.script), reason);
  }

  // The name of a function that is called; empty for a method.
  static std::string function_of(const torch::jit::Apply& call) {
    const torch::jit::TreeRef callee = call.callee().tree();
    return callee->kind() == torch::jit::TK_VAR ? torch::jit::Var(callee).name().name() : std::string();
  }

  // The compiler writes a loop over a tuple out, turn by turn. Only it knows types, so that no other tuples
  // can be counted than those that stand in the loop's head.
  std::int64_t turns_over(const torch::jit::TreeRef& values) const {
    if (values->kind() == torch::jit::TK_TUPLE_LITERAL)
      return static_cast<std::int64_t>(torch::jit::TupleLiteral(values).inputs().size());
    if (values->kind() == torch::jit::TK_APPLY) {
      const torch::jit::Apply call(values);
      const std::string name = function_of(call);
      if (name == "range") return 1;
      if (name == "enumerate" || name == "zip") {
        std::int64_t most = 1;
        for (const torch::jit::Expr& each : call.inputs()) most = std::max(most, turns_over(each.tree()));
        return most;
      }
    }
    fail(*values, "a loop goes over range(…), or over a tuple written there, as in for a in (1, 2)");
  }
  static bool is_written_out(const torch::jit::TreeRef& values) {
    if (values->kind() == torch::jit::TK_TUPLE_LITERAL) return true;
    if (values->kind() != torch::jit::TK_APPLY) return false; // turns_over() refuses it
    const torch::jit::Apply call(values);
    if (function_of(call) == "range") return false;
    for (const torch::jit::Expr& each : call.inputs())
      if (is_written_out(each.tree())) return true;
    return false;
  }
  void enter(const torch::jit::TreeRef& values) {
    tree(values);
    turns_ *= std::max<std::int64_t>(turns_over(values), 1);
  }

  void target(const torch::jit::TreeRef& one) {
    if (one->kind() != torch::jit::TK_TUPLE_LITERAL) return tree(one);
    for (const torch::jit::Expr& each : torch::jit::TupleLiteral(one).inputs()) target(each.tree());
  }

  // t = (t, t), or t = [t, [t, 1]], doubles t's type, and the compiler goes through all of it again and
  // again.
  static bool may_have_parts(const torch::jit::TreeRef& value) {
    switch (value->kind()) {
      case torch::jit::TK_VAR:
      case torch::jit::TK_SUBSCRIPT:
      case torch::jit::TK_IF_EXPR:
      case torch::jit::TK_LIST_COMP:
      case torch::jit::TK_LIST_LITERAL:
      case torch::jit::TK_TUPLE_LITERAL: return true;
      case torch::jit::TK_APPLY: return torch::jit::Apply(value).callee().tree()->kind() != '.';
      default: return false; // a number or a tensor, or what an operator gives
    }
  }
  void grow(const torch::jit::Tree& literal) {
    const auto& values = literal.trees().front()->trees();
    const auto count = std::ranges::count_if(values, may_have_parts);
    if (count > 1) doublings_ += std::log2(static_cast<double>(count)) * static_cast<double>(turns_);
    // Of numbers in tuples, as after t = (t, 1), it goes twice through what each level holds.
    constexpr double most_doublings = 12, most_steps = 0x1p26;
    const double size = static_cast<double>(values.size());
    for (std::int64_t turn = 0; turn < turns_ && steps_ <= most_steps; ++turn)
      steps_ = std::max(steps_, 2 * (static_cast<double>(count) * steps_ + size));
    if (doublings_ > most_doublings || steps_ > most_steps)
      fail(literal, "there are too many tuples and lists of values with names; use fewer of them");
  }

  // After x is not None the compiler carries x's type on, into each block that follows: its time grows with
  // their cube.
  void count_refinement(const torch::jit::Tree& tree) {
    refinements_ += turns_;
    if (constexpr std::int64_t most = 64; refinements_ > most)
      fail(tree, fmt::format("there are more than {} comparisons with None and isinstance()", most));
  }

  void text_or_tree(const torch::jit::TreeRef& part) {
    if (part->kind() != torch::jit::TK_STRINGLITERAL) tree(part);
  }
  void list_or_text(const torch::jit::TreeRef& part) {
    if (part->kind() != torch::jit::TK_LIST && part->kind() != torch::jit::TK_OPTION)
      return text_or_tree(part);
    for (const torch::jit::TreeRef& each : part->trees()) text_or_tree(each);
  }

  void variable(const torch::jit::Var& variable) const {
    static const std::unordered_set<std::string_view> makers{"str", "chr", "bin", "oct", "hex"};
    const std::string name = variable.name().name();
    if (makers.contains(name)) fail(*variable.tree(), name + " is not allowed: " + texts_are_literals);
  }

  static std::string why_no_text(const std::string& function) {
    return (function.empty() ? "" : function + " is not allowed: ") + texts_are_literals;
  }

  void call(const torch::jit::Apply& call, const bool raised) {
    // None of them gives a text.
    static const std::unordered_set<std::string_view> readers{"einsum", "gelu", "div", "divide", "to"};
    const torch::jit::TreeRef callee = call.callee().tree();
    const bool is_method = callee->kind() == '.';
    const std::string method = is_method ? torch::jit::Select(callee).selector().name() : std::string();
    const std::string function = function_of(call);
    const bool reads = raised || readers.contains(method) || function == "float"; // float("-inf")
    if (function == "isinstance") count_refinement(*callee);
    tree(callee);
    // Refused here and not after: the compiler runs operators on constants.
    if (const std::string why = is_method ? why_not_allowed(method) : std::string(); !why.empty())
      fail(*callee, why);
    const auto argument = [&](const torch::jit::TreeRef& part) {
      const bool literal =
          part->kind() == torch::jit::TK_TUPLE_LITERAL || part->kind() == torch::jit::TK_LIST_LITERAL;
      if (is_method && literal) return parts(*part); // no operator gives tuples or lists of its arguments
      if (part->kind() != torch::jit::TK_STRINGLITERAL) return tree(part);
      if (!reads) fail(*part, why_no_text(function));
      // LibTorch lets the CPU raise SIGFPE for the smallest integer divided by −1.
      if (!raised && torch::jit::StringLiteral(part).text() == "trunc")
        fail(*part, "rounding_mode=\"trunc\" is not allowed: write torch.trunc(a / b)");
    };
    for (const torch::jit::Expr& each : call.inputs()) argument(each.tree());
    for (const torch::jit::Attribute& each : call.attributes()) argument(each.value().tree());
  }

  const MapSource& source_;
  std::int64_t turns_ = 1; // how often the compiler writes the present part out
  int loops_ = 0;          // around the present part, but for those that are written out
  std::int64_t parts_ = 0, returns_ = 0, refinements_ = 0;
  double doublings_ = 0; // of types, at most
  double steps_ = 1;     // of the compiler through any one value, at most
};

} // namespace

void check_syntax(const MapSource& source) {
  torch::jit::Parser parser(std::make_shared<torch::jit::Source>(source.script, "<string>", 1));
  SyntaxCheck check(source);
  while (parser.lexer().cur().kind != torch::jit::TK_EOF) check.tree(parser.parseFunction(false));
}

} // namespace hydrascope
