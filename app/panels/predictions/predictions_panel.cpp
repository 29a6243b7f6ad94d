// The most likely classes, or a decoder's likeliest next tokens after the query, for A and, if B is shown,
// for B.
#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/document/edits.h"
#include "app/panels/panel.h"
#include "app/ui/widgets.h"
#include "app/views/share_text.h"
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

constexpr float label_gap = 12, number_gap = 14;

struct Row {
  std::string label;
  int index = 0;
  std::optional<Share> a, b; // nullopt: the side is not shown, or has no results
  Share whole = {};          // A with nothing hidden or muted
};

class PredictionsPanel final : public Panel {
public:
  explicit PredictionsPanel(PanelServices services) : Panel("predictions", "Predictions", services) {}
  bool needs_model() const override { return true; }
  bool exports() const override { return true; }

  void prepare(const Snapshot& snapshot) override {
    rows_.clear();
    effects_.clear();
    heading_.clear();
    decoder_ = is_decoder(snapshot.document->scene());
    number_.clear();
    set_runs(snapshot);
    const RunResult *a = run_a_.get(), *b = run_b_.get();
    no_classifier_ = false;
    if (a == nullptr && b == nullptr) return;
    const RunResult& run = a == nullptr ? *b : *a;
    no_classifier_ = run.predictions.empty();
    effects_ = effect_lines(a, b, with_b_);
    if (predicts_number(run.model) && !run.predictions.empty()) {
      number_ = fmt::format("{}: {}", prediction_name(run, run.predictions.front()),
                            prediction_value(run, run.predictions.front()));
      if (with_b_) number_ += fmt::format(" in {}", side_name(a == nullptr ? Side::b : Side::a));
      if (a != nullptr && b != nullptr && !b->predictions.empty())
        number_ += fmt::format(", {} in B", prediction_value(*b, b->predictions.front()));
      return;
    }
    with_whole_ = run.whole.has_value() && !with_b_;
    if (decoder_) {
      const std::int64_t token = row_query(snapshot.document->scene(), run);
      if (token < std::ssize(run.tokens)) heading_ = "what comes after “" + text_before(run, token) + "”";
    } else if (run.model.independent_labels && !run.predictions.empty()) {
      heading_ = "each label by itself: they need not sum to 100 %";
    }
    const std::size_t most = decoder_ ? 12 : 6;
    for (std::size_t i = 0; i < std::min(most, run.predictions.size()); ++i)
      rows_.push_back(row_of(run, run.predictions[i]));
    if (with_whole_ && !rows_.empty()) add_class(run, run.whole->predictions);
    if (a != nullptr && b != nullptr && !rows_.empty()) add_class(*b, b->predictions);
  }

  void draw() override {
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    if (!heading_.empty()) {
      ellipsis_text(with_known_glyphs(heading_), ImGui::GetContentRegionAvail().x, theme::quiet);
      if (decoder_ && ImGui::IsItemHovered())
        text_tooltip("Click a token in another panel to see what comes after it; ␣ is a space");
    }
    for (const std::string& effect : effects_)
      ellipsis_text(effect, ImGui::GetContentRegionAvail().x, theme::text);
    ImGui::PopFont();
    if (!failures_.empty() && !(rows_.empty() && number_.empty()))
      wrapped_small_text(graphics(), fmt::format("{}", fmt::join(failures_, "\n")));
    if (!number_.empty()) {
      ellipsis_text(number_, ImGui::GetContentRegionAvail().x, theme::text);
      return;
    }
    if (rows_.empty()) return empty_notice(graphics(), empty_reason());
    const bool header = with_b_ || with_whole_;
    constexpr float least_height = 14, most_height = 40, gap = 2;
    const float lines = ImGui::GetContentRegionAvail().y / (least_height + gap) - (header ? 1.0f : 0.0f);
    const std::size_t count =
        std::min(rows_.size(), std::max(least_rows, static_cast<std::size_t>(std::max(lines, 0.0f))));
    const float height =
        std::clamp(ImGui::GetContentRegionAvail().y / static_cast<float>(count + (header ? 1 : 0)) - gap,
                   least_height, most_height);
    const Columns columns = fit_columns(count, ImGui::GetContentRegionAvail().x);
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(0, 2));
    if (header) draw_header(columns);
    for (std::size_t i = 0; i < count; ++i) draw_row(rows_[i], columns, height);
    ImGui::PopStyleVar();
  }

  std::optional<Figure> figure() const override {
    if (!run_a_ && !run_b_) return std::nullopt;
    return predictions_figure(std::array<const RunResult*, 2>{run_a_.get(), run_b_.get()});
  }

