// Where the target's evidence comes from: each token's contribution at the selected layer (Hydra paper, Eq.
// 15–17).
#include <cmath>

#include <fmt/format.h>

#include "app/panels/focus_canvas.h"
#include "app/panels/panels.h"
#include "app/panels/token_names.h"
#include "app/state/edits.h"
#include "app/views/focus_view.h"
#include "app/window/widgets.h"
#include "engine/figures/scale.h"

namespace hydrascope::app {

namespace {

class FocusPanel final : public Panel {
public:
  explicit FocusPanel(PanelServices services) : Panel("focus", "Focus map", services) {}
  bool exports() const override { return true; }

  void ask(const Document& document, Wants& wants) const override {
    add_focus(wants.first, document.scene().layer);
  }

  void prepare(const Snapshot& snapshot) override {
    const Document& document = *snapshot.document;
    const int layer = document.scene().layer;
    FoundFocus found = find_focus(snapshot.shown(), layer);
    if (found.focus == nullptr) {
      // The last good picture stays; without one the panel says what would fill it.
      if (snapshot.shown().any() == nullptr) clear();
      return;
    }
    const auto* image = document.scene().input ? std::get_if<ImageInput>(&*document.scene().input) : nullptr;
    if ((image != nullptr) != (found.run->rows > 0)) return; // the result still is of the other kind of input
    keep_ = snapshot.shown().parts;                          // what `found` points into
    found_ = found;
    const ViewOptions& view = document.view;
    FocusOptions options{.normalise = Normalisation::max,
                         .with_sign = view.with_sign || view.shown == Shown::difference,
                         .opacity = view.opacity,
                         .smooth = view.smooth,
                         .photograph = false,
                         .tokens = view.tokens};
    map_ = focus_map(*found.run, *found.focus, options);
    note_ = map_.note;
    difference_.clear();
    if (image != nullptr) {
      if (!painted_.shows(*image, *found.run)) painted_ = PaintedPicture(*image, *found.run);
      image = &painted_.picture();
    }
    figure_ = focus_figure(*found.run, image, {layer}, options);
    if (view.shown == Shown::difference) subtract(*snapshot.results[1], layer, options);
    show(layer);
  }

  void draw() override {
    draw_toolbar();
    if (found_.run != nullptr) draw_caption();
    if (empty()) {
      const std::string waiting = document().scene().input
                                      ? "The focus map appears here as soon as the model has run."
                                      : "Open a picture or a sentence (Ctrl+O), or drop one on the window.";
      empty_notice(graphics(), found_.run != nullptr && map_.empty ? map_.note : waiting);
      return;
    }
    const ImVec2 from = ImGui::GetCursorScreenPos();
    ImVec2 room = ImGui::GetContentRegionAvail();
    const float note_height = note_.empty() ? 0 : ImGui::GetTextLineHeightWithSpacing();
    room.y -= note_height;
    const float bar_height = std::clamp(room.y - 20, 40.0f, 260.0f);
    const ImVec2 canvas{room.x - colour_bar_width, room.y};
    const auto prefix = static_cast<int>(found_.run->prefix_tokens);
    const auto cell_of = [&](std::optional<std::int64_t> token) {
      if (picture_.empty()) return shown_index(map_.shown, token);
      return token && *token >= prefix ? std::optional(static_cast<int>(*token) - prefix) : std::nullopt;
    };
    const auto query = cell_of(found_.run->query), hovered = cell_of(editor().hovered_token());
    CanvasInput input;
    if (!picture_.empty()) {
      input = picture_.draw(graphics(), from, canvas, query, hovered, brightness());
    } else if (ImGui::BeginChild("sentence", canvas)) { // a long text is scrolled
      input = sentence_.draw(graphics(), ImGui::GetCursorScreenPos(), ImGui::GetContentRegionAvail(), query,
                             hovered, brightness());
    }
    if (picture_.empty()) ImGui::EndChild();
    colour_bar(graphics(), map_.scale, {from.x + room.x - 50, from.y + (room.y - bar_height) / 2},
               bar_height);
    react(input);
    if (note_height > 0) {
      ImGui::SetCursorScreenPos({from.x, from.y + room.y + 4});
      ImGui::PushFont(graphics().fonts().regular, theme::size_small);
      ellipsis_text(note_, room.x, theme::quiet);
      ImGui::PopFont();
    }
  }

  std::optional<Figure> figure() const override {
    if (empty()) return std::nullopt;
    return figure_;
  }

private:
  bool empty() const { return picture_.empty() && sentence_.empty(); }
  void clear() {
    picture_.clear();
    sentence_.clear();
  }

