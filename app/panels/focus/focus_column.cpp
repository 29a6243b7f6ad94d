#include "app/panels/focus/focus_column.h"

#include <cmath>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/document/edits.h"
#include "app/panels/choices.h"
#include "app/panels/side_columns.h"
#include "app/ui/widgets.h"
#include "engine/figures/scale.h"
#include "engine/run/quantities/focus_map.h"

namespace hydrascope::app {

namespace {

std::string untrained(const RunResult& run, int layer) {
  const auto index = static_cast<std::size_t>(layer);
  return index < run.layers.size() && run.layers[index].untrained ? "untrained" : "";
}

std::string joined(const std::string& first, const std::string& second) {
  return first.empty() || second.empty() ? first + second : first + ", " + second;
}

TokenMap recoloured(TokenMap map, const ViewOptions& view) {
  if (view.cividis && map.scale.map == ColourMap::viridis) map.scale.map = ColourMap::cividis;
  return map;
}

constexpr const char* not_an_explanation =
    "A weight is not an explanation: it says where a token looks, not what\n"
    "decided the prediction (Jain & Wallace 2019).";

std::string meaning_of(MapKind kind) {
  switch (kind) {
    case MapKind::attention:
      return std::string(
                 "The query's weights in this layer, heads fused as chosen. Of Hydra, which has a matrix\n"
                 "for each feature, their sum over the features of each head: implied weights.\n") +
             not_an_explanation;
    case MapKind::rollout:
      return std::string(
                 "The weights of all layers multiplied, each mixed half and half with the residual\n"
                 "stream (Abnar & Zuidema 2020). Neither values nor MLPs enter it.\n") +
             not_an_explanation;
    case MapKind::focus: break;
  }
  return "What each token contributes to the target through this layer's attention:\n"
         "its part of the output times the target's gradient (Hydra Attention, 2022, Eq. 15–17).";
}

std::string kernel_of(const RunResult& run, int layer) {
  const auto index = static_cast<std::size_t>(layer);
  return index < run.layers.size() ? run.layers[index].kernel.label() : "";
}

} // namespace

void add_map_keys(const Document& document, QuantityKeys& keys) {
  const Scene& scene = document.scene();
  const ViewOptions& view = document.view;
  keys.add(FocusKey{scene.layer}); // its run also has the query that the target reads
  const std::set<MapKind> maps = shown_maps(document);
  if (maps.contains(MapKind::attention)) {
    if (is_capture(scene)) {
      keys.add(
          AttentionRowKey{.layer = scene.layer,
                          .query = scene.default_query ? default_query(*scene.model->capture) : scene.query});
    } else if (scene.default_query) { // the run will use one of the two
      keys.add(AttentionRowKey{.layer = scene.layer, .query = row_query(scene)});
      keys.add(AttentionRowKey{.layer = scene.layer, .query = {}});
    } else {
      keys.add(AttentionRowKey{.layer = scene.layer, .query = scene.query});
    }
  }
  if (maps.contains(MapKind::rollout)) keys.add(rollout_key(scene.head, view.discard));
}

FocusOptions focus_options(const Document& document) {
  return {.normalise = Normalisation::max,
          .with_sign = document.view.with_sign,
          .look = document.view.look,
          .photograph = false,
          .tokens = document.view.tokens,
          .map = document.view.cividis ? ColourMap::cividis : ColourMap::magma};
}

std::optional<ColumnMap> find_column_map(const SideResults& results, const Document& document, MapKind kind) {
  const Scene& scene = document.scene();
  const bool capture = is_capture(scene);
  const auto found = find(results, FocusKey{scene.layer});
  if (!found && (!capture || results.any() == nullptr)) return std::nullopt;
  const RunResult& run = capture ? *results.any() : *found.run;
  ColumnMap column{.run = &run, .map = {}, .raw = {}, .flags = {}, .heads = {}};
  switch (kind) {
    case MapKind::focus:
      column.map = focus_map(run, *found.result, focus_options(document));
      column.raw = found.result->contributions.values;
      column.flags = untrained(run, scene.layer);
      return column;
    case MapKind::attention: {
      const bool by_default = !capture && scene.default_query && run.query == row_query(scene, run);
      const AttentionRowKey key{.layer = scene.layer,
                                .query = by_default ? std::optional(row_query(scene)) : run.query};
      const auto* row = find(results, key).result;
      if (row == nullptr) return std::nullopt;
      const HeadChoice head = existing_heads(scene.head, static_cast<int>(row->weights.extent(0)));
      column.map = recoloured(attention_map(run, *row, head, document.view.tokens), document.view);
      column.heads = head.text();
      column.flags = joined(attention_flags(*row, run.layers[static_cast<std::size_t>(scene.layer)].kernel),
                            untrained(run, scene.layer));
      return column;
    }
    case MapKind::rollout: {
      const auto* rollout = find(results, rollout_key(scene.head, document.view.discard)).result;
      if (rollout == nullptr) return std::nullopt;
      column.map = recoloured(rollout_map(run, *rollout, run.query, document.view.tokens), document.view);
      column.heads = scene.head.text();
      column.flags = rollout_flags(*rollout);
      return column;
    }
  }
  return std::nullopt;
}

void FocusColumn::prepare(const Snapshot& snapshot) {
  const Document& document = *snapshot.document;
  const SideResults& results = snapshot.shown();
  const Side side = edited_side(document.view);
  error_ = snapshot.one_of_two ? snapshot.named_failure(side) : snapshot.failure(side);
  auto found = find_column_map(results, document, kind_);
  newest_ = found.has_value();
  if (!newest_) {
    if (results.any() == nullptr) clear();
    return;
  }
  runs_ = results.parts;
  found_ = std::move(*found);
  set_caption(document, snapshot.one_of_two ? side_name(document.view.shown) : "", nullptr);
  show(document);
}

void FocusColumn::subtract(const FocusColumn& a, const FocusColumn& b, const Snapshot& snapshot) {
  const Document& document = *snapshot.document;
  error_ = snapshot.named_failure(a.error_.empty() ? Side::b : Side::a);
  if (!a.newest_ || !b.newest_) {
    if (a.found_.run == nullptr || b.found_.run == nullptr) clear();
    return;
  }
  runs_ = a.runs_;
  found_ = a.found_;
  found_.map = map_difference(std::move(found_.map), b.found_.map);
  if (!b.found_.flags.empty() && b.found_.flags != found_.flags)
    found_.flags += (found_.flags.empty() ? "" : " − ") + b.found_.flags;
  if (b.found_.heads != found_.heads) found_.heads += " − " + b.found_.heads;
  set_caption(document, document.view.shown == Shown::all ? side_name(Shown::difference) : "", b.found_.run);
  show(document);
}

void FocusColumn::clear() {
  picture_.clear();
  sentence_.clear();
  painted_ = {};
  figure_ = {};
  found_ = {};
  runs_.clear();
}

void FocusColumn::show(const Document& document) {
  const RunResult& run = *found_.run;
  const auto* image = document.scene().input ? std::get_if<ImageInput>(&*document.scene().input) : nullptr;
  if (image != nullptr) {
    if (!painted_.shows(*image, run)) painted_ = PaintedPicture(*image, run);
    image = &painted_.picture();
  } else {
    painted_ = {};
  }
  std::string title = side_.empty() ? "" : side_ + ", ";
  title += caption_;
  if (!kernel_.empty()) title += "\n" + kernel_;
  if (!found_.flags.empty()) title += (kernel_.empty() ? "\n" : ", ") + found_.flags;
  figure_ = {};
  figure_.title = map_title(run, image, document.scene().layer);
  figure_.subtitle = map_subtitle(run, kind_, run.query);
  figure_.panels = {map_panel(run, run.query, image, found_.map, title, document.view.look)};
  const auto* overlay = std::get_if<OverlayPanel>(&figure_.panels.front());
  const auto* tokens = std::get_if<TokensPanel>(&figure_.panels.front());
  if (found_.map.same) { // the note says so in place of the map
    picture_.clear();
    sentence_.clear();
  } else if (overlay != nullptr) {
    picture_.set(*overlay);
    sentence_.clear();
  } else if (tokens != nullptr) {
    sentence_.set(*tokens);
    picture_.clear();
  }
}

// `side`: empty if it is shown alone. `other`: B's run if it is subtracted.
void FocusColumn::set_caption(const Document& document, const std::string& side, const RunResult* other) {
  const RunResult& run = *found_.run;
  const ViewOptions& view = document.view;
  const int layer = document.scene().layer;
  const bool several = view.maps.size() > 1 || kind_ != MapKind::focus;
  narrow_ = !side.empty() || view.maps.size() > 1;
  side_ = side;
  kernel_ = kind_ == MapKind::rollout ? "" : kernel_of(run, layer);
  if (other != nullptr && kind_ != MapKind::rollout) {
    const std::string theirs = kernel_of(*other, layer);
    kernel_ = theirs != kernel_ ? kernel_ + " − " + theirs // else other layers differ
                                : run.schedule.summary() + " − " + other->schedule.summary();
  }
  caption_ = several ? map_name(kind_) : "";
  const auto append = [&](const std::string& more) { caption_ += (caption_.empty() ? "" : ", ") + more; };
  if (kind_ == MapKind::rollout) {
    append(fmt::format("layers 0–{}", static_cast<int>(run.layers.size()) - 1));
  } else {
    append(fmt::format("layer {}", layer));
  }
  if (kind_ != MapKind::focus) append(found_.heads);
  if (kind_ == MapKind::rollout && view.discard > 0) append(discard_text(view.discard));
  // The query stands in the toolbar, too.
  explained_.clear();
  if (kind_ == MapKind::focus) explained_.push_back("explaining: " + run.target);
  explained_.push_back("query " + query_name(run));
}

float FocusColumn::caption_height() const {
  return ImGui::GetTextLineHeightWithSpacing() + (narrow_ ? ImGui::GetTextLineHeight() : 0);
}

namespace {

// Less where it would take a large part of the map's width.
float bar_width(float column) {
  constexpr float narrow = 260;
  return column < narrow ? narrow_colour_bar_width : colour_bar_width;
}

} // namespace

ImVec2 FocusColumn::picture_within(ImVec2 size) const {
  if (picture_.empty()) return {};
  const float note = found_.map.note.empty() ? 0 : ImGui::GetTextLineHeightWithSpacing();
  return picture_.size_within({size.x - bar_width(size.x), size.y - caption_height() - note});
}

void FocusColumn::draw(ImVec2 size, float brightness) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  if (empty() && !has_empty_map()) { // no results yet, or an error
    ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + size.x);
    ImGui::TextColored(theme::quiet, "%s", error_.c_str());
    ImGui::PopTextWrapPos();
    return;
  }
  draw_caption(size.x);
  const float below = caption_height();
  if (empty()) {
    ImGui::SetCursorScreenPos({at.x, at.y + below});
    ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + size.x);
    ImGui::TextColored(theme::quiet, "%s", empty_reason().c_str());
    ImGui::PopTextWrapPos();
    return;
  }
  constexpr float least_map = 40; // where a note leaves less, it goes
  constexpr float least_room = 16;
  if (std::min(size.x - bar_width(size.x), size.y - below) < least_room)
    return ImGui::Dummy({0, 0}); // Dear ImGui wants an item after a cursor
  const float note_line = ImGui::GetTextLineHeightWithSpacing();
  const bool has_note = !found_.map.note.empty() && size.y - below - note_line > least_map;
  const float note_height = has_note ? note_line : 0;
  ImGui::SetCursorScreenPos({at.x, at.y + below});
  draw_map({size.x, size.y - below - note_height}, brightness);
  if (!has_note) return;
  ImGui::SetCursorScreenPos({at.x, at.y + size.y - note_height + 4});
  ImGui::PushFont(graphics().fonts().regular, theme::size_small);
  ellipsis_text(found_.map.note, size.x, theme::quiet);
  if (!found_.map.details.empty() && ImGui::IsItemHovered())
    text_tooltip(found_.map.note + "\n" + found_.map.details);
  ImGui::PopFont();
}

