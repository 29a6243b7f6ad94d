// What every token looks at: lines from the queries on the left to the keys on the right, a colour for each
// head (as bertviz's head view), and the query's row of weights as bars beside the keys.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "app/panels/feature_strip.h"
#include "app/panels/head_choice.h"
#include "app/panels/panels.h"
#include "app/panels/token_names.h"
#include "app/state/edits.h"
#include "app/views/token_lines.h"
#include "app/window/widgets.h"
#include "engine/figures/scale.h"

namespace hydrascope::app {

namespace {

constexpr float row_height = 18;
constexpr std::size_t most_lines = 6000; // that are drawn at once

// Tol's colour-blind-safe sets; more heads than colours begin again, and the head's number is always beside
// it.
constexpr std::array<Colour, 12> head_colours = {{{0.27f, 0.47f, 0.67f, 1},
                                                  {0.93f, 0.40f, 0.47f, 1},
                                                  {0.13f, 0.53f, 0.20f, 1},
                                                  {0.80f, 0.73f, 0.27f, 1},
                                                  {0.40f, 0.80f, 0.93f, 1},
                                                  {0.67f, 0.20f, 0.47f, 1},
                                                  {0.93f, 0.47f, 0.20f, 1},
                                                  {0.00f, 0.60f, 0.53f, 1},
                                                  {0.60f, 0.53f, 0.80f, 1},
                                                  {0.60f, 0.60f, 0.20f, 1},
                                                  {0.73f, 0.73f, 0.73f, 1},
                                                  {0.87f, 0.60f, 0.53f, 1}}};

ImU32 head_colour(int head, float opacity) {
  return theme::packed(head_colours[static_cast<std::size_t>(head) % head_colours.size()], opacity);
}

class TokensPanel final : public Panel {
public:
  explicit TokensPanel(PanelServices services) : Panel("tokens", "Tokens", services) {}
  bool exports() const override { return true; }

  void ask(const Document& document, Wants& wants) const override {
    if (!document.scene().model) return;
    std::vector<std::int64_t> rows; // of a picture only the query's: lines are for sentences
    if (document.kind == InputKind::image) rows = {query_of(document)};
    add_weights(wants.first, document.scene().layer, detail_kernel(document), document.view.teacher_forced,
                rows);
  }

  void prepare(const Snapshot& snapshot) override {
    const Document& document = *snapshot.document;
    const RunResult* any = snapshot.shown().any();
    const bool image = document.kind == InputKind::image;
    if (any == nullptr || !document.scene().model || (any->rows > 0) != image) {
      weights_ = nullptr;
      return;
    }
    const auto row = image ? std::optional(query_of(document)) : std::nullopt;
    const FoundWeights found = find_weights(snapshot.shown(), document.scene().layer, detail_kernel(document),
                                            document.view.teacher_forced, row);
    if (found.weights == nullptr) return; // the last good picture stays
    keep_ = snapshot.shown().parts;
    run_ = found.run;
    weights_ = found.weights;
    heads_ = shown_heads(document.scene().head, static_cast<int>(weights_->weights.extent(0)));
    second_ = image ? std::nullopt : second_sentence(*run_);
    lines_ =
        image ? TokenLines{} : strongest_lines(*weights_, heads_, document.view.pairs, second_, most_lines);
  }

  void draw() override {
    draw_toolbar();
    if (weights_ == nullptr) {
      empty_notice(graphics(), "What every token looks at, once the model has run.");
      return;
    }
    draw_heads();
    if (run_->rows > 0) {
      draw_rows_of_picture();
    } else {
      draw_sentence();
    }
  }

  std::optional<Figure> figure() const override {
    if (weights_ == nullptr) return std::nullopt;
    Figure figure;
    const std::int64_t query = query_of(document());
    figure.title = fmt::format("{} · layer {} · {} · {}", run_->model.name, weights_->layer,
                               weights_->kernel.text(), document().scene().head.text());
    figure.subtitle = "what " + token_name(*run_, query) + " looks at";
    BarsPanel panel;
    panel.x_label = "attention weight";
    panel.values = row_weights(*weights_, document().scene().head, query);
    for (std::size_t token = 0; token < panel.values.size(); ++token)
      panel.labels.push_back(token_name(*run_, static_cast<std::int64_t>(token)));
    figure.panels.emplace_back(std::move(panel));
    return figure;
  }

private:
  static std::int64_t query_of(const Document& document) {
    const Scene& scene = document.scene();
    return scene.default_query ? 0 : scene.query.value_or(0);
  }

