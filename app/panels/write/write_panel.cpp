// A decoder goes on with the document's text, token by token, under A and under B side by side, with the time
// of a token and the memory of the state against the length.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/document/edits.h"
#include "app/document/writing_edits.h"
#include "app/panels/panel.h"
#include "app/panels/side_columns.h"
#include "app/panels/write/running_text.h"
#include "app/ui/drawn_figure.h"
#include "app/ui/widgets.h"
#include "app/views/writing_view.h"
#include "engine/figures/scale.h"
#include "engine/figures/token_text.h"

namespace hydrascope::app {

namespace {

constexpr float value_width = 40;

// A labelled slider of the toolbar; one drag is one undo step.
void option_slider(Editor& editor, const char* label, const std::string& change, int value, int least,
                   int most, const std::string& text, const char* tooltip,
                   const std::function<void(WritingOptions&, int)>& set,
                   ImGuiSliderFlags flags = ImGuiSliderFlags_AlwaysClamp) {
  ImGui::BeginGroup();
  ImGui::AlignTextToFramePadding();
  ImGui::TextColored(theme::quiet, "%s", label);
  ImGui::SameLine(0, 6);
  ImGui::SetNextItemWidth(56 + value_width);
  if (value_slider(("##" + change).c_str(), &value, least, most, text, value_width, flags))
    change_writing(
        editor, change, [&](WritingOptions& options) { set(options, value); }, change);
  ImGui::EndGroup();
  if (ImGui::IsItemHovered()) text_tooltip(tooltip);
}

void tokens_slider(Editor& editor) {
  constexpr int most = 1024;
  const int tokens = editor.document().writing.tokens;
  option_slider(
      editor, "tokens", "Tokens to write", tokens, 1, most, fmt::format("{}", tokens),
      "Write so many tokens, unless the text ends before",
      [](WritingOptions& options, int value) { options.tokens = value; },
      static_cast<ImGuiSliderFlags>(ImGuiSliderFlags_AlwaysClamp) | ImGuiSliderFlags_Logarithmic);
}

void temperature_slider(Editor& editor) {
  constexpr int most = 200;
  const double temperature = editor.document().writing.temperature;
  option_slider(editor, "temperature", "Temperature", static_cast<int>(std::lround(temperature * 100)), 0,
                most, fmt::format("{:.2f}", temperature),
                "Choose how freely tokens are drawn.\n0: always the likeliest; 1: by the model's own "
                "probabilities; above: more evenly",
                [](WritingOptions& options, int value) { options.temperature = value / 100.0; });
}

void top_p_slider(Editor& editor) {
  const double share = editor.document().writing.top_p;
  option_slider(editor, "top-p", "Top-p", static_cast<int>(std::lround(share * 100)), 1, 100,
                fmt::format("{:.2f}", share),
                "Draw from the likeliest tokens that together have this probability (Holtzman et al. 2020)",
                [](WritingOptions& options, int value) { options.top_p = value / 100.0; });
}

void seed_input(Editor& editor) {
  std::uint64_t seed = editor.document().writing.seed;
  constexpr std::uint64_t step = 1;
  ImGui::BeginGroup();
  ImGui::AlignTextToFramePadding();
  ImGui::TextColored(theme::quiet, "seed");
  ImGui::SameLine(0, 6);
  ImGui::SetNextItemWidth(96);
  if (ImGui::InputScalar("##seed", ImGuiDataType_U64, &seed, &step))
    change_writing(
        editor, "Seed of the text", [&](WritingOptions& options) { options.seed = seed; }, "seed");
  ImGui::EndGroup();
  if (ImGui::IsItemHovered())
    text_tooltip(
        "Choose other draws. A token depends on the seed and its position alone:\n"
        "the same text, kernels and seed give the same tokens, and A and B draw alike");
}

void follow_switch(Editor& editor) {
  bool follow = editor.document().writing.follow;
  if (check_box("panels follow", &follow))
    change_writing(editor, "Panels follow the text",
                   [&](WritingOptions& options) { options.follow = follow; });
  if (ImGui::IsItemHovered())
    text_tooltip(
        "Show the text with what is written in the other panels, for the side that they show:\n"
        "the newest token is their query. Writing waits until they have drawn each token.");
}

class WritePanel final : public Panel {
public:
  explicit WritePanel(PanelServices services) : Panel("write", "Write", services) {}
  bool exports() const override { return true; }
  bool shows_results() const override { return false; }
  bool needs_model() const override { return true; }

