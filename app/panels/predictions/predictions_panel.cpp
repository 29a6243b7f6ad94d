// The most likely classes, or a decoder's likeliest next tokens after the query, for A and, if B is shown,
// for B.
#include <algorithm>

#include <fmt/format.h>

#include "app/document/edits.h"
#include "app/panels/panel.h"
#include "app/ui/widgets.h"
#include "app/views/table_views.h"
#include "engine/figures/scale.h"
#include "engine/run/predicted_number.h"

namespace hydrascope::app {

namespace {

// The end of the text up to the token that the next one follows, "… capital of France is".
std::string text_before(const RunResult& run, std::int64_t token) {
  constexpr std::size_t most = 24; // bytes
  std::string text;
  for (std::int64_t i = token; i >= 0 && text.size() < most; --i)
    text.insert(0, run.tokens[static_cast<std::size_t>(i)].text);
  const bool cut = text.size() >= most;
  const std::size_t word = cut ? text.find(' ', text.size() - most) : std::string::npos;
  if (word != std::string::npos) text = text.substr(word);
  constexpr std::string_view line_break = "\\n"; // as tokens write it
  for (std::size_t at = 0; (at = text.find(line_break)) != std::string::npos;)
    text.replace(at, line_break.size(), "↵");
  return (cut ? "…" : "") + text;
}

struct Row {
  std::string label;
  int index = 0;
  double a = 0, b = 0;
  double whole = 0; // A with nothing hidden or muted
};

class PredictionsPanel final : public Panel {
public:
  explicit PredictionsPanel(PanelServices services) : Panel("predictions", "Predictions", services) {}
  bool needs_model() const override { return true; }
  bool exports() const override { return true; }

  void prepare(const Snapshot& snapshot) override {
    rows_.clear();
    effect_.clear();
    heading_.clear();
    decoder_ = is_decoder(snapshot.document->scene());
    number_.clear();
    const RunResult* a = snapshot.results[0]->any();
    const RunResult* b = snapshot.document->view.shown == Shown::a ? nullptr : snapshot.results[1]->any();
    no_classifier_ = a != nullptr && a->predictions.empty();
    with_b_ = b != nullptr;
    run_a_ = a == nullptr ? nullptr : snapshot.results[0]->parts.back();
    run_b_ = b == nullptr ? nullptr : snapshot.results[1]->parts.back();
    if (a == nullptr) return;
    if (a->whole) effect_ = effect_text(*a);
    if (predicts_number(a->model) && !a->predictions.empty()) {
      number_ = fmt::format("{}: {}", prediction_name(*a, a->predictions.front()),
                            prediction_value(*a, a->predictions.front()));
      if (b != nullptr && !b->predictions.empty())
        number_ += fmt::format(" in A, {} in B", prediction_value(*b, b->predictions.front()));
      return;
    }
    with_whole_ = a->whole.has_value() && !with_b_;
    if (decoder_) {
      const std::int64_t token = row_query(snapshot.document->scene(), *a);
      if (token < std::ssize(a->tokens)) heading_ = "what comes after “" + text_before(*a, token) + "”";
    }
    const std::size_t most = decoder_ ? 12 : 6;
    for (std::size_t i = 0; i < std::min(most, a->predictions.size()); ++i) {
      const Prediction& prediction = a->predictions[i];
      Row row{prediction_name(*a, prediction), prediction.index, prediction.probability, 0};
      if (b != nullptr) {
        const auto same = std::ranges::find(b->predictions, prediction.index, &Prediction::index);
        if (same != b->predictions.end()) row.b = same->probability;
      }
      if (with_whole_) row.whole = probability_of(a->whole->predictions, prediction.index);
      rows_.push_back(std::move(row));
    }
    if (with_whole_ && !rows_.empty()) add_whole_class(*a);
    if (b != nullptr && !b->predictions.empty() && !rows_.empty() &&
        std::ranges::find(rows_, b->predictions.front().index, &Row::index) == rows_.end()) {
      const Prediction& first = b->predictions.front();
      const auto same = std::ranges::find(a->predictions, first.index, &Prediction::index);
      rows_.back() = {prediction_name(*b, first), first.index,
                      same == a->predictions.end() ? 0 : same->probability, first.probability};
    }
  }

