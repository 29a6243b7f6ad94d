#include <portable_file_dialogs.h>

#include <utility>

#include "app/document/edits.h"
#include "app/document/session_edits.h"
#include "app/shell/shell.h"

namespace hydrascope::app {

namespace {

using Filters = std::vector<std::string>;

std::string session_name(const Editor& editor) {
  const std::filesystem::path& file = editor.session().file;
  if (!file.empty()) return file.string();
  const auto& input = editor.document().scene().input;
  const auto* image = input ? std::get_if<ImageInput>(&*input) : nullptr;
  return (image == nullptr ? "session" : std::filesystem::path(image->name).stem().string()) + ".json";
}

} // namespace

Dialogs::Dialogs() = default;
Dialogs::~Dialogs() = default;

bool Dialogs::open() const { return file_ || folder_ || save_; }

void Dialogs::create(Dialog dialog, const Editor& editor) {
  const auto open_file = [&](const char* title, Filters filters) {
    filters.insert(filters.end(), {"All files", "*"});
    file_ = std::make_unique<pfd::open_file>(title, "", filters);
  };
  const auto select = [&](const char* title) { folder_ = std::make_unique<pfd::select_folder>(title); };
  const auto save_file = [&](const char* title, const std::string& name, const Filters& filters) {
    save_ = std::make_unique<pfd::save_file>(title, name, filters);
  };
  switch (dialog) {
    case Dialog::none: break;
    case Dialog::open_file:
      return open_file(
          "Open picture or text",
          {"Pictures, text, sessions", "*.png *.jpg *.jpeg *.bmp *.gif *.tga *.ppm *.pgm *.txt *.json"});
    case Dialog::open_adapter: return open_file("Open adapter", {"Adapters", "*.safetensors"});
    case Dialog::open_session: return open_file("Open session", {"Sessions", "*.json"});
    case Dialog::open_model: return select("Open model folder");
    case Dialog::open_folder: return select("Open folder of pictures");
    case Dialog::export_everything: return select("Export everything open into this folder");
    case Dialog::save_session: return save_file("Save session", session_name(editor), {"Sessions", "*.json"});
    case Dialog::training_data:
    case Dialog::training_validation:
      if (editor.document().kind == InputKind::image) return select("Folder of pictures to train on");
      return open_file("Texts to train on", {"Texts and tables", "*.txt *.tsv"});
    case Dialog::training_output:
      return save_file("Adapter to be written",
                       training_output(editor.document(), editor.training_form).string(),
                       {"Adapters", "*.safetensors"});
    case Dialog::export_figure:
      return save_file("Export figure", panel_ + ".pdf", {"PDF", "*.pdf", "SVG", "*.svg", "PNG", "*.png"});
    case Dialog::locate: {
      const auto& incomplete = editor.incomplete_session;
      if (!incomplete || incomplete->to_locate >= incomplete->read.missing.size()) return;
      const MissingFile& file = incomplete->read.missing[incomplete->to_locate];
      const std::string title = "Locate " + file.path.filename().string();
      if (file.kind == FileKind::model || file.kind == FileKind::folder) return select(title.c_str());
      return open_file(title.c_str(), {});
    }
  }
}

void Dialogs::take(Editor& editor, std::filesystem::path chosen) {
  editor.draw_now(); // forms, too, show what was chosen
  const bool given = !chosen.empty();
  switch (shown_) {
    case Dialog::export_figure:
      if (!given) return;
      if (chosen.extension().empty()) chosen += ".pdf";
      editor.emit(ExportFigure{.panel = panel_, .file = chosen});
      return;
    case Dialog::export_everything:
      if (given) editor.emit(ExportEverything{chosen});
      return;
    case Dialog::save_session:
      if (!given) return;
      if (chosen.extension().empty()) chosen += ".json";
      editor.emit(SaveSession{chosen});
      return;
    case Dialog::training_data:
    case Dialog::training_validation:
    case Dialog::training_output: {
      TrainingForm& form = editor.training_form;
      TrainingPlan& plan = form.plan(form.kind, editor.document().kind);
      const char* const field = shown_ == Dialog::training_data         ? "data"
                                : shown_ == Dialog::training_validation ? "validation"
                                                                        : "output";
      if (given) plan.set(field, chosen.string());
      return;
    }
    case Dialog::locate:
      if (given) locate_missing(editor, chosen);
      return;
    case Dialog::open_adapter:
      if (given) open_adapter(editor, chosen);
      return;
    case Dialog::open_session:
      if (given) open_session(editor, chosen);
      return;
    default:
      if (given) open_path(editor, chosen);
  }
}

void Dialogs::show(Dialog dialog, Editor& editor, std::string panel) {
  if (open()) return;
  if (!pfd::settings::available())
    return editor.say(Severity::error,
                      "file dialog: neither zenity nor kdialog is installed; drop the file on the window, or "
                      "name it on the command line");
  shown_ = dialog;
  panel_ = std::move(panel);
  create(dialog, editor);
}

void Dialogs::poll(Editor& editor) {
  if (file_ && file_->ready(0)) {
    const auto files = file_->result();
    file_.reset();
    take(editor, files.empty() ? std::string() : files.front());
  }
  if (folder_ && folder_->ready(0)) {
    const std::string folder = folder_->result();
    folder_.reset();
    take(editor, folder);
  }
  if (save_ && save_->ready(0)) {
    const std::string file = save_->result();
    save_.reset();
    take(editor, file);
  }
}

} // namespace hydrascope::app
