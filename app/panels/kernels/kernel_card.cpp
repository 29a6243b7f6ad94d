#include "app/panels/kernels/kernel_card.h"

#include <algorithm>
#include <exception>

#include <fmt/format.h>

#include "app/ui/widgets.h"
#include "app/views/timing_view.h"
#include "app/views/weights_view.h"
#include "engine/figures/scale.h"
#include "engine/run/quantities/weights.h"

namespace hydrascope::app {

namespace {

constexpr double rest_seconds = 0.25; // before anything is computed
constexpr float card_width = 300;
constexpr std::int64_t most_tokens = 600; // of a picture

WeightsKey card_key(const Document& document, const std::string& kernel) {
  return {.layer = document.scene().layer, .kernel = KernelSpec{.name = kernel, .parameters = {}}};
}

// The selected head, or the first one if the kernel does not have it.
HeadChoice head_of(const WeightsResult& weights, const HeadChoice& chosen) {
  try {
    head_weights(weights, chosen);
    return chosen;
  } catch (const std::exception&) {
    return {.head = 0, .fusion = HeadFusion::mean};
  }
}

std::string milliseconds_text(const RepeatedTime& time) {
  return fmt::format("{} ms", number_text(time.median * 1000));
}

const char* likeness_text(const KernelInfo& info) {
  if (info.exact_softmax) return "exact: computes softmax attention";
  return has_distributions(info) ? "approximate: other weights than softmax's, which sum to 1"
                                 : "approximate: its weights are not distributions";
}

const char* mark_text(ParameterMark mark) {
  switch (mark) {
    case ParameterMark::none_needed: return "needs no trained parameters";
    case ParameterMark::trained: return "trained parameters exist for the selected layer";
    case ParameterMark::trained_together:
      return "trained for several layers together: they apply when all of them run it";
    case ParameterMark::untrained: return "would run untrained in the selected layer";
    case ParameterMark::unknown: break;
  }
  return "";
}

void wrapped_line(std::string_view text, const ImVec4& colour) {
  ImGui::PushStyleColor(ImGuiCol_Text, colour);
  ImGui::TextWrapped("%s", with_known_glyphs(text).c_str());
  ImGui::PopStyleColor();
}

// Beside the panel, on the side with more room: the grid stays in view.
void place_card() {
  constexpr float usual_height = 400, above_pointer = 60;
  const ImVec2 panel = ImGui::GetWindowPos();
  const float right = panel.x + ImGui::GetWindowWidth(), screen = ImGui::GetMainViewport()->Size.x;
  const bool on_right = screen - right >= panel.x;
  const float lowest = std::max(ImGui::GetMainViewport()->Size.y - usual_height, 0.0f);
  const float y = std::clamp(ImGui::GetMousePos().y - above_pointer, 0.0f, lowest);
  ImGui::SetNextWindowPos({on_right ? right + theme::grid : panel.x - theme::grid, y}, ImGuiCond_Always,
                          {on_right ? 0.0f : 1.0f, 0});
  ImGui::SetNextWindowSize({card_width + 2 * theme::grid, 0});
}

} // namespace

bool KernelCard::point(Editor& editor, const GridNotes& notes, const std::optional<GridPointer>& pointer) {
  if (!pointer) {
    pointed_ = shown_ = false;
    return false;
  }
  const double now = editor.clock();
  if (!pointed_ || pointer->kernel != kernel_) {
    since_ = now;
    shown_ = false;
    divergence_.clear();
    speed_.clear();
    caption_.clear();
    picture_.clear();
  }
  pointed_ = true;
  kernel_ = pointer->kernel;
  layer_ = pointer->layer;
  obstacle_ = kernel_ < notes.kernels.size() ? notes.kernels[kernel_] : "";
  const auto selected = static_cast<std::size_t>(editor.document().scene().layer);
  mark_ = selected < notes.marks.size() && kernel_ < notes.marks[selected].size()
              ? notes.marks[selected][kernel_]
              : ParameterMark::unknown;
  if (shown_) return false;
  shown_ = now - since_ >= rest_seconds;
  if (!shown_) editor.draw_at(since_ + rest_seconds);
  return shown_;
}

void KernelCard::request(const Document& document, Requested& requested) const {
  if (!shown_ || !obstacle_.empty() || !can_run(document) || expected_tokens(document) > most_tokens) return;
  requested.first.add(card_key(document, kernel_infos()[kernel_].name));
  requested.first.add(card_key(document, "softmax"));
}

void KernelCard::prepare(const Snapshot& snapshot) {
  if (!shown_) return;
  const Document& document = *snapshot.document;
  const Scene& scene = document.scene();
  const KernelInfo& info = kernel_infos()[kernel_];
  const RunResult* const any = snapshot.shown().any();
  if (any != nullptr && snapshot.times != nullptr) {
    const auto time_of = [&](const std::string& name) {
      return snapshot.times->time(timing_subject(*any), scene.layer, {.name = name, .parameters = {}});
    };
    const RepeatedTime own = time_of(info.name), softmax = time_of("softmax");
    speed_ = own.runs == 0 ? "not measured in this layer"
                           : fmt::format("{} in layer {} ({})", milliseconds_text(own), scene.layer,
                                         runs_text(own.runs));
    if (own.runs > 0 && softmax.runs > 0 && info.name != "softmax")
      speed_ += ", softmax " + milliseconds_text(softmax);
  }
  const auto found = find(snapshot.shown(), card_key(document, info.name));
  const auto softmax = find(snapshot.shown(), card_key(document, "softmax"));
  if (!found || !softmax) return; // keeps what there is
  const HeadChoice head = head_of(*found.result, scene.head);
  const HeatMapPanel panel = weights_panel(*found.run, *found.result, softmax.result,
                                           {.head = head, .tokens = document.view.tokens});
  picture_.set(panel.values, panel.scale);
  scale_ = panel.scale;
  caption_ = fmt::format("weights of layer {}, {} on this input{}", scene.layer, head.text(),
                         found.result->derived_signed ? " (signed)" : "");
  const auto divergence = weights_divergence(*softmax.result, *found.result, head);
  divergence_ = info.exact_softmax ? "none" : divergence ? amount_text(*divergence) + " nats" : "undefined";
}

void KernelCard::draw(const Editor& editor, Graphics& graphics) {
  if (!pointed_) return;
  const KernelInfo& info = kernel_infos()[kernel_];
  place_card();
  if (!ImGui::BeginTooltip()) return;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  kernel_square(ImGui::GetWindowDrawList(), {at.x + 6, at.y + ImGui::GetTextLineHeight() / 2}, 10, info.name);
  ImGui::SetCursorScreenPos({at.x + 18, at.y});
  ImGui::PushFont(graphics.fonts().strong, theme::size_text);
  ImGui::TextUnformatted(info.name.c_str());
  ImGui::PopFont();
  ImGui::SameLine(0, 8);
  ImGui::TextColored(theme::quiet, "%s", family_name(info.family));
  ImGui::PushFont(graphics.fonts().regular, theme::size_small);
  wrapped_line(info.definition, theme::text);
  wrapped_line(likeness_text(info), theme::quiet);
  if (!obstacle_.empty()) wrapped_line("Cannot run here: " + obstacle_, theme::amber);
  if (*mark_text(mark_) != '\0')
    wrapped_line(mark_text(mark_),
                 mark_ == ParameterMark::untrained ? ImVec4(theme::amber) : ImVec4(theme::quiet));
  draw_numbers(graphics);
  if (obstacle_.empty() && shown_) {
    constexpr float very_low = 400; // where the whole card would not fit
    const float picture_side = ImGui::GetMainViewport()->Size.y < very_low ? 64 : 128;
    const ImVec2 from = ImGui::GetCursorScreenPos();
    ImDrawList* const list = ImGui::GetWindowDrawList();
    const ImVec2 to{from.x + picture_side, from.y + picture_side};
    list->AddRectFilled(from, to, theme::packed(theme::raised));
    if (!picture_.empty()) {
      picture_.draw(graphics, list, from, to);
      colour_bar(graphics, scale_, {to.x + 10, from.y}, picture_side);
    }
    ImGui::Dummy({picture_side, picture_side});
    const bool long_input = can_run(editor.document()) && expected_tokens(editor.document()) > most_tokens;
    wrapped_line(!caption_.empty() ? caption_
                 : long_input ? fmt::format("weights are drawn for inputs of up to {} tokens", most_tokens)
                              : "computing its weights on this input…",
                 theme::quiet);
  }
  wrapped_line(info.source + (info.published.empty() ? "" : "; published: " + info.published), theme::quiet);
  const int layer = layer_.value_or(editor.document().scene().layer);
  if (obstacle_.empty()) wrapped_line(fmt::format("click: run it in layer {}", layer), theme::text);
  ImGui::PopFont();
  ImGui::EndTooltip();
}

void KernelCard::draw_numbers(const Graphics& graphics) const {
  const KernelInfo& info = kernel_infos()[kernel_];
  constexpr float column = 44;
  const auto line = [&](const char* name, const std::string& value) {
    if (value.empty()) return;
    ImGui::TextColored(theme::quiet, "%s", name);
    ImGui::SameLine(column + theme::grid);
    ImGui::PushTextWrapPos(card_width + theme::grid);
    ImGui::TextUnformatted(with_known_glyphs(value).c_str());
    ImGui::PopTextWrapPos();
  };
  ImGui::PushFont(graphics.fonts().regular, theme::size_small);
  line("cost", info.complexity);
  line("speed", speed_);
  line("KL", divergence_);
  ImGui::PopFont();
}

} // namespace hydrascope::app
