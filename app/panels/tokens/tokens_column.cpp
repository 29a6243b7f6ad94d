#include "app/panels/tokens/tokens_column.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "app/document/edits.h"
#include "app/panels/choices.h"
#include "app/panels/map_views.h"
#include "app/panels/side_columns.h"
#include "app/ui/widgets.h"
#include "engine/base/error_message.h"
#include "engine/figures/scale.h"

namespace hydrascope::app {

namespace {

constexpr float token_row = 18;
constexpr std::size_t most_lines = 6000; // drawn at once

// Colour-blind-safe colours by Tol. They repeat after 12 heads; the number of the head is always beside its
// colour.
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

const Colour& colour_of_head(int head) {
  return head_colours[static_cast<std::size_t>(head) % head_colours.size()];
}

ImU32 head_colour(int head, float opacity) { return theme::packed(colour_of_head(head), opacity); }

// Red: A's weight is larger; blue: B's is.
Colour difference_colour(bool positive) {
  return positive ? Colour{0.84f, 0.38f, 0.30f, 1} : Colour{0.26f, 0.58f, 0.76f, 1};
}

ImVec4 as_vector(const Colour& colour) { return {colour.red, colour.green, colour.blue, 1}; }

} // namespace

WeightsKey TokensColumn::key(const Document& document) {
  const Scene& scene = document.scene();
  WeightsKey key{.layer = scene.layer,
                 .kernel = detail_kernel(document),
                 .teacher_forced = document.view.teacher_forced};
  // Of a long text one row, too: all would be more than fits a panel, and memory.
  if (document.kind == InputKind::image || likely_tokens(document) > most_tokens_whole)
    key.rows = {row_query(scene)};
  return key;
}

void TokensColumn::prepare(const Snapshot& snapshot) {
  const Document& document = *snapshot.document;
  difference_ = false;
  error_.clear();
  if (snapshot.shown().any() == nullptr) {
    shown_ = {};
    return;
  }
  const auto found = find(snapshot.shown(), key(document));
  if (!found) return; // keep the last weights
  run_ = found.run;
  shown_ = shown_weights(run_, *found.result, document.view.tokens);
  const std::int64_t queries = queries_alone(run_->model);
  first_key_ = queries > 0 ? shown_index(shown_.tokens, queries).value_or(0) : 0;
  set_lines(document);
}

void TokensColumn::subtract(const TokensColumn& a, const TokensColumn& b) {
  shown_ = {};
  error_.clear();
  difference_ = true;
  if (a.empty() || b.empty()) return;
  if (same_values(a.shown_.weights->weights, b.shown_.weights->weights)) {
    error_ = same_note;
    return;
  }
  try {
    shown_.tokens = a.shown_.tokens;
    shown_.weights = std::make_shared<WeightsResult>(subtract_weights(*a.shown_.weights, *b.shown_.weights));
  } catch (const std::exception& reason) {
    error_ = error_message(reason);
    return;
  }
  run_ = a.run_;
  heads_ = a.heads_;
  first_key_ = a.first_key_;
  second_ = a.second_;
  lines_ = run_->rows > 0 ? TokenLines{}
                          : strongest_lines(*shown_.weights, heads_, a.lines_.pairs, second_, most_lines);
}

void TokensColumn::set_lines(const Document& document) {
  heads_ = shown_heads(document.scene().head, static_cast<int>(shown_.weights->weights.extent(0)));
  if (run_->rows > 0) {
    second_.reset();
    lines_ = {};
    return;
  }
  second_ = shown_index(shown_.tokens, second_sentence(*run_));
  lines_ = strongest_lines(*shown_.weights, heads_, document.view.pairs, second_, most_lines);
}

std::int64_t TokensColumn::query_token(const Document& document) const {
  return row_query(document.scene(), *run_);
}

// The query whose lines alone are shown: the hovered one, otherwise the selected one.
std::optional<int> TokensColumn::lit_query(const Editor& editor) const {
  if (hovered_key_) return std::nullopt;
  if (const auto hovered = shown_index(shown_.tokens, editor.hovered_token())) return hovered;
  const Scene& scene = editor.document().scene();
  return scene.default_query ? std::nullopt : shown_index(shown_.tokens, scene.query);
}

bool TokensColumn::head_lit(int head) const {
  return hovered_head_ ? head == *hovered_head_ : std::ranges::count(heads_, head) > 0;
}

void TokensColumn::draw(Editor& editor, Graphics& graphics, float brightness) {
  const Frame frame{editor, graphics, brightness, ImGui::GetWindowDrawList()};
  draw_heads(frame);
  if (run_->rows > 0) {
    draw_rows_of_picture(frame);
  } else {
    draw_sentence(frame);
  }
}

Figure TokensColumn::figure(const Document& document) const {
  Figure figure;
  const std::int64_t query = query_token(document);
  figure.title = fmt::format("{} · layer {} · {} · {}", run_->model.name, shown_.weights->layer,
                             difference_ ? side_name(Shown::difference) : shown_.weights->kernel.label(),
                             document.scene().head.text());
  figure.subtitle = "what " + token_name(*run_, query) + " looks at";
  const auto row = shown_index(shown_.tokens, query);
  BarsPanel panel;
  panel.x_label = difference_ ? difference_label("attention weight") : "attention weight";
  if (row) panel.values = row_weights(*shown_.weights, document.scene().head, *row);
  panel.values.erase(panel.values.begin(),
                     panel.values.begin() + std::min<std::ptrdiff_t>(first_key_, std::ssize(panel.values)));
  for (std::size_t key = 0; key < panel.values.size(); ++key) {
    const std::size_t token = key + static_cast<std::size_t>(first_key_);
    panel.labels.push_back(run_->rows > 0 ? token_name(*run_, shown_.tokens[token].first)
                                          : shown_.tokens[token].text);
  }
  if (panel.values.empty()) return figure; // the kernel lacks the head
  figure.panels.emplace_back(std::move(panel));
  return figure;
}

// A square for each head. Hovering shows that head alone, a click toggles it, a double-click shows it alone
// or all again.
void TokensColumn::draw_heads(const Frame& frame) {
  hovered_head_.reset();
  const auto count = static_cast<int>(shown_.weights->weights.extent(0));
  ImGui::PushFont(frame.graphics.fonts().mono, 11.0f);
  const float room = ImGui::GetContentRegionAvail().x;
  const float side = std::clamp(room / static_cast<float>(count) - 3, 12.0f, 26.0f);
  for (int head = 0; head < count; ++head) {
    if (head > 0) same_line_if_fits(side, 3);
    ImGui::PushID(head);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    if (ImGui::InvisibleButton("head", {side, 18})) {
      if (ImGui::GetIO().MouseClickedLastCount[0] >= 2) {
        isolate_head(frame.editor, head);
      } else {
        toggle_head(frame.editor, head);
      }
    }
    const bool on = std::ranges::count(heads_, head) > 0;
    if (ImGui::IsItemHovered()) {
      hovered_head_ = head;
      text_tooltip(fmt::format("head {}\nclick: show or hide; double-click: alone, or all", head));
    }
    frame.list->AddRectFilled(at, {at.x + side, at.y + 18}, head_colour(head, on ? frame.brightness : 0.18f),
                              2.0f);
    const std::string text = fmt::format("{}", head);
    frame.list->AddText({at.x + (side - ImGui::CalcTextSize(text.c_str()).x) / 2, at.y + 3},
                        on ? theme::packed(theme::ink_on(colour_of_head(head))) : theme::packed(theme::quiet),
                        text.c_str());
    ImGui::PopID();
  }
  ImGui::PopFont();
}

float TokensColumn::Lines::y_of(int row) const {
  return from_y + (static_cast<float>(row) + 0.5f) * token_row;
}

void TokensColumn::draw_sentence(const Frame& frame) {
  const auto tokens = static_cast<int>(shown_.tokens.size());
  const int queries = first_key_ > 0 ? first_key_ : tokens, keys = tokens - first_key_;
  const int rows = std::max(queries, keys);
  const std::optional<int> query = lit_query(frame.editor);
  const bool derived = shown_.weights->derived_signed && !difference_;
  std::string note = fmt::format("a line as strong as its weight, at most {}",
                                 number_text(static_cast<double>(lines_.strongest)));
  if (!query && !hovered_key_ && lines_.left_out > 0)
    note += fmt::format("; the {} strongest of {} lines", lines_.lines.size(),
                        static_cast<std::int64_t>(lines_.lines.size()) + lines_.left_out);
  if (derived) note = "absolute weights, which are signed; " + note;
  if (difference_) note = "red: A is larger, blue: B is; " + note;
  ImGui::PushFont(frame.graphics.fonts().regular, theme::size_small);
  ellipsis_text(note, ImGui::GetContentRegionAvail().x, derived ? theme::amber : theme::quiet);
  ImGui::PopFont();

  if (!ImGui::BeginChild("lines", {0, 0}, ImGuiChildFlags_None)) {
    ImGui::EndChild();
    return;
  }
  const ImVec2 top = ImGui::GetCursorScreenPos();
  const auto row = query ? query : shown_index(shown_.tokens, query_token(frame.editor.document()));
  ImGui::PushFont(frame.graphics.fonts().regular, theme::size_small);
  const ImVec2 from{top.x, top.y + ImGui::GetTextLineHeightWithSpacing()}; // below the bars' heading
  const float width = ImGui::GetContentRegionAvail().x;
  if (row)
    right_aligned(ImGui::GetWindowDrawList(), top.x + width, top.y, theme::packed(theme::quiet),
                  fitted("weights of " + shown_.tokens[static_cast<std::size_t>(*row)].text, width / 2));
  ImGui::PopFont();
  const float word = std::clamp(width * 0.2f, 60.0f, 130.0f);
  const float bars = std::clamp(width * 0.25f, 60.0f, 220.0f);
  Lines lines{};
  lines.left = from.x + word;
  lines.right = from.x + width - word - bars;
  lines.from_y = from.y;
  lines.view_top = ImGui::GetWindowPos().y;
  lines.view_bottom = lines.view_top + ImGui::GetWindowHeight();
  lines.first = std::clamp(static_cast<int>((lines.view_top - from.y) / token_row), 0, rows);
  lines.last = std::clamp(static_cast<int>((lines.view_bottom - from.y) / token_row) + 1, 0, rows);
  const std::optional<int> key = std::exchange(hovered_key_, std::nullopt);
  ImGui::PushFont(frame.graphics.fonts().mono, theme::size_small);
  const Frame inside{frame.editor, frame.graphics, frame.brightness, ImGui::GetWindowDrawList()};
  for (int line = lines.first; line < lines.last; ++line) {
    const int token = first_key_ + line;
    if (line < queries) draw_word(inside, line, {from.x, lines.y_of(line)}, word, true, query == line);
    if (line < keys) draw_word(inside, token, {lines.right, lines.y_of(line)}, word, false, key == token);
  }
  draw_lines(inside, query, key, lines);
  if (row) draw_bars(inside, *row, lines, lines.right + word, bars);
  ImGui::PopFont();
  ImGui::SetCursorScreenPos(top);
  ImGui::Dummy({width, from.y - top.y + token_row * static_cast<float>(rows)});
  ImGui::EndChild();
}

void TokensColumn::draw_word(const Frame& frame, int token, ImVec2 at, float width, bool is_query, bool lit) {
  const ShownToken& shown = shown_.tokens[static_cast<std::size_t>(token)];
  const auto is = [&](std::optional<std::int64_t> chosen) {
    return chosen && *chosen >= shown.first && *chosen < shown.first + shown.count;
  };
  ImGui::SetCursorScreenPos({at.x, at.y - token_row / 2});
  ImGui::PushID(token);
  const bool clicked = ImGui::InvisibleButton(is_query ? "query" : "key", {width - 4, token_row});
  ImGui::PopID();
  const bool hovered = ImGui::IsItemHovered();
  const Scene& scene = frame.editor.document().scene();
  const bool chosen = is_query ? !scene.default_query && is(scene.query) : is(scene.key);
  if (hovered) {
    if (is_query) {
      frame.editor.hover(shown.first, shown.count);
    } else {
      hovered_key_ = token;
    }
  }
  if (clicked && is_query)
    chosen ? select_default_query(frame.editor) : select_query(frame.editor, shown.first);
  if (clicked && !is_query)
    select_key(frame.editor, chosen ? std::nullopt : std::optional<std::int64_t>(shown.first));
  if (hovered || lit)
    frame.list->AddRectFilled({at.x, at.y - token_row / 2}, {at.x + width - 4, at.y + token_row / 2},
                              theme::packed(theme::raised_more), 2.0f);
  const bool special = run_->tokens[static_cast<std::size_t>(shown.first)].special;
  const std::string text = fitted(with_known_glyphs(shown.text), width - 14);
  const float text_width = ImGui::CalcTextSize(text.c_str()).x;
  const float x = is_query ? at.x + width - 10 - text_width : at.x + 6;
  const ImVec4& ink = chosen ? theme::accent : special ? theme::quiet : theme::text;
  frame.list->AddText({x, at.y - ImGui::GetTextLineHeight() / 2}, theme::packed(ink), text.c_str());
}

void TokensColumn::draw_lines(const Frame& frame, std::optional<int> query, std::optional<int> key,
                              const Lines& lines) const {
  if (!(lines_.strongest > 0)) return;
  const Array& weights = shown_.weights->weights;
  const auto tokens = static_cast<int>(shown_.tokens.size());
  const auto weight_of = [&](int row, int column, int head) {
    return weights.slice(head)[static_cast<std::size_t>(row) * static_cast<std::size_t>(tokens) +
                               static_cast<std::size_t>(column)];
  };
  const auto line = [&](const TokenLine& each) {
    const float from = lines.y_of(each.query), to = lines.y_of(row_of_key(each.key));
    if (std::max(from, to) < lines.view_top || std::min(from, to) > lines.view_bottom) return;
    const float share = std::min(each.weight / lines_.strongest, 1.0f);
    if (share < 0.01f) return;
    const Colour colour = difference_ ? difference_colour(weight_of(each.query, each.key, each.head) > 0)
                                      : colour_of_head(each.head);
    frame.list->AddLine({lines.left, from}, {lines.right - 2, to},
                        theme::packed(colour, share * frame.brightness), 1.5f);
  };
  if (!query && !key) {
    for (const TokenLine& each : lines_.lines) {
      if (head_lit(each.head)) line(each);
    }
    return;
  }
  // All lines of one token are drawn: there are few.
  for (int head = 0; head < static_cast<int>(weights.extent(0)); ++head) {
    if (!head_lit(head)) continue;
    for (int other = 0; other < tokens; ++other) {
      const int row = query ? *query : other, column = query ? other : *key;
      if (!pair_shown(lines_.pairs, second_, row, column)) continue;
      line({row, column, head, std::abs(weight_of(row, column, head))});
    }
  }
}

// The query's row, heads fused: a bar and a number beside each key.
void TokensColumn::draw_bars(const Frame& frame, int query, const Lines& lines, float left,
                             float width) const {
  const std::vector<double> row = row_weights(*shown_.weights, frame.editor.document().scene().head, query);
  double high = 0;
  for (const double value : row) high = std::max(high, std::abs(value));
  if (!(high > 0)) return;
  const int decimals = decimals_of(high);
  const float number = 58, bar = width - number;
  const Colour own = theme::kernel(shown_.weights->kernel.name);
  for (int line = lines.first; line < lines.last && first_key_ + line < std::ssize(row); ++line) {
    const int key = first_key_ + line;
    const double value = row[static_cast<std::size_t>(key)];
    const float y = lines.y_of(line);
    const Colour colour = difference_ ? difference_colour(value > 0) : own;
    const float faded = value < 0 && !difference_ ? 0.45f : 1.0f;
    frame.list->AddRectFilled(
        {left, y - 5}, {left + std::max(1.0f, bar * static_cast<float>(std::abs(value) / high)), y + 5},
        theme::packed(colour, frame.brightness * faded), 1.0f);
    right_aligned(frame.list, left + width, y - ImGui::GetTextLineHeight() / 2, theme::packed(theme::quiet),
                  decimal_text(value, decimals));
  }
}

// For pictures, which have too many patches for lines: the query's row of each shown head.
void TokensColumn::draw_rows_of_picture(const Frame& frame) {
  const std::int64_t query = query_token(frame.editor.document());
  wrapped_small_text(
      frame.graphics,
      fmt::format(
          "The weights of {} on all tokens, a row for each head. For sentences, lines join the tokens.",
          token_name(*run_, query)));
  const ImVec2 from = ImGui::GetCursorScreenPos();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float height = std::clamp(room.y / static_cast<float>(heads_.size()) - 5, 12.0f, 60.0f);
  float y = from.y;
  for (const int head : heads_) {
    FeatureStrip strip;
    strip.name = fmt::format("head {}", head);
    strip.values = row_weights(*shown_.weights, {.head = head}, query);
    ImGui::PushID(head);
    std::optional<int> marked;
    if (frame.editor.hovered_token()) marked = static_cast<int>(*frame.editor.hovered_token());
    const auto input = draw_strip("row", frame.graphics, strip, {from.x, y}, {room.x, height}, marked,
                                  as_vector(colour_of_head(head)), frame.brightness);
    ImGui::PopID();
    if (input.hovered) {
      frame.editor.hover(*input.hovered);
      text_tooltip(fmt::format("{}\nhead {}: weight {}", token_name(*run_, *input.hovered), head,
                               number_text(strip.values[static_cast<std::size_t>(*input.hovered)])));
    }
    if (input.clicked) select_key(frame.editor, *input.clicked);
    y += height + 5;
  }
}

} // namespace hydrascope::app