  void prepare(const Snapshot& /*snapshot*/) override {
    const Writing& writing = editor().writing;
    fits_ = writing_fits(editor());
    if (writing.running != was_running_) {
      was_running_ = writing.running;
      for (RunningText& text : texts_) text.follow(writing.running);
    }
    if (prepared_ == std::pair{writing.start, writing.edition} && prompt_ == writing.prompt) return;
    prepared_ = {writing.start, writing.edition};
    prompt_ = writing.prompt;
    plots_.set(writing_speed_figure(writing, true));
    std::optional<std::size_t> differs;
    if (!writing.alike) {
      const std::size_t common = common_tokens(writing.sides[0], writing.sides[1]);
      if (common < std::min(writing.sides[0].tokens.size(), writing.sides[1].tokens.size())) differs = common;
    }
    for (std::size_t side = 0; side < texts_.size(); ++side)
      texts_[side].set(writing.prompt, writing.sides[side].tokens, differs);
  }

  void draw() override {
    const Document& now = document();
    if (!is_decoder(now.scene())) {
      empty_notice(graphics(),
                   "Decoders write on from a text, token by token. Open one from the Model menu, such "
                   "as smollm2.");
      return;
    }
    draw_toolbar();
    const Writing& writing = editor().writing;
    if (writing.empty()) {
      const std::string why = why_not_written(now);
      empty_notice(graphics(), why.empty() ? "Press Write: the model goes on with the input's text under A's "
                                             "kernels and under B's, side by side."
                                           : "Nothing can be written: " + why + ".");
      return;
    }
    draw_state(writing);
    draw_body(writing);
  }

  void draw_menu() override {
    const Writing& writing = editor().writing;
    for (const Side side : {Side::a, Side::b}) {
      if (side == Side::b && writing.alike) continue;
      const std::string label = fmt::format("Copy {}'s text", side_name(side));
      const std::string& text = writing.side(side).text;
      if (ImGui::MenuItem(label.c_str(), nullptr, false, !text.empty()))
        ImGui::SetClipboardText((writing.prompt + text).c_str());
    }
    ImGui::Separator();
  }

  std::optional<Figure> figure() const override {
    const Writing& writing = editor().writing;
    Figure figure = writing_figure(writing);
    return figure.panels.empty() ? std::nullopt : std::optional(std::move(figure));
  }

private:
  void draw_toolbar() {
    Toolbar bar;
    bar.add(134, [&] { draw_buttons(); });
    bar.add(48 + 62 + value_width, [&] { tokens_slider(editor()); });
    bar.add(84 + 62 + value_width, [&] { temperature_slider(editor()); });
    bar.add(40 + 62 + value_width, [&] { top_p_slider(editor()); });
    bar.add(132, [&] { seed_input(editor()); });
    bar.add(120, [&] { follow_switch(editor()); });
    bar.draw();
  }

  void draw_buttons() {
    const Writing& writing = editor().writing;
    if (writing.running) {
      if (ImGui::Button("Stop###write", {60, 0})) editor().emit(StopWriting{});
      if (ImGui::IsItemHovered()) text_tooltip("Stop after this token; what was written stays");
      return;
    }
    const std::string why = why_not_written(document());
    const std::string why_not_on = why.empty() ? why_not_continued(editor()) : why;
    ImGui::BeginDisabled(!why.empty());
    if (ImGui::Button("Write###write", {60, 0})) editor().emit(StartWriting{true});
    ImGui::EndDisabled();
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
      text_tooltip(why.empty() ? "Write after the input's text, anew" : "Nothing can be written: " + why);
    ImGui::SameLine(0, 6);
    ImGui::BeginDisabled(!why_not_on.empty());
    if (ImGui::Button("Go on###go_on", {62, 0})) editor().emit(StartWriting{false});
    ImGui::EndDisabled();
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
      text_tooltip(why_not_on.empty()
                       ? "Write more after what is there: the tokens are those that would have "
                         "come without a stop"
                       : "It cannot go on: " + why_not_on);
  }

