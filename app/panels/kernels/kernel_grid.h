// The layer × kernel grid: any layer's kernel is one click, and what cannot run is grey and says why.
#pragma once

#include <string>
#include <vector>

#include "app/document/editor.h"
#include "app/ui/graphics.h"
#include "engine/attention/interface/schedule.h"

namespace hydrascope::app {

struct GridNotes {
  std::vector<std::string>
      kernels;                     // by the registry's order: why the kernel cannot run here; empty if it can
  std::vector<std::string> layers; // by layer: why its own kernel, with its parameters, cannot
  std::vector<std::string> badges; // by layer: "", "untrained", "other resolution"
};

class KernelGrid {
public:
  // Takes at most `most_height`; scrolls where that is not enough.
  void draw(Editor& editor, const Graphics& graphics, const GridNotes& notes, float most_height);

private:
  struct Frame;
  static void draw_headers(const Frame& frame);
  static void draw_row(const Frame& frame, int layer);
  static void draw_row_name(const Frame& frame, int layer);
  static void draw_cell(const Frame& frame, int layer, std::size_t kernel);
  void bring_to_view(const Frame& frame);

  std::string shown_kernel_; // of the selected layer, when it was last brought to view
};

} // namespace hydrascope::app
