#include "app/views/provenance.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "engine/base/json_text.h"
#include "engine/base/paths.h"
#include "engine/base/version.h"

namespace hydrascope::app {

namespace {

std::string quoted(const std::string& word) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+:,./@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string text = "'";
  for (const char character : word) text += character == '\'' ? "'\\''" : std::string(1, character);
  return text + "'";
}

using nlohmann::ordered_json;

using HashOfFile = std::function<std::string(const std::filesystem::path&)>;

std::string hash_of(const ImageInput& image, const HashOfFile& hash_of_file) {
  if (!image.path.empty()) return hash_of_file(image.path);
  if (!image.image) return "";
  // A pasted picture has no file: hash its pixels.
  return sha256_of_text({reinterpret_cast<const char*>(image.image->rgb.data()), image.image->rgb.size()});
}

ordered_json input_json(const RunInput& input, const HashOfFile& hash_of_file) {
  if (const auto* const image = std::get_if<ImageInput>(&input)) {
    return {{"kind", "image"}, {"name", image->name}, {"hash", hash_of(*image, hash_of_file)}};
  }
  const auto& text = std::get<TextInput>(input);
  const std::string whole = text.pair ? text.text + "\t" + *text.pair : text.text;
  ordered_json json{{"kind", "text"}, {"text", text.text}};
  if (text.pair) json["pair"] = *text.pair;
  json["hash"] = sha256_of_text(whole);
  return json;
}

// The numbers of a capture are its input.
ordered_json capture_json(const CaptureInfo& capture) {
  return {{"kind", "capture"},
          {"name", capture.file.filename().string()},
          {"hash", capture.hash},
          {"part", capture.part},
          {"sequence", capture.item}};
}

} // namespace

std::string command_text(std::span<const std::string> words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + quoted(word);
  return text;
}

std::vector<std::string> command_words(std::string_view text) {
  std::vector<std::string> words;
  bool in_quotes = false, inside = false;
  for (std::size_t index = 0; index < text.size(); ++index) {
    const char character = text[index];
    if (character == ' ' && !in_quotes) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    if (character == '\\' && !in_quotes && index + 1 < text.size()) {
      words.back() += text[++index];
    } else if (character == '\'') {
      in_quotes = !in_quotes;
    } else {
      words.back() += character;
    }
  }
  return words;
}

std::vector<std::string> without_option(std::vector<std::string> words, std::string_view name) {
  const bool letter = !name.starts_with("--");
  std::vector<std::string> kept;
  for (std::size_t index = 0; index < words.size(); ++index) {
    const std::string& word = words[index];
    if (word == name) {
      ++index;
      continue;
    }
    const bool attached = word.starts_with(name) && (letter || word[name.size()] == '=');
    if (!attached) kept.push_back(word);
  }
  return kept;
}

std::string program_version() { return version; }

std::string without_output_options(const std::string& command_line) {
  std::vector<std::string> words =
      without_option(without_option(command_words(command_line), "-o"), "--output");
  std::erase(words, "--json");
  return command_text(words);
}

std::string provenance_json(const RunResult& run, const RunInput& input, const ExecutionOptions& execution,
                            const std::string& command_line, const HashOfFile& hash_of_file) {
  ordered_json json{{"program", "hydrascope"}, {"version", program_version()}};
  if (!command_line.empty()) json["command"] = without_output_options(command_line);
  json["model"] = {{"name", run.model.name}, {"hash", run.model_hash}};
  json["adapters"] = ordered_json::array();
  for (const auto& adapter : run.adapters) {
    json["adapters"].push_back({{"name", adapter.name}, {"hash", adapter.hash}});
  }
  json["schedule"] = ordered_json::array();
  for (const auto& layer : run.schedule.layers) json["schedule"].push_back(layer.text());
  json["input"] = run.model.capture ? capture_json(*run.model.capture) : input_json(input, hash_of_file);
  if (!run.hidden_tokens.empty()) json["hidden_tokens"] = run.hidden_tokens;
  if (!run.muted_heads.empty()) json["muted_heads"] = muted_heads_text(run.muted_heads, run.model.heads);
  if (!run.target.empty()) json["target"] = run.target;
  json["device"] = run.device;
  json["dtype"] = run.dtype;
  json["seed"] = execution.seed;
  return text_of_json(json);
}

std::string with_view(const std::string& provenance, const std::string& panel, const std::string& session) {
  ordered_json json = ordered_json::parse(provenance);
  json["panel"] = panel;
  json["session"] = ordered_json::parse(session);
  return text_of_json(json);
}

FigureView view_of(const std::string& provenance) {
  const ordered_json json = ordered_json::parse(provenance, nullptr, false);
  FigureView view;
  if (!json.is_object()) return view;
  const auto text = [&](const char* name) {
    const auto found = json.find(name);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  view.panel = text("panel");
  view.command = text("command");
  if (json.contains("session")) view.session = json["session"].dump();
  return view;
}

} // namespace hydrascope::app
