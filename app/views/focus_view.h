// Focus maps as they are drawn, in the window and in exported figures alike. Plain header.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/views/shown_tokens.h"
#include "engine/figures/figure.h"
#include "engine/runtime/run.h"

namespace hydrascope::app {

// What contributions are divided by before they are drawn: the largest, the sum or the root of the sum of
// squares of what is drawn (positive parts; magnitudes for a signed map), or nothing.
enum class Normalisation { max, l1, l2, none };
// `max|l1|l2|none`. Throws UsageError.
Normalisation parse_normalisation(std::string_view text);

// `nearest|bilinear|bicubic`. Throws UsageError.
Interpolation parse_interpolation(std::string_view text);
const char* interpolation_name(Interpolation interpolation);

struct FocusOptions {
  Normalisation normalise = Normalisation::max;
  bool with_sign = false;                               // the signed map instead of its positive part
  float opacity = 0.6f;                                 // of the map over the photograph
  Interpolation interpolation = Interpolation::nearest; // between the patches
  bool photograph = true;                               // figures: the bare photograph as first panel
  TokenDisplay tokens = {};                             // text
};

// One layer's map, ready to draw.
struct FocusMap {
  Array values; // images: (rows, columns) of patches; text: (1, shown tokens). Empty if there is nothing to
                // draw
  std::vector<ShownToken> shown; // text
  Scale scale;
  std::vector<double>
      prefix;         // images: the prefix tokens' own contributions on the same scale (class token first)
  double divisor = 1; // what the contributions were divided by
  bool empty = false; // no contribution is positive, or the gradient is zero: `note` says which
  std::string note;   // to be shown beside the map: "class token itself 0.31; 84 % of the target's …"
};
FocusMap focus_map(const RunResult& run, const FocusResult& focus, const FocusOptions& options = {});
// A − B of two maps as they are drawn, on a diverging scale: an empty one is zero everywhere. Empty where
// both are, or where their shapes do not match; the tokens are A's.
FocusMap focus_difference(FocusMap a, const FocusMap& b);

// The photograph as the model was shown it: hidden patches painted over.
class PaintedPicture {
public:
  PaintedPicture() = default;
  PaintedPicture(const ImageInput& image, const RunResult& run);
  const ImageInput& picture() const { return painted_; }
  // Whether this is what it would be made of again.
  bool shows(const ImageInput& image, const RunResult& run) const;

private:
  std::shared_ptr<const Image> original_;
  ImageInput painted_;
  std::vector<std::int64_t> hidden_;
  int rows_ = 0, columns_ = 0;
};

// The focus result of a layer, or null if the run was not asked for it.
const FocusResult* find_focus(const RunResult& run, int layer);

// One panel of a focus figure: a layer of a run, with the title above it (empty: kernel and layer;
// a difference names both kernels).
struct FocusItem {
  const RunResult* run = nullptr;
  int layer = 0;
  std::string title = {};
  const RunResult* minus = nullptr; // a difference: what is subtracted; null = none
};

// Overlay panels (image given) or shaded tokens (image null), one for each item; the scale is shared where it
// is fixed by the normalisation. Items whose layer has no focus result are left out.
Figure focus_figure(std::span<const FocusItem> items, const ImageInput* image,
                    const FocusOptions& options = {});
// The same for some layers of one run; empty = every layer that has one.
Figure focus_figure(const RunResult& run, const ImageInput* image, const std::vector<int>& layers = {},
                    const FocusOptions& options = {});

} // namespace hydrascope::app
