// One schedule's monotonicity, or what lies between the two: Spearman's ρ of every head, and one head's
// weights against q·k/√d.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "app/panels/heads/head_table_view.h"
#include "app/panels/panel.h"
#include "app/views/scatter_view.h"
#include "engine/run/quantities/weights.h"

namespace hydrascope::app {

// What the panel asks of a run for the schedule that the document shows.
void ask_monotonicity(const Document& document, bool one_of_two, Requested& requested);
// The kernel whose weights are shown: the layer's own, or the compared one where that is softmax itself and
// nothing else is compared.
KernelSpec monotonicity_kernel(const Document& document, bool one_of_two);

class MonotonicityColumn {
public:
  explicit MonotonicityColumn(PanelServices services) : services_(services) {}

  void prepare(const Snapshot& snapshot);
  // Of ρ; a scatter has no difference.
  void subtract(const MonotonicityColumn& a, const MonotonicityColumn& b);

  bool empty() const { return run_ == nullptr || !error_.empty(); }
  const std::string& error() const { return error_; } // why there is nothing
  std::optional<HeadIndex> draw(float brightness);    // the head under the pointer
  Figure figure() const;

private:
  Editor& editor() const { return *services_.editor; }
  Graphics& graphics() const { return *services_.graphics; }

  void prepare_table(const Snapshot& snapshot);
  void draw_facts();
  void draw_table(ImVec2 from, ImVec2 room);
  void draw_scatter(ImVec2 from, ImVec2 room);

  PanelServices services_;
  std::shared_ptr<const RunResult> run_;
  std::shared_ptr<const WeightsResult> weights_; // null: of a difference
  int head_ = 0;
  ScatterView view_;
  DrawnFigure scatter_;
  std::string error_;
  HeadTableView table_;
  std::string caption_; // of table_
  float brightness_ = 1;
  std::optional<HeadIndex> pointed_;
};

} // namespace hydrascope::app
