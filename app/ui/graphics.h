// OpenGL objects of the panels: maps coloured by the shaders in shaders/, photographs, and the fonts. All of
// them need the current OpenGL context of a Display and must be destroyed before it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <imgui.h>

#include "app/ui/theme.h"
#include "engine/figures/canvas.h"
#include "engine/figures/figure.h"

namespace hydrascope::app {

// An owned OpenGL texture.
class Texture {
public:
  Texture() = default;
  ~Texture(); // delete_unused() deletes it
  Texture(Texture&& other) noexcept;
  Texture& operator=(Texture&& other) noexcept;
  static Texture make();
  unsigned int id() const { return id_; }
  ImTextureRef reference() const { return ImTextureRef(static_cast<ImTextureID>(id_)); }
  explicit operator bool() const { return id_ != 0; }
  // Deletes the OpenGL textures of objects that were destroyed before the previous call; called once a frame.
  // OpenGL may give a deleted name to the next texture at once, and the damage tracker, which compares the
  // names in two frames, would take the two for the same.
  static void delete_unused();

private:
  struct Unused {
    std::vector<unsigned int> before, since; // the previous call
  };
  static Unused& unused();

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
  // Whether changed maps fade in.
  void set_fade(bool fade) { fade_ = fade; }
  bool fades() const { return fade_; }
  // Requests another frame while an animation runs.
  void keep_moving() { moving_ = true; }
  bool take_moving() { return std::exchange(moving_, false); }
  // The colours of a map in the current theme.
  struct Colours {
    ColourTable table{};
    Texture texture; // 256 × 1 texels
  };
  const Colours& colours(ColourMap map, Backdrop backdrop);

  // A texture of these pixels.
  static Texture texture_of(const Pixels& pixels);

  // How the cells of a map are painted.
  struct Paint {
    Backdrop backdrop = Backdrop::matrix;
    Interpolation interpolation = Interpolation::nearest;
    bool blank_missing = false; // NaN leaves the ground, instead of being hatched as masked
    bool operator==(const Paint&) const = default;
  };
  // Draws `values` (rows, columns), coloured by `scale`, into a new texture of `width` × `height` texels,
  // first row on top, and stores it in `target`.
  void bake(const Array& values, const Scale& scale, const Paint& paint, int width, int height,
            Texture& target);

  // Adds a photograph to a draw list; none if it is null or empty. It is uploaded once for all views that
  // draw it. When one is uploaded, those that were not drawn in this frame or the last are freed.
  void draw_picture(ImDrawList* list, const std::shared_ptr<const Image>& image, ImVec2 from, ImVec2 to,
                    float opacity = 1.0f);

private:
  struct Picture {
    std::weak_ptr<const Image> image;
    Texture texture;
    int frame = 0; // in which it was last drawn
  };

  theme::Fonts fonts_;
  static constexpr std::size_t maps = 4, backdrops = 4;
  std::array<Colours, maps * backdrops> tables_; // in the theme tables_mode_; made when they are needed
  theme::Mode tables_mode_ = theme::Mode::dark;
  std::vector<Picture> pictures_;
  Texture values_;
  unsigned int program_ = 0, vertices_ = 0, framebuffer_ = 0;
  bool fade_ = true, moving_ = false;
};

// A colour-mapped array as a texture, baked again only when its data or size changes.
class MapTexture {
public:
  // Sets the data without any OpenGL call. Equal data changes nothing.
  void set(const Array& values, const Scale& scale, const Graphics::Paint& paint = {});
  void clear(); // frees the texture, too
  bool empty() const { return values_.empty(); }
  int rows() const { return values_.shape.size() < 2 ? 0 : static_cast<int>(values_.shape[0]); }
  int columns() const { return values_.shape.size() < 2 ? 0 : static_cast<int>(values_.shape[1]); }
  float value(int row, int column) const;
  const Array& values() const { return values_; }
  const Scale& scale() const { return scale_; }

  // Adds the map to a draw list. Cells stay crisp unless the map is interpolated. Changed values fade in over
  // the previous ones.
  void draw(Graphics& graphics, ImDrawList* list, ImVec2 from, ImVec2 to, float opacity = 1.0f);

private:
  bool smooth() const { return paint_.interpolation != Interpolation::nearest; }
  // What the texture was baked from: its size in texels, the theme's hatching, and the hash of the values.
  struct Baked {
    int width = 0, height = 0;
    theme::Mode mode = theme::Mode::dark;
    std::size_t numbers = 0;
    int rows = 0, columns = 0;

    bool operator==(const Baked&) const = default;
  };
  void bake(Graphics& graphics, const Baked& request);
  void add(ImDrawList* list, const Texture& texture, ImVec2 from, ImVec2 to, float opacity) const;

  Array values_;
  Scale scale_;
  Graphics::Paint paint_;
  bool dirty_ = false;
  Baked baked_;
  Texture texture_, previous_; // previous_ fades out
  double faded_since_ = 0;     // seconds, on Dear ImGui's clock
};

} // namespace hydrascope::app
