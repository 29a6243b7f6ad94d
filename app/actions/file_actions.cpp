// The File menu: sessions, inputs, folders, exports.
#include <cstdint>

#include <fmt/format.h>

#include "app/actions/action_table.h"
#include "app/document/edits.h"

namespace hydrascope::app {

namespace {

namespace fs = std::filesystem;

void add_session_actions(ActionTable& table) {
  add_action(table, "file.new_session", "New session", "File", "Ctrl+N",
             [](Editor& editor) { editor.emit(NewSession{}); });
  add_action(table, "file.open_session", "Open session…", "File", "",
             [](Editor& editor) { editor.emit(ShowDialog{Dialog::open_session}); });
  add_action(
      table, "file.reopen_last", "Reopen last session", "File", "",
      [](Editor& editor) { editor.emit(ReopenLastSession{}); },
      [](const Editor& editor) {
        return Availability{editor.status().has_last_session, "there is no earlier session"};
      });
  add_action(table, "file.save_session", "Save session", "File", "Ctrl+S", [](Editor& editor) {
    if (editor.session().file.empty()) {
      editor.emit(ShowDialog{Dialog::save_session});
    } else {
      editor.emit(SaveSession{});
    }
  });
  add_action(table, "file.save_session_as", "Save session as…", "File", "Ctrl+Shift+S",
             [](Editor& editor) { editor.emit(ShowDialog{Dialog::save_session}); });
}

std::string recent_label(const RecentInput& recent) {
  if (!recent.is_text) return recent.value;
  constexpr std::size_t most = 60;
  if (recent.value.size() <= most) return "“" + recent.value + "”";
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(recent.value[end]) & 0xC0U) == 0x80U)
    --end; // cut between characters
  return "“" + recent.value.substr(0, end) + "…”";
}

void step(Editor& editor, int by) {
  if (is_capture(editor.document().scene()))
    step_capture(editor, by);
  else
    step_picture(editor, by);
}

Availability can_step(const Editor& editor) {
  const Document& document = editor.document();
  if (is_capture(document.scene()) || document.folder) return {};
  const auto& input = document.scene_of(InputKind::image).input;
  const auto* image = input ? std::get_if<ImageInput>(&*input) : nullptr;
  return {image != nullptr && !image->path.empty(), "open a folder of pictures, or a picture in one"};
}

void add_recent_actions(ActionTable& table, const Settings& settings) {
  int number = 0;
  for (const RecentInput& recent : settings.recent) {
    add_action(table, fmt::format("file.recent.{}", number++), recent_label(recent), "File/Open recent", "",
               [recent](Editor& editor) { open_recent(editor, recent); });
  }
  add_action(
      table, "file.forget_recent", "Clear recent inputs", "File/Open recent", "",
      [](Editor& editor) { editor.change_settings([](Settings& kept) { kept.recent.clear(); }); },
      [](const Editor& editor) {
        return Availability{!editor.settings().recent.empty(), "nothing has been opened yet"};
      });
}

void add_folder_actions(ActionTable& table) {
  add_action(table, "file.open_folder", "Open folder of pictures…", "File", "",
             [](Editor& editor) { editor.emit(ShowDialog{Dialog::open_folder}); });
  add_action(
      table, "file.next_picture", "Next picture", "File/Folder", "PageDown",
      [](Editor& editor) { step(editor, 1); }, can_step);
  add_action(
      table, "file.previous_picture", "Previous picture", "File/Folder", "PageUp",
      [](Editor& editor) { step(editor, -1); }, can_step);
  add_action(
      table, "file.wrong_first", "Wrong predictions first", "File/Folder", "",
      [](Editor& editor) { show_wrong_first(editor, !editor.document().wrong_first); },
      [](const Editor& editor) {
        const auto& folder = editor.document().folder;
        return Availability{folder && folder->labelled, "open a folder that has a sub-folder per class"};
      })
      .checked = [](const Editor& editor) { return editor.document().wrong_first; };
  add_action(table, "file.close_folder", "Close the folder", "File/Folder", "", close_folder,
             [](const Editor& editor) {
               return Availability{editor.document().folder != nullptr, "no folder is open"};
             });
}

void add_copy_actions(ActionTable& table, const std::vector<PanelName>& panels) {
  for (const PanelName& panel : panels) {
    if (!panel.exports) continue;
    add_action(
        table, "file.copy." + panel.id, "Copy " + panel.title, "File/Copy figure", "",
        [id = panel.id](Editor& editor) { editor.emit(CopyFigure{id}); }, pictures_can_be_copied);
    add_action(table, "file.copy_numbers." + panel.id, "Copy numbers of " + panel.title, "File/Copy numbers",
               "", [id = panel.id](Editor& editor) { editor.emit(CopyNumbers{id}); });
  }
}

} // namespace

void add_file_actions(ActionTable& table, const std::vector<PanelName>& panels, const Settings& settings) {
  add_session_actions(table);
  add_action(table, "file.open", "Open picture, text or capture…", "File", "Ctrl+O",
             [](Editor& editor) { editor.emit(ShowDialog{Dialog::open_file}); });
  add_action(table, "file.open_model", "Open model folder…", "File", "Ctrl+Shift+O",
             [](Editor& editor) { editor.emit(ShowDialog{Dialog::open_model}); });
  add_action(table, "file.get_model", "Get a model…", "File", "",
             [](Editor& editor) { editor.emit(ShowOverlay{Overlay::get_model}); });
  add_folder_actions(table);
  add_recent_actions(table, settings);
  for (const fs::path& picture : example_pictures()) {
    const std::string name = picture.stem().string();
    add_action(table, "file.example." + name, "Example: " + name, "File/Examples", "",
               [picture](Editor& editor) { open_path(editor, picture); });
  }
  int number = 0;
  for (const std::string& sentence : example_sentences()) {
    add_action(table, fmt::format("file.sentence.{}", number++), "Example: “" + sentence + "”",
               "File/Examples", "", [sentence](Editor& editor) { open_text(editor, sentence); });
  }
  for (const PanelName& panel : panels) {
    if (!panel.exports) continue;
    add_action(
        table, "file.export." + panel.id, "Export " + panel.title + "…", "File/Export",
        panel.id == "focus" ? "Ctrl+E" : (panel.id == "weights" ? "Ctrl+Shift+E" : ""),
        [id = panel.id](Editor& editor) { editor.emit(ExportFigure{.panel = id, .file = std::nullopt}); },
        with_model);
  }
  add_action(
      table, "file.export_everything", "Export everything open…", "File/Export", "",
      [](Editor& editor) { editor.emit(ExportEverything{}); }, with_model);
  add_copy_actions(table, panels);
  add_action(table, "file.quit", "Quit", "File", "Ctrl+Q", [](Editor& editor) { editor.emit(Quit{}); });
}

} // namespace hydrascope::app