void FocusColumn::draw_map(ImVec2 size, float brightness) {
  const ImVec2 from = ImGui::GetCursorScreenPos();
  const float bar = bar_width(size.x);
  const ImVec2 canvas{size.x - bar, size.y};
  const float bar_height =
      std::clamp(picture_.empty() ? size.y - 20 : picture_.size_within(canvas).y, 40.0f, 400.0f);
  const auto prefix = static_cast<int>(found_.run->prefix_tokens);
  const auto cell_of = [&](std::optional<std::int64_t> token) {
    if (picture_.empty()) return shown_index(found_.map.shown, token);
    return token && *token >= prefix ? std::optional(static_cast<int>(*token) - prefix) : std::nullopt;
  };
  const auto query = cell_of(found_.run->query), hovered = cell_of(editor().hovered_token());
  CanvasInput input;
  if (!picture_.empty()) {
    input = picture_.draw(graphics(), from, canvas, query, hovered, brightness);
  } else if (ImGui::BeginChild("sentence", canvas)) { // a long text scrolls
    input = sentence_.draw(graphics(), ImGui::GetCursorScreenPos(), ImGui::GetContentRegionAvail(), query,
                           hovered, brightness);
  }
  if (picture_.empty()) ImGui::EndChild();
  float top = from.y + (size.y - bar_height) / 2, bottom = top + bar_height;
  // Beside the bars, whose axis it then is, unless they are scrolled out of view.
  if (const auto axis = sentence_.bars_axis();
      picture_.empty() && axis && axis->top >= from.y && axis->bottom <= from.y + size.y) {
    top = axis->top;
    bottom = axis->bottom;
  }
  Scale scale = found_.map.scale;
  scale.shared &= narrow_; // with the maps beside it
  colour_bar(graphics(), scale, {from.x + size.x - bar + 10, top}, bottom - top,
             picture_.empty() ? Backdrop::words : picture_.backdrop(), bar);
  handle_input(input);
}

