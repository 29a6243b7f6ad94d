// OpenGL objects behind the panels: maps coloured by the shaders of shaders/, photographs, and the fonts.
// Everything here needs the current OpenGL context of a Display and must be destroyed before it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <imgui.h>

#include "app/ui/theme.h"
#include "engine/figures/canvas.h"
#include "engine/figures/figure.h"

namespace hydrascope::app {

// A texture that frees itself.
class Texture {
public:
  Texture() = default;
  ~Texture();
  Texture(Texture&& other) noexcept;
  Texture& operator=(Texture&& other) noexcept;
  static Texture make();
  unsigned int id() const { return id_; }
  ImTextureRef reference() const { return ImTextureRef(static_cast<ImTextureID>(id_)); }
  explicit operator bool() const { return id_ != 0; }

private:
  unsigned int id_ = 0;
};

class Graphics {
public:
  // Compiles the shaders. Throws Error with the compiler's message.
  explicit Graphics(const theme::Fonts& fonts);
  ~Graphics();
  Graphics(const Graphics&) = delete;
  Graphics& operator=(const Graphics&) = delete;

  const theme::Fonts& fonts() const { return fonts_; }
  // Whether a changed map fades in instead of being replaced at once.
  void set_fade(bool fade) { fade_ = fade; }
  bool fades() const { return fade_; }
  // Said by what is fading: the next frame looks different though nothing has changed.
  void keep_moving() { moving_ = true; }
  bool take_moving() { return std::exchange(moving_, false); }
  // 256 × 1 texels, for colour bars.
  ImTextureRef colour_table(ColourMap map) const {
    return tables_[static_cast<std::size_t>(map)].reference();
  }

  // Of the picture's own pixels.
  static Texture texture_of(const Pixels& pixels);

  // Draws `values` (rows, columns) coloured by `scale` into `target`, which becomes a new texture of `width`
  // × `height` texels, first row on top.
  void bake(const Array& values, const Scale& scale, Interpolation interpolation, int width, int height,
            Texture& target);

private:
  theme::Fonts fonts_;
  std::array<Texture, 4> tables_;
  Texture values_;
  unsigned int program_ = 0, vertices_ = 0, framebuffer_ = 0;
  bool fade_ = true, moving_ = false;
};

// A map that is baked when its data or the size of its picture changes, and never otherwise.
class MapTexture {
public:
  // New data; no OpenGL call is made. Equal data is recognised and changes nothing.
  void set(const Array& values, const Scale& scale, Interpolation interpolation = Interpolation::nearest);
  void clear();
  bool empty() const { return values_.empty(); }
  int rows() const { return values_.shape.size() < 2 ? 0 : static_cast<int>(values_.shape[0]); }
  int columns() const { return values_.shape.size() < 2 ? 0 : static_cast<int>(values_.shape[1]); }
  float value(int row, int column) const;
  const Array& values() const { return values_; }
  const Scale& scale() const { return scale_; }

  // Adds the map to a draw list over the rectangle; cells stay crisp unless it is
  // interpolated. A map whose numbers
  // have changed fades in over what it showed before.
  void draw(Graphics& graphics, ImDrawList* list, ImVec2 from, ImVec2 to, float opacity = 1.0f);

private:
  bool smooth() const { return interpolation_ != Interpolation::nearest; }
  // What the texture shows: a size in texels, a theme's hatching, and the numbers by their hash.
  struct Baked {
    int width = 0, height = 0;
    theme::Mode mode = theme::Mode::dark;
    std::size_t numbers = 0;
    int rows = 0, columns = 0;

    bool operator==(const Baked&) const = default;
  };
  void bake(Graphics& graphics, const Baked& wanted);
  void add(ImDrawList* list, const Texture& texture, ImVec2 from, ImVec2 to, float opacity) const;

  Array values_;
  Scale scale_;
  Interpolation interpolation_ = Interpolation::nearest;
  bool dirty_ = false;
  Baked baked_;
  Texture texture_, previous_; // previous_: fading out
  double faded_since_ = 0;     // seconds of Dear ImGui's clock
};

// A photograph as a texture, uploaded once.
class PictureTexture {
public:
  void set(std::shared_ptr<const Image> image);
  const Image* image() const { return image_.get(); }
  void draw(ImDrawList* list, ImVec2 from, ImVec2 to, float opacity = 1.0f);

private:
  std::shared_ptr<const Image> image_;
  bool dirty_ = false;
  Texture texture_;
};

} // namespace hydrascope::app