  // A line on what the texts are of, where that is not the document's present text and kernels.
  void draw_state(const Writing& writing) {
    std::vector<std::string> notes;
    ImVec4 colour = theme::quiet;
    const auto taken = [&](Side side) { return is_taken_over(document(), writing, side); };
    if (taken(Side::a) || taken(Side::b)) {
      notes.push_back(fmt::format("{}'s text is the input now: Write goes on from there",
                                  side_name(taken(Side::a) ? Side::a : Side::b)));
    } else if (!fits_ && !writing.running) {
      notes.emplace_back("of another text or other kernels than now: Write starts anew");
      colour = theme::amber;
    }
    if (!document().scene().muted_heads.empty() || !document().scene().hidden_tokens.empty())
      notes.emplace_back("with all heads and tokens, whatever is muted or hidden");
    if (notes.empty()) return;
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    ellipsis_text(fmt::format("{}", fmt::join(notes, "; ")), ImGui::GetContentRegionAvail().x, colour);
    ImGui::PopFont();
  }

  void draw_body(const Writing& writing) {
    const ImVec2 from = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
    constexpr float gap = theme::grid;
    constexpr float least_text = 120, least_plots = 104, most_plots = 260, least_width = 560, beside = 300;
    constexpr float least_height = 90; // else the panel scrolls
    ImVec2 texts{room.x, std::max(room.y, least_height)};
    const bool below = !plots_.empty() && room.y >= least_text + least_plots + gap;
    const bool right = !plots_.empty() && !below && room.x >= least_width;
    // In a low panel the texts get more of it.
    if (below) texts.y -= std::clamp(room.y / 2 - least_plots, least_plots, most_plots) + gap;
    if (right) texts.x -= beside + gap;
    draw_texts(writing, from, texts);
    if (below || right) {
      plots_.arrange(below ? 2 : 1);
      ImGui::SetCursorScreenPos(below ? ImVec2{from.x, from.y + texts.y + gap}
                                      : ImVec2{from.x + texts.x + gap, from.y});
      draw_plots(writing, below ? ImVec2{room.x, room.y - texts.y - gap} : ImVec2{beside, texts.y});
    }
  }

  void draw_texts(const Writing& writing, ImVec2 from, ImVec2 size) {
    const auto count = static_cast<float>(writing.count());
    constexpr float gap = theme::grid * 2;
    const float width = (size.x - gap * (count - 1)) / count;
    for (std::size_t side = 0; side < writing.count(); ++side) {
      ImGui::SetCursorScreenPos({from.x + static_cast<float>(side) * (width + gap), from.y});
      ImGui::PushID(static_cast<int>(side));
      if (ImGui::BeginChild("side", {width, size.y}, ImGuiChildFlags_None, ImGuiWindowFlags_NoScrollbar))
        draw_side(writing, static_cast<Side>(side));
      ImGui::EndChild();
      ImGui::PopID();
    }
  }