  void draw() override {
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    if (!heading_.empty()) {
      ellipsis_text(with_known_glyphs(heading_), ImGui::GetContentRegionAvail().x, theme::quiet);
      if (ImGui::IsItemHovered())
        text_tooltip("Click a token in another panel to see what comes after it; ␣ is a space");
    }
    if (!effect_.empty()) ellipsis_text(effect_, ImGui::GetContentRegionAvail().x, theme::text);
    ImGui::PopFont();
    if (!number_.empty()) {
      ellipsis_text(number_, ImGui::GetContentRegionAvail().x, theme::text);
      return;
    }
    if (rows_.empty()) {
      empty_notice(graphics(), decoder_ ? "The likeliest next tokens, once the model has run."
                               : no_classifier_
                                   ? "This model has no classifier, so there is no prediction. Its "
                                     "focus map explains the sentence's embedding."
                                   : "The most likely classes, once the model has run.");
      return;
    }
    const float room = ImGui::GetContentRegionAvail().x;
    const float number_width = with_b_ ? 168 : (with_whole_ ? 120 : 64);
    const bool header = with_b_ || with_whole_;
    constexpr float narrowest_bar = 24; // numbers take precedence over bars and names, which have tooltips
    const float label_width =
        std::max(48.0f, std::min({220.0f, room * 0.36f, room - number_width - 16 - narrowest_bar}));
    const float bar_width = std::max(narrowest_bar, room - label_width - number_width - 16);
    constexpr std::size_t least_rows = 6; // of more, as many as fit
    constexpr float least_height = 14, gap = 2;
    const float lines = ImGui::GetContentRegionAvail().y / (least_height + gap) - (header ? 1.0f : 0.0f);
    const std::size_t count =
        std::min(rows_.size(), std::max(least_rows, static_cast<std::size_t>(std::max(lines, 0.0f))));
    const float height =
        std::clamp(ImGui::GetContentRegionAvail().y / static_cast<float>(count + (header ? 1 : 0)) - gap,
                   least_height, 24.0f);
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(0, 2));
    if (header) draw_header(label_width + bar_width + number_width);
    for (std::size_t i = 0; i < count; ++i) draw_row(rows_[i], label_width, bar_width, number_width, height);
    ImGui::PopStyleVar();
  }

  std::optional<Figure> figure() const override {
    if (!run_a_) return std::nullopt;
    std::vector<const RunResult*> runs = {run_a_.get()};
    if (run_b_) runs.push_back(run_b_.get());
    return predictions_figure(runs);
  }

private:
  static double probability_of(const std::vector<Prediction>& predictions, int index) {
    const auto found = std::ranges::find(predictions, index, &Prediction::index);
    return found == predictions.end() ? 0 : found->probability;
  }

  // A line on the effect of hiding and muting.
  static std::string effect_text(const RunResult& run) {
    std::string count;
    if (!run.hidden_tokens.empty())
      count = fmt::format("{} {}", run.hidden_tokens.size(), run.rows > 0 ? "hidden" : "masked");
    if (!run.muted_heads.empty())
      count += fmt::format("{}{} head{} muted", count.empty() ? "" : ", ", run.muted_heads.size(),
                           run.muted_heads.size() == 1 ? "" : "s");
    if (run.predictions.empty() || run.whole->predictions.empty())
      return fmt::format("{}: cosine {} to the embedding without that", count,
                         number_text(run.whole->similarity));
    const Prediction& before = run.whole->predictions.front();
    const Prediction& now = run.predictions.front();
    if (before.index != now.index)
      return fmt::format("{}: {} {} became {} {}", count, prediction_name(run, before),
                         prediction_value(run, before), prediction_name(run, now),
                         prediction_value(run, now));
    return fmt::format("{}: {} {} → {}", count, prediction_name(run, now), prediction_value(run, before),
                       prediction_value(run, now));
  }

  // Keeps the class that is the most likely with nothing hidden or muted.
  void add_whole_class(const RunResult& run) {
    if (run.whole->predictions.empty()) return;
    const Prediction& before = run.whole->predictions.front();
    if (std::ranges::find(rows_, before.index, &Row::index) != rows_.end()) return;
    rows_.back() = {.label = prediction_name(run, before),
                    .index = before.index,
                    .a = probability_of(run.predictions, before.index),
                    .b = 0,
                    .whole = before.probability};
  }