  void show(int layer) {
    bool picture = false, sentence = false;
    for (const FigurePanel& panel : figure_.panels) {
      if (const auto* overlay = std::get_if<OverlayPanel>(&panel)) {
        picture_.set(*overlay);
        picture = true;
      }
      if (const auto* tokens = std::get_if<TokensPanel>(&panel)) {
        sentence_.set(*tokens);
        sentence = true;
      }
    }
    if (!picture) picture_.clear();
    if (!sentence) sentence_.clear();
    const LayerRun* run = layer >= 0 && static_cast<std::size_t>(layer) < found_.run->layers.size()
                              ? &found_.run->layers[static_cast<std::size_t>(layer)]
                              : nullptr;
    kernel_ = run == nullptr ? "" : run->kernel.text();
    untrained_ = run != nullptr && run->untrained;
    caption_ = difference_.empty() ? fmt::format("layer {}", layer)
                                   : fmt::format("− {}   layer {}", difference_, layer);
    query_ = fmt::format("query {}   target {}", query_name(*found_.run), found_.run->target);
  }

  // A − B: each divided by its own largest contribution, as both are drawn.
  void subtract(const SideResults& other, int layer, const FocusOptions& options) {
    const FoundFocus right = find_focus(other, layer);
    if (right.focus == nullptr) return;
    const FocusMap second = focus_map(*right.run, *right.focus, options);
    if (second.values.shape != map_.values.shape) return;
    for (std::size_t i = 0; i < map_.values.values.size(); ++i)
      map_.values.values[i] -= second.values.values[i];
    map_.scale = {.map = ColourMap::blue_white_red,
                  .low = -1,
                  .high = 1,
                  .logarithmic = false,
                  .shared = true,
                  .label = "A − B, each of its own maximum"};
    difference_ = right.run->layers.at(static_cast<std::size_t>(layer)).kernel.text();
    note_ = "A − B: red where A (" + found_.run->schedule.summary() + ") looks more, blue where B (" +
            right.run->schedule.summary() + ") does";
    for (FigurePanel& panel : figure_.panels) {
      if (auto* overlay = std::get_if<OverlayPanel>(&panel)) {
        overlay->values = map_.values;
        overlay->scale = map_.scale;
      }
      if (auto* tokens = std::get_if<TokensPanel>(&panel)) {
        tokens->values.assign(map_.values.values.begin(), map_.values.values.end());
        tokens->scale = map_.scale;
      }
    }
  }

  void draw_toolbar() {
    const ViewOptions& view = document().view;
    static constexpr std::array<const char*, 3> sides = {"A", "B", "A − B"};
    const int side = segmented("side", sides, static_cast<int>(view.shown));
    if (side >= 0)
      change_view(editor(), "Choose side", [&](ViewOptions& v) { v.shown = static_cast<Shown>(side); });
    same_line_if_fits(140, 16);
    static constexpr std::array<const char*, 2> signs = {"positive", "signed"};
    const int sign = segmented("sign", signs, view.with_sign ? 1 : 0);
    if (sign >= 0) change_view(editor(), "Signed map", [&](ViewOptions& v) { v.with_sign = sign == 1; });
    if (document().kind == InputKind::image) {
      same_line_if_fits(140, 16);
      static constexpr std::array<const char*, 2> cells = {"patches", "smooth"};
      const int smooth = segmented("smooth", cells, view.smooth ? 1 : 0);
      if (smooth >= 0) change_view(editor(), "Smooth map", [&](ViewOptions& v) { v.smooth = smooth == 1; });
      same_line_if_fits(170, 16);
      ImGui::AlignTextToFramePadding();
      ImGui::TextColored(theme::quiet, "opacity");
      ImGui::SameLine();
      ImGui::SetNextItemWidth(96);
      int percent = static_cast<int>(std::lround(view.opacity * 100));
      if (ImGui::SliderInt("##opacity", &percent, 0, 100, "%d %%")) {
        change_view(
            editor(), "Opacity", [&](ViewOptions& v) { v.opacity = static_cast<float>(percent) / 100.0f; },
            "opacity");
      }
    }
    draw_target();
  }

  void draw_target() {
    if (found_.run == nullptr || found_.run->predictions.empty()) return;
    const float width = 150;
    if (ImGui::GetItemRectMax().x + width + 24 < ImGui::GetWindowPos().x + ImGui::GetWindowWidth()) {
      ImGui::SameLine(ImGui::GetContentRegionMax().x - width);
    }
    ImGui::SetNextItemWidth(width);
    const Target& target = document().scene().target;
    const bool predicted = target.kind == Target::Kind::predicted;
    const std::string preview = fitted(predicted ? "predicted class" : found_.run->target, width - 32);
    if (!ImGui::BeginCombo("##target", preview.c_str(), ImGuiComboFlags_HeightLarge)) return;
    if (ImGui::Selectable("predicted class", predicted)) select_target(editor(), {});
    for (const Prediction& prediction : found_.run->predictions) {
      const bool on = target.kind == Target::Kind::class_index && target.index == prediction.index;
      ImGui::PushID(prediction.index);
      if (ImGui::Selectable(prediction.label.c_str(), on)) {
        select_target(editor(), {.kind = Target::Kind::class_index, .index = prediction.index, .text = {}});
      }
      ImGui::PopID();
    }
    ImGui::EndCombo();
  }

