// A number for every head: layers down, heads across; a click opens that head everywhere.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/document/editor.h"
#include "app/ui/drawn_figure.h"
#include "engine/figures/figure.h"

namespace hydrascope::app {

// The numbers of all heads that run under one kernel.
struct KernelSpread {
  std::string kernel;
  std::vector<float> values; // ascending; undefined ones are left out

  float median() const { return values[values.size() / 2]; }
};
// Of a table's values (layers × heads), `kernels` by layer; in the order in which the kernels first occur;
// none without a value.
std::vector<KernelSpread> kernel_spreads(const HeatMapPanel& panel, const std::vector<std::string>& kernels);

struct HeadTableView {
  HeatMapPanel panel;                // as it is drawn, and exported with its note
  std::vector<std::string> kernels;  // by layer, a square of whose colour stands before it; may be empty
  std::vector<KernelSpread> spreads; // drawn below where there is room; may be empty
  std::string unit;                  // after a value: "nats"; may be empty
  std::string undefined;             // why a cell may have no number
  bool of_layers = false;            // one number a layer: a click selects the layer alone

  void set(HeatMapPanel table, std::vector<std::string> layer_kernels);
  void clear();
  bool empty() const { return panel.values.empty(); }
  // A number in each cell where it fits. A click selects the head; muted ones are crossed. Returns the head
  // under the pointer.
  std::optional<HeadIndex> draw(Editor& editor, const Graphics& graphics, ImVec2 from, ImVec2 room,
                                float brightness);
  // The same above how the numbers of each kernel are spread over its scale, where there is room for both: a
  // tick for every head, a taller one for their median.
  std::optional<HeadIndex> draw_with_spreads(Editor& editor, const Graphics& graphics, ImVec2 from,
                                             ImVec2 room, float brightness);

private:
  void draw_spreads(const Graphics& graphics, ImVec2 from, float width, float brightness) const;
  float spreads_height() const;

  DrawnFigure map_;
};

} // namespace hydrascope::app
