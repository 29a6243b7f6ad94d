// The vectors behind one weight: q, k, φ(q), φ(k) of a pair of tokens and their products feature by feature;
// for a Hydra kernel its global vector, the gate of the query, and each token's contribution to a feature.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "app/document/edits.h"
#include "app/panels/choices.h"
#include "app/panels/map_views.h"
#include "app/panels/panel.h"
#include "app/panels/side_columns.h"
#include "app/ui/widgets.h"
#include "app/views/vectors_view.h"
#include "engine/figures/scale.h"
#include "engine/run/quantities/vectors.h"

namespace hydrascope::app {

namespace {

VectorsKey vectors_key(const Document& document) {
  const Scene& scene = document.scene();
  const KernelSpec kernel = detail_kernel(document);
  const bool hydra = kernel_info(kernel).implied_weights;
  VectorsKey key;
  key.layer = scene.layer;
  key.kernel = kernel;
  if (!hydra && scene.model) key.head = vectors_head(document, kernel);
  key.query = row_query(scene);
  key.teacher_forced = document.view.teacher_forced;
  key.gradient = hydra && !key.teacher_forced;
  return key;
}

// The vectors of one side, or the difference.
class VectorsColumn {
public:
  explicit VectorsColumn(PanelServices services) : services_(services) {}

  void prepare(const Snapshot& snapshot);
  void subtract(const VectorsColumn& a, const VectorsColumn& b);

  bool empty() const { return vectors_ == nullptr; }
  void draw(float brightness);
  Figure figure() const;

private:
  Editor& editor() const { return *services_.editor; }
  Graphics& graphics() const { return *services_.graphics; }
  const Document& document() const { return services_.editor->document(); }

  std::int64_t tokens() const;
  std::int64_t key_token() const;
  VectorsView view_of(std::int64_t key) const;
  void set_feature(std::optional<int> feature);
  void draw_pair(std::int64_t key);
  void draw_notes();
  ImVec4 strip_colour(std::size_t index) const;
  void draw_strips();
  void hover(const FeatureStrip& strip, int feature);
  void draw_feature(ImVec2 from, ImVec2 size);
  void draw_map(const char* id, HeatMapView& view, const char* caption, ImVec2 from, ImVec2 size,
                bool by_token);

