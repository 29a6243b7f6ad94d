// The head of a map source: settings, parameters, and which functions it defines. TorchScript reads the rest.
#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/attention/own/map_source.h"
#include "engine/base/text.h"

namespace hydrascope {
namespace {

constexpr std::size_t most_bytes = 16'384; // the parser's depth is bounded by it

bool is_name(const std::string_view text) {
  const auto fits = [](const char c) { return is_name_letter(static_cast<unsigned char>(c)); };
  return !text.empty() && std::ranges::all_of(text, fits) && !(text[0] >= '0' && text[0] <= '9');
}

// The text with blanks for comments and _ for quoted texts, as TorchScript's lexer sees them: what is left of
// brackets, # and def is the source's own. Lines that begin within a text are indented.
std::string without_texts(const std::string_view text) {
  std::string code(text);
  const auto cover = [&](const std::size_t start, const std::size_t end, const char by) {
    for (std::size_t at = start; at < end; ++at)
      if (code[at] != '\n') code[at] = at > start && code[at - 1] == '\n' ? ' ' : by;
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    if (text[at] == '#') {
      at = std::min(text.find('\n', at), text.size());
      cover(start, at, ' ');
    } else if (text[at] == '"' || text[at] == '\'') {
      const bool triple = text.substr(at, 3) == std::string(3, text[at]);
      const std::string quote(triple ? 3 : 1, text[at]);
      for (at += quote.size(); at < text.size() && text.substr(at, quote.size()) != quote; ++at) {
        if (text[at] == '\n' && !triple) break; // not closed: an error of the compiler's
        if (text[at] == '\\') ++at;
      }
      at = std::min(at + quote.size(), text.size());
      cover(start, at, '_');
    } else {
      ++at;
    }
  }
  return code;
}

class Parser {
public:
  Parser(const std::string& name, const std::string& text) {
    source_.name = name;
    source_.text = text;
  }

  MapSource parsed() {
    check_letters();
    const std::string code = without_texts(source_.text);
    lines_ = split(source_.text, '\n');
    code_ = split(code, '\n');
    for (std::size_t at = 0; at < lines_.size(); ++at) {
      line_ = static_cast<int>(at) + 1;
      const std::string_view line = code_[at];
      const bool indented = !line.empty() && (line[0] == ' ' || line[0] == '\t');
      const std::string_view words = trimmed(line, " \t\r");
      const bool of_function = in_function_ && (indented || words.empty() || open_ > 0);
      if (of_function) {
        keep(at);
        continue;
      }
      in_function_ = false;
      if (words.empty()) {
        skip();
      } else if (indented) {
        fail("unexpected indentation");
      } else if (words.starts_with("def ")) {
        in_function_ = true;
        keep(at);
        head(at);
      } else if (words.starts_with("import ") || words.starts_with("from ")) {
        import(words);
        skip();
      } else {
        at = setting(at);
      }
    }
    finish();
    return std::move(source_);
  }

private:
  [[noreturn]] void fail(const std::string& reason) const { throw SourceError(source_.name, line_, reason); }

  void check_letters() {
    if (source_.text.size() > most_bytes)
      throw SourceError(
          source_.name, 0,
          fmt::format("it has {} bytes, and at most {} are accepted", source_.text.size(), most_bytes));
    line_ = 1;
    for (const char c : source_.text) {
      if (c == '\n') ++line_;
      const auto byte = static_cast<unsigned char>(c);
      if (byte < ' ' && c != '\n' && c != '\t' && c != '\r') fail("it holds a control character");
    }
  }

  void keep(const std::size_t at) {
    for (const char c : code_[at]) {
      if (c == '(' || c == '[' || c == '{') ++open_;
      if (c == ')' || c == ']' || c == '}') open_ = std::max(0, open_ - 1);
    }
    source_.script.append(lines_[at]).push_back('\n');
  }
  void skip() { source_.script.push_back('\n'); }

  void import(const std::string_view words) const {
    const bool known = words == "import torch" || words == "import math" ||
                       words == "import torch.nn.functional as F" ||
                       words == "from torch.nn import functional as F";
    if (!known) fail("only torch, math and torch.nn.functional as F can be imported");
  }

  // The arguments of the function whose head begins at line `at`.
  void head(const std::size_t at) {
    std::string words;
    for (std::size_t line = at; line < code_.size() && words.find(')') == std::string::npos; ++line)
      words += std::string(code_[line]) + " ";
    const std::size_t open = words.find('('), close = words.find(')');
    if (open == std::string::npos || close == std::string::npos || close < open)
      fail("the head of a function is def NAME(ARGUMENTS):");
    MapSource::Function function;
    function.name = trimmed(std::string_view(words).substr(4, open - 4));
    if (!is_name(function.name)) fail("the head of a function is def NAME(ARGUMENTS):");
    if (source_.function(function.name) != nullptr) fail(fmt::format("{} is defined twice", function.name));
    const std::string_view list = trimmed(std::string_view(words).substr(open + 1, close - open - 1));
    if (!list.empty())
      for (const std::string_view argument : split(list, ',')) {
        const std::string_view name = trimmed(argument.substr(0, argument.find_first_of(":=")));
        if (!name.empty()) function.parameters.emplace_back(name);
      }
    lines_of_functions_.push_back(line_);
    source_.functions.push_back(std::move(function));
  }