  // Whose lines alone are shown: hovered, else chosen by a click.
  std::optional<int> lit_query() const {
    if (hovered_key_) return std::nullopt;
    const auto tokens = static_cast<std::int64_t>(run_->tokens.size());
    if (editor().hovered_token() && *editor().hovered_token() < tokens)
      return static_cast<int>(*editor().hovered_token());
    const Scene& scene = document().scene();
    if (scene.default_query || !scene.query || *scene.query >= tokens) return std::nullopt;
    return static_cast<int>(*scene.query);
  }

  void draw_toolbar() {
    ImGui::AlignTextToFramePadding();
    ImGui::TextColored(theme::quiet, "layer %d", document().scene().layer);
    ImGui::SameLine(0, 12);
    head_combo(editor(), 124);
    same_line_if_fits(190);
    detail_kernel_combo(editor(), detail_kernel(document()), 186);
    same_line_if_fits(190);
    forced_choice(editor());
    if (weights_ == nullptr || !second_) return;
    same_line_if_fits(230);
    static constexpr std::array<const char*, 5> pairs = {"all", "A→A", "A→B", "B→A", "B→B"};
    const int chosen = segmented("pairs", pairs, static_cast<int>(document().view.pairs));
    if (chosen >= 0) {
      change_view(editor(), "Token pairs",
                  [&](ViewOptions& view) { view.pairs = static_cast<TokenPairs>(chosen); });
    }
  }

  // A square for every head: hovered it shows that head alone, clicked it goes or comes, double-clicked it
  // stays alone or all come back.
  void draw_heads() {
    hovered_head_.reset();
    const auto count = static_cast<int>(weights_->weights.extent(0));
    ImDrawList* list = ImGui::GetWindowDrawList();
    ImGui::PushFont(graphics().fonts().mono, 11.0f);
    const float room = ImGui::GetContentRegionAvail().x;
    const float side = std::clamp(room / static_cast<float>(count) - 3, 12.0f, 26.0f);
    for (int head = 0; head < count; ++head) {
      if (head > 0) same_line_if_fits(side, 3);
      ImGui::PushID(head);
      const ImVec2 at = ImGui::GetCursorScreenPos();
      if (ImGui::InvisibleButton("head", {side, 18})) {
        if (ImGui::GetIO().MouseClickedLastCount[0] >= 2) {
          isolate_head(editor(), head);
        } else {
          toggle_head(editor(), head);
        }
      }
      const bool on = std::ranges::count(heads_, head) > 0;
      if (ImGui::IsItemHovered()) {
        hovered_head_ = head;
        ImGui::SetTooltip("head %d\nclick: show or hide; double-click: alone, or all", head);
      }
      list->AddRectFilled(at, {at.x + side, at.y + 18}, head_colour(head, on ? brightness() : 0.18f), 2.0f);
      const std::string text = fmt::format("{}", head);
      list->AddText({at.x + (side - ImGui::CalcTextSize(text.c_str()).x) / 2, at.y + 3},
                    on ? theme::packed(theme::ink_on(
                             head_colours[static_cast<std::size_t>(head) % head_colours.size()]))
                       : theme::packed(theme::quiet),
                    text.c_str());
      ImGui::PopID();
    }
    ImGui::PopFont();
  }

  // The heads whose lines are drawn now.
  bool head_lit(int head) const {
    return hovered_head_ ? head == *hovered_head_ : std::ranges::count(heads_, head) > 0;
  }

