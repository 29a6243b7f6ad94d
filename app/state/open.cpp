// Opening what the user names: the kind of a file is found by its content, and a failure leaves everything as
// it was.
#include <algorithm>
#include <cctype>
#include <exception>
#include <memory>

#include "app/state/edits.h"
#include "engine/plain/error.h"
#include "engine/plain/paths.h"

namespace hydrascope::app {

namespace {

namespace fs = std::filesystem;

void show_image(Editor& editor, const fs::path& path) {
  open_image(editor, {std::make_shared<const Image>(load_image(path)), path.filename().string(), path});
}

bool is_text(const std::string& bytes) {
  return std::ranges::none_of(bytes, [](char byte) { return byte == '\0'; });
}

// A text file is one input: its lines become one paragraph, as a tokenizer would read them.
void show_text_file(Editor& editor, const fs::path& path) {
  std::string text = read_text_file(path);
  constexpr std::size_t most_bytes = std::size_t{1} << 20;
  if (!is_text(text))
    throw ForeignFile(path.string(), "is neither a picture nor text", "open a PNG, JPEG or text file");
  if (text.size() > most_bytes)
    throw Error(path.string(), "is longer than 1 MB of text", "open a part of it");
  std::ranges::replace(text, '\n', ' ');
  std::ranges::replace(text, '\r', ' ');
  const auto last = text.find_last_not_of(" \t");
  if (last == std::string::npos)
    throw Error(path.string(), "holds no text", "open a file with a sentence in it");
  text.resize(last + 1);
  open_text(editor, text);
}

bool has_text_ending(const fs::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending == ".txt" || ending == ".md" || ending == ".tsv" || ending == ".csv";
}

} // namespace

bool open_model(Editor& editor, const std::string& name_or_folder) {
  try {
    const fs::path folder = resolve_model(name_or_folder);
    ModelInfo info = read_model_info(folder);
    const InputKind kind = info.input;
    editor.change("Open model " + info.name, [&](Document& document) {
      document.kind = kind;
      set_model(document.scene(), folder, std::move(info));
    });
    return true;
  } catch (const std::exception& error) {
    editor.say(Severity::error, error.what());
    return false;
  }
}

bool open_path(Editor& editor, const fs::path& path) {
  try {
    if (!fs::exists(path)) throw Error(path.string(), "does not exist", "check the path");
    if (fs::is_directory(path)) return open_model(editor, path.string());
    if (path.filename() == "config.json") return open_model(editor, path.parent_path().string());
    if (has_text_ending(path)) {
      show_text_file(editor, path);
      return true;
    }
    try {
      show_image(editor, path);
    } catch (const ForeignFile&) {
      show_text_file(editor, path);
    }
    return true;
  } catch (const std::exception& error) {
    editor.say(Severity::error, error.what());
    return false;
  }
}

} // namespace hydrascope::app
