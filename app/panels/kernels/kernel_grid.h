// The layer × kernel grid: a click sets the kernel of a layer. Kernels that cannot run are grey, with a
// reason.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/document/editor.h"
#include "app/panels/kernels/grid_columns.h"
#include "app/ui/graphics.h"
#include "app/views/adapter_view.h"
#include "engine/attention/interface/schedule.h"

namespace hydrascope::app {

struct GridNotes {
  // Why a kernel cannot run here, in the order of the registry; empty if it can.
  std::vector<std::string> kernels;
  std::vector<std::string> layers;               // by layer: why its kernel with its parameters cannot run
  std::vector<std::string> badges;               // by layer: "", "untrained", "other resolution"
  std::vector<std::vector<ParameterMark>> marks; // by layer and kernel; empty: not known yet
};

// What the pointer is on.
struct GridPointer {
  std::size_t kernel = 0;   // in the registry
  std::optional<int> layer; // nullopt: the kernel's name
};

class KernelGrid {
public:
  // As GridColumns.
  void prefer(KernelFamily family) { columns_.prefer(family); }
  // The field that searches the kernels; Enter gives the selected layer the only one found.
  void draw_search(Editor& editor, const GridNotes& notes, float width);
  // At most `most_height` high: the rows shrink, then the grid scrolls.
  std::optional<GridPointer> draw(Editor& editor, const Graphics& graphics, const GridNotes& notes,
                                  float most_height);

private:
  struct Frame;
  void draw_header(Frame& frame);
  static void draw_names(Frame& frame, const GridColumns::Family& family);
  void draw_row(Frame& frame, int layer);
  static void draw_cell(Frame& frame, int layer, std::size_t kernel, ImVec2 size);
  void draw_folded(Frame& frame, int layer, const GridColumns::Family& family);
  static void draw_row_ends(const Frame& frame, int layer);
  void scroll_to_layer(const Frame& frame);

  GridColumns columns_;
  // What the selected layer was last scrolled into view for.
  struct InView {
    int layer = -1;
    float room = 0, row = 0; // heights of all rows in view and of one
    bool operator==(const InView&) const = default;
  };
  InView in_view_;
};

} // namespace hydrascope::app
