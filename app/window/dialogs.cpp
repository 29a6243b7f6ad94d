#include <portable_file_dialogs.h>

#include "app/state/edits.h"
#include "app/window/shell.h"

namespace hydrascope::app {

Dialogs::Dialogs() = default;
Dialogs::~Dialogs() = default;

bool Dialogs::open() const { return file_ || adapter_ || folder_ || save_; }

void Dialogs::poll(Editor& editor) {
  Dialog& wanted = editor.shell.dialog;
  if (wanted != Dialog::none && !open()) {
    if (!pfd::settings::available()) {
      editor.say(Severity::error,
                 "file dialog: neither zenity nor kdialog is installed; drop the file on the window, or "
                 "name it on the command line");
    } else if (wanted == Dialog::open_file) {
      file_ = std::make_unique<pfd::open_file>(
          "Open picture or text", "",
          std::vector<std::string>{"Pictures and text",
                                   "*.png *.jpg *.jpeg *.bmp *.gif *.tga *.ppm *.pgm *.txt", "All files",
                                   "*"});
    } else if (wanted == Dialog::open_adapter) {
      adapter_ = std::make_unique<pfd::open_file>(
          "Open adapter", "", std::vector<std::string>{"Adapters", "*.safetensors", "All files", "*"});
    } else if (wanted == Dialog::open_model || wanted == Dialog::open_folder) {
      folder_ = std::make_unique<pfd::select_folder>(
          wanted == Dialog::open_model ? "Open model folder" : "Open folder of pictures");
    } else {
      save_ = std::make_unique<pfd::save_file>(
          "Export figure", editor.shell.panel_to_export + ".pdf",
          std::vector<std::string>{"PDF", "*.pdf", "SVG", "*.svg", "PNG", "*.png"});
    }
  }
  wanted = Dialog::none;
  if (file_ && file_->ready(0)) {
    for (const std::string& path : file_->result()) open_path(editor, path);
    file_.reset();
  }
  if (adapter_ && adapter_->ready(0)) {
    for (const std::string& path : adapter_->result()) open_adapter(editor, path);
    adapter_.reset();
  }
  if (folder_ && folder_->ready(0)) {
    if (const std::string path = folder_->result(); !path.empty()) open_path(editor, path);
    folder_.reset();
  }
  if (save_ && save_->ready(0)) {
    if (std::filesystem::path path = save_->result(); !path.empty()) {
      if (path.extension().empty()) path += ".pdf";
      editor.shell.export_file = path;
    } else {
      editor.shell.panel_to_export.clear();
    }
    save_.reset();
  }
  if (open()) editor.shell.animate = true;
}

} // namespace hydrascope::app
