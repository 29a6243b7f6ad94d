#include <portable_file_dialogs.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <utility>

#include "app/document/edits.h"
#include "app/document/session_edits.h"
#include "app/shell/shell.h"
#include "engine/attention/own/map_source.h"
#include "engine/base/image.h"

namespace hydrascope::app {

namespace {

using Filters = std::vector<std::string>;

std::string input_patterns() {
  std::string patterns;
  for (const std::string_view ending : picture_endings()) patterns.append("*").append(ending).append(" ");
  return patterns + "*.txt *.json *.safetensors *.py";
}

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

bool Dialogs::open() const { return file_ || folder_dialog_ || save_ || own_.shown(); }

std::optional<FileQuestion> Dialogs::question(Dialog dialog, const Editor& editor) const {
  using Kind = FileQuestion::Kind;
  const auto open_file = [](std::string title, Filters filters) {
    filters.insert(filters.end(), {"All files", "*"});
    return FileQuestion{.kind = Kind::open_file, .title = std::move(title), .filters = std::move(filters)};
  };
  const auto select = [](std::string title) {
    return FileQuestion{.kind = Kind::open_folder, .title = std::move(title)};
  };
  const auto save_file = [](std::string title, std::string name, Filters filters) {
    return FileQuestion{.kind = Kind::save_file,
                        .title = std::move(title),
                        .name = std::move(name),
                        .filters = std::move(filters)};
  };
  switch (dialog) {
    case Dialog::none: break;
    case Dialog::open_file:
      return open_file("Open picture, text or capture",
                       {"Pictures, text, captures, sessions", input_patterns()});
    case Dialog::open_adapter: return open_file("Open adapter", {"Adapters", "*.safetensors"});
    case Dialog::open_session: return open_file("Open session", {"Sessions", "*.json"});
    case Dialog::open_map: return open_file("Open the source of a kernel", {"Python", "*.py"});
    case Dialog::save_map:
      return save_file("Save the source", (maps_folder() / (editor.typed_map.name + ".py")).string(),
                       {"Python", "*.py"});
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
    case Dialog::trained_adapter:
      return save_file("Save the trained adapter", editor.training.outcome.adapter.path.filename().string(),
                       {"Adapters", "*.safetensors"});
    case Dialog::export_figure:
      return save_file("Export figure", panel_ + ".pdf", {"PDF", "*.pdf", "SVG", "*.svg", "PNG", "*.png"});
    case Dialog::locate: {
      const auto& incomplete = editor.incomplete_session;
      if (!incomplete) break;
      const auto file = std::ranges::find(incomplete->read.missing, missing_, &MissingFile::path);
      if (file == incomplete->read.missing.end()) break;
      const std::string title = "Locate " + missing_.filename().string();
      if (file->kind == FileKind::model || file->kind == FileKind::folder) return select(title);
      return open_file(title, {});
    }
  }
  return std::nullopt;
}

void Dialogs::take(Editor& editor, std::filesystem::path chosen) {
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
      if (!given) return;
      TrainingForm& form = editor.training_form;
      TrainingPlan& plan = form.plan(form.kind, training_data(editor.document()));
      if (shown_ == Dialog::training_data)
        choose_data(plan, form.kind, editor.document().kind, chosen.string());
      else
        plan.set(shown_ == Dialog::training_validation ? "validation" : "output", chosen.string());
      return;
    }
    case Dialog::trained_adapter:
      if (!given) return;
      if (chosen.extension().empty()) chosen += ".safetensors";
      editor.emit(SaveTrainedAdapter{chosen});
      return;
    case Dialog::open_map:
      if (given) open_map(editor, chosen);
      return;
    case Dialog::save_map:
      if (!given) return;
      if (chosen.extension().empty()) chosen += ".py";
      editor.emit(SaveMap{chosen});
      return;
    case Dialog::locate:
      if (given) locate_missing(editor, missing_, chosen);
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

namespace {

// Where the window's own dialog begins without an earlier choice.
std::filesystem::path home_folder() {
  const char* const home = std::getenv("HOME");
  std::error_code none;
  return home != nullptr && *home == '/' ? std::filesystem::path(home) : std::filesystem::current_path(none);
}

} // namespace

void Dialogs::show(const ShowDialog& command, Editor& editor, std::string panel) {
  if (open()) return;
  const Dialog dialog = command.dialog;
  std::error_code failure; // the dialog says why it cannot be saved
  if (dialog == Dialog::save_map) std::filesystem::create_directories(maps_folder(), failure);
  shown_ = dialog;
  panel_ = std::move(panel);
  missing_ = command.missing;
  std::optional<FileQuestion> asked = question(dialog, editor);
  if (!asked) return;
  // Starts several processes: too slow for the start of the program.
  if (!desktop_) desktop_ = pfd::settings::available();
  if (!*desktop_) return own_.open(std::move(*asked), folder_.empty() ? home_folder() : folder_);
  switch (asked->kind) {
    case FileQuestion::Kind::open_file:
      file_ = std::make_unique<pfd::open_file>(asked->title, "", asked->filters);
      break;
    case FileQuestion::Kind::open_folder:
      folder_dialog_ = std::make_unique<pfd::select_folder>(asked->title);
      break;
    case FileQuestion::Kind::save_file:
      save_ = std::make_unique<pfd::save_file>(asked->title, asked->name, asked->filters);
      break;
  }
}

void Dialogs::poll(Editor& editor, const Graphics& graphics) {
  std::optional<std::filesystem::path> answer;
  if (file_ && file_->ready(0)) {
    const auto files = file_->result();
    file_.reset();
    answer = files.empty() ? std::string() : files.front();
  } else if (folder_dialog_ && folder_dialog_->ready(0)) {
    answer = folder_dialog_->result();
    folder_dialog_.reset();
  } else if (save_ && save_->ready(0)) {
    answer = save_->result();
    save_.reset();
  } else if ((answer = own_.draw(graphics)); answer && !answer->empty()) {
    folder_ = shown_ == Dialog::export_everything ? *answer : answer->parent_path();
  }
  if (!answer) return;
  editor.draw_now(); // forms, too, show what was chosen
  take(editor, *answer);
}

} // namespace hydrascope::app
