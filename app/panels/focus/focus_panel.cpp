// Each token's contribution to the target at the selected layer (Hydra paper, Eq. 15–17), beside attention
// and rollout.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "app/document/edits.h"
#include "app/panels/choices.h"
#include "app/panels/focus/focus_column.h"
#include "app/panels/panel.h"
#include "app/panels/side_columns.h"
#include "app/ui/widgets.h"
#include "engine/base/text.h"
#include "engine/figures/token_text.h"

namespace hydrascope::app {

namespace {

constexpr float interpolation_width = 246;

void map_switches(Editor& editor) {
  static constexpr std::array<const char*, map_kinds> labels = {"focus", "attention", "rollout"};
  static constexpr std::array<const char*, map_kinds> meanings = {
      "what each token contributes to the target",
      "the query's weights in the layer; a weight is not an explanation",
      "the weights of all layers multiplied (Abnar & Zuidema 2020); a weight is not an explanation"};
  std::array<bool, map_kinds> on{};
  for (const MapKind kind : shown_maps(editor.document())) on[static_cast<std::size_t>(kind)] = true;
  const int clicked = switches("maps", labels, on, meanings);
  if (clicked >= 0) toggle_map(editor, static_cast<MapKind>(clicked));
}

void interpolation_combo(Editor& editor) {
  static constexpr std::array<const char*, 3> labels = {"smoothing: none", "smoothing: bilinear",
                                                        "smoothing: bicubic (Catmull-Rom)"};
  static constexpr std::array<const char*, 3> meanings = {
      "every patch in its own colour", "straight lines between the centres of patches",
      "smooth curves through the centres of patches; between them a curve may rise\n"
      "above its neighbours, which the colour scale cuts off"};
  const auto chosen = static_cast<std::size_t>(editor.document().view.look.interpolation);
  ImGui::SetNextItemWidth(interpolation_width);
  if (!ImGui::BeginCombo("##interpolation", labels[chosen])) return;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (ImGui::Selectable(labels[i], i == chosen))
      change_view(editor, "Interpolation",
                  [&](ViewOptions& view) { view.look.interpolation = static_cast<Interpolation>(i); });
    if (ImGui::IsItemHovered()) text_tooltip(meanings[i]);
  }
  ImGui::EndCombo();
}

constexpr float percent_width = 136, percent_text_width = 40;

// Shows `share` in percent. One drag is one undo step.
void percent_slider(Editor& editor, const char* label, const std::string& change, int most, double share,
                    const std::function<void(ViewOptions&, double)>& set) {
  ImGui::AlignTextToFramePadding();
  ImGui::TextColored(theme::quiet, "%s", label);
  ImGui::SameLine();
  ImGui::SetNextItemWidth(percent_width);
  int percent = static_cast<int>(std::lround(share * 100));
  if (value_slider(("##" + change).c_str(), &percent, 0, most, fmt::format("{} %", percent),
                   percent_text_width))
    change_view(
        editor, change, [&](ViewOptions& view) { set(view, percent / 100.0); }, change);
}

void target_combo(Editor& editor, const RunResult& run, float width) {
  ImGui::SetNextItemWidth(width);
  const Target& target = editor.document().scene().target;
  const bool predicted = target.kind == Target::Kind::predicted;
  const bool decoder = run.model.causal;
  const char* const by_default = decoder ? "likeliest next token" : "predicted class";
  const std::string preview = fitted(predicted ? by_default : as_label(run.target), width - 32);
  if (!ImGui::BeginCombo("##target", preview.c_str(), ImGuiComboFlags_HeightLarge)) return;
  list_search(editor.list_search());
  const std::string& search = editor.list_search();
  if (search.empty() && ImGui::Selectable(by_default, predicted)) select_target(editor, {});
  if (decoder && !search.empty() &&
      ImGui::Selectable(fmt::format("as one token: “{}”###typed", as_label(search)).c_str(), false))
    select_target(editor, {.kind = Target::Kind::class_name, .text = search});
  for (const Prediction& prediction : run.predictions) {
    if (!contains_any_case(prediction.label, search)) continue;
    const bool on = target.kind == Target::Kind::class_index && target.index == prediction.index;
    ImGui::PushID(prediction.index);
    const std::string label = as_label(decoder ? listed_token(prediction.label) : prediction.label);
    if (ImGui::Selectable(label.c_str(), on))
      select_target(editor, {.kind = Target::Kind::class_index, .index = prediction.index, .text = {}});
    ImGui::PopID();
  }
  ImGui::EndCombo();
}

void sign_choice(Editor& editor) {
  static constexpr std::array<const char*, 2> signs = {"positive", "signed"};
  const int sign = segmented("sign", signs, editor.document().view.with_sign ? 1 : 0);
  if (ImGui::IsItemHovered())
    text_tooltip("Choose between what speaks for the target alone, and also what speaks against it (blue)");
  if (sign >= 0) change_view(editor, "Signed map", [&](ViewOptions& v) { v.with_sign = sign == 1; });
}

void overlay_choice(Editor& editor) {
  ImGui::AlignTextToFramePadding();
  ImGui::TextColored(theme::quiet, "overlay");
  ImGui::SameLine();
  static constexpr std::array<const char*, 2> modes = {"by value", "dimmed"};
  const int mode = segmented("overlay", modes, static_cast<int>(editor.document().view.look.mode));
  if (ImGui::IsItemHovered())
    text_tooltip(
        "Choose how the map covers the photograph.\n"
        "by value: opacity grows with the value; where nothing contributes the photograph stays as it is\n"
        "dimmed: the same opacity everywhere, which dims the photograph where the value is small");
  if (mode >= 0)
    change_view(editor, "Overlay", [&](ViewOptions& v) { v.look.mode = static_cast<OverlayMode>(mode); });
}

void discard_slider(Editor& editor) {
  percent_slider(editor, "drop lowest weights", "Drop lowest weights", 95, editor.document().view.discard,
                 [](ViewOptions& v, double share) { v.discard = share; });
  if (ImGui::IsItemHovered())
    text_tooltip(
        "Drop this share of each row's weights, the lowest, in every layer of the rollout;\n"
        "the class token's column and the diagonal stay");
}

// `run` has the names of tokens and classes; null before the first run.
void draw_focus_toolbar(Editor& editor, const RunResult* run) {
  const Document& document = editor.document();
  const ViewOptions& view = document.view;
  Toolbar bar;
  bar.add(182, [&] { side_choice(editor); });
  bar.add(250, [&] { map_switches(editor); });
  bar.add(130, [&] { sign_choice(editor); });
  bar.add(190, [&] { query_combo(editor, run, 190); });
  if (run != nullptr && !run->predictions.empty()) bar.add(150, [&] { target_combo(editor, *run, 150); });
  if (document.kind == InputKind::image) {
    bar.add(200, [&] { overlay_choice(editor); });
    bar.add(percent_width + 62, [&] {
      percent_slider(editor, "opacity", "Opacity", 100, static_cast<double>(view.look.opacity),
                     [](ViewOptions& v, double share) { v.look.opacity = static_cast<float>(share); });
    });
    bar.add(interpolation_width, [&] { interpolation_combo(editor); });
  }
  const std::set<MapKind> maps = shown_maps(document);
  if (maps != std::set{MapKind::focus}) bar.add(130, [&] { head_combo(editor, 130); });
  if (maps.contains(MapKind::rollout)) bar.add(percent_width + 150, [&] { discard_slider(editor); });
  bar.draw();
}

constexpr std::array all_map_kinds = {MapKind::focus, MapKind::attention, MapKind::rollout};

class FocusPanel final : public Panel {
public:
  explicit FocusPanel(PanelServices services) : Panel("focus", "Focus map", services) {
    for (const MapKind kind : all_map_kinds) columns_.emplace_back(services, kind);
  }
  bool exports() const override { return true; }

