#include "app/document/head_edits.h"

#include <algorithm>

#include <fmt/format.h>

namespace hydrascope::app {

namespace {

void set_muted(Scene& scene, HeadIndex head, bool muted) {
  if (!scene.model || head.layer < 0 || head.layer >= scene.model->layers || head.head < 0 ||
      head.head >= scene.model->heads)
    return;
  std::vector<HeadIndex>& heads = scene.muted_heads;
  const auto at = std::ranges::lower_bound(heads, head);
  const bool there = at != heads.end() && *at == head;
  if (there && !muted) heads.erase(at);
  if (!there && muted) heads.insert(at, head);
}

} // namespace

bool is_muted(const Document& document, HeadIndex head) {
  return std::ranges::binary_search(document.scene().muted_heads, head);
}

int muted_in_layer(const Document& document, int layer) {
  return static_cast<int>(std::ranges::count(document.scene().muted_heads, layer, &HeadIndex::layer));
}

bool layer_is_muted(const Document& document, int layer) {
  const auto& model = document.scene().model;
  return model && model->heads > 0 && muted_in_layer(document, layer) == model->heads;
}

std::string muted_words(const Document& document, int layer) {
  const int muted = muted_in_layer(document, layer);
  if (muted == 0) return {};
  const int heads = document.scene().model ? document.scene().model->heads : 0;
  if (muted == heads) return "muted";
  return fmt::format("{} of {} heads muted", muted, heads);
}

void mute_head(Editor& editor, HeadIndex head, bool muted) {
  editor.change(fmt::format("{} head {} of layer {}", muted ? "Mute" : "Unmute", head.head, head.layer),
                [&](Document& document) { set_muted(document.scene(), head, muted); });
}

void mute_layer(Editor& editor, int layer, bool muted) {
  editor.change(fmt::format("{} layer {}", muted ? "Mute" : "Unmute", layer), [&](Document& document) {
    Scene& scene = document.scene();
    for (int head = 0; scene.model && head < scene.model->heads; ++head)
      set_muted(scene, {layer, head}, muted);
  });
}

void unmute_all(Editor& editor) {
  editor.change("Unmute everything", [](Document& document) { document.scene().muted_heads.clear(); });
}

std::optional<HeadIndex> chosen_head(const Editor& editor) {
  if (editor.hovered_head()) return editor.hovered_head();
  const Scene& scene = editor.document().scene();
  if (!scene.model || !scene.head.head) return std::nullopt;
  return HeadIndex{scene.layer, *scene.head.head};
}

} // namespace hydrascope::app
