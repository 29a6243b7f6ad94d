// The Edit menu: undo, the query, the clipboard, hidden tokens, muted heads.
#include <cctype>
#include <cstdint>
#include <string>
#include <string_view>

#include "app/actions/action_table.h"
#include "app/document/edits.h"

namespace hydrascope::app {

namespace {

// The tokens under the pointer, else the query.
struct ChosenTokens {
  std::int64_t first = 0, count = 1;
};
std::optional<ChosenTokens> chosen_tokens(const Editor& editor) {
  if (editor.hovered_token()) return ChosenTokens{*editor.hovered_token(), editor.hovered_count()};
  const Scene& scene = editor.document().scene();
  if (!scene.default_query && scene.query) return ChosenTokens{*scene.query, 1};
  return std::nullopt;
}

void add_clipboard_actions(ActionTable& table) {
  add_action(
      table, "edit.copy", "Copy the input", "Edit", "Ctrl+C",
      [](Editor& editor) { editor.emit(CopyInput{}); },
      [](const Editor& editor) {
        const Document& document = editor.document();
        if (!document.scene().input) return Availability{false, "nothing is open"};
        return document.kind == InputKind::image ? pictures_can_be_copied(editor) : Availability{};
      });
  // Text can always be pasted. Pasting reports the obstacle to pictures if there is no text either.
  add_action(table, "edit.paste", "Paste picture or text", "Edit", "Ctrl+V",
             [](Editor& editor) { editor.emit(Paste{}); });
}

void add_token_actions(ActionTable& table) {
  add_action(
      table, "edit.hide_token", "Hide or show a patch, mask a token", "Edit", "H",
      [](Editor& editor) {
        const auto chosen = chosen_tokens(editor);
        if (chosen)
          hide_tokens(editor, chosen->first, chosen->count, !is_hidden(editor.document(), chosen->first));
      },
      [](const Editor& editor) {
        const auto chosen = chosen_tokens(editor);
        if (!chosen) return Availability{false, "point at a patch or a token, or make it the query"};
        const std::string reason = why_not_hidden(editor, chosen->first);
        return Availability{reason.empty(), reason};
      });
  add_action(table, "edit.show_all_tokens", "Show all that is hidden", "Edit", "Shift+H", show_all_tokens,
             [](const Editor& editor) {
               return Availability{!editor.document().scene().hidden_tokens.empty(), "nothing is hidden"};
             });
}

void add_head_actions(ActionTable& table) {
  add_action(
      table, "edit.mute_head", "Mute or unmute the head", "Edit", "M",
      [](Editor& editor) {
        if (const auto head = chosen_head(editor))
          mute_head(editor, *head, !is_muted(editor.document(), *head));
      },
      [](const Editor& editor) {
        if (!editor.document().scene().model) return with_model(editor);
        if (std::string why = why_not_muted(editor.document()); !why.empty())
          return Availability{false, std::move(why)};
        return Availability{chosen_head(editor).has_value(), "choose one head, or point at one"};
      });
  add_action(
      table, "edit.mute_layer", "Mute or unmute the layer", "Edit", "Shift+M",
      [](Editor& editor) {
        const auto pointed = editor.hovered_head();
        const int layer = pointed ? pointed->layer : editor.document().scene().layer;
        mute_layer(editor, layer, !layer_is_muted(editor.document(), layer));
      },
      [](const Editor& editor) {
        std::string why = why_not_muted(editor.document());
        return why.empty() ? with_model(editor) : Availability{false, std::move(why)};
      });
  add_action(table, "edit.unmute_all", "Unmute everything", "Edit", "Ctrl+Shift+M", unmute_all,
             [](const Editor& editor) {
               return Availability{!editor.document().scene().muted_heads.empty(), "nothing is muted"};
             });
}

// Names the step that was undone or redone, in place of the message on the last one.
void say_step(Editor& editor, std::string_view verb, std::string label) {
  // "Layer 3" becomes "layer 3", "KL" and "A" stay.
  const auto letter = [&](std::size_t at) { return static_cast<unsigned char>(label[at]); };
  if (label.size() > 1 && std::islower(letter(1)) != 0) label[0] = static_cast<char>(std::tolower(letter(0)));
  editor.say(Severity::note, std::string(verb) + label, "undo");
}

} // namespace

void add_edit_actions(ActionTable& table) {
  add_action(
      table, "edit.undo", "Undo", "Edit", "Ctrl+Z",
      [](Editor& editor) {
        const std::string label = editor.history().undo_label();
        editor.undo();
        say_step(editor, "Undone: ", label);
      },
      [](const Editor& editor) {
        return Availability{editor.history().can_undo(), "nothing has been changed yet"};
      });
  add_action(
      table, "edit.redo", "Redo", "Edit", "Ctrl+Y",
      [](Editor& editor) {
        const std::string label = editor.history().redo_label();
        editor.redo();
        say_step(editor, "Redone: ", label);
      },
      [](const Editor& editor) {
        return Availability{editor.history().can_redo(), "nothing has been undone"};
      });
  add_action(
      table, "edit.show_image", "Show the photograph", "Edit", "Ctrl+1",
      [](Editor& editor) { show_kind(editor, InputKind::image); },
      [](const Editor& editor) {
        return Availability{editor.document().scene_of(InputKind::image).input.has_value(),
                            "no picture is open"};
      });
  add_action(
      table, "edit.show_text", "Show the sentence", "Edit", "Ctrl+2",
      [](Editor& editor) { show_kind(editor, InputKind::text); },
      [](const Editor& editor) {
        return Availability{editor.document().scene_of(InputKind::text).input.has_value(),
                            "no sentence is open"};
      });
  add_action(table, "edit.query_default", "Reset query", "Edit", "Escape", select_default_query,
             [](const Editor& editor) {
               return Availability{!editor.document().scene().default_query, "it is not changed"};
             });
  add_action(
      table, "edit.query_all", "Query: all tokens", "Edit", "",
      [](Editor& editor) { select_query(editor, std::nullopt); }, with_model);
  add_clipboard_actions(table);
  add_token_actions(table);
  add_head_actions(table);
}

} // namespace hydrascope::app