  void draw_sentence() {
    const auto tokens = static_cast<int>(run_->tokens.size());
    const std::optional<int> query = lit_query();
    std::string note = fmt::format("opacity: weight over {}, the largest shown",
                                   number_text(static_cast<double>(lines_.strongest), 3));
    if (!query && !hovered_key_ && lines_.left > 0)
      note += fmt::format("; the {} strongest of {} lines", lines_.lines.size(),
                          static_cast<std::int64_t>(lines_.lines.size()) + lines_.left);
    if (weights_->derived_signed) note = "|w|, derived and signed; " + note;
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    ellipsis_text(note, ImGui::GetContentRegionAvail().x,
                  weights_->derived_signed ? theme::amber : theme::quiet);
    ImGui::PopFont();

    if (!ImGui::BeginChild("lines", {0, 0}, ImGuiChildFlags_None)) {
      ImGui::EndChild();
      return;
    }
    const ImVec2 from = ImGui::GetCursorScreenPos();
    const float width = ImGui::GetContentRegionAvail().x;
    const float word = std::clamp(width * 0.2f, 60.0f, 130.0f);
    const float bars = std::clamp(width * 0.25f, 60.0f, 220.0f);
    const float left = from.x + word, right = from.x + width - word - bars;
    const float top = ImGui::GetWindowPos().y, bottom = top + ImGui::GetWindowHeight();
    const int first = std::clamp(static_cast<int>((top - from.y) / row_height), 0, tokens);
    const int last = std::clamp(static_cast<int>((bottom - from.y) / row_height) + 1, 0, tokens);
    const auto y_of = [&](int token) { return from.y + (static_cast<float>(token) + 0.5f) * row_height; };
    const std::optional<int> key = std::exchange(hovered_key_, std::nullopt);
    ImGui::PushFont(graphics().fonts().mono, theme::size_small);
    ImDrawList* list = ImGui::GetWindowDrawList();
    for (int token = first; token < last; ++token) {
      draw_word(list, token, {from.x, y_of(token)}, word, true, query == token);
      draw_word(list, token, {right, y_of(token)}, word, false, key == token);
    }
    draw_lines(list, query, key, left, right, {top, bottom}, y_of);
    draw_bars(list, query.value_or(static_cast<int>(query_of(document()))), first, last, right + word, bars,
              y_of);
    ImGui::PopFont();
    ImGui::SetCursorScreenPos(from);
    ImGui::Dummy({width, row_height * static_cast<float>(tokens)});
    ImGui::EndChild();
  }

  void draw_word(ImDrawList* list, int token, ImVec2 at, float width, bool is_query, bool lit) {
    ImGui::SetCursorScreenPos({at.x, at.y - row_height / 2});
    ImGui::PushID(token);
    const bool clicked = ImGui::InvisibleButton(is_query ? "query" : "key", {width - 4, row_height});
    ImGui::PopID();
    const bool hovered = ImGui::IsItemHovered();
    const Scene& scene = document().scene();
    const bool chosen = is_query ? !scene.default_query && scene.query == token : scene.key == token;
    if (hovered) {
      if (is_query) {
        editor().hover(token);
      } else {
        hovered_key_ = token;
      }
    }
    if (clicked && is_query) chosen ? select_default_query(editor()) : select_query(editor(), token);
    if (clicked && !is_query)
      select_key(editor(), chosen ? std::nullopt : std::optional<std::int64_t>(token));
    if (hovered || lit)
      list->AddRectFilled({at.x, at.y - row_height / 2}, {at.x + width - 4, at.y + row_height / 2},
                          theme::packed(theme::raised_more), 2.0f);
    const TokenInfo& info = run_->tokens[static_cast<std::size_t>(token)];
    const std::string text = fitted(with_known_glyphs(info.text), width - 14);
    const float text_width = ImGui::CalcTextSize(text.c_str()).x;
    const float x = is_query ? at.x + width - 10 - text_width : at.x + 6;
    const ImVec4& ink = chosen ? theme::accent : info.special ? theme::quiet : theme::text;
    list->AddText({x, at.y - ImGui::GetTextLineHeight() / 2}, theme::packed(ink), text.c_str());
  }