  // NAME = VALUE, which may go on over several lines within brackets; returns its last line.
  std::size_t setting(std::size_t at) {
    std::string words;
    int open = 0;
    for (;; ++at) {
      const std::string_view code = code_[at];
      words.append(lines_[at].substr(0, code.find_last_not_of(" \t\r") + 1)).push_back(' '); // no comment
      skip();
      for (const char c : code)
        open += (c == '{' || c == '(' || c == '[') - (c == '}' || c == ')' || c == ']');
      if (open <= 0 || at + 1 == lines_.size()) break;
    }
    const std::size_t equals = words.find('=');
    const std::string name{trimmed(std::string_view(words).substr(0, equals), " \t\r")};
    if (equals == std::string::npos || !is_name(name))
      fail("outside functions, only imports, settings and parameters = {…} are allowed");
    const std::string_view value = trimmed(std::string_view(words).substr(equals + 1), " \t\r");
    if (name == "parameters") {
      parameters(value);
      return at;
    }
    const std::pair<const char*, bool*> flags[] = {{"normalised", &normalised_},
                                                   {"hydra", &hydra_},
                                                   {"logarithm", &source_.logarithm},
                                                   {"shared", &source_.shared}};
    if (name == "signed") {
      const bool features = value == "\"features\"" || value == "'features'";
      if (value != "True" && value != "False" && !features)
        fail("signed is True (features and weights may be negative), \"features\" (features alone) or False");
      source_.negative_features = value != "False";
      source_.negative_weights = value == "True";
      return at;
    }
    for (const auto& [known, flag] : flags) {
      if (name != known) continue;
      if (value != "True" && value != "False") fail(fmt::format("{} is True or False", name));
      *flag = value == "True";
      return at;
    }
    fail(
        fmt::format("there is no setting \"{}\": known are parameters, normalised, logarithm, signed, shared "
                    "and hydra; a constant belongs in a function",
                    name));
  }

  // {"W": ("H d d", "identity"), "b": ("H d", "zeros", "fixed")}
  void parameters(const std::string_view value) {
    rest_ = value;
    expect('{');
    while (!take('}')) {
      MapParameter parameter;
      parameter.name = quoted();
      if (!is_name(parameter.name)) fail(fmt::format("\"{}\" is no name of a parameter", parameter.name));
      expect(':');
      expect('(');
      parameter.shape = shape(quoted());
      expect(',');
      parameter.start = start(quoted());
      if (take(',') && !peek(')')) {
        if (quoted() != "fixed") fail("after a parameter's start only \"fixed\" can stand");
        parameter.fixed = true;
        take(',');
      }
      expect(')');
      const auto same = std::ranges::find(source_.parameters, parameter.name, &MapParameter::name);
      if (same != source_.parameters.end()) fail(fmt::format("{} is declared twice", parameter.name));
      source_.parameters.push_back(std::move(parameter));
      if (!take(',') && !peek('}')) fail("a comma is missing between parameters");
    }
    if (!trimmed(rest_).empty()) fail("something follows the parameters' }");
  }

