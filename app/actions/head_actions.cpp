#include "app/actions/head_actions.h"

#include <utility>

#include "app/document/head_edits.h"

namespace hydrascope::app {

void add_head_actions(std::vector<Action>& table) {
  const auto add = [&](std::string id, std::string label, std::string shortcut,
                       std::function<void(Editor&)> run, std::function<Availability(const Editor&)> enabled) {
    table.push_back(
        {std::move(id), std::move(label), "Edit", std::move(shortcut), std::move(enabled), std::move(run)});
  };
  add(
      "edit.mute_head", "Mute or unmute the head", "M",
      [](Editor& editor) {
        if (const auto head = chosen_head(editor))
          mute_head(editor, *head, !is_muted(editor.document(), *head));
      },
      [](const Editor& editor) {
        if (!editor.document().scene().model) return Availability{false, "no model is open"};
        return Availability{chosen_head(editor).has_value(), "choose one head, or point at one"};
      });
  add(
      "edit.mute_layer", "Mute or unmute the layer", "Shift+M",
      [](Editor& editor) {
        const auto pointed = editor.hovered_head();
        const int layer = pointed ? pointed->layer : editor.document().scene().layer;
        mute_layer(editor, layer, !layer_is_muted(editor.document(), layer));
      },
      [](const Editor& editor) {
        return Availability{editor.document().scene().model != nullptr, "no model is open"};
      });
  add("edit.unmute_all", "Unmute everything", "Ctrl+Shift+M", unmute_all, [](const Editor& editor) {
    return Availability{!editor.document().scene().muted_heads.empty(), "nothing is muted"};
  });
}

} // namespace hydrascope::app
