// A focus map drawn over the photograph, or as shaded words.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/ui/graphics.h"
#include "engine/figures/figure.h"
#include "engine/figures/panel_drawing.h"
#include "engine/run/run.h"

namespace hydrascope::app {

// The photograph with hidden patches painted over, as the model got it.
class PaintedPicture {
public:
  PaintedPicture() = default;
  PaintedPicture(const ImageInput& image, const RunResult& run);
  const ImageInput& picture() const { return painted_; }
  // Whether constructing it anew would give the same picture.
  bool shows(const ImageInput& image, const RunResult& run) const;

private:
  std::shared_ptr<const Image> original_;
  ImageInput painted_;
  std::vector<std::int64_t> hidden_;
  int rows_ = 0, columns_ = 0;
};

struct CanvasInput {
  std::optional<int> hovered, clicked; // a patch (row-major) or a token
};

// The photograph at its aspect ratio with the map over the model's crop; the rest is dimmed.
class PictureCanvas {
public:
  void set(const OverlayPanel& panel);
  void clear() { *this = {}; }
  bool empty() const { return map_.empty(); }
  const MapTexture& map() const { return map_; }
  Backdrop backdrop() const { return backdrop_of(panel_.mode); }
  // Of the photograph, drawn as large as the room allows.
  ImVec2 size_within(ImVec2 room) const;
  CanvasInput draw(Graphics& graphics, ImVec2 from, ImVec2 size, std::optional<int> query,
                   std::optional<int> hovered, float brightness);

private:
  OverlayPanel panel_;
  std::optional<PanelItem> largest_;
  MapTexture map_;
};

// Word pieces in reading order, shaded by their values; pieces of one word stand closer together.
class SentenceCanvas {
public:
  void set(const TokensPanel& panel) { panel_ = panel; }
  void clear() { *this = {}; }
  bool empty() const { return panel_.tokens.empty(); }
  CanvasInput draw(Graphics& graphics, ImVec2 from, ImVec2 size, std::optional<int> query,
                   std::optional<int> hovered, float brightness);

  // The height of an axis, in screen coordinates.
  struct Axis {
    float top = 0, bottom = 0; // of the scale's high and low end
  };
  // That of the bars in the last frame; nullopt if there was no room for them.
  std::optional<Axis> bars_axis() const { return bars_axis_; }

private:
  // The same values as bars below the words. Returns their axis.
  Axis draw_bars(Graphics& graphics, ImVec2 from, ImVec2 size, std::optional<int> query,
                 std::optional<int> hovered, float brightness, CanvasInput& input) const;

  std::string drawn(std::size_t token) const;

  TokensPanel panel_;
  std::optional<Axis> bars_axis_;
};

} // namespace hydrascope::app