  void request(const Document& document, Requested& requested) const override {
    add_map_keys(document, requested.first);
  }

  // All maps of one side in a row, or a row of three sides for each map.
  void prepare(const Snapshot& snapshot) override {
    const ViewOptions& view = snapshot.document->view;
    const std::set<MapKind> maps = shown_maps(*snapshot.document);
    visible_.clear();
    for (std::size_t i = 0; i < all_map_kinds.size(); ++i) {
      if (!maps.contains(all_map_kinds[i])) {
        columns_[i].clear(); // it would be outdated when it is shown again
        continue;
      }
      columns_[i].prepare(snapshot);
      for (FocusColumn& column : columns_[i].shown()) visible_.push_back(&column);
    }
    across_ = view.shown == Shown::all ? 3 : visible_.size();
  }

  void draw() override {
    const auto with_run = std::ranges::find_if(visible_, &FocusColumn::run);
    draw_focus_toolbar(editor(), with_run == visible_.end() ? nullptr : (*with_run)->run());
    if (empty()) return empty_notice(graphics(), why_empty());
    draw_maps();
  }

  // Also of equal sides, for which a line stands in the place of the map.
  std::optional<Figure> figure() const override {
    std::optional<Figure> figure;
    MapKind last = MapKind::focus;
    for (const FocusColumn* column : visible_) {
      const Figure& one = column->figure();
      if (one.panels.empty()) continue; // no results yet
      if (!figure) {
        figure = one;
      } else {
        figure->panels.insert(figure->panels.end(), one.panels.begin(), one.panels.end());
        if (column->kind() != last) figure->subtitle += "\n" + one.subtitle; // one per kind of map
      }
      last = column->kind();
    }
    if (figure) // fewer panels than columns where a side has failed
      figure->columns =
          document().kind == InputKind::text ? 1 : static_cast<int>(std::min(across_, figure->panels.size()));
    return figure;
  }

private:
  bool empty() const { return std::ranges::all_of(visible_, &FocusColumn::empty); }
  std::string why_empty() const {
    if (!visible_.empty()) {
      const std::string& failure = columns_[static_cast<std::size_t>(visible_.front()->kind())].failure();
      if (!failure.empty()) return failure;
    }
    const auto empty_map = std::ranges::find_if(visible_, &FocusColumn::has_empty_map);
    if (empty_map != visible_.end()) return (*empty_map)->empty_reason();
    return document().scene().input ? "The focus map appears here as soon as the model has run."
                                    : "Open a picture or a sentence (Ctrl+O), or drop one on the window.";
  }

