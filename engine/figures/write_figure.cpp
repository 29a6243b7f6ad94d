#include <algorithm>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/base/text.h"
#include "engine/figures/figure.h"
#include "engine/figures/layout.h"
#include "engine/figures/numbers.h"
#include "engine/figures/page.h"
#include "engine/figures/text.h"

namespace hydrascope {
namespace {

std::string ending_of(const std::filesystem::path& file) { return lower_case(file.extension().string()); }

void check_style(const FigureStyle& style) {
  if (!(style.width_mm >= 20 && style.width_mm <= 2000)) {
    throw UsageError("--width-mm", "a figure is between 20 and 2000 mm wide", "85 fits one column, 170 two");
  }
  if (!(style.dpi >= 10 && style.dpi <= 2400)) {
    throw UsageError("--dpi", "the resolution must be between 10 and 2400", "300 suits print");
  }
  if (!(style.font_points >= 3 && style.font_points <= 72)) {
    throw UsageError("font size", "it must be between 3 and 72 points", "8 suits papers");
  }
}

void poll(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Cancelled();
}

// Viewers cut or refuse a page that is larger than the limits of ISO 32000-1, annex C.
void check_pdf_page(const PageSize& page) {
  constexpr double most = 14400; // points
  if (page.height > most)
    throw UsageError(".pdf",
                     fmt::format("the page would be {:.0f} mm high, and a PDF's pages end at {:.0f} mm",
                                 page.height / 72 * 25.4, most / 72 * 25.4),
                     "write .svg, or draw fewer layers, heads or pictures at once");
}

std::string picture_bytes(const Figure& figure, const std::string& ending, const FigureStyle& style,
                          const std::stop_token& stop) {
  check_style(style);
  const Layout layout = lay_out(figure, style);
  const std::optional<Colour> ground = style.transparent ? std::nullopt : std::optional(layout.ink.ground);
  const auto draw = [&](Canvas& canvas) { draw_figure(canvas, figure, layout, [&] { poll(stop); }); };
  const std::string title = valid_utf8(figure.title);
  if (ending == ".pdf") {
    check_pdf_page(layout.page);
    return pdf_bytes(layout.page, ground, title, figure.provenance, draw);
  }
  if (ending == ".svg") {
    return svg_bytes(layout.page, ground, title, valid_utf8(figure.subtitle), figure.provenance, draw);
  }
  return with_png_metadata(png_bytes(layout.page, style.dpi, ground, draw), style.dpi, "hydrascope",
                           figure.provenance);
}

} // namespace

void check_figure_ending(const std::filesystem::path& file) {
  const std::string ending = ending_of(file);
  const auto& known = figure_endings();
  const bool of_tables = ending == ".tex" || ending == ".md";
  if (!of_tables && std::find(known.begin(), known.end(), ending) == known.end()) {
    throw UsageError(file.string(), ending.empty() ? "the name has no ending" : "unknown ending " + ending,
                     "use .svg, .pdf, .png, .csv, .json or .npy, for a table also .tex or .md");
  }
}

const std::vector<std::string>& figure_endings() {
  static const std::vector<std::string> endings{".svg", ".pdf", ".png", ".csv", ".json", ".npy"};
  return endings;
}

FigureStyle paper_style(std::string_view preset) {
  if (preset == "single") return {.width_mm = 85, .font_points = 7};
  if (preset == "double") return {.width_mm = 170, .font_points = 8};
  if (preset == "slide") return {.width_mm = 254, .font_points = 14};
  throw UsageError("--preset", fmt::format("unknown preset '{}'", preset), "use single, double or slide");
}

std::string figure_png(const Figure& figure, const FigureStyle& style) {
  return picture_bytes(figure, ".png", style, {});
}

void write_figure(const Figure& figure, const std::filesystem::path& file, const FigureStyle& style,
                  const std::stop_token& stop) {
  check_figure_ending(file);
  poll(stop);
  const std::string ending = ending_of(file);
  if (ending == ".csv") {
    write_file_atomically(file, csv_text(figure));
  } else if (ending == ".json") {
    write_file_atomically(file, json_text(figure));
  } else if (ending == ".tex") {
    write_file_atomically(file, latex_text(figure));
  } else if (ending == ".md") {
    write_file_atomically(file, markdown_text(figure));
  } else if (ending == ".npy") {
    write_file_atomically(file, npy_bytes(figure));
    // The format holds no text: labels and provenance are written beside it.
    Figure description = figure;
    for (auto& panel : description.panels) {
      if (auto* const heat = std::get_if<HeatMapPanel>(&panel)) {
        heat->values = {};
      } else if (auto* const overlay = std::get_if<OverlayPanel>(&panel)) {
        overlay->values = {};
      }
    }
    write_file_atomically(file.string() + ".json", json_text(description));
  } else {
    const std::string bytes = picture_bytes(figure, ending, style, stop);
    poll(stop);
    write_file_atomically(file, bytes);
  }
}

} // namespace hydrascope
