// The card of a kernel, shown while the pointer rests on it: formula, cost and speed, and its weights and KL
// divergence from softmax on the present input, in one head of the selected layer.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "app/document/editor.h"
#include "app/jobs/requests.h"
#include "app/panels/kernels/kernel_grid.h"
#include "app/panels/panel.h"
#include "app/ui/graphics.h"

namespace hydrascope::app {

class KernelCard {
public:
  // Call once a frame with what the pointer is on. After a short rest the card shows the kernel's weights: it
  // then returns true, once, and is to be prepared.
  bool point(Editor& editor, const GridNotes& notes, const std::optional<GridPointer>& pointer);
  // The weights of the kernel and of softmax, as long as the card is shown.
  void request(const Document& document, Requested& requested) const;
  void prepare(const Snapshot& snapshot);
  void draw(const Editor& editor, Graphics& graphics);

private:
  void draw_numbers(const Graphics& graphics) const;

  bool shown_ = false;
  std::size_t kernel_ = 0;   // in the registry
  std::optional<int> layer_; // that a click sets; nullopt: the selected one
  double since_ = 0;         // when the pointer came to rest on it
  bool pointed_ = false;
  std::string obstacle_;                        // why the kernel cannot run; empty if it can
  ParameterMark mark_ = ParameterMark::unknown; // in the selected layer

  // Of the newest results; empty where they have not come.
  std::string divergence_, speed_, caption_;
  MapTexture picture_;
  Scale scale_;
};

} // namespace hydrascope::app