void FocusColumn::draw_caption(float width) const {
  const ImVec2 from = ImGui::GetCursorScreenPos();
  const float height = ImGui::GetTextLineHeight(), end = from.x + width;
  float x = from.x, y = from.y;
  // Cut off at the end; the tooltip has everything.
  const auto write = [&](const std::string& text, const ImVec4& colour, float gap) {
    if (text.empty() || x + 24 > end) return;
    ImGui::SetCursorScreenPos({x, y});
    ellipsis_text(text, end - x, colour);
    x += ImGui::CalcTextSize(text.c_str()).x + gap;
  };
  const auto next_line = [&] {
    x = from.x;
    y += ImGui::GetTextLineHeight() + 2;
  };
  write(side_, theme::accent, 8);
  if (!kernel_.empty()) {
    kernel_square(ImGui::GetWindowDrawList(), {x + 6, from.y + height / 2}, 10,
                  kernel_.substr(0, kernel_.find_first_of(": ")));
    x += 18;
    ImGui::PushFont(graphics().fonts().strong, theme::size_text);
    write(kernel_, theme::text, 10);
    ImGui::PopFont();
  }
  // Warnings come first if there is little room.
  if (narrow_) {
    if (!found_.flags.empty() && x + 60 > end) next_line();
    write(found_.flags, theme::amber, 10);
    if (y == from.y && x > from.x) next_line();
    write(caption_, theme::quiet, 10);
  } else {
    write(caption_, theme::quiet, 10);
    write(found_.flags, theme::amber, 10);
  }
  const std::string explained = fitting_parts(explained_, end - x);
  if (ImGui::CalcTextSize(explained.c_str()).x <= end - x) write(explained, theme::quiet, 0);
  if (!ImGui::IsWindowHovered() || !ImGui::IsMouseHoveringRect(from, {end, y + height})) return;
  std::string tooltip = fmt::format("{}{}{}   {}{}{}\n{}\n\n{}", side_, side_.empty() ? "" : "   ", kernel_,
                                    caption_, found_.flags.empty() ? "" : "   ", found_.flags,
                                    fmt::join(explained_, "   "), meaning_of(kind_));
  if (!found_.map.details.empty()) tooltip += "\n\n" + found_.map.details;
  if (kind_ == MapKind::focus && found_.run->predictions.empty())
    tooltip += "\n\nEmbedding norm: half the squared norm of the mean-pooled embedding.";
  if (found_.flags.find("untrained") != std::string::npos)
    tooltip +=
        "\n\nUntrained: this kernel replaces softmax with the model's own weights;\n"
        "no adapter was trained for this schedule.";
  text_tooltip(tooltip);
}

