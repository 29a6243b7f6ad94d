// Opens files of all kinds, recognised by their content. A failure leaves the document unchanged.
#include <algorithm>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/document/capture_input.h"
#include "app/document/edits.h"
#include "app/document/session_edits.h"
#include "app/views/provenance.h"
#include "engine/base/capture.h"
#include "engine/base/error.h"
#include "engine/base/error_message.h"
#include "engine/base/image.h"
#include "engine/base/paths.h"
#include "engine/base/text.h"
#include "engine/figures/figure.h"

namespace hydrascope::app {

namespace {

namespace fs = std::filesystem;

void show_image(Editor& editor, const fs::path& path) {
  open_image(editor, {std::make_shared<const Image>(load_image(path)), path.filename().string(), path});
}

// The provenance of a figure made by this program; nullopt for other files.
std::optional<std::string> figure_in(const fs::path& path) {
  try {
    return read_provenance(path);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Whether a figure is opened as a view rather than as a picture.
bool is_view(const std::string& provenance, const fs::path& path) {
  const FigureView view = view_of(provenance);
  return !has_picture_ending(path) || !view.session.empty() || view.command.starts_with("hydrascope figure ");
}

// The text of a file that claims to be a session.
std::optional<std::string> session_in(const fs::path& path) {
  const std::string begin = read_beginning(path, 64);
  const auto first = begin.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || begin[first] != '{') return std::nullopt;
  std::string text = read_text_file(path);
  return is_session(text) ? std::optional(std::move(text)) : std::nullopt;
}

bool is_text(const std::string& bytes) {
  return std::ranges::none_of(bytes, [](char byte) { return byte == '\0'; });
}

// A name that PyTorch gives to its own files of weights, which are a pickle, often in a zip archive.
bool is_pickled_model(const fs::path& path) {
  const std::string begin = read_beginning(path, 2);
  if (begin != "PK" && !begin.starts_with('\x80')) return false;
  const std::string ending = lower_case(path.extension().string());
  return ending == ".pth" || ending == ".pt" || ending == ".ckpt" || ending == ".bin";
}

// Latin-1's bytes are code points.
std::string utf8_of_latin1(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) append_code_point(text, static_cast<unsigned char>(byte));
  return text;
}

// A text file is one input: its lines become one paragraph.
void show_text_file(Editor& editor, const fs::path& path) {
  constexpr std::size_t most_bytes = std::size_t{1} << 20;
  std::string text = read_beginning(path, most_bytes + 1);
  if (!is_text(text) && is_pickled_model(path))
    throw ForeignFile(path.string(), path.extension().string() + " is unsupported",
                      "convert it to safetensors and open its folder as a model");
  if (!is_text(text))
    throw ForeignFile(path.string(), "is neither a picture nor text", "open a PNG, JPEG or text file");
  if (text.size() > most_bytes)
    throw Error(path.string(), "is longer than 1 MB of text", "open a part of it");
  std::string note;
  if (const auto invalid = first_invalid_utf8(text)) {
    note = path.filename().string() + ": " + invalid_utf8_text(text, *invalid) + ": it was read as Latin-1";
    text = utf8_of_latin1(text);
  }
  std::ranges::replace(text, '\n', ' ');
  std::ranges::replace(text, '\r', ' ');
  const auto last = text.find_last_not_of(" \t");
  if (last == std::string::npos)
    throw Error(path.string(), "holds no text", "open a file with a sentence in it");
  text.resize(last + 1);
  open_text(editor, text);
  if (!note.empty()) editor.say(Severity::note, note);
}

bool has_text_ending(const fs::path& path) {
  const std::string ending = lower_case(path.extension().string());
  return ending == ".txt" || ending == ".md" || ending == ".tsv" || ending == ".csv";
}

} // namespace

std::vector<std::filesystem::path> adapter_chain(const std::filesystem::path& file,
                                                 const std::vector<std::filesystem::path>& others) {
  std::vector<AdapterInfo> candidates = bundled_adapters();
  for (const std::filesystem::path& other : others) candidates.push_back(read_adapter_info(other));
  std::vector<std::filesystem::path> files;
  for (const AdapterInfo& below : adapters_below(read_adapter_info(file), candidates))
    files.push_back(below.path);
  files.push_back(file);
  return files;
}

bool open_model(Editor& editor, const std::string& name_or_folder) {
  try {
    const fs::path folder = resolve_model(name_or_folder);
    if (capture_address(folder)) return open_capture(editor, folder);
    ModelInfo info = read_model_info(folder);
    const InputKind kind = info.input;
    editor.change("Open model " + info.name, [&](Document& document) {
      document.kind = kind;
      set_model(document.scene(), folder, std::move(info));
    });
    return true;
  } catch (const std::exception& error) {
    editor.say(Severity::error, error_message(error));
    return false;
  }
}

bool open_capture(Editor& editor, const fs::path& named, const std::string& gesture) {
  try {
    ModelInfo info = read_model_info(fs::absolute(named));
    std::string note;
    RunInput input = capture_input(info, &note);
    editor.change(
        "Open capture " + info.name,
        [&](Document& document) {
          document.kind = info.input;
          Scene& scene = document.scene();
          document.folder.reset();
          scene.adapters = {};
          scene.muted_heads.clear();
          scene.input = std::move(input);
          const fs::path folder = info.folder;
          set_model(scene, folder, std::move(info));
        },
        gesture);
    if (!note.empty()) editor.say(Severity::note, note);
    return true;
  } catch (const std::exception& error) {
    editor.say(Severity::error, error_message(error));
    return false;
  }
}

namespace {

// The part and the sequence of a capture, as an address.
std::string named_sequence(const fs::path& file, std::int64_t part, std::int64_t item) {
  return fmt::format("{}:{}:{}", file.string(), part, item);
}

// The same in another capture or, where it has fewer parts or sequences, its last one. Throws Error.
std::string nearest_sequence(const fs::path& file, std::int64_t part, std::int64_t item) {
  const Capture capture = Capture::open(file);
  const std::int64_t own_part = std::min<std::int64_t>(part, std::ssize(capture.parts()) - 1);
  const std::size_t first = capture.parts()[static_cast<std::size_t>(own_part)].layers.front();
  return named_sequence(file, own_part, std::min(item, capture.layers()[first].batch - 1));
}

} // namespace

void show_received(Editor& editor, const fs::path& file) {
  const Scene& scene = editor.document().scene();
  try {
    const std::string sequence =
        is_capture(scene) ? nearest_sequence(file, scene.model->capture->part, scene.model->capture->item)
                          : named_sequence(file, 0, 0);
    open_capture(editor, sequence, "received");
  } catch (const std::exception& error) {
    editor.say(Severity::error, error_message(error));
  }
}

void step_capture(Editor& editor, int by) {
  const Scene& scene = editor.document().scene();
  if (!is_capture(scene)) return;
  const CaptureInfo& capture = *scene.model->capture;
  const std::int64_t item = capture.item + by;
  if (item >= 0 && item < capture.items) {
    open_capture(editor, named_sequence(capture.file, capture.part, item));
    return;
  }
  const std::vector<fs::path> all = captures_in(capture.file.parent_path());
  const auto here = std::ranges::find(all, capture.file);
  const std::ptrdiff_t next = here == all.end() ? -1 : here - all.begin() + by;
  if (next < 0 || next >= static_cast<std::ptrdiff_t>(all.size()))
    return editor.say(Severity::note, by > 0 ? "that was the last sequence" : "that was the first sequence");
  const fs::path& file = all[static_cast<std::size_t>(next)];
  try { // where it has such a part, and going back from its last sequence
    constexpr std::int64_t last = std::numeric_limits<std::int64_t>::max();
    open_capture(editor, nearest_sequence(file, capture.part, by > 0 ? 0 : last));
  } catch (const std::exception& error) {
    editor.say(Severity::error, error_message(error));
  }
}

bool open_adapter(Editor& editor, const fs::path& file) {
  try {
    choose_adapters(editor, {.automatic = false, .files = adapter_chain(file)});
    return true;
  } catch (const std::exception& error) {
    editor.say(Severity::error, error_message(error));
    return false;
  }
}

namespace {

bool is_example(const fs::path& path) {
  std::error_code none;
  return fs::equivalent(path.parent_path(), examples_folder(), none);
}

// Opens the first readable picture from `position` on, in steps of `by`. Reports and skips unreadable ones.
bool open_from(Editor& editor, const std::shared_ptr<const PictureFolder>& folder,
               const std::vector<std::size_t>& order, std::ptrdiff_t position, int by) {
  constexpr int most_broken = 20; // in a row
  for (int tries = 0; tries < most_broken; ++tries, position += by) {
    if (position < 0 || position >= static_cast<std::ptrdiff_t>(order.size())) return false;
    const fs::path& file = folder->pictures[order[static_cast<std::size_t>(position)]].file;
    try {
      ImageInput image{std::make_shared<const Image>(load_image(file)), file.filename().string(), file};
      open_in_folder(editor, std::move(image), folder);
      return true;
    } catch (const std::exception& error) {
      editor.say(Severity::error, error_message(error));
    }
  }
  return false;
}

void open_directory(Editor& editor, const fs::path& path) {
  const PictureFolder listed = [&] {
    try {
      return list_pictures(path);
    } catch (const Error&) {
      throw Error(
          path.string(), "holds neither a model (config.json) nor pictures",
          "open a Hugging Face folder, or one with pictures or with a sub-folder of pictures per class");
    }
  }();
  const auto folder = std::make_shared<const PictureFolder>(listed);
  open_from(editor, folder, shown_order(*folder, false, {}), 0, 1);
}

} // namespace

bool open_folder(Editor& editor, const fs::path& folder) {
  try {
    open_directory(editor, folder);
    remember(editor, {folder.string(), false});
    return true;
  } catch (const std::exception& error) {
    editor.say(Severity::error, error_message(error));
    return false;
  }
}

void open_folder_picture(Editor& editor, std::size_t index) {
  const auto folder = editor.document().folder;
  if (folder && index < folder->pictures.size()) open_from(editor, folder, {index}, 0, 1);
}

void step_picture(Editor& editor, int by) {
  const Document& document = editor.document();
  const auto& input = document.scene_of(InputKind::image).input;
  const auto* image = input ? std::get_if<ImageInput>(&*input) : nullptr;
  try {
    auto folder = document.folder;
    if (!folder && image != nullptr && !image->path.empty())
      folder = std::make_shared<const PictureFolder>(list_pictures(image->path.parent_path()));
    if (!folder) return;
    const std::vector<std::size_t> order = shown_order(*folder, document.wrong_first, editor.checks);
    const auto index = image == nullptr ? std::nullopt : find_picture(*folder, image->path);
    const auto at = index ? std::ranges::find(order, *index) - order.begin() : (by > 0 ? -1 : 1);
    const bool ends = at + by < 0 || at + by >= static_cast<std::ptrdiff_t>(order.size());
    if (ends)
      return editor.say(Severity::note, by > 0 ? "that was the last picture" : "that was the first picture");
    open_from(editor, folder, order, at + by, by);
  } catch (const std::exception& error) {
    editor.say(Severity::error, error_message(error));
  }
}

bool open_recent(Editor& editor, const RecentInput& recent) {
  if (!recent.is_text) return open_path(editor, recent.value);
  const auto tab = recent.value.find('\t');
  const auto pair = tab == std::string::npos ? std::nullopt : std::optional(recent.value.substr(tab + 1));
  open_text(editor, recent.value.substr(0, tab), pair);
  remember(editor, recent);
  return true;
}

bool open_path(Editor& editor, const fs::path& path) {
  try {
    if (capture_address(path)) {
      if (!open_capture(editor, path)) return false;
      remember(editor, {path.string(), false});
      return true;
    }
    if (!fs::exists(path)) throw Error(path.string(), "does not exist", "check the path");
    if (fs::is_directory(path) && !fs::exists(path / "config.json"))
      if (const auto captures = captures_in(path); !captures.empty())
        return open_path(editor, captures.front());
    if (fs::is_directory(path) && !fs::exists(path / "config.json")) return open_folder(editor, path);
    if (fs::is_directory(path) || path.filename() == "config.json") {
      const fs::path folder = fs::is_directory(path) ? path : path.parent_path();
      if (!open_model(editor, folder.string())) return false;
      remember(editor, {folder.string(), false});
      return true;
    }
    if (!fs::is_regular_file(path)) // a pipe, a device
      throw Error(path.string(), "is not a regular file", "open a file or a folder");
    if (path.extension() == ".safetensors" && path.filename() != "model.safetensors")
      return open_adapter(editor, path);
    if (const auto figure = figure_in(path); figure && is_view(*figure, path))
      return open_figure(editor, *figure, path);
    if (auto session = session_in(path)) return open_session_text(editor, std::move(*session), path);
    if (path.extension() == ".py") return open_map(editor, path);
    if (has_text_ending(path) || is_pickled_model(path)) {
      show_text_file(editor, path);
    } else {
      try {
        show_image(editor, path);
      } catch (const ForeignFile&) {
        if (has_picture_ending(path)) throw;
        show_text_file(editor, path);
      }
    }
    if (!is_example(path)) remember(editor, {path.string(), false});
    return true;
  } catch (const std::exception& error) {
    editor.say(Severity::error, error_message(error));
    return false;
  }
}

std::vector<std::filesystem::path> example_pictures() {
  std::vector<std::filesystem::path> pictures;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(examples_folder(), none)) {
    if (has_picture_ending(entry.path())) pictures.push_back(entry.path());
  }
  std::ranges::sort(pictures);
  return pictures;
}

const std::vector<std::string>& example_sentences() {
  static const std::vector<std::string> sentences = {
      "The cat that chased the mice was sleeping by the window.",
      "She poured water from the jug into the glass until it was full.",
      "The bank raised its rates after the river flooded the town.",
  };
  return sentences;
}

const std::vector<std::string>& example_beginnings() {
  static const std::vector<std::string> beginnings = {
      "The capital of France is",
      "Once upon a time, a hedgehog and a porcupine met at a well. The hedgehog said:",
      "When Mary and John went to the shop, John gave a bag of apples to",
  };
  return beginnings;
}

} // namespace hydrascope::app