  bool peek(const char c) {
    rest_ = trimmed(rest_, " \t\r\n");
    return !rest_.empty() && rest_.front() == c;
  }
  bool take(const char c) {
    if (!peek(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(const char c) {
    if (!take(c))
      fail(fmt::format("'{}' is missing: write parameters = {{\"W\": (\"H d d\", \"identity\")}}", c));
  }
  std::string quoted() {
    const char quote = peek('\'') ? '\'' : '"';
    expect(quote);
    const std::size_t end = rest_.find(quote);
    if (end == std::string_view::npos) fail("a quotation mark is missing");
    std::string text{rest_.substr(0, end)};
    rest_.remove_prefix(end + 1);
    return text;
  }

  std::vector<MapParameter::Length> shape(const std::string& text) const {
    constexpr std::int64_t most = 4096;
    using Unit = MapParameter::Length::Unit;
    std::vector<MapParameter::Length> lengths;
    for (const std::string_view word : split(text, ' ')) {
      if (word.empty()) continue;
      MapParameter::Length length;
      std::string_view digits = word;
      if (word.back() == 'H' || word.back() == 'd') {
        length.unit = word.back() == 'H' ? Unit::heads : Unit::head_width;
        digits.remove_suffix(1);
      }
      if (!digits.empty()) length.factor = whole_number(digits).value_or(0);
      if (length.factor < 1 || length.factor > most)
        fail(fmt::format("\"{}\" is no length: write H, d, 2d or a number up to {}", word, most));
      lengths.push_back(length);
    }
    constexpr std::size_t most_dimensions = 4;
    if (lengths.empty() || lengths.size() > most_dimensions)
      fail("a parameter's shape has one to four lengths, as \"H d d\"");
    return lengths;
  }

  MapParameter::Start start(const std::string& text) const {
    using Start = MapParameter::Start;
    for (const auto& [name, value] :
         {std::pair{"zeros", Start::zeros}, std::pair{"ones", Start::ones},
          std::pair{"identity", Start::identity}, std::pair{"normal", Start::normal}})
      if (text == name) return value;
    fail(fmt::format("a parameter cannot start as \"{}\": write zeros, ones, identity or normal", text));
  }

  void finish() {
    line_ = 0;
    const bool map = source_.function("phi") != nullptr, score = source_.function("score") != nullptr;
    if (!map && !score) fail("it defines neither phi(x) nor score(q, k)");
    if (map && score) fail("it defines both phi(x) and score(q, k); keep one");
    if (hydra_ && !source_.parameters.empty()) fail("with hydra = True there are no parameters");
    if (hydra_ && (score || source_.logarithm)) fail("hydra = True goes with phi(x) that returns features");
    source_.form = score         ? MapSource::Form::score
                   : hydra_      ? MapSource::Form::hydra
                   : normalised_ ? MapSource::Form::normalised
                                 : MapSource::Form::unnormalised;
    source_.divided_by_sums = normalised_;
    if (!normalised_ && source_.logarithm) fail("logarithm = True goes with normalised = True");
    for (const MapParameter& one : source_.parameters)
      // Training stops for each head by itself.
      if (!one.fixed && one.shape.front().unit != MapParameter::Length::Unit::heads)
        fail(fmt::format(
            "{} is trained, and each head has its own: its shape begins with H, or it is \"fixed\"",
            one.name));
    for (std::size_t i = 0; i < source_.functions.size(); ++i) check_arguments(i);
  }

  void check_arguments(const std::size_t index) {
    MapSource::Function& function = source_.functions[index];
    const bool map = function.name == "phi" || function.name == "phi_k";
    if (!map && function.name != "score") return; // a helper
    line_ = lines_of_functions_[index];
    const std::vector<std::string> first =
        map ? std::vector<std::string>{"x"} : std::vector<std::string>{"q", "k"};
    if (function.parameters.size() < first.size())
      fail(fmt::format("{} takes {} first", function.name, fmt::join(first, ", ")));
    function.parameters.erase(function.parameters.begin(),
                              function.parameters.begin() + static_cast<std::ptrdiff_t>(first.size()));
    for (const std::string& name : function.parameters) {
      const bool position = map && (name == "i" || name == "n");
      const auto found = std::ranges::find(source_.parameters, name, &MapParameter::name);
      if (position && source_.form == MapSource::Form::hydra)
        fail("with hydra = True there are no positions");
      if (!position && found == source_.parameters.end())
        fail(
            fmt::format("the argument {} is no parameter: declare it as parameters = {{\"{}\": (\"H d d\", "
                        "\"identity\")}}{}",
                        name, name, map ? ", or take i, a token's number, or n, how many there are" : ""));
    }
  }

  MapSource source_;
  std::vector<std::string_view> lines_, code_; // as they were written; without_texts()
  int line_ = 0;
  int open_ = 0; // brackets in the present function
  bool in_function_ = false, normalised_ = true, hydra_ = false;
  std::string_view rest_; // of the parameters
  std::vector<int> lines_of_functions_;
};

} // namespace

SourceError::SourceError(const std::string& name, const int line, const std::string& reason)
    : UsageError(line > 0 ? fmt::format("phi {}, line {}", name, line) : "phi " + name, reason),
      line_(line),
      reason_(reason) {}

const MapSource::Function* MapSource::function(const std::string_view function_name) const {
  const auto found = std::ranges::find(functions, function_name, &Function::name);
  return found == functions.end() ? nullptr : &*found;
}

bool MapSource::takes(const std::string_view argument) const {
  return std::ranges::any_of(functions, [&](const Function& one) {
    return (one.name == "phi" || one.name == "phi_k") &&
           std::ranges::find(one.parameters, argument) != one.parameters.end();
  });
}

bool is_name_letter(const char32_t letter) {
  return (letter >= U'a' && letter <= U'z') || (letter >= U'A' && letter <= U'Z') ||
         (letter >= U'0' && letter <= U'9') || letter == U'_';
}

MapSource parse_map_source(const std::string& name, const std::string& text) {
  return Parser(name, text).parsed();
}

} // namespace hydrascope