  template <typename Place>
  void draw_lines(ImDrawList* list, std::optional<int> query, std::optional<int> key, float left, float right,
                  std::pair<float, float> visible, const Place& y_of) {
    if (!(lines_.strongest > 0)) return;
    const auto line = [&](const TokenLine& each) {
      const float from = y_of(each.query), to = y_of(each.key);
      if (std::max(from, to) < visible.first || std::min(from, to) > visible.second) return;
      const float share = std::min(each.weight / lines_.strongest, 1.0f);
      if (share < 0.01f) return;
      list->AddLine({left, from}, {right - 2, to}, head_colour(each.head, share * brightness()), 1.5f);
    };
    if (!query && !key) {
      for (const TokenLine& each : lines_.lines) {
        if (head_lit(each.head)) line(each);
      }
      return;
    }
    // One token's lines are all drawn: there are few.
    const auto tokens = static_cast<int>(run_->tokens.size());
    for (int head = 0; head < static_cast<int>(weights_->weights.extent(0)); ++head) {
      if (!head_lit(head)) continue;
      const std::span<const float> matrix = weights_->weights.slice(head);
      for (int other = 0; other < tokens; ++other) {
        const int row = query ? *query : other, column = query ? other : *key;
        if (!pair_shown(document().view.pairs, second_, row, column)) continue;
        const auto cell = static_cast<std::size_t>(row) * static_cast<std::size_t>(tokens) +
                          static_cast<std::size_t>(column);
        line({row, column, head, std::abs(matrix[cell])});
      }
    }
  }

  // The query's row, heads fused: a bar beside every key, its number where it fits.
  template <typename Place>
  void draw_bars(ImDrawList* list, int query, int first, int last, float left, float width,
                 const Place& y_of) {
    const std::vector<double> row = row_weights(*weights_, document().scene().head, query);
    double high = 0;
    for (const double value : row) high = std::max(high, std::abs(value));
    if (!(high > 0)) return;
    const float number = 58, bar = width - number;
    const Colour colour = theme::kernel(weights_->kernel.name);
    for (int token = first; token < last && token < static_cast<int>(row.size()); ++token) {
      const double value = row[static_cast<std::size_t>(token)];
      const float y = y_of(token);
      list->AddRectFilled({left, y - 5},
                          {left + std::max(1.0f, bar * static_cast<float>(std::abs(value) / high)), y + 5},
                          theme::packed(colour, brightness() * (value < 0 ? 0.45f : 1.0f)), 1.0f);
      list->AddText({left + bar + 6, y - ImGui::GetTextLineHeight() / 2}, theme::packed(theme::quiet),
                    number_text(value, 3).c_str());
    }
  }

  // A picture's patches are too many for words: the query's row under every head that is shown.
  void draw_rows_of_picture() {
    const std::int64_t query = query_of(document());
    wrapped_small_text(
        graphics(),
        fmt::format("What {} looks at, head by head, token after token; lines are drawn for sentences.",
                    token_name(*run_, query)));
    const ImVec2 from = ImGui::GetCursorScreenPos();
    const ImVec2 room = ImGui::GetContentRegionAvail();
    const float height = std::clamp(room.y / static_cast<float>(heads_.size()) - 5, 12.0f, 60.0f);
    float y = from.y;
    for (const int head : heads_) {
      FeatureStrip strip;
      strip.name = fmt::format("head {}", head);
      strip.values = row_weights(*weights_, {.head = head}, query);
      ImGui::PushID(head);
      std::optional<int> marked;
      if (editor().hovered_token()) marked = static_cast<int>(*editor().hovered_token());
      const ImVec4 colour = ImGui::ColorConvertU32ToFloat4(head_colour(head, 1));
      const auto input =
          draw_strip("row", graphics(), strip, {from.x, y}, {room.x, height}, marked, colour, brightness());
      ImGui::PopID();
      if (input.hovered) {
        editor().hover(*input.hovered);
        ImGui::SetTooltip("%s\nhead %d: weight %s", token_name(*run_, *input.hovered).c_str(), head,
                          number_text(strip.values[static_cast<std::size_t>(*input.hovered)], 4).c_str());
      }
      if (input.clicked) select_key(editor(), *input.clicked);
      y += height + 5;
    }
  }

  std::vector<std::shared_ptr<const RunResult>> keep_;
  const RunResult* run_ = nullptr;         // one of keep_
  const WeightsResult* weights_ = nullptr; // of run_
  std::vector<int> heads_;                 // that are shown
  std::optional<int> second_;              // where the second sentence begins
  TokenLines lines_;
  std::optional<int> hovered_head_, hovered_key_;
};

} // namespace

std::unique_ptr<Panel> make_tokens_panel(PanelServices services) {
  return std::make_unique<TokensPanel>(services);
}

} // namespace hydrascope::app
