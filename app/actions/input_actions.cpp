#include "app/actions/input_actions.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "app/document/edits.h"

namespace hydrascope::app {

namespace {

std::string recent_label(const RecentInput& recent) {
  if (!recent.is_text) return recent.value;
  constexpr std::size_t most = 60;
  if (recent.value.size() <= most) return "“" + recent.value + "”";
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(recent.value[end]) & 0xC0U) == 0x80U)
    --end; // a letter stays whole
  return "“" + recent.value.substr(0, end) + "…”";
}

Availability can_step(const Editor& editor) {
  const Document& document = editor.document();
  if (document.folder) return {};
  const auto& input = document.scene_of(InputKind::image).input;
  const auto* image = input ? std::get_if<ImageInput>(&*input) : nullptr;
  return {image != nullptr && !image->path.empty(), "open a folder of pictures, or a picture in one"};
}

// What the pointer is on, else the query.
struct ChosenTokens {
  std::int64_t first = 0, count = 1;
};
std::optional<ChosenTokens> chosen_tokens(const Editor& editor) {
  if (editor.hovered_token()) return ChosenTokens{*editor.hovered_token(), editor.hovered_count()};
  const Scene& scene = editor.document().scene();
  if (!scene.default_query && scene.query) return ChosenTokens{*scene.query, 1};
  return std::nullopt;
}

Availability can_copy_pictures(const Editor& editor) {
  const std::string& obstacle = editor.status().no_picture_clipboard;
  return {obstacle.empty(), obstacle};
}

} // namespace

void add_recent_actions(ActionTable& table, const Settings& settings) {
  int number = 0;
  for (const RecentInput& recent : settings.recent) {
    add(table, fmt::format("file.recent.{}", number++), recent_label(recent), "File/Open recent", "",
        [recent](Editor& editor) { open_recent(editor, recent); });
  }
  add(
      table, "file.forget_recent", "Forget these", "File/Open recent", "",
      [](Editor& editor) { editor.change_settings([](Settings& kept) { kept.recent.clear(); }); },
      [](const Editor& editor) {
        return Availability{!editor.settings().recent.empty(), "nothing has been opened yet"};
      });
}

void add_folder_actions(ActionTable& table) {
  add(table, "file.open_folder", "Open folder of pictures…", "File", "",
      [](Editor& editor) { editor.emit(ShowDialog{Dialog::open_folder}); });
  add(
      table, "file.next_picture", "Next picture", "File/Folder", "PageDown",
      [](Editor& editor) { step_picture(editor, 1); }, can_step);
  add(
      table, "file.previous_picture", "Previous picture", "File/Folder", "PageUp",
      [](Editor& editor) { step_picture(editor, -1); }, can_step);
  add(
      table, "file.wrong_first", "Wrong predictions first", "File/Folder", "",
      [](Editor& editor) { show_wrong_first(editor, !editor.document().wrong_first); },
      [](const Editor& editor) {
        const auto& folder = editor.document().folder;
        return Availability{folder && folder->labelled, "open a folder that has a sub-folder per class"};
      })
      .checked = [](const Editor& editor) { return editor.document().wrong_first; };
  add(table, "file.close_folder", "Close the folder", "File/Folder", "", close_folder,
      [](const Editor& editor) {
        return Availability{editor.document().folder != nullptr, "no folder is open"};
      });
}

void add_copy_actions(ActionTable& table, const std::vector<PanelName>& panels) {
  for (const PanelName& panel : panels) {
    if (!panel.exports) continue;
    add(
        table, "file.copy." + panel.id, "Copy " + panel.title, "File/Copy figure", "",
        [id = panel.id](Editor& editor) { editor.emit(CopyFigure{id}); }, can_copy_pictures);
    add(table, "file.copy_numbers." + panel.id, "Copy numbers of " + panel.title, "File/Copy numbers", "",
        [id = panel.id](Editor& editor) { editor.emit(CopyNumbers{id}); });
  }
}

void add_clipboard_actions(ActionTable& table) {
  add(
      table, "edit.copy", "Copy the input", "Edit", "Ctrl+C",
      [](Editor& editor) { editor.emit(CopyInput{}); },
      [](const Editor& editor) {
        const Document& document = editor.document();
        if (!document.scene().input) return Availability{false, "nothing is open"};
        return document.kind == InputKind::image ? can_copy_pictures(editor) : Availability{};
      });
  // Text can be pasted anywhere; what keeps pictures from it is said where there is no text either.
  add(table, "edit.paste", "Paste picture or text", "Edit", "Ctrl+V",
      [](Editor& editor) { editor.emit(Paste{}); });
}

void add_token_actions(ActionTable& table) {
  add(
      table, "edit.hide_token", "Hide or show a patch, mask a token", "Edit", "H",
      [](Editor& editor) {
        const auto chosen = chosen_tokens(editor);
        if (chosen)
          hide_tokens(editor, chosen->first, chosen->count, !is_hidden(editor.document(), chosen->first));
      },
      [](const Editor& editor) {
        const auto chosen = chosen_tokens(editor);
        if (!chosen) return Availability{false, "point at a patch or a token, or make it the query"};
        const std::string reason = why_not_hidden(editor.document(), chosen->first);
        return Availability{reason.empty(), reason};
      });
  add(table, "edit.show_all_tokens", "Show all that is hidden", "Edit", "Shift+H", show_all_tokens,
      [](const Editor& editor) {
        return Availability{!editor.document().scene().hidden_tokens.empty(), "nothing is hidden"};
      });
}

} // namespace hydrascope::app