private:
  static constexpr std::size_t least_rows = 6; // of more, as many as fit
  static constexpr const char* none = "—";

  // The runs that are shown, and why one is missing. B has its place while it is compared, unless it is still
  // to come.
  void set_runs(const Snapshot& snapshot) {
    failures_.clear();
    const bool both = snapshot.document->view.shown != Shown::a;
    const auto run_of = [&](Side side) -> std::shared_ptr<const RunResult> {
      if (snapshot.of(side).any() != nullptr) return snapshot.of(side).parts.back();
      std::string failure = both ? snapshot.named_failure(side) : snapshot.failure(side);
      if (!failure.empty()) failures_.push_back(std::move(failure));
      return nullptr;
    };
    run_a_ = run_of(Side::a);
    run_b_ = both ? run_of(Side::b) : nullptr;
    with_b_ = run_b_ != nullptr || (both && !snapshot.failure(Side::b).empty());
  }

  // A class of the run with the probability that each run gives it.
  Row row_of(const RunResult& run, const Prediction& prediction) const {
    const auto share = [&](const RunResult* of) {
      return of == nullptr ? std::nullopt : std::optional(share_of(of->predictions, prediction.index));
    };
    Row row{.label = prediction_name(run, prediction),
            .index = prediction.index,
            .a = share(run_a_.get()),
            .b = share(run_b_.get())};
    if (with_whole_) row.whole = share_of(run.whole->predictions, prediction.index);
    return row;
  }

  std::string empty_reason() const {
    if (!failures_.empty()) return fmt::format("{}", fmt::join(failures_, "\n"));
    if (decoder_) return "The likeliest next tokens, once the model has run.";
    return no_classifier_ ? "This model has no classifier, so there is no prediction. Its focus map explains "
                            "the sentence's embedding."
                          : "The most likely classes, once the model has run.";
  }

  // Widths: of the names, of the bars, and of each number with the gap before it.
  struct Columns {
    float label = 0, bar = 0;
    std::vector<float> numbers;

    float all() const { return std::accumulate(numbers.begin(), numbers.end(), label + bar); }
  };

  // As wide as what is in them; the bars get the rest. Numbers take precedence over bars and names, which
  // have tooltips.
  Columns fit_columns(std::size_t count, float room) const {
    Columns columns;
    float widest = 0;
    const auto widen = [&](const std::vector<std::string>& texts) {
      columns.numbers.resize(texts.size());
      for (std::size_t i = 0; i < texts.size(); ++i)
        columns.numbers[i] =
            std::max(columns.numbers[i], ImGui::CalcTextSize(texts[i].c_str()).x + number_gap);
    };
    for (std::size_t i = 0; i < count; ++i)
      widest = std::max(widest, ImGui::CalcTextSize(with_known_glyphs(rows_[i].label).c_str()).x);
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    widen(headings());
    ImGui::PopFont();
    ImGui::PushFont(graphics().fonts().mono, theme::size_small);
    for (std::size_t i = 0; i < count; ++i) widen(numbers_of(rows_[i]));
    ImGui::PopFont();
    constexpr float least_label = 48, most_share = 0.65f, least_bar = 8;
    const float rest = room - columns.all();
    columns.label =
        std::max(least_label, std::min({widest + label_gap, rest * most_share, rest - least_bar}));
    columns.bar = std::max(least_bar, rest - columns.label);
    return columns;
  }

  // Above the numbers; the signs are those of the texts' font.
  std::vector<std::string> headings() const {
    if (with_b_) return {side_name(Side::a), side_name(Side::b), side_name(Shown::difference)};
    if (with_whole_) return {"now", "change"};
    return {""};
  }

  std::vector<std::string> numbers_of(const Row& row) const {
    const auto text = [](const std::optional<Share>& share) { return share ? share_text(*share) : none; };
    if (with_b_)
      return {text(row.a), text(row.b),
              row.a && row.b ? difference_in_points(row.a->value, row.b->value) : none};
    if (with_whole_) return {text(row.a), difference_in_points(row.a->value, row.whole.value)};
    return {text(row.a)};
  }

  // Keeps the likeliest class of these: of B, or with nothing hidden or muted. Its row is one of those that
  // are always drawn, in place of the least likely of all.
  void add_class(const RunResult& run, const std::vector<Prediction>& predictions) {
    if (predictions.empty() ||
        std::ranges::find(rows_, predictions.front().index, &Row::index) != rows_.end())
      return;
    Row row = row_of(run, predictions.front());
    rows_.pop_back();
    rows_.insert(rows_.begin() + static_cast<std::ptrdiff_t>(std::min(rows_.size(), least_rows - 1)),
                 std::move(row));
  }

  void draw_header(const Columns& columns) {
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
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    draw_numbers(columns, headings(), at, theme::quiet);
    ImGui::Dummy({columns.all(), ImGui::GetTextLineHeight()});
    ImGui::PopFont();
  }

  static void draw_numbers(const Columns& columns, const std::vector<std::string>& texts, ImVec2 at,
                           const ImVec4& colour) {
    float right = at.x + columns.label + columns.bar;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      right += columns.numbers[i];
      right_aligned(ImGui::GetWindowDrawList(), right, at.y, theme::packed(colour), texts[i]);
    }
  }

  void draw_row(const Row& row, const Columns& columns, float height) {
    ImDrawList* list = ImGui::GetWindowDrawList();
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float label_width = columns.label, bar_width = columns.bar;
    const float text_y = at.y + (height - ImGui::GetTextLineHeight()) / 2;
    const std::string label = fitted(with_known_glyphs(row.label), label_width - label_gap + 1);
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
    if (row.a) bar(row.a->value, at.y + 2, theme::side_a);
    if (with_whole_) { // the probability with nothing hidden or muted
      const float x = bar_x + bar_width * static_cast<float>(row.whole.value);
      list->AddLine({x, at.y + 1}, {x, at.y + height - 1}, theme::packed(theme::accent, brightness()), 2.0f);
    }
    if (row.b) bar(row.b->value, at.y + 2 + half, theme::side_b);
    ImGui::PushFont(graphics().fonts().mono, theme::size_small);
    draw_numbers(columns, numbers_of(row), {at.x, at.y + (height - ImGui::GetTextLineHeight()) / 2},
                 theme::text);
    ImGui::PopFont();
    ImGui::PushID(row.index);
    if (ImGui::InvisibleButton("class", {columns.all(), height})) {
      select_target(editor(), {.kind = Target::Kind::class_index, .index = row.index, .text = {}});
    }
    ImGui::PopID();
    if (ImGui::IsItemHovered()) {
      const auto text = [](const std::optional<Share>& share) {
        return share ? exact_share_text(*share) : none;
      };
      const std::string other = with_b_       ? "   B " + text(row.b)
                                : with_whole_ ? "   before " + exact_share_text(row.whole)
                                              : "";
      text_tooltip(fmt::format("{}\nA {}{}\nclick: focus map of this {}", row.label, text(row.a), other,
                               decoder_ ? "next token" : "class"));
    }
  }

  std::vector<Row> rows_;
  std::shared_ptr<const RunResult> run_a_, run_b_; // of the sides shown; null without results
  std::vector<std::string> failures_;              // why one of them is null
  std::vector<std::string> effects_;               // of hidden tokens and muted heads
  std::string heading_; // a decoder's: after which text; that labels are independent
  std::string number_;  // where a number is predicted, that
  bool with_b_ = false, with_whole_ = false, no_classifier_ = false, decoder_ = false;
};

} // namespace

std::unique_ptr<Panel> make_predictions_panel(PanelServices services) {
  return std::make_unique<PredictionsPanel>(services);
}

} // namespace hydrascope::app
