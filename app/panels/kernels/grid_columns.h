// Which kernels the grid shows in how much room: families that fold, and a search. Plain state.
#pragma once

#include <array>
#include <set>
#include <string>
#include <vector>

#include "engine/attention/interface/kernel_info.h"

namespace hydrascope::app {

class GridColumns {
public:
  static constexpr float folded_width = 12, least_column = 11, most_column = 30;

  struct Family {
    KernelFamily family = KernelFamily::own;
    std::vector<std::size_t> kernels; // indices into the registry; with a search, those found
    bool open = false;                // folded: one narrow column stands for all
    float x = 0, width = 0;           // from the left end of the columns
    float column = 0;                 // of each kernel

    float centre_of(std::size_t place) const { return x + (static_cast<float>(place) + 0.5f) * column; }
  };

  // The part of a name to look for, in any case; empty: all kernels.
  void search(std::string text) { text_ = std::move(text); }
  const std::string& searched() const { return text_; }
  // Folds an open family or opens a folded one, for which those opened earlier fold if there is no room.
  void toggle(KernelFamily family, bool open_now);

  // Opens this family before all others but exact, unless the user has folded or opened one.
  void prefer(KernelFamily family);

  // The families that have kernels, from left to right. As many are open as fit, the last opened ones first
  // and at least one; all are while there is a search. `labels`: the widths of their names.
  std::vector<Family> place(float room, const std::array<float, kernel_families>& labels) const;
  static float width_of(const std::vector<Family>& families);

private:
  std::string text_;
  std::set<KernelFamily> folded_; // by the user
  bool chosen_ = false;           // the user has folded or opened a family
  // The last opened one first. Softmax and Hydra begin: what the window opens with, and what it is about.
  std::vector<KernelFamily> order_ = {KernelFamily::exact,   KernelFamily::hydra,
                                      KernelFamily::trained, KernelFamily::normalised_linear,
                                      KernelFamily::window,  KernelFamily::own};
};

} // namespace hydrascope::app
