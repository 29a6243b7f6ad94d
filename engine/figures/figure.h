// Figures as data: values, labels, scales and a layout, drawn alike by the window and the export. Plain
// header.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/base/array.h"
#include "engine/base/image.h"
#include "engine/figures/colour_map.h"

namespace hydrascope {

struct Scale {
  ColourMap map = ColourMap::viridis;
  double low = 0, high = 1; // data values at the ends of the colour bar; signed maps: low = −high
  bool logarithmic = false;
  bool shared = false; // the same scale for all panels of the figure
  std::string label;   // quantity and unit, "attention weight"
};

// Interpolation of a map between the centres of its cells: of values, not of colours, so that every colour
// shown is one of the scale's.
enum class Interpolation {
  nearest,  // crisp cells
  bilinear, // straight lines between centres
  bicubic   // Catmull-Rom splines (Catmull & Rom 1974; Keys 1981 with a = −1/2): through every cell's value
};

// A numeric axis along binned cells.
struct Axis {
  double low = 0, high = 1; // at the left or lower, and the right or upper end
  bool logarithmic = false;
};

// How the cells of a map that have no number are drawn.
enum class MissingCells {
  hatched, // masked or undefined
  grey,    // beyond the map's triangle: keys after the query; grey, because 0 has the ground's colour
  blank    // there is nothing to count
};

// Cells of a matrix, or of a grid over a picture.
struct HeatMapPanel {
  std::string title;
  Array values; // (rows, columns); NaN = missing
  Scale scale;
  std::string x_label, y_label;
  std::vector<std::string> x_ticks, y_ticks;    // one per column/row where shown (tokens), or empty: numbers
  std::vector<int> marks;                       // rows to mark (the query token)
  std::string note;                             // small print below the map
  std::optional<Axis> x_axis = {}, y_axis = {}; // drawn instead of the ticks
  MissingCells missing = MissingCells::hatched;
  std::optional<int> decimals = {};     // of the numbers drawn in cells where they fit; nullopt: none
  std::vector<Colour> row_colours = {}; // of a square before each row, or empty
};

// How a map covers a photograph.
enum class OverlayMode {
  value, // opacity grows with the value: where nothing contributes the photograph stays as it is
  dimmed // the same opacity everywhere: the photograph is dimmed where the value is small
};

constexpr Backdrop backdrop_of(OverlayMode mode) {
  return mode == OverlayMode::value ? Backdrop::photograph_by_value : Backdrop::photograph;
}

// A picture with a map over its crop. The cell of largest magnitude is ringed.
struct OverlayPanel {
  std::string title;
  std::shared_ptr<const Image> image;
  double crop_x = 0, crop_y = 0, crop_width = 0, crop_height = 0; // in the picture's pixels
  Array values; // (rows, columns) over the crop; empty: the picture alone with its crop outlined
  Scale scale;
  OverlayMode mode = OverlayMode::value;
  float opacity = 0.8f; // in the mode `value`: of the largest value
  Interpolation interpolation = Interpolation::nearest;
  std::optional<int> query_row, query_column;
  std::string note;                 // small print below the picture
  std::optional<Colour> frame = {}; // around the picture, e.g. for right and wrong
};

// Words, each shaded by a value.
struct TokensPanel {
  std::string title;
  std::vector<std::string> tokens;
  std::vector<double> values; // NaN: not shaded
  Scale scale;
  std::optional<int> query; // the token to ring
  std::string note;         // small print below the words
  // The tokens carry the spaces and line breaks before them, as a decoder's; else "##" continues a word.
  bool own_spaces = false;
};

// Labelled bars (predictions, timing).
struct BarsPanel {
  std::string title, x_label;
  std::vector<std::string> labels;
  std::vector<double> values;
  std::vector<Colour> colours;    // one per bar or empty
  std::vector<double> marks = {}; // a tick across each bar's row at this value; empty: none
  std::string marks_name = {};    // their quantity, "p95"
};

// Lines over x, or points in a plane.
struct LinesPanel {
  enum class Style {
    line,   // joined
    marked, // joined, with a mark at each point: a few measured points
    rings,  // joined by dashes, with a ring at each point: the same measured otherwise, of a marked line
    dashed, // joined, a limit or a reference
    points  // marks only
  };
  struct Line {
    std::string name;
    std::vector<double> x, y;
    Colour colour;
    std::vector<double> upper = {}; // ends of whiskers that rise from the points; empty: none
    std::string upper_name = {};    // their quantity, "p95"
    Style style = Style::line;
    std::vector<std::string> labels = {}; // beside each point; empty: none
  };
  std::string title, x_label, y_label;
  std::vector<Line> lines;
  bool log_x = false, log_y = false;
  std::optional<Axis> x_axis = {}, y_axis = {}; // the range shown, lines clipped to it; nullopt: all data
};

// Numbers in rows and columns, as in a paper's table.
struct TablePanel {
  enum class Better { neither, lower, higher };
  struct Column {
    std::string name;                // quantity and unit, "KL (nats)"
    Better better = Better::neither; // its best value is printed in bold
    int decimals = 3;
  };
  std::string title;
  std::string row_name; // the heading of the rows, "kernel"
  std::vector<std::string> rows;
  std::vector<Column> columns;
  std::vector<std::vector<double>> values; // by row, then column; NaN: a dash
  std::string note;                        // small print below the table
};

using FigurePanel = std::variant<HeatMapPanel, OverlayPanel, TokensPanel, BarsPanel, LinesPanel, TablePanel>;

struct Figure {
  std::string title;    // model, layer, head, kernel
  std::string subtitle; // notes: "untrained", "derived, signed"
  int columns = 0;      // panels per row; 0 = all in one row
  std::vector<FigurePanel> panels;
  std::string provenance; // JSON text, stored in the file's metadata
};

struct FigureStyle {
  double width_mm = 170; // 85 single column, 170 double column
  double font_points = 8;
  double dpi = 300; // PNG
  bool transparent = false;
  bool dark = false; // light ink on a dark ground, as the window's dark theme
};

// Width and text size for a medium: "single" (85 mm, 7 pt) or "double" (170 mm, 8 pt) column of a paper,
// "slide" (254 mm, 14 pt). Throws UsageError.
FigureStyle paper_style(std::string_view preset);

// Draws to .svg, .pdf or .png by the ending, or writes the drawn numbers as .csv, .json or .npy, a table also
// as .tex (LaTeX, booktabs) or .md (Markdown), by write_file_atomically(). The same figure gives
// byte-identical files. Throws UsageError (unknown ending, .tex or .md of a figure without a table, a row of
// panels too wide for the page, a page too high for .pdf), Error (cannot write). NPY: FILE.npy.json beside it
// holds labels and provenance. Throws Cancelled when `stop` is requested (polled between panels and before
// the file is written).
void write_figure(const Figure& figure, const std::filesystem::path& file, const FigureStyle& style = {},
                  const std::stop_token& stop = {});

// The figure as the bytes of a PNG file, as write_figure would write it.
std::string figure_png(const Figure& figure, const FigureStyle& style = {});

// The endings that write_figure() supports for every figure (not .tex and .md, which are for tables), and its
// check of a file's name. Throws UsageError.
const std::vector<std::string>& figure_endings();
void check_figure_ending(const std::filesystem::path& file);

// The provenance that write_figure() stored: one JSON text. The file's format is found by its content; for an
// NPY file the JSON beside it is read. Throws ForeignFile if the file holds no provenance (a photograph, a
// document of another program, a figure whose metadata was stripped), BrokenFile if it is damaged, Error if
// it cannot be read.
std::string read_provenance(const std::filesystem::path& file);
// The same of a file's bytes; `subject` is named in errors.
std::string provenance_of(std::string_view bytes, std::string_view subject);

} // namespace hydrascope
