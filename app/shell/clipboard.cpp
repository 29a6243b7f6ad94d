#include "app/shell/clipboard.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <imgui.h>

#include "app/document/edits.h"
#include "engine/base/error.h"
#include "engine/base/error_message.h"
#include "engine/base/image.h"
#include "engine/base/text.h"
#include "engine/figures/numbers.h"

namespace hydrascope::app {

namespace {

int hexadecimal(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

// The path of a file:// URL, percent-decoded.
std::string path_of_url(const std::string& url) {
  std::string path;
  for (std::size_t i = std::string("file://").size(); i < url.size(); ++i) {
    const int high = url[i] == '%' && i + 2 < url.size() ? hexadecimal(url[i + 1]) : -1;
    const int low = high >= 0 ? hexadecimal(url[i + 2]) : -1;
    if (low >= 0) {
      path += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      path += url[i];
    }
  }
  return path;
}

} // namespace

void open_pasted_text(Editor& editor, std::string text) {
  std::erase(text, '\r');
  const auto first = text.find_first_not_of(" \n\t");
  if (first == std::string::npos) return editor.say(Severity::note, "paste: the clipboard is empty");
  text = text.substr(first, text.find_last_not_of(" \n\t") + 1 - first);

  const std::string line = first_line(text);
  const std::string path = line.starts_with("file://") ? path_of_url(line) : line;
  std::error_code none;
  if (path.starts_with('/') && std::filesystem::exists(path, none)) {
    open_path(editor, path);
    return;
  }
  std::ranges::replace(text, '\n', ' ');
  open_recent(editor, {text, true}); // a tab separates a pair
}

Clipboard::Clipboard(WindowSystem system, std::function<void()> wake)
    : obstacle_(picture_clipboard_obstacle(system)) {
  if (!obstacle_.empty()) return;
  try {
    pictures_ = open_picture_clipboard(system, std::move(wake));
  } catch (const Error& error) {
    obstacle_ = error.what();
  }
}

void Clipboard::poll(Editor& editor) {
  if (!pictures_) return;
  if (const std::string failure = pictures_->take_failure(); !failure.empty())
    editor.say(Severity::error, "copy: " + failure);
  const std::optional<Pasted> pasted = pictures_->take();
  if (!pasted) return;
  waiting_ = false;
  if (pasted->picture) {
    open_image(editor, {pasted->picture, "pasted picture", {}});
  } else if (pasted->text) {
    open_pasted_text(editor, *pasted->text);
  } else {
    editor.say(Severity::note, "paste: nothing came from the clipboard: " + pasted->problem);
  }
}

void Clipboard::copy_input(Editor& editor) {
  const auto& input = editor.document().scene().input;
  if (!input) return;
  if (const auto* text = std::get_if<TextInput>(&*input)) {
    ImGui::SetClipboardText((text->pair ? text->text + "\t" + *text->pair : text->text).c_str());
    return editor.say(Severity::note, "Copied: the sentence");
  }
  const auto& image = std::get<ImageInput>(*input);
  if (!pictures_) return editor.say(Severity::note, "copy: " + obstacle_);
  if (!image.image) return;
  pictures_->offer(encode_png(*image.image));
  editor.say(Severity::note, "Copied: " + image.name);
}

void Clipboard::copy_figure(Editor& editor, const std::optional<Figure>& figure) {
  if (!pictures_) return editor.say(Severity::note, "copy: " + obstacle_);
  if (!figure)
    return editor.say(Severity::note, "copy: the panel shows nothing yet of the present input and kernels");
  try {
    pictures_->offer(figure_png(*figure));
    editor.say(Severity::note, "Copied: the figure");
  } catch (const std::exception& error) {
    editor.say(Severity::error, error_message(error));
  }
}

void Clipboard::copy_numbers(Editor& editor, const std::optional<Figure>& figure) {
  if (!figure)
    return editor.say(Severity::note, "copy: the panel shows nothing yet of the present input and kernels");
  ImGui::SetClipboardText(tsv_text(*figure).c_str());
  editor.say(Severity::note, "Copied as tab-separated values");
}

void Clipboard::paste(Editor& editor) {
  if (pictures_) {
    waiting_ = true;
    return pictures_->request();
  }
  const char* text = ImGui::GetClipboardText();
  if (text == nullptr || *text == '\0')
    return editor.say(Severity::note, "paste: there is no text, and " + obstacle_);
  open_pasted_text(editor, text);
}

} // namespace hydrascope::app
