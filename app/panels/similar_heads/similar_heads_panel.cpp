// The distances of all heads' weights from the selected head's, and a list of the nearest heads.
#include <fmt/format.h>

#include "app/document/edits.h"
#include "app/panels/heads/head_table.h"
#include "app/panels/map_views.h"
#include "app/panels/panel.h"
#include "app/panels/side_columns.h"
#include "app/ui/widgets.h"
#include "app/views/table_views.h"
#include "engine/base/error_message.h"

namespace hydrascope::app {

namespace {

constexpr std::size_t listed = 10;

std::optional<HeadIndex> selected_head(const Document& document) {
  const Scene& scene = document.scene();
  if (!scene.model || !scene.head.head) return std::nullopt;
  return HeadIndex{scene.layer, *scene.head.head};
}

// The distances of one side, or the difference.
struct SimilarHeadsColumn {
  HeadTableView view;
  std::vector<NearHead> near; // empty in a difference
  std::string caption, error;
  std::shared_ptr<const RunResult> run;       // null in a difference
  std::shared_ptr<const SimilarHeads> result; // null in a difference

  bool empty() const { return view.empty(); }
  void prepare(const Snapshot& snapshot);
  void subtract(const SimilarHeadsColumn& a, const SimilarHeadsColumn& b);
};

void SimilarHeadsColumn::prepare(const Snapshot& snapshot) {
  const auto head = selected_head(*snapshot.document);
  if (!head || snapshot.shown().any() == nullptr) {
    *this = {};
    return;
  }
  const auto found = find(snapshot.shown(), SimilarHeadsKey{*head});
  if (!found) return; // keep the last table
  run = found.run;
  result = found.owned();
  const SimilarHeads& similar = *result;
  const bool cosine = similar.metric == HeadMetric::cosine;
  std::vector<std::string> kernels;
  for (const LayerRun& layer : run->layers) kernels.push_back(layer.kernel.name);
  view.set(similar_heads_panel(*run, similar), std::move(kernels));
  view.unit = cosine ? "" : "nats";
  view.undefined = "undefined: this kernel, or the chosen head's, has another number of heads";
  near = nearest_heads(similar, listed);
  caption = fmt::format(
      "{} to layer {}, head {}; 0: equal; {}", distance_quantity(similar.metric), similar.head.layer,
      similar.head.head,
      cosine ? "of all weights, since some have signs" : "mean over query rows, natural logarithm");
}

void SimilarHeadsColumn::subtract(const SimilarHeadsColumn& a, const SimilarHeadsColumn& b) {
  *this = {};
  if (a.empty() || b.empty()) return;
  if (a.result->metric != b.result->metric) {
    error =
        "A's distances are divergences and B's are of the cosine, or the other way round: there is no "
        "difference to show.";
    return;
  }
  if (same_values(a.view.panel.values, b.view.panel.values)) {
    error = same_note;
    return;
  }
  try {
    HeatMapPanel difference = head_table_difference(a.view.panel, b.view.panel);
    difference.row_colours.clear();
    view.set(std::move(difference), {});
    view.unit = a.view.unit;
    caption = a.caption;
  } catch (const std::exception& reason) {
    error = error_message(reason);
  }
}

class SimilarHeadsPanel final : public Panel {
public:
  explicit SimilarHeadsPanel(PanelServices services) : Panel("similar", "Similar", services) {}
  bool exports() const override { return true; }

  void request(const Document& document, Requested& requested) const override {
    if (const auto head = selected_head(document)) requested.then.add(SimilarHeadsKey{*head});
  }

  void prepare(const Snapshot& snapshot) override { columns_.prepare(snapshot); }

  void draw() override {
    if (columns_.empty() && columns_.shown().front().error.empty()) {
      empty_notice(graphics(),
                   selected_head(document())
                       ? "How alike all heads are to the selected one, once the model has run."
                       : "Choose one head: a click on a head table, or the Weights panel's list.");
      return;
    }
    columns_.draw(graphics(), [&](SimilarHeadsColumn& column) { draw_column(column); });
  }

  void draw_menu() override { menu_.draw(editor()); }

  std::optional<Figure> figure() const override {
    return columns_.figure([](const SimilarHeadsColumn& column) {
      if (column.run) return similar_heads_figure(*column.run, *column.result);
      Figure figure;
      figure.title = difference_label("Similar heads");
      figure.subtitle = column.caption;
      figure.panels.emplace_back(column.view.panel);
      return figure;
    });
  }

private:
  void draw_column(SimilarHeadsColumn& column) {
    if (column.empty()) {
      missing_notice(graphics(), column.error);
      return;
    }
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    ellipsis_text(column.caption, ImGui::GetContentRegionAvail().x, theme::quiet);
    ImGui::PopFont();
    const ImVec2 from = ImGui::GetCursorScreenPos();
    const ImVec2 room = ImGui::GetContentRegionAvail();
    constexpr float list_width = 184;
    const bool with_list = !column.near.empty() && room.x > 2 * list_width;
    const float table_width = with_list ? room.x - list_width - theme::grid : room.x;
    auto hovered = column.view.draw(editor(), graphics(), from, {table_width, room.y}, brightness());
    if (with_list) {
      const auto listed_head = draw_list(column, {from.x + room.x - list_width, from.y}, list_width);
      if (listed_head) hovered = listed_head;
    }
    menu_.set_hovered(hovered);
  }

  // Returns the head under the pointer.
  std::optional<HeadIndex> draw_list(const SimilarHeadsColumn& column, ImVec2 at, float width) {
    std::optional<HeadIndex> hovered;
    ImGui::PushFont(graphics().fonts().mono, theme::size_small);
    const float line = ImGui::GetTextLineHeight() + 4;
    ImDrawList* list = ImGui::GetWindowDrawList();
    for (std::size_t i = 0; i < column.near.size(); ++i) {
      const NearHead& near = column.near[i];
      const ImVec2 row{at.x, at.y + static_cast<float>(i) * line};
      ImGui::SetCursorScreenPos(row);
      ImGui::PushID(static_cast<int>(i));
      if (ImGui::InvisibleButton("near", {width, line}))
        select_cell(editor(), near.head.layer, near.head.head);
      ImGui::PopID();
      if (ImGui::IsItemHovered()) {
        hovered = near.head;
        editor().hover_head(near.head);
        list->AddRectFilled(row, {row.x + width, row.y + line}, theme::packed(theme::raised_more), 2.0f);
      }
      kernel_square(list, {row.x + 6, row.y + line / 2}, 7,
                    column.view.kernels.at(static_cast<std::size_t>(near.head.layer)), brightness());
      list->AddText({row.x + 16, row.y + 2}, theme::packed(theme::text),
                    fmt::format("layer {:>2} head {:>2}", near.head.layer, near.head.head).c_str());
      right_aligned(list, row.x + width - 4, row.y + 2, theme::packed(theme::quiet),
                    fmt::format("{:.3f}", near.distance));
    }
    ImGui::PopFont();
    return hovered;
  }

  SideColumns<SimilarHeadsColumn> columns_;
  HeadMenu menu_;
};

} // namespace

std::unique_ptr<Panel> make_similar_heads_panel(PanelServices services) {
  return std::make_unique<SimilarHeadsPanel>(services);
}

} // namespace hydrascope::app
