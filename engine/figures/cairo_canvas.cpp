// PDF and PNG files by cairo.
#include <cairo-pdf.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numbers>
#include <string_view>

#include "engine/base/error.h"
#include "engine/figures/cairo_handles.h"
#include "engine/figures/page.h"
#include "engine/figures/text.h"

namespace hydrascope {
namespace {

void check(cairo_status_t status) {
  if (status != CAIRO_STATUS_SUCCESS) {
    throw Error("figure", cairo_status_to_string(status), "draw it smaller or with a lower --dpi");
  }
}

cairo_status_t append(void* text, const unsigned char* bytes, unsigned int length) {
  static_cast<std::string*>(text)->append(reinterpret_cast<const char*>(bytes), length);
  return CAIRO_STATUS_SUCCESS;
}

CairoSurface surface_of(const Pixels& pixels) {
  CairoSurface surface(cairo_image_surface_create(CAIRO_FORMAT_ARGB32, pixels.width, pixels.height));
  check(cairo_surface_status(surface.get()));
  cairo_surface_flush(surface.get());
  unsigned char* const data = cairo_image_surface_get_data(surface.get());
  const auto stride = static_cast<std::size_t>(cairo_image_surface_get_stride(surface.get()));
  const auto width = static_cast<std::size_t>(pixels.width);
  for (std::size_t row = 0; row < static_cast<std::size_t>(pixels.height); ++row) {
    for (std::size_t column = 0; column < width; ++column) {
      const std::uint8_t* const source = pixels.rgba.data() + (row * width + column) * 4;
      const std::uint32_t alpha = source[3];
      const auto premultiplied = [alpha](std::uint32_t value) { return (value * alpha + 127) / 255; };
      const std::uint32_t packed = alpha << 24 | premultiplied(source[0]) << 16 |
                                   premultiplied(source[1]) << 8 | premultiplied(source[2]);
      std::memcpy(data + row * stride + column * 4, &packed, 4);
    }
  }
  cairo_surface_mark_dirty(surface.get());
  return surface;
}

class CairoCanvas final : public Canvas {
public:
  CairoCanvas(cairo_t* context, double device_scale) : context_(context), device_scale_(device_scale) {
    cairo_set_font_options(context_, font_options().get());
    cairo_set_line_join(context_, CAIRO_LINE_JOIN_ROUND);
  }

  void fill(const Box& box, const Colour& colour, double radius) override {
    rectangle(box, radius);
    paint(colour);
  }

  void outline(const Box& box, const Colour& colour, double line_width, double radius) override {
    rectangle(box, radius);
    stroke(colour, line_width);
  }

  void line(std::span<const Point> points, const Colour& colour, double line_width) override {
    path(points);
    stroke(colour, line_width);
  }

  void polygon(std::span<const Point> points, const Colour& colour) override {
    path(points);
    cairo_close_path(context_);
    paint(colour);
  }

  void circle(Point centre, double radius, const Colour& colour, double line_width) override {
    cairo_new_sub_path(context_);
    cairo_arc(context_, centre.x, centre.y, radius, 0, 2 * std::numbers::pi);
    stroke(colour, line_width);
  }

  void image(const Pixels& given, const Box& box, bool smooth) override {
    if (given.width == 0 || given.height == 0) return;
    const Pixels cells = smooth ? Pixels{} : repeated(given);
    const Pixels& pixels = smooth ? given : cells;
    const auto surface = surface_of(pixels);
    // More picture pixels than device pixels: averaged, since hard edges would skip cells.
    const bool shrinking =
        pixels.width > box.width * device_scale_ || pixels.height > box.height * device_scale_;
    cairo_save(context_);
    cairo_rectangle(context_, box.x, box.y, box.width, box.height);
    cairo_clip(context_);
    cairo_translate(context_, box.x, box.y);
    cairo_scale(context_, box.width / pixels.width, box.height / pixels.height);
    cairo_set_source_surface(context_, surface.get(), 0, 0);
    cairo_pattern_t* const pattern = cairo_get_source(context_);
    cairo_pattern_set_filter(pattern, shrinking ? CAIRO_FILTER_GOOD
                                      : smooth  ? CAIRO_FILTER_BILINEAR
                                                : CAIRO_FILTER_NEAREST);
    cairo_pattern_set_extend(pattern, CAIRO_EXTEND_PAD);
    cairo_rectangle(context_, 0, 0, pixels.width, pixels.height);
    cairo_fill(context_);
    cairo_restore(context_);
  }

