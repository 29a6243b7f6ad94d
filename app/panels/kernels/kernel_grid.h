// The layer × kernel grid: a click sets the kernel of a layer. Kernels that cannot run are grey, with a
// reason.
#pragma once

#include <string>
#include <vector>

#include "app/document/editor.h"
#include "app/ui/graphics.h"
#include "engine/attention/interface/schedule.h"

namespace hydrascope::app {

struct GridNotes {
  // Why a kernel cannot run here, in the order of the registry; empty if it can.
  std::vector<std::string> kernels;
  std::vector<std::string> layers; // by layer: why its kernel with its parameters cannot run
  std::vector<std::string> badges; // by layer: "", "untrained", "other resolution"
};

class KernelGrid {
public:
  // Scrolls if `most_height` is not enough.
  void draw(Editor& editor, const Graphics& graphics, const GridNotes& notes, float most_height);

private:
  struct Frame;
  static void draw_headers(const Frame& frame);
  static void draw_row(const Frame& frame, int layer);
  static void draw_row_name(const Frame& frame, int layer);
  static void draw_cell(const Frame& frame, int layer, std::size_t kernel);
  void scroll_to_kernel(const Frame& frame);

  std::string shown_kernel_; // the selected layer's kernel that was last scrolled into view
};

} // namespace hydrascope::app