  void draw_header(float right) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImDrawList* list = ImGui::GetWindowDrawList();
    if (with_b_) { // which bar is which
      ImGui::PushFont(graphics().fonts().regular, theme::size_small);
      float x = at.x + 2;
      for (const Side side : {Side::a, Side::b}) {
        const ImVec4& colour = side == Side::a ? theme::side_a : theme::side_b;
        const float middle = at.y + ImGui::GetTextLineHeight() / 2;
        list->AddRectFilled({x, middle - 3}, {x + 14, middle + 3}, theme::packed(colour), 2.0f);
        list->AddText({x + 18, at.y}, theme::packed(theme::quiet), side_name(side));
        x += 38;
      }
      ImGui::PopFont();
    }
    ImGui::PushFont(graphics().fonts().mono, theme::size_small);
    const std::string text = with_b_ ? fmt::format("{:>6}  {:>6}  {:>5}", side_name(Side::a),
                                                   side_name(Side::b), side_name(Shown::difference))
                                     : fmt::format("{:>6}  {:>6}", "now", "change");
    const float width = ImGui::CalcTextSize(text.c_str()).x;
    list->AddText({at.x + right - width, at.y}, theme::packed(theme::quiet), text.c_str());
    ImGui::Dummy({right, ImGui::GetTextLineHeight()});
    ImGui::PopFont();
  }

  void draw_row(const Row& row, float label_width, float bar_width, float number_width, float height) {
    ImDrawList* list = ImGui::GetWindowDrawList();
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float text_y = at.y + (height - ImGui::GetTextLineHeight()) / 2;
    const std::string label = fitted(with_known_glyphs(row.label), label_width - 12);
    const float text_width = ImGui::CalcTextSize(label.c_str()).x;
    const Target& target = document().scene().target;
    const bool chosen = target.kind == Target::Kind::class_index && target.index == row.index;
    list->AddText({at.x + label_width - 10 - text_width, text_y},
                  theme::packed(chosen ? theme::accent : theme::text), label.c_str());
    const float bar_x = at.x + label_width;
    const float half = with_b_ ? (height - 4) / 2 : height - 4;
    list->AddRectFilled({bar_x, at.y + 2}, {bar_x + bar_width, at.y + height - 2},
                        theme::packed(theme::raised), 2.0f);
    const auto bar = [&](double probability, float y, const ImVec4& colour) {
      list->AddRectFilled({bar_x, y},
                          {bar_x + std::max(1.0f, bar_width * static_cast<float>(probability)), y + half},
                          theme::packed(colour, brightness()), 2.0f);
    };
    bar(row.a, at.y + 2, theme::side_a);
    if (with_whole_) { // the probability with nothing hidden or muted
      const float x = bar_x + bar_width * static_cast<float>(row.whole);
      list->AddLine({x, at.y + 1}, {x, at.y + height - 1}, theme::packed(theme::accent, brightness()), 2.0f);
    }
    if (with_b_) bar(row.b, at.y + 2 + half, theme::side_b);
    ImGui::PushFont(graphics().fonts().mono, theme::size_small);
    const std::string numbers =
        with_b_       ? fmt::format("{:4.1f} %  {:4.1f} %  {:>5}", row.a * 100, row.b * 100,
                                    difference_in_points(row.a, row.b))
        : with_whole_ ? fmt::format("{:4.1f} %  {:>6}", row.a * 100, difference_in_points(row.a, row.whole))
                      : fmt::format("{:4.1f} %", row.a * 100);
    const float numbers_width = ImGui::CalcTextSize(numbers.c_str()).x;
    list->AddText(
        {bar_x + bar_width + number_width - numbers_width, at.y + (height - ImGui::GetTextLineHeight()) / 2},
        theme::packed(theme::text), numbers.c_str());
    ImGui::PopFont();
    ImGui::PushID(row.index);
    if (ImGui::InvisibleButton("class", {label_width + bar_width + number_width, height})) {
      select_target(editor(), {.kind = Target::Kind::class_index, .index = row.index, .text = {}});
    }
    ImGui::PopID();
    if (ImGui::IsItemHovered()) {
      const std::string other = with_b_       ? "   B " + percent_text(row.b)
                                : with_whole_ ? "   before " + percent_text(row.whole)
                                              : "";
      text_tooltip(fmt::format("{}\nA {}{}\nclick: focus map of this {}", row.label, percent_text(row.a),
                               other, decoder_ ? "next token" : "class"));
    }
  }

  std::vector<Row> rows_;
  std::shared_ptr<const RunResult> run_a_, run_b_;
  std::string effect_;  // the effect of hidden tokens and muted heads; empty without any
  std::string heading_; // a decoder's: after which text
  std::string number_;  // where a number is predicted, that
  bool with_b_ = false, with_whole_ = false, no_classifier_ = false, decoder_ = false;
};

} // namespace

std::unique_ptr<Panel> make_predictions_panel(PanelServices services) {
  return std::make_unique<PredictionsPanel>(services);
}

} // namespace hydrascope::app