  void text(std::string_view text, Point baseline, const TextStyle& style, double angle) override {
    cairo_save(context_);
    cairo_translate(context_, baseline.x, baseline.y);
    cairo_rotate(context_, -angle * std::numbers::pi / 180);
    cairo_move_to(context_, 0, 0);
    set_colour(style.colour);
    for (const auto& run : text_runs(text, style)) {
      cairo_set_font_face(context_, font_face(run.family, style.bold).get());
      cairo_set_font_size(context_, style.size);
      cairo_show_text(context_, run.text.c_str());
    }
    cairo_restore(context_);
  }

private:
  void rectangle(const Box& box, double radius) {
    if (radius <= 0) {
      cairo_rectangle(context_, box.x, box.y, box.width, box.height);
      return;
    }
    const double quarter = std::numbers::pi / 2;
    cairo_new_sub_path(context_);
    cairo_arc(context_, box.right() - radius, box.y + radius, radius, -quarter, 0);
    cairo_arc(context_, box.right() - radius, box.bottom() - radius, radius, 0, quarter);
    cairo_arc(context_, box.x + radius, box.bottom() - radius, radius, quarter, 2 * quarter);
    cairo_arc(context_, box.x + radius, box.y + radius, radius, 2 * quarter, 3 * quarter);
    cairo_close_path(context_);
  }

  void path(std::span<const Point> points) {
    for (std::size_t index = 0; index < points.size(); ++index) {
      (index == 0 ? cairo_move_to : cairo_line_to)(context_, points[index].x, points[index].y);
    }
  }

  void set_colour(const Colour& colour) {
    const auto value = [](float channel) { return static_cast<double>(channel); };
    cairo_set_source_rgba(context_, value(colour.red), value(colour.green), value(colour.blue),
                          value(colour.alpha));
  }

  void paint(const Colour& colour) {
    set_colour(colour);
    cairo_fill(context_);
  }

  void stroke(const Colour& colour, double line_width) {
    set_colour(colour);
    cairo_set_line_width(context_, line_width);
    cairo_stroke(context_);
  }

  cairo_t* context_;
  double device_scale_; // device pixels in a point
};

void draw_page(cairo_surface_t* surface, double scale, double device_scale,
               const std::optional<Colour>& ground, const DrawOn& draw) {
  check(cairo_surface_status(surface));
  const CairoContext context(cairo_create(surface));
  check(cairo_status(context.get()));
  if (ground) {
    cairo_set_source_rgb(context.get(), static_cast<double>(ground->red), static_cast<double>(ground->green),
                         static_cast<double>(ground->blue));
    cairo_paint(context.get());
  }
  cairo_scale(context.get(), scale, scale);
  CairoCanvas canvas(context.get(), device_scale);
  draw(canvas);
  check(cairo_status(context.get()));
}

// CRC-32 of ISO 3309, as the PNG specification (annex D) asks for it.
std::uint32_t checksum(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffu;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 1) != 0 ? 0xedb88320u ^ crc >> 1 : crc >> 1;
    }
  }
  return ~crc;
}

std::string big_endian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16 & 0xff),
          static_cast<char>(value >> 8 & 0xff), static_cast<char>(value & 0xff)};
}

std::string chunk(std::string_view type, const std::string& data) {
  const std::string body = std::string(type) + data;
  return big_endian(static_cast<std::uint32_t>(data.size())) + body + big_endian(checksum(body));
}

} // namespace

