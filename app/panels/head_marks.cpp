#include "app/panels/head_marks.h"

#include <fmt/format.h>

#include "app/document/edits.h"
#include "app/ui/theme.h"

namespace hydrascope::app {

void muted_cross(ImDrawList* list, ImVec2 from, ImVec2 to) {
  // A dark line under a bright one is seen on every colour of every map.
  for (const auto& [colour, width] :
       {std::pair{theme::under_picture_ring, 3.0f}, {theme::over_picture, 1.2f}}) {
    const ImU32 ink = theme::packed(colour, 0.85f);
    list->AddLine({from.x + 1, from.y + 1}, {to.x - 1, to.y - 1}, ink, width);
    list->AddLine({from.x + 1, to.y - 1}, {to.x - 1, from.y + 1}, ink, width);
  }
}

void HeadMenu::point(std::optional<HeadIndex> head) {
  if (head)
    keep(head->layer, head->head);
  else
    keep(std::nullopt, std::nullopt);
}

void HeadMenu::point_layer(std::optional<int> layer) { keep(layer, std::nullopt); }

void HeadMenu::keep(std::optional<int> layer, std::optional<int> head) {
  if (!ImGui::IsMouseClicked(ImGuiMouseButton_Right) || !ImGui::IsWindowHovered()) return;
  layer_ = layer;
  head_ = head;
}

void HeadMenu::draw(Editor& editor) const {
  const Document& document = editor.document();
  if (layer_ && head_) {
    const HeadIndex head{*layer_, *head_};
    const bool muted = is_muted(document, head);
    const std::string label =
        fmt::format("{} head {} of layer {}###mute_head", muted ? "Unmute" : "Mute", *head_, *layer_);
    if (ImGui::MenuItem(label.c_str(), "M")) mute_head(editor, head, !muted);
  }
  if (layer_) {
    const bool muted = layer_is_muted(document, *layer_);
    const std::string label = fmt::format("{} layer {}###mute_layer", muted ? "Unmute" : "Mute", *layer_);
    if (ImGui::MenuItem(label.c_str(), "Shift+M")) mute_layer(editor, *layer_, !muted);
  }
  if (ImGui::MenuItem("Unmute everything", "Ctrl+Shift+M", false, !document.scene().muted_heads.empty()))
    unmute_all(editor);
  ImGui::Separator();
}

} // namespace hydrascope::app
