#include "app/views/provenance.h"

#include <nlohmann/json.hpp>

#include "app/version.h"
#include "engine/plain/paths.h"

namespace hydrascope::app {
namespace {

using nlohmann::ordered_json;

// The words of a command line as command_line_text writes it, with their quotes.
std::vector<std::string> shell_words(const std::string& text) {
  std::vector<std::string> words;
  bool quoted = false, inside = false;
  for (std::size_t index = 0; index < text.size(); ++index) {
    const char character = text[index];
    if (character == ' ' && !quoted) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    words.back() += character;
    if (character == '\\' && !quoted && index + 1 < text.size()) {
      words.back() += text[++index];
    } else if (character == '\'') {
      quoted = !quoted;
    }
  }
  return words;
}

std::string hash_of(const ImageInput& image) {
  if (!image.path.empty()) return sha256_of_file(image.path);
  if (!image.image) return "";
  // A pasted picture has no file: its pixels stand for it.
  return sha256_of_text({reinterpret_cast<const char*>(image.image->rgb.data()), image.image->rgb.size()});
}

ordered_json input_json(const RunInput& input) {
  if (const auto* const image = std::get_if<ImageInput>(&input)) {
    return {{"kind", "image"}, {"name", image->name}, {"hash", hash_of(*image)}};
  }
  const auto& text = std::get<TextInput>(input);
  const std::string whole = text.pair ? text.text + "\t" + *text.pair : text.text;
  ordered_json json{{"kind", "text"}, {"text", text.text}};
  if (text.pair) json["pair"] = *text.pair;
  json["hash"] = sha256_of_text(whole);
  return json;
}

} // namespace

std::string program_version() { return version; }

std::string without_output_path(const std::string& command_line) {
  std::string kept;
  bool skip_next = false;
  for (const auto& word : shell_words(command_line)) {
    if (skip_next) {
      skip_next = false;
      continue;
    }
    if (word == "-o" || word == "--output") {
      skip_next = true;
      continue;
    }
    const bool attached =
        word.starts_with("--output=") || (word.starts_with("-o") && !word.starts_with("--"));
    const bool quoted_attached = word.starts_with("'--output=") || word.starts_with("'-o");
    if (attached || quoted_attached) continue;
    kept += (kept.empty() ? "" : " ") + word;
  }
  return kept;
}

std::string provenance_json(const RunResult& run, const RunInput& input, const ExecutionOptions& execution,
                            const std::string& command_line) {
  ordered_json json{{"program", "hydrascope"}, {"version", program_version()}};
  if (!command_line.empty()) json["command"] = without_output_path(command_line);
  json["model"] = {{"name", run.model.name}, {"hash", run.model_hash}};
  json["adapters"] = ordered_json::array();
  for (const auto& adapter : run.adapters) {
    json["adapters"].push_back({{"name", adapter.name}, {"hash", adapter.hash}});
  }
  json["schedule"] = ordered_json::array();
  for (const auto& layer : run.schedule.layers) json["schedule"].push_back(layer.text());
  json["input"] = input_json(input);
  if (!run.hidden_tokens.empty()) json["hidden_tokens"] = run.hidden_tokens;
  if (!run.muted_heads.empty()) json["muted_heads"] = muted_heads_text(run.muted_heads, run.model.heads);
  if (!run.target.empty()) json["target"] = run.target;
  json["device"] = run.device;
  json["dtype"] = run.dtype;
  json["seed"] = execution.seed;
  // Replaces what is not UTF-8, so that an odd file name cannot stop a figure from being written.
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

} // namespace hydrascope::app
