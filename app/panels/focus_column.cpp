#include "app/panels/focus_column.h"

#include <cmath>

#include <fmt/format.h>

#include "app/panels/token_names.h"
#include "app/state/edits.h"
#include "app/window/widgets.h"
#include "engine/figures/scale.h"

namespace hydrascope::app {

void FocusColumn::prepare(const Snapshot& snapshot, Shown which) {
  const Document& document = *snapshot.document;
  const int layer = document.scene().layer;
  const SideResults& results = *snapshot.results[which == Shown::b ? 1 : 0];
  const bool subtracts = which == Shown::difference;
  const FoundFocus found = find_focus(results, layer);
  const FoundFocus other = subtracts ? find_focus(*snapshot.results[1], layer) : FoundFocus{};
  if (found.focus == nullptr || (subtracts && other.focus == nullptr)) {
    // The last good picture stays; without one, and where it was of something else, there is none.
    if (results.any() == nullptr || which != which_) clear();
    return;
  }
  const auto* image = document.scene().input ? std::get_if<ImageInput>(&*document.scene().input) : nullptr;
  if ((image != nullptr) != (found.run->rows > 0)) return; // the result still is of the other kind of input
  which_ = which;
  keep_ = results.parts;
  found_ = found;
  const ViewOptions& view = document.view;
  const FocusOptions options{.normalise = Normalisation::max,
                             .with_sign = view.with_sign,
                             .opacity = view.opacity,
                             .interpolation = view.interpolation,
                             .photograph = false,
                             .tokens = view.tokens};
  map_ = focus_map(*found.run, *found.focus, options);
  if (subtracts) map_ = focus_difference(std::move(map_), focus_map(*other.run, *other.focus, options));
  if (image != nullptr) {
    if (!painted_.shows(*image, *found.run)) painted_ = PaintedPicture(*image, *found.run);
    image = &painted_.picture();
  }
  FocusItem item{.run = found.run, .layer = layer, .minus = other.run};
  figure_ = focus_figure(std::span(&item, 1), image, options);
  describe(other.run, view.shown == Shown::all);
  show();
}

void FocusColumn::clear() {
  picture_.clear();
  sentence_.clear();
}

void FocusColumn::show() {
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
}

// `other`: B's run where it is subtracted. `named`: the side is said, as others stand beside it.
void FocusColumn::describe(const RunResult* other, bool named) {
  const int layer = found_.focus->layer;
  const auto index = static_cast<std::size_t>(layer);
  const LayerRun* run = index < found_.run->layers.size() ? &found_.run->layers[index] : nullptr;
  kernel_ = run == nullptr ? "" : run->kernel.text();
  untrained_ = run != nullptr && run->untrained;
  side_ = !named || which_ == Shown::difference ? "" : (which_ == Shown::b ? "B" : "A");
  caption_ = fmt::format("layer {}", layer);
  if (other != nullptr && index < other->layers.size()) {
    caption_ = fmt::format("− {}   layer {}", other->layers[index].kernel.text(), layer);
    untrained_ = untrained_ || other->layers[index].untrained;
    if (!map_.empty) {
      map_.note = "A − B: red where A (" + found_.run->schedule.summary() + ") looks more, blue where B (" +
                  other->schedule.summary() + ") does";
    }
  }
  query_ = fmt::format("query {}   target {}", query_name(*found_.run), found_.run->target);
}

void FocusColumn::draw(ImVec2 size, float brightness) {
  if (empty()) return ImGui::Dummy(size);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  draw_caption(size.x);
  const float below = ImGui::GetTextLineHeightWithSpacing();
  const float note_height = map_.note.empty() ? 0 : ImGui::GetTextLineHeightWithSpacing();
  ImGui::SetCursorScreenPos({at.x, at.y + below});
  draw_map({size.x, size.y - below - note_height}, brightness);
  if (map_.note.empty()) return;
  ImGui::SetCursorScreenPos({at.x, at.y + size.y - note_height + 4});
  ImGui::PushFont(graphics().fonts().regular, theme::size_small);
  ellipsis_text(map_.note, size.x, theme::quiet);
  ImGui::PopFont();
}

void FocusColumn::draw_map(ImVec2 size, float brightness) {
  const ImVec2 from = ImGui::GetCursorScreenPos();
  const float bar_height = std::clamp(size.y - 20, 40.0f, 260.0f);
  const ImVec2 canvas{size.x - colour_bar_width, size.y};
  const auto prefix = static_cast<int>(found_.run->prefix_tokens);
  const auto cell_of = [&](std::optional<std::int64_t> token) {
    if (picture_.empty()) return shown_index(map_.shown, token);
    return token && *token >= prefix ? std::optional(static_cast<int>(*token) - prefix) : std::nullopt;
  };
  const auto query = cell_of(found_.run->query), hovered = cell_of(editor().hovered_token());
  CanvasInput input;
  if (!picture_.empty()) {
    input = picture_.draw(graphics(), from, canvas, query, hovered, brightness);
  } else if (ImGui::BeginChild("sentence", canvas)) { // a long text is scrolled
    input = sentence_.draw(graphics(), ImGui::GetCursorScreenPos(), ImGui::GetContentRegionAvail(), query,
                           hovered, brightness);
  }
  if (picture_.empty()) ImGui::EndChild();
  colour_bar(graphics(), map_.scale, {from.x + size.x - 50, from.y + (size.y - bar_height) / 2}, bar_height);
  react(input);
}

void FocusColumn::draw_caption(float width) const {
  const float end = ImGui::GetCursorScreenPos().x + width;
  ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = ImGui::GetTextLineHeight();
  if (!side_.empty()) {
    ImGui::TextColored(theme::accent, "%s", side_.c_str());
    ImGui::SameLine();
    at = ImGui::GetCursorScreenPos();
  }
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
  ellipsis_text(query_, end - ImGui::GetCursorScreenPos().x, theme::quiet);
}

// The tokens of the run behind a patch or a word.
ShownToken FocusColumn::token_at(int cell) const {
  const auto index = static_cast<std::size_t>(cell);
  if (picture_.empty() && index < map_.shown.size()) return map_.shown[index];
  return {.first = cell + found_.run->prefix_tokens, .count = 1, .text = {}};
}

std::string FocusColumn::name_of(const ShownToken& token) const {
  return token.count > 1 ? fmt::format("“{}”", token.text) : token_name(*found_.run, token.first);
}

void FocusColumn::react(const CanvasInput& input) {
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

std::string FocusColumn::hint_of(const ShownToken& token) const {
  const std::string reason = why_not_hidden(document(), token.first);
  if (!reason.empty()) return reason;
  const bool image = document().kind == InputKind::image;
  if (is_hidden(document(), token.first)) return "H or Alt+click: show it again";
  return image ? "H or Alt+click: hide it, painting the patch in the mean colour"
               : "H or Alt+click: mask it, so that no token attends to it";
}

} // namespace hydrascope::app