// The tokens of a patch or a word.
ShownToken FocusColumn::token_at(int cell) const {
  const auto index = static_cast<std::size_t>(cell);
  const auto& shown = found_.map.shown;
  if (picture_.empty() && index < shown.size()) return shown[index];
  return {.first = cell + found_.run->prefix_tokens, .count = 1, .text = {}};
}

std::string FocusColumn::name_of(const ShownToken& token) const {
  return token.count > 1 ? fmt::format("“{}”", token.text) : token_name(*found_.run, token.first);
}

void FocusColumn::handle_input(const CanvasInput& input) {
  if (input.hovered) {
    const ShownToken token = token_at(*input.hovered);
    editor().hover(token.first, token.count);
    if (ImGui::IsMouseClicked(ImGuiMouseButton_Right)) menu_token_ = token;
    text_tooltip(fmt::format("{}\n{}\nclick: {}\n{}", name_of(token), value_text(token, *input.hovered),
                             is_query(token) ? "reset query" : "make it the query", hint_of(token)));
  } else if (ImGui::IsMouseClicked(ImGuiMouseButton_Right)) {
    menu_token_.reset();
  }
  if (!input.clicked) return;
  const ShownToken token = token_at(*input.clicked);
  if (ImGui::GetIO().KeyAlt) {
    hide_tokens(editor(), token.first, token.count, !is_hidden(document(), token.first));
  } else if (is_query(token)) {
    select_default_query(editor());
  } else {
    select_query(editor(), token.first);
  }
}

bool FocusColumn::is_query(const ShownToken& token) const {
  const Scene& scene = document().scene();
  return !scene.default_query && scene.query && *scene.query >= token.first &&
         *scene.query < token.first + token.count;
}

std::string FocusColumn::value_text(const ShownToken& token, int cell) const {
  const auto& values = found_.map.values.values;
  const auto index = static_cast<std::size_t>(cell);
  const std::string drawn =
      number_text(index < values.size() ? static_cast<double>(values[index]) : std::nan(""));
  if (kind_ != MapKind::focus) return found_.map.scale.label + " " + drawn;
  double raw = 0;
  for (const double part : shown_sums(std::span(&token, 1), found_.raw)) raw += part;
  return fmt::format("contribution {}, shown as {}", number_text(raw), drawn);
}

std::string FocusColumn::hint_of(const ShownToken& token) const {
  const std::string reason = why_not_hidden(editor(), token.first);
  if (!reason.empty()) return reason;
  const bool image = document().kind == InputKind::image;
  if (is_hidden(document(), token.first)) return "H or Alt+click: show it again";
  return image ? "H or Alt+click: replace with mean colour"
               : "H or Alt+click: mask it, so that no token attends to it";
}

} // namespace hydrascope::app