  void draw_side(const Writing& writing, Side which) {
    const WrittenSide& side = writing.side(which);
    const float width = ImGui::GetContentRegionAvail().x;
    const float button = button_width("Take over");
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImGui::AlignTextToFramePadding();
    ImGui::PushFont(graphics().fonts().strong, theme::size_small);
    const char* const name = writing.alike ? "A and B" : side_name(which);
    ImGui::TextUnformatted(name);
    const float named = ImGui::CalcTextSize(name).x + 8;
    ImGui::PopFont();
    kernel_square(ImGui::GetWindowDrawList(), {at.x + named + 6, at.y + ImGui::GetFrameHeight() / 2}, 10,
                  side.kernel);
    ImGui::SetCursorScreenPos({at.x + named + 16, at.y});
    ImGui::AlignTextToFramePadding();
    ellipsis_text(side.schedule, std::max(20.0f, width - named - 16 - button - 8));
    ImGui::SetCursorScreenPos({at.x + width - button, at.y});
    const std::string why = why_not_taken_over(editor(), which);
    ImGui::BeginDisabled(!why.empty() || writing.running);
    if (ImGui::Button(which == Side::a ? "Take over###take_a" : "Take over###take_b"))
      take_over_writing(editor(), which);
    ImGui::EndDisabled();
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
      text_tooltip(writing.running ? "It is being written"
                   : why.empty()   ? "Put the text into the input, with what was written"
                                   : why);
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    std::vector<std::string> facts = {writing_progress_text(writing, which), writing_speed_text(side)};
    std::erase(facts, "");
    if (writing.alike) facts.emplace_back("B has the same kernels, and writes the same");
    ellipsis_text(facts.empty() ? " " : fitting_parts(facts, width), width, theme::quiet);
    if (ImGui::IsItemHovered()) text_tooltip(facts_tooltip(side, facts));
    ImGui::PopFont();
    if (!side.problem.empty()) return wrapped_small_text(graphics(), side.problem, theme::red);
    const float line = RunningText::line_height(graphics()), rest = ImGui::GetContentRegionAvail().y;
    // Whole lines: of a text that scrolls no line is cut.
    if (ImGui::BeginChild("text", {0, std::max(line, std::floor(rest / line) * line)})) {
      const float brightness = fits_ || writing.running ? 1.0f : 0.6f;
      if (const auto token = texts_[static_cast<std::size_t>(which)].draw(graphics(), brightness))
        hover(writing, which, *token);
    }
    ImGui::EndChild();
  }

  static std::string facts_tooltip(const WrittenSide& side, const std::vector<std::string>& facts) {
    std::string text = fmt::format("{}", fmt::join(facts, "; "));
    if (side.prompt_tokens > 0)
      text += fmt::format("\nthe text before: {} tokens, read in {} ms", side.prompt_tokens,
                          number_text(side.prefill_ms));
    for (const std::string& note : side.notes) text += "\n" + note;
    return text;
  }

  void hover(const Writing& writing, Side which, std::size_t index) {
    const WrittenSide& side = writing.side(which);
    const WrittenToken& token = side.tokens.at(index);
    const std::int64_t position = side.prompt_tokens + static_cast<std::int64_t>(index);
    // Of the side that the other panels show: the other one has another token there.
    const bool followed = panels_follow(editor()) && (writing.alike || which == edited_side(document().view));
    text_tooltip(fmt::format("“{}”, token {} of the text\nprobability {}, loss {} nats\n{} ms; state {}{}",
                             drawn_token(token.name), position, percent_text(std::exp(token.logprob)),
                             number_text(-token.logprob), number_text(token.ms),
                             state_text(token.state_bytes),
                             followed ? "\nclick: make it the other panels' query" : ""));
    if (!followed) return;
    editor().hover(position);
    if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) select_query(editor(), position);
  }

  void draw_plots(const Writing& writing, ImVec2 size) {
    const auto input = plots_.draw("##plots", graphics(), size, fits_ || writing.running ? 1.0f : 0.6f);
    if (!input.item) return;
    const auto& panel = std::get<LinesPanel>(plots_.figure().panels.at(input.item->panel));
    const LinesPanel::Line& line = panel.lines.at(input.item->item.index);
    const WrittenSide& side = writing.side(line.name == side_name(Side::b) ? Side::b : Side::a);
    text_tooltip(fmt::format("{} {}\n{}: {} {} at {:.0f} tokens", line.name, side.schedule, panel.title,
                             number_text(line.y.at(input.item->item.within)), panel.y_label,
                             line.x.at(input.item->item.within)));
  }

  std::pair<std::uint64_t, std::uint64_t> prepared_{0, 0}; // start and edition of the texts below
  std::string prompt_;
  bool fits_ = false, was_running_ = false;
  std::array<RunningText, 2> texts_;
  DrawnFigure plots_;
};

} // namespace

std::unique_ptr<Panel> make_write_panel(PanelServices services) {
  return std::make_unique<WritePanel>(services);
}

} // namespace hydrascope::app
