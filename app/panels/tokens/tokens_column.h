// The weights of one side, or the difference: lines from queries to keys, and the query's row as bars.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/panels/panel.h"
#include "app/views/selection.h"
#include "app/views/weights_view.h"
#include "engine/run/quantities/weights.h"

namespace hydrascope::app {

class TokensColumn {
public:
  // The weights that are shown; for a picture only the query's row.
  static WeightsKey key(const Document& document);
  void prepare(const Snapshot& snapshot);
  void subtract(const TokensColumn& a, const TokensColumn& b);

  bool empty() const { return shown_.weights == nullptr; }
  const std::string& error() const { return error_; } // why it is empty
  bool has_pairs() const { return second_.has_value(); }
  void draw(Editor& editor, Graphics& graphics, float brightness);
  // The query's row as bars.
  Figure figure(const Document& document) const;

private:
  // The arguments of draw().
  struct Frame {
    Editor& editor;
    Graphics& graphics;
    float brightness;
    ImDrawList* list;
  };
  // The positions of the tokens, and those in view.
  struct Lines {
    float left, right, top, from_y;
    float view_top, view_bottom;
    int first, last; // rows
    float y_of(int row) const;
  };

  void set_lines(const Document& document);
  std::int64_t query_token(const Document& document) const; // in the run
  std::optional<int> lit_query(const Editor& editor) const;
  int row_of_key(int token) const { return token - first_key_; }
  bool head_lit(int head) const;
  void draw_heads(const Frame& frame);
  void draw_sentence(const Frame& frame);
  void draw_word(const Frame& frame, int token, ImVec2 at, float width, bool is_query, bool lit);
  void draw_lines(const Frame& frame, std::optional<int> query, std::optional<int> key,
                  const Lines& lines) const;
  void draw_bars(const Frame& frame, int query, const Lines& lines, float left, float width) const;
  void draw_rows_of_picture(const Frame& frame);

  std::shared_ptr<const RunResult> run_;
  ShownWeights shown_;
  std::string error_;
  bool difference_ = false;
  std::vector<int> heads_;    // shown heads
  int first_key_ = 0;         // of cross-attention, whose queries are the shown tokens before it
  std::optional<int> second_; // the first shown token of the second sentence
  TokenLines lines_;
  std::optional<int> hovered_head_, hovered_key_;
};

} // namespace hydrascope::app