std::string pdf_bytes(const PageSize& page, const std::optional<Colour>& ground, const std::string& title,
                      const std::string& keywords, const DrawOn& draw) {
  std::string bytes;
  {
    const CairoSurface surface(cairo_pdf_surface_create_for_stream(&append, &bytes, page.width, page.height));
    check(cairo_surface_status(surface.get()));
    // From PDF 1.5 on, cairo 1.18 compresses the metadata, which are found by their plain text: the date
    // below, and the keywords when the file is read.
    cairo_pdf_surface_restrict_to_version(surface.get(), CAIRO_PDF_VERSION_1_4);
    cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_TITLE, title.c_str());
    cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_CREATOR, "Hydrascope");
    cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_KEYWORDS, keywords.c_str());
    // Viewers scale the pictures of a PDF: never averaged here.
    draw_page(surface.get(), 1, 1e9, ground, draw);
    cairo_surface_finish(surface.get());
    check(cairo_surface_status(surface.get()));
  }
  // cairo always stores the time of day. Spaces in its place keep all offsets in the file valid.
  const auto start = bytes.rfind("/CreationDate (");
  if (start != std::string::npos) {
    const auto end = bytes.find(')', start);
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(start),
              bytes.begin() + static_cast<std::ptrdiff_t>(end) + 1, ' ');
  }
  return bytes;
}

std::string png_bytes(const PageSize& page, double dpi, const std::optional<Colour>& ground,
                      const DrawOn& draw) {
  const double scale = dpi / 72;
  const double width = std::ceil(page.width * scale - 1e-6);
  const double height = std::ceil(page.height * scale - 1e-6);
  if (width < 1 || height < 1 || width > 30000 || height > 30000 || width * height > 4e8) {
    throw UsageError("--dpi", "the picture would have too many or too few pixels",
                     "choose another --dpi or --width-mm");
  }
  const CairoSurface surface(cairo_image_surface_create(ground ? CAIRO_FORMAT_RGB24 : CAIRO_FORMAT_ARGB32,
                                                        static_cast<int>(width), static_cast<int>(height)));
  draw_page(surface.get(), scale, scale, ground, draw);
  std::string bytes;
  check(cairo_surface_write_to_png_stream(surface.get(), &append, &bytes));
  return bytes;
}

std::string png_bytes(const Pixels& pixels) {
  std::string bytes;
  check(cairo_surface_write_to_png_stream(surface_of(pixels).get(), &append, &bytes));
  return bytes;
}

std::string with_png_metadata(const std::string& png, double dpi, const std::string& keyword,
                              const std::string& text) {
  constexpr std::size_t header_end = 8 + 12 + 13; // signature, IHDR's frame, IHDR's data
  const auto per_metre = static_cast<std::uint32_t>(std::lround(dpi / 0.0254));
  const std::string resolution = big_endian(per_metre) + big_endian(per_metre) + '\x01';
  // keyword, 0, not compressed (0, 0), no language (0), no translated keyword (0)
  const std::string international = keyword + std::string(5, '\0') + text;
  return png.substr(0, header_end) + chunk("pHYs", resolution) + chunk("iTXt", international) +
         png.substr(header_end);
}

Pixels shrink(const Pixels& pixels, int width, int height) {
  const CairoSurface surface(cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height));
  check(cairo_surface_status(surface.get()));
  {
    const CairoContext context(cairo_create(surface.get()));
    const auto source = surface_of(pixels);
    cairo_scale(context.get(), static_cast<double>(width) / pixels.width,
                static_cast<double>(height) / pixels.height);
    cairo_set_source_surface(context.get(), source.get(), 0, 0);
    cairo_pattern_set_filter(cairo_get_source(context.get()), CAIRO_FILTER_BEST);
    cairo_pattern_set_extend(cairo_get_source(context.get()), CAIRO_EXTEND_PAD);
    cairo_paint(context.get());
  }
  cairo_surface_flush(surface.get());
  const auto stride = static_cast<std::size_t>(cairo_image_surface_get_stride(surface.get()));
  const unsigned char* const data = cairo_image_surface_get_data(surface.get());
  Pixels result{width, height, {}};
  result.rgba.reserve(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 4);
  for (std::size_t row = 0; row < static_cast<std::size_t>(height); ++row) {
    for (std::size_t column = 0; column < static_cast<std::size_t>(width); ++column) {
      std::uint32_t packed = 0;
      std::memcpy(&packed, data + row * stride + column * 4, 4);
      result.rgba.insert(result.rgba.end(), {static_cast<std::uint8_t>(packed >> 16 & 0xff),
                                             static_cast<std::uint8_t>(packed >> 8 & 0xff),
                                             static_cast<std::uint8_t>(packed & 0xff), 255});
    }
  }
  return result;
}

} // namespace hydrascope
