// SVG files, written directly.
#include <cmath>

#include <fmt/format.h>

#include "engine/base/encoding.h"
#include "engine/figures/page.h"
#include "engine/figures/text.h"

namespace hydrascope {
namespace {

std::string number(double value) {
  std::string text = fmt::format("{:.3f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) {
    text.pop_back();
  }
  return text == "-0" ? "0" : text;
}

std::string paint(const char* attribute, const Colour& colour) {
  const auto byte = [](float channel) { return static_cast<int>(std::lround(channel * 255)); };
  std::string text = fmt::format(R"({}="#{:02x}{:02x}{:02x}")", attribute, byte(colour.red),
                                 byte(colour.green), byte(colour.blue));
  if (colour.alpha < 1) {
    text += fmt::format(R"( {}-opacity="{}")", attribute, number(static_cast<double>(colour.alpha)));
  }
  return text;
}

std::string rectangle(const Box& box, double radius) {
  std::string text = fmt::format(R"(<rect x="{}" y="{}" width="{}" height="{}")", number(box.x),
                                 number(box.y), number(box.width), number(box.height));
  return radius > 0 ? text + fmt::format(R"( rx="{}")", number(radius)) : text;
}

std::string coordinates(std::span<const Point> points) {
  std::string text;
  for (const auto& point : points) {
    text += fmt::format("{}{},{}", text.empty() ? "" : " ", number(point.x), number(point.y));
  }
  return text;
}

std::string xml_escaped(std::string_view text) {
  std::string escaped;
  for (const char character : text) {
    switch (character) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      default:
        // Other control characters may not appear in XML at all.
        if (static_cast<unsigned char>(character) >= 0x20 || character == '\n' || character == '\t') {
          escaped += character;
        }
    }
  }
  return escaped;
}

class SvgCanvas final : public Canvas {
public:
  void fill(const Box& box, const Colour& colour, double radius) override {
    body_ += rectangle(box, radius) + " " + paint("fill", colour) + "/>\n";
  }

  void outline(const Box& box, const Colour& colour, double line_width, double radius) override {
    body_ +=
        rectangle(box, radius) +
        fmt::format(R"( fill="none" {} stroke-width="{}"/>)", paint("stroke", colour), number(line_width)) +
        "\n";
  }

  void line(std::span<const Point> points, const Colour& colour, double line_width) override {
    body_ +=
        fmt::format(R"(<polyline points="{}" fill="none" {} stroke-width="{}" stroke-linejoin="round"/>)",
                    coordinates(points), paint("stroke", colour), number(line_width)) +
        "\n";
  }

  void polygon(std::span<const Point> points, const Colour& colour) override {
    body_ += fmt::format(R"(<polygon points="{}" {}/>)", coordinates(points), paint("fill", colour)) + "\n";
  }

  void circle(Point centre, double radius, const Colour& colour, double line_width) override {
    body_ +=
        fmt::format(R"(<circle cx="{}" cy="{}" r="{}" fill="none" {} stroke-width="{}"/>)", number(centre.x),
                    number(centre.y), number(radius), paint("stroke", colour), number(line_width)) +
        "\n";
  }

  void image(const Pixels& pixels, const Box& box, bool smooth) override {
    body_ += fmt::format(
        R"(<image x="{}" y="{}" width="{}" height="{}" preserveAspectRatio="none"{} xlink:href="data:image/png;base64,{}"/>)",
        number(box.x), number(box.y), number(box.width), number(box.height),
        smooth ? "" : R"( style="image-rendering:crisp-edges;image-rendering:pixelated")",
        encode_base64(smooth ? png_bytes(pixels) : png_bytes(repeated(pixels))));
    body_ += "\n";
  }

  void text(std::string_view text, Point baseline, const TextStyle& style, double angle) override {
    std::string shown;
    for (const auto& run : text_runs(text, style)) {
      shown += run.text;
    }
    const std::string turn = angle == 0 ? ""
                                        : fmt::format(" transform=\"rotate({} {} {})\"", number(-angle),
                                                      number(baseline.x), number(baseline.y));
    // textLength preserves the layout if the viewer substitutes the font.
    body_ += fmt::format(
        R"(<text x="{}" y="{}" class="{}" font-size="{}"{} textLength="{}" lengthAdjust="spacingAndGlyphs" {}{}>{}</text>)",
        number(baseline.x), number(baseline.y), style.face == Face::mono ? "mono" : "text",
        number(style.size), style.bold ? R"( font-weight="bold")" : "", number(text_width(text, style)),
        paint("fill", style.colour), turn, xml_escaped(shown));
    body_ += "\n";
  }

  const std::string& body() const { return body_; }

private:
  std::string body_;
};

} // namespace

std::string svg_bytes(const PageSize& page, const std::optional<Colour>& ground, const std::string& title,
                      const std::string& description, const std::string& provenance, const DrawOn& draw) {
  SvgCanvas canvas;
  if (ground) {
    canvas.fill({0, 0, page.width, page.height}, *ground, 0);
  }
  draw(canvas);
  std::string document = R"(<?xml version="1.0" encoding="UTF-8"?>)";
  document += fmt::format(
      "\n<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" "
      "version=\"1.1\" "
      "role=\"img\" width=\"{0}mm\" height=\"{1}mm\" viewBox=\"0 0 {2} {3}\">\n",
      number(page.width * 25.4 / 72), number(page.height * 25.4 / 72), number(page.width),
      number(page.height));
  document += "<title>" + xml_escaped(title) + "</title>\n<desc>" + xml_escaped(description) + "</desc>\n";
  document += "<metadata id=\"hydrascope\">" + xml_escaped(provenance) + "</metadata>\n";
  document +=
      "<style>text{white-space:pre} .text{font-family:Inter,'DejaVu Sans',Arial,sans-serif} "
      ".mono{font-family:'JetBrains Mono','DejaVu Sans Mono',monospace}</style>\n";
  return document + canvas.body() + "</svg>\n";
}

} // namespace hydrascope
