// A table with a number per head, layers × heads; a click selects the head.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/document/editor.h"
#include "app/ui/drawn_figure.h"
#include "engine/figures/figure.h"

namespace hydrascope::app {

// The numbers of all heads with one kernel.
struct KernelSpread {
  std::string kernel;
  std::vector<float> values; // ascending, without undefined ones

  float median() const { return values[values.size() / 2]; }
};
// The spreads of a table (layers × heads) with `kernels` by layer, in the order in which the kernels first
// occur.
std::vector<KernelSpread> kernel_spreads(const HeatMapPanel& panel, const std::vector<std::string>& kernels);

struct HeadTableView {
  HeatMapPanel panel;                // as it is exported; the note is not drawn
  std::vector<std::string> kernels;  // by layer, for the coloured squares; may be empty
  std::vector<KernelSpread> spreads; // drawn below if there is room; may be empty
  std::string unit;                  // "nats"; may be empty
  std::string undefined;             // reason for a cell without a number
  bool of_layers = false;            // one number per layer: a click selects the layer only

  void set(HeatMapPanel table, std::vector<std::string> layer_kernels);
  // Lets the scale end at `high`, as those beside it.
  void share(double high);
  void clear();
  bool empty() const { return panel.values.empty(); }
  // Crosses out muted heads. A click selects a head. Returns the head under the pointer.
  std::optional<HeadIndex> draw(Editor& editor, const Graphics& graphics, ImVec2 from, ImVec2 room,
                                float brightness);
  // The same, with the spread of each kernel's numbers below if there is room: a tick per head, and a taller
  // one for the median.
  std::optional<HeadIndex> draw_with_spreads(Editor& editor, const Graphics& graphics, ImVec2 from,
                                             ImVec2 room, float brightness);

private:
  void set_map();
  void draw_spreads(const Graphics& graphics, ImVec2 from, float width, float brightness) const;
  float spreads_height() const;

  DrawnFigure map_;
  bool low_ = false; // the map is drawn without the names of its axes
};

} // namespace hydrascope::app