  static constexpr float gap = theme::grid * 2, least_height = 160;
  static float share(float whole, std::size_t count) {
    return (whole - gap * static_cast<float>(count - 1)) / static_cast<float>(count);
  }

  // One map of each side: beside each other, in two rows or below each other, whichever makes the pictures
  // largest.
  std::size_t best_across(ImVec2 room) const {
    if (visible_.size() != across_ || document().kind == InputKind::text) return across_;
    const FocusColumn& full = **std::ranges::find_if_not(visible_, &FocusColumn::empty);
    std::size_t best = across_;
    float largest = 0;
    for (std::size_t across = across_; across > 0; --across) {
      const std::size_t rows = (across_ + across - 1) / across;
      const ImVec2 cell{share(room.x, across), share(room.y, rows)};
      const float width = full.picture_within(cell).x;
      if (width <= largest || (rows > 1 && cell.y < least_height)) continue;
      largest = width;
      best = across;
    }
    return best;
  }

  // Rows that would be too low to be read scroll instead; a single one with the panel.
  void draw_maps() {
    const ImVec2 room = ImGui::GetContentRegionAvail();
    const std::size_t across = best_across(room);
    const std::size_t rows = (visible_.size() + across - 1) / across;
    constexpr float least_of_one = 64;
    const bool scrolls = rows > 1 && share(room.y, rows) < least_height;
    const float height = scrolls     ? least_height
                         : rows == 1 ? std::max(room.y, least_of_one)
                                     : share(room.y, rows);
    if (scrolls && !ImGui::BeginChild("maps")) return ImGui::EndChild();
    const ImVec2 from = ImGui::GetCursorScreenPos();
    const ImVec2 size{share(ImGui::GetContentRegionAvail().x, across), height};
    for (std::size_t i = 0; i < visible_.size(); ++i) {
      const std::size_t row = i / across, column = i % across;
      ImGui::SetCursorScreenPos({from.x + static_cast<float>(column) * (size.x + gap),
                                 from.y + static_cast<float>(row) * (size.y + gap)});
      if (i > 0) ImGui::PushID(static_cast<int>(i));
      visible_[i]->draw(size, brightness());
      if (i > 0) ImGui::PopID();
    }
    if (!scrolls) return;
    ImGui::SetCursorScreenPos({from.x, from.y + static_cast<float>(rows) * (size.y + gap)});
    ImGui::Dummy({0, 0});
    ImGui::EndChild();
  }

  void draw_menu() override {
    const auto column = std::ranges::find_if(
        visible_, [](const FocusColumn* each) { return each->menu_token().has_value() && !each->empty(); });
    if (column != visible_.end()) {
      const ShownToken& token = *(*column)->menu_token();
      const bool image = document().kind == InputKind::image;
      const bool hidden = is_hidden(document(), token.first);
      const std::string reason = why_not_hidden(editor(), token.first);
      const std::string label =
          fmt::format("{} {}###hide", hidden ? "Show" : (image ? "Hide patch" : "Mask token"),
                      as_label((*column)->name_of(token)));
      if (ImGui::MenuItem(label.c_str(), "H", false, reason.empty()))
        hide_tokens(editor(), token.first, token.count, !hidden);
      if (!reason.empty() && ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled)) text_tooltip(reason);
    }
    if (ImGui::MenuItem("Show all that is hidden", "Shift+H", false,
                        !document().scene().hidden_tokens.empty()))
      show_all_tokens(editor());
    ImGui::Separator();
  }

  std::vector<SideColumns<FocusColumn>> columns_; // by kind of map
  std::vector<FocusColumn*> visible_;
  std::size_t across_ = 1;
};

} // namespace

std::unique_ptr<Panel> make_focus_panel(PanelServices services) {
  return std::make_unique<FocusPanel>(services);
}

} // namespace hydrascope::app