  void draw_caption() {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float height = ImGui::GetTextLineHeight();
    kernel_square(ImGui::GetWindowDrawList(), {at.x + 6, at.y + height / 2}, 10,
                  kernel_.substr(0, kernel_.find(':')));
    ImGui::SetCursorScreenPos({at.x + 18, at.y});
    ImGui::PushFont(graphics().fonts().strong, theme::size_text);
    ImGui::TextUnformatted(kernel_.c_str());
    ImGui::PopFont();
    ImGui::SameLine();
    ImGui::TextColored(theme::quiet, "%s", caption_.c_str());
    if (untrained_) {
      ImGui::SameLine();
      ImGui::TextColored(theme::amber, "untrained");
      if (ImGui::IsItemHovered()) {
        ImGui::SetTooltip(
            "This kernel replaces softmax with the model's own weights:\nno adapter was trained for this "
            "schedule.");
      }
    }
    ImGui::SameLine(0, 16);
    ellipsis_text(query_, ImGui::GetContentRegionAvail().x, theme::quiet);
  }

  // The tokens of the run behind a patch or a word.
  ShownToken token_at(int cell) const {
    const auto index = static_cast<std::size_t>(cell);
    if (picture_.empty() && index < map_.shown.size()) return map_.shown[index];
    return {.first = cell + found_.run->prefix_tokens, .count = 1, .text = {}};
  }

  std::string name_of(const ShownToken& token) const {
    return token.count > 1 ? fmt::format("“{}”", token.text) : token_name(*found_.run, token.first);
  }

  void react(const CanvasInput& input) {
    if (input.hovered) {
      const ShownToken token = token_at(*input.hovered);
      editor().hover(token.first, token.count);
      if (ImGui::IsMouseClicked(ImGuiMouseButton_Right)) menu_token_ = token;
      const auto& contributions = found_.focus->contributions.values;
      double raw = 0;
      for (const double part : shown_sums(std::span(&token, 1), contributions)) raw += part;
      const auto cell = static_cast<std::size_t>(*input.hovered);
      const double drawn = cell < map_.values.values.size() ? map_.values.values[cell] : std::nan("");
      text_tooltip(fmt::format("{}\ncontribution {}   drawn {}\nclick: make it the query\n{}", name_of(token),
                               number_text(raw), number_text(drawn), hint_of(token)));
    } else if (ImGui::IsMouseClicked(ImGuiMouseButton_Right)) {
      menu_token_.reset();
    }
    if (!input.clicked) return;
    const ShownToken token = token_at(*input.clicked);
    const Scene& scene = document().scene();
    if (ImGui::GetIO().KeyAlt) {
      hide_tokens(editor(), token.first, token.count, !is_hidden(document(), token.first));
    } else if (!scene.default_query && scene.query && *scene.query >= token.first &&
               *scene.query < token.first + token.count) {
      select_default_query(editor());
    } else {
      select_query(editor(), token.first);
    }
  }

  std::string hint_of(const ShownToken& token) const {
    const std::string reason = why_not_hidden(document(), token.first);
    if (!reason.empty()) return reason;
    const bool image = document().kind == InputKind::image;
    if (is_hidden(document(), token.first)) return "H or Alt+click: show it again";
    return image ? "H or Alt+click: hide it, painting the patch in the mean colour"
                 : "H or Alt+click: mask it, so that no token attends to it";
  }

  void draw_menu() override {
    if (menu_token_ && !empty()) {
      const bool image = document().kind == InputKind::image;
      const bool hidden = is_hidden(document(), menu_token_->first);
      const std::string reason = why_not_hidden(document(), menu_token_->first);
      const std::string label = fmt::format(
          "{} {}###hide", hidden ? "Show" : (image ? "Hide patch" : "Mask token"), name_of(*menu_token_));
      if (ImGui::MenuItem(label.c_str(), "H", false, reason.empty()))
        hide_tokens(editor(), menu_token_->first, menu_token_->count, !hidden);
      if (!reason.empty() && ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
        ImGui::SetTooltip("%s", reason.c_str());
    }
    if (ImGui::MenuItem("Show all that is hidden", "Shift+H", false,
                        !document().scene().hidden_tokens.empty()))
      show_all_tokens(editor());
    ImGui::Separator();
  }

  std::vector<std::shared_ptr<const RunResult>> keep_;
  FoundFocus found_;
  FocusMap map_;
  Figure figure_;
  PictureCanvas picture_;
  SentenceCanvas sentence_;
  PaintedPicture painted_;
  std::optional<ShownToken> menu_token_; // that the menu was opened on
  std::string caption_, kernel_, query_, note_;
  std::string difference_; // B's kernel where A − B is shown
  bool untrained_ = false;
};

} // namespace

std::unique_ptr<Panel> make_focus_panel(PanelServices services) {
  return std::make_unique<FocusPanel>(services);
}

} // namespace hydrascope::app