  PanelServices services_;
  std::shared_ptr<const RunResult> run_;
  std::shared_ptr<const VectorsResult> vectors_; // A's in a difference
  std::shared_ptr<const VectorsResult> other_;   // B's in a difference; otherwise null
  VectorsView view_;
  std::optional<std::int64_t> shown_key_; // of view_
  std::optional<int> feature_;            // whose maps are shown, for Hydra kernels
  std::optional<int> hovered_feature_, next_hovered_feature_;
  HeatMapView filling_, rank_one_;
  float brightness_ = 1;
};

void VectorsColumn::prepare(const Snapshot& snapshot) {
  const Document& document = *snapshot.document;
  other_ = nullptr;
  if (snapshot.shown().any() == nullptr) {
    vectors_ = nullptr;
    return;
  }
  const auto found = find(snapshot.shown(), vectors_key(document));
  if (!found) return; // keep the last vectors
  if (vectors_.get() != found.result) shown_key_.reset();
  run_ = found.run;
  vectors_ = found.owned();
  const auto features = static_cast<int>(vectors_->global.values.size());
  if (feature_ && *feature_ >= features) feature_.reset();
  set_feature(feature_);
}

void VectorsColumn::subtract(const VectorsColumn& a, const VectorsColumn& b) {
  run_ = a.run_;
  vectors_ = b.vectors_ == nullptr ? nullptr : a.vectors_;
  other_ = b.vectors_;
  shown_key_.reset();
  set_feature(std::nullopt);
}

void VectorsColumn::draw(float brightness) {
  brightness_ = brightness;
  const std::int64_t key = key_token();
  if (shown_key_ != key) {
    view_ = view_of(key);
    shown_key_ = key;
  }
  draw_pair(key);
  draw_notes();
  draw_strips();
}

Figure VectorsColumn::figure() const {
  const std::int64_t key = key_token();
  return vectors_figure(*run_, *vectors_, view_of(key), key);
}

VectorsView VectorsColumn::view_of(std::int64_t key) const {
  VectorsView view = vectors_view(*run_, *vectors_, key);
  return other_ == nullptr ? view : vectors_difference(view, vectors_view(*run_, *other_, key));
}

std::int64_t VectorsColumn::tokens() const { return vectors_->k.extent(1); }

// The hovered token, otherwise the pinned one, otherwise the query itself.
std::int64_t VectorsColumn::key_token() const {
  const auto& hovered = editor().hovered_token();
  const std::int64_t key = hovered ? *hovered : document().scene().key.value_or(vectors_->query);
  return std::clamp<std::int64_t>(key, 0, tokens() - 1);
}

void VectorsColumn::set_feature(std::optional<int> feature) {
  feature_ = feature;
  filling_.clear();
  rank_one_.clear();
  if (!feature_ || vectors_ == nullptr || vectors_->global.empty()) return;
  filling_.set(filling_panel(*run_, *vectors_, *feature_));
  rank_one_.set(rank_one_panel(*run_, *vectors_, *feature_));
}

void VectorsColumn::draw_pair(std::int64_t key) {
  if (vectors_->untrained) {
    small_text(graphics(), "untrained", theme::amber);
    ImGui::SameLine(0, 8);
  }
  const std::string query = token_name(*run_, vectors_->query);
  if (view_.global) {
    small_text(graphics(),
               with_known_glyphs(fmt::format("query {}   click a feature: which tokens fill it", query)));
    return;
  }
  const bool hovered = editor().hovered_token().has_value();
  const std::string how = hovered ? "hovered" : document().scene().key ? "pinned" : "the query itself";
  const std::string pair =
      fmt::format("query {}   key {} ({})   head {}", query, token_name(*run_, key), how, vectors_->head);
  constexpr float gap = 8;
  const float room =
      ImGui::GetContentRegionAvail().x - (document().scene().key ? button_width("unpin") + gap : 0);
  ImGui::PushFont(graphics().fonts().regular, theme::size_small);
  ellipsis_text(with_known_glyphs(pair), room, theme::quiet);
  ImGui::PopFont();
  if (ImGui::IsItemHovered())
    text_tooltip(pair +
                 "\nHover a token or patch anywhere to make it the key; a click on a cell of Weights "
                 "pins both.");
  if (document().scene().key) {
    ImGui::SameLine(0, gap);
    if (ImGui::SmallButton("unpin")) select_key(editor(), std::nullopt);
  }
}

void VectorsColumn::draw_notes() {
  for (const std::string& note : view_.notes) wrapped_small_text(graphics(), note);
}

ImVec4 VectorsColumn::strip_colour(std::size_t index) const {
  const bool plain = !view_.global && index < 3; // q, k and their product do not depend on the kernel
  if (plain || other_ != nullptr) return theme::quiet;
  const Colour colour = theme::kernel(vectors_->kernel.name);
  return {colour.red, colour.green, colour.blue, 1};
}

void VectorsColumn::draw_strips() {
  const ImVec2 room = ImGui::GetContentRegionAvail();
  ImVec2 at = ImGui::GetCursorScreenPos();
  const float caption = theme::size_small + 3;
  const auto count = static_cast<float>(view_.strips.size());
  float captions = 0;
  for (const FeatureStrip& strip : view_.strips) captions += strip.sum.empty() ? 0 : caption;
  const float below = feature_ ? std::min(room.y * 0.45f, 240.0f) : 0;
  const float height = std::clamp((room.y - below - captions) / count - 6, 14.0f, 72.0f);
  for (std::size_t i = 0; i < view_.strips.size(); ++i) {
    const FeatureStrip& strip = view_.strips[i];
    if (!strip.sum.empty()) {
      ImGui::SetCursorScreenPos({at.x + 86, at.y});
      small_text(graphics(), strip.sum, theme::text);
      at.y += caption;
    }
    ImGui::PushID(static_cast<int>(i));
    const auto input =
        draw_strip("strip", graphics(), strip, at, {room.x, height},
                   hovered_feature_ ? hovered_feature_ : feature_, strip_colour(i), brightness_);
    ImGui::PopID();
    if (input.hovered) hover(strip, *input.hovered);
    if (input.clicked && view_.global && other_ == nullptr)
      set_feature(feature_ == input.clicked ? std::nullopt : input.clicked);
    at.y += height + 6;
  }
  hovered_feature_ = std::exchange(next_hovered_feature_, std::nullopt);
  if (feature_ && view_.global)
    draw_feature(at, {room.x, ImGui::GetWindowPos().y + ImGui::GetWindowHeight() - at.y - theme::grid});
}

void VectorsColumn::hover(const FeatureStrip& strip, int feature) {
  next_hovered_feature_ = feature;
  std::string text = fmt::format("feature {} of {}\n{}", feature, strip.values.size(), strip.meaning);
  for (const FeatureStrip& each : view_.strips) {
    if (each.values.size() != strip.values.size()) continue;
    text += fmt::format("\n{} {}", each.name, number_text(each.values[static_cast<std::size_t>(feature)]));
  }
  text_tooltip(text);
}

// Each token's contribution to the feature, and its rank-one matrix.
void VectorsColumn::draw_feature(ImVec2 from, ImVec2 size) {
  if (size.y < 40) return;
  ImGui::SetCursorScreenPos(from);
  small_text(graphics(), fmt::format("feature {}, one of {}", *feature_, vectors_->global.values.size()),
             theme::text);
  const float caption = theme::size_small + 5;
  from.y += caption;
  size.y -= caption;
  const float half = (size.x - 2 * colour_bar_width - theme::grid) / 2;
  draw_map("filling", filling_, "which tokens fill it: φ(K)·V", from, {half, size.y}, true);
  draw_map("rank_one", rank_one_, "its matrix φ(Q)φ(K)ᵀ, of rank one",
           {from.x + half + colour_bar_width + theme::grid, from.y}, {half, size.y}, false);
}

void VectorsColumn::draw_map(const char* id, HeatMapView& view, const char* caption, ImVec2 from, ImVec2 size,
                             bool by_token) {
  ImGui::SetCursorScreenPos(from);
  ImGui::PushFont(graphics().fonts().regular, theme::size_small);
  ellipsis_text(caption, size.x, theme::quiet);
  ImGui::PopFont();
  from.y += theme::size_small + 5;
  size.y -= theme::size_small + 5;
  const bool picture = by_token && run_->rows > 0;
  const auto token_of = [&](Cell cell) -> std::int64_t {
    if (picture) return run_->prefix_tokens + cell.row * run_->columns + cell.column;
    return cell.column;
  };
  const auto input = view.draw(id, graphics(), from, size, {}, brightness_);
  if (input.hovered) {
    editor().hover(token_of(*input.hovered));
    text_tooltip(
        fmt::format("{}\n{}", with_known_glyphs(token_name(*run_, token_of(*input.hovered))),
                    number_text(static_cast<double>(view.value(input.hovered->row, input.hovered->column)))));
  }
  if (input.clicked) select_query(editor(), by_token ? token_of(*input.clicked) : input.clicked->row);
  colour_bar(graphics(), view.panel().scale, {input.to.x + 10, from.y},
             std::max(40.0f, input.to.y - input.from.y));
}

class VectorsPanel final : public Panel {
public:
  explicit VectorsPanel(PanelServices services) : Panel("vectors", "Vectors", services), columns_(services) {}
  bool exports() const override { return true; }

  void request(const Document& document, Requested& requested) const override {
    if (!document.scene().model) return;
    request_sides(document, [&](const Document& side, bool) { requested.first.add(vectors_key(side)); });
  }

  void prepare(const Snapshot& snapshot) override { columns_.prepare(snapshot); }

  void draw() override {
    draw_toolbar();
    if (columns_.empty()) {
      empty_notice(graphics(), "The vectors behind a weight of the selected layer, once the model has run.");
      return;
    }
    columns_.draw(graphics(), [&](VectorsColumn& column) {
      if (column.empty()) {
        missing_notice(graphics());
      } else {
        column.draw(brightness());
      }
    });
  }

  std::optional<Figure> figure() const override {
    return columns_.figure([](const VectorsColumn& column) { return column.figure(); });
  }

private:
  void draw_toolbar() {
    const Scene& scene = document().scene();
    const KernelSpec kernel = detail_kernel(document());
    ImGui::AlignTextToFramePadding();
    ImGui::TextColored(theme::quiet, "layer %d", scene.layer);
    ImGui::SameLine(0, 12);
    if (kernel_info(kernel).implied_weights) {
      ImGui::TextColored(theme::quiet, "all features");
    } else {
      head_combo(editor(), 124);
    }
    same_line_if_fits(190);
    detail_kernel_combo(editor(), detail_kernel(document()), 186);
    same_line_if_fits(190);
    forced_choice(editor());
  }

  SideColumns<VectorsColumn> columns_;
};

} // namespace

std::unique_ptr<Panel> make_vectors_panel(PanelServices services) {
  return std::make_unique<VectorsPanel>(services);
}

} // namespace hydrascope::app
