// What write_figure writes, read back as bytes.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include <gtest/gtest.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/base/image.h"
#include "engine/base/paths.h"
#include "engine/figures/figure.h"

namespace hydrascope {
namespace {

constexpr const char* provenance = R"({"program":"hydrascope","command":"figure <&> \"x\" — é"})";

Array map_of(std::int64_t rows, std::int64_t columns) {
  Array array{{rows, columns}, {}};
  for (std::int64_t index = 0; index < rows * columns; ++index) {
    array.values.push_back(std::sin(static_cast<float>(index)) / 3.0f);
  }
  return array;
}

Figure heat_map_figure() {
  HeatMapPanel panel;
  panel.title = "hedgehog\nentropy 1.2 nats";
  panel.values = map_of(3, 4);
  panel.values.values[5] = std::numeric_limits<float>::quiet_NaN();
  panel.scale = {ColourMap::blue_white_red, -1, 1, false, false, "weight"};
  panel.x_label = "key";
  panel.y_label = "query";
  panel.x_ticks = {"[CLS]", "a, \"b\"", "<c>", "d&e"};
  panel.y_ticks = {"one", "two", "three"};
  panel.marks = {1};
  Figure figure;
  figure.title = "Heat & <map>";
  figure.subtitle = "untrained";
  figure.panels = {panel};
  figure.provenance = provenance;
  return figure;
}

Figure every_kind() {
  Figure figure = heat_map_figure();
  auto picture = std::make_shared<Image>();
  picture->width = 40;
  picture->height = 30;
  for (int index = 0; index < 40 * 30 * 3; ++index)
    picture->rgb.push_back(static_cast<std::uint8_t>(index * 7));
  OverlayPanel overlay;
  overlay.title = "over";
  overlay.image = picture;
  overlay.crop_x = 5;
  overlay.crop_width = overlay.crop_height = 30;
  overlay.values = map_of(5, 5);
  overlay.scale = {ColourMap::magma, 0, 1, false, false, "contribution"};
  overlay.query_row = 2;
  overlay.query_column = 3;
  overlay.note = "class token itself 0.3";
  overlay.interpolation = Interpolation::bicubic;
  figure.panels.emplace_back(overlay);
  TokensPanel tokens;
  tokens.title = "words";
  tokens.tokens = {"[CLS]", "hedge", "##hog", std::string(120, 'x'), "\xff\xfe", "中文"};
  tokens.values = {std::nan(""), 0.2, 0.9, 0.1, 0.4, 1.0};
  tokens.scale = {ColourMap::magma, 0, 1, false, false, "contribution"};
  tokens.query = 1;
  figure.panels.emplace_back(tokens);
  BarsPanel bars;
  bars.title = "bars";
  bars.x_label = "probability";
  bars.labels = {"cat", "dog with a name that is far too long for one line of a figure"};
  bars.values = {0.75, 0.125};
  figure.panels.emplace_back(bars);
  LinesPanel lines;
  lines.title = "lines";
  lines.lines = {{"loss", {1, 2, 3, 4}, {4, std::nan(""), 2, 1}, kernel_colour("hedgehog")}};
  lines.log_x = true;
  figure.panels.emplace_back(lines);
  LinesPanel points;
  points.title = "points";
  points.lines = {{"kernels", {1, 2, 2}, {4, 3, 3.01}, kernel_colour("elu")}};
  points.lines[0].style = LinesPanel::Style::points;
  points.lines[0].labels = {"elu", "relu", "cosformer"};
  figure.panels.emplace_back(points);
  TablePanel table;
  table.title = "table";
  table.row_name = "kernel";
  table.rows = {"elu", "hedgehog"};
  table.columns = {{"KL (nats)", TablePanel::Better::lower, 3}, {"top-1 (%)", TablePanel::Better::higher, 1}};
  table.values = {{0.51234567, 12.5}, {0.0625, std::nan("")}};
  figure.panels.emplace_back(table);
  figure.columns = 2;
  return figure;
}

class FigureFile : public testing::Test {
protected:
  FigureFile()
      : folder_(std::filesystem::temp_directory_path() / ("hydrascope-figures-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~FigureFile() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string written(const Figure& figure, const std::string& name, const FigureStyle& style = {}) const {
    write_figure(figure, folder_ / name, style);
    return read_text_file(folder_ / name);
  }

  std::filesystem::path folder_;
};

std::uint32_t big_endian(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t index = 0; index < 4; ++index)
    value = value << 8 | static_cast<unsigned char>(bytes.at(at + index));
  return value;
}

// CRC-32 by polynomial division bit by bit, most significant first on reflected input: written apart from the
// code under test.
std::uint32_t slow_crc(const std::string& bytes) {
  std::uint64_t remainder = 0xffffffff;
  for (const char byte : bytes) {
    for (int bit = 0; bit < 8; ++bit) {
      const auto in = static_cast<std::uint64_t>(static_cast<unsigned char>(byte) >> bit & 1);
      const auto top = remainder >> 31 & 1;
      remainder = (remainder << 1 & 0xffffffff) ^ ((in ^ top) != 0 ? 0x04c11db7u : 0u);
    }
  }
  std::uint32_t reflected = 0;
  for (int bit = 0; bit < 32; ++bit)
    reflected |= static_cast<std::uint32_t>(remainder >> bit & 1) << (31 - bit);
  return ~reflected;
}

TEST_F(FigureFile, SameFigureGivesTheSameBytesUnderAnyName) {
  for (const std::string ending : {".svg", ".pdf", ".png", ".csv", ".json"}) {
    const std::string first = written(every_kind(), "first" + ending);
    EXPECT_EQ(first, written(every_kind(), "second" + ending)) << ending;
    EXPECT_GT(first.size(), 500u) << ending;
  }
}

TEST_F(FigureFile, ADifferentNumberGivesADifferentPicture) {
  Figure other = heat_map_figure();
  std::get<HeatMapPanel>(other.panels[0]).values.values[0] = 0.9f;
  for (const std::string ending : {".svg", ".pdf", ".png"}) {
    EXPECT_NE(written(heat_map_figure(), "a" + ending), written(other, "b" + ending)) << ending;
  }
}

TEST_F(FigureFile, PngHasItsSizeResolutionAndProvenance) {
  FigureStyle style;
  style.width_mm = 85;
  style.dpi = 200;
  const std::string png = written(heat_map_figure(), "x.png", style);
  ASSERT_EQ(png.substr(1, 3), "PNG");
  EXPECT_NEAR(big_endian(png, 16), 85 / 25.4 * 200, 1.0);
  bool resolution = false, text = false;
  std::size_t at = 8;
  while (at + 12 <= png.size()) {
    const auto length = big_endian(png, at);
    const std::string type = png.substr(at + 4, 4), data = png.substr(at + 8, length);
    EXPECT_EQ(big_endian(png, at + 8 + length), slow_crc(type + data)) << type;
    if (type == "pHYs") {
      resolution = true;
      EXPECT_EQ(big_endian(data, 0), 7874u);
    }
    if (type == "iTXt") {
      text = true;
      EXPECT_EQ(data, std::string("hydrascope") + std::string(5, '\0') + provenance);
    }
    at += 12 + length;
  }
  EXPECT_EQ(at, png.size());
  EXPECT_TRUE(resolution);
  EXPECT_TRUE(text);
}

TEST_F(FigureFile, PdfHoldsNoTimeOfDay) {
  const std::string pdf = written(heat_map_figure(), "x.pdf");
  EXPECT_EQ(pdf.substr(0, 5), "%PDF-");
  EXPECT_EQ(pdf.find("CreationDate"), std::string::npos);
  EXPECT_EQ(pdf.find("ModDate"), std::string::npos);
  EXPECT_NE(pdf.find("/Keywords"), std::string::npos);
  // The table of objects is still where the file says it is.
  const auto start = pdf.rfind("startxref");
  ASSERT_NE(start, std::string::npos);
  EXPECT_EQ(pdf.substr(std::stoul(pdf.substr(start + 10)), 4), "xref");
}

TEST_F(FigureFile, SvgHoldsTextAsTextAndItsProvenance) {
  const std::string svg = written(every_kind(), "x.svg");
  EXPECT_NE(svg.find("<title>Heat &amp; &lt;map&gt;</title>"), std::string::npos);
  EXPECT_NE(svg.find(">a, &quot;b&quot;</text>"), std::string::npos);
  EXPECT_NE(svg.find(">##hog</text>"), std::string::npos);
  EXPECT_NE(svg.find("<metadata id=\"hydrascope\">{&quot;program&quot;:&quot;hydrascope&quot;"),
            std::string::npos);
  EXPECT_EQ(svg.find('\xff'), std::string::npos) << "bytes that are no UTF-8 would make the file unreadable";
  EXPECT_NE(svg.find("image-rendering:pixelated"), std::string::npos);
}

TEST_F(FigureFile, NamesThatAreNotUtf8AreShownWithDots) {
  Figure figure = heat_map_figure();
  figure.title = "caf\xe9.png";
  figure.subtitle = "a surrogate \xed\xa0\x80, and é";
  EXPECT_TRUE(written(figure, "x.pdf").starts_with("%PDF-"));
  const std::string svg = written(figure, "x.svg");
  EXPECT_NE(svg.find("<title>caf·.png</title>"), std::string::npos);
  EXPECT_NE(svg.find("<desc>a surrogate ···, and é</desc>"), std::string::npos);
  EXPECT_EQ(svg.find("\xe9."), std::string::npos);
  EXPECT_EQ(svg.find("\xed\xa0"), std::string::npos);
}

TEST_F(FigureFile, CsvHoldsTheNumbersExactly) {
  std::istringstream csv(written(heat_map_figure(), "x.csv"));
  std::string line;
  std::getline(csv, line);
  EXPECT_EQ(line.substr(0, 2), "# ");
  EXPECT_EQ(nlohmann::json::parse(line.substr(2))["program"], "hydrascope");
  std::getline(csv, line);
  EXPECT_EQ(line, "panel,kind,title,row,row_label,column,column_label,x,value");
  const Figure figure = heat_map_figure();
  const auto& values = std::get<HeatMapPanel>(figure.panels[0]).values.values;
  for (const float value : values) {
    ASSERT_TRUE(std::getline(csv, line));
    const std::string number = line.substr(line.rfind(',') + 1);
    if (std::isnan(value)) {
      EXPECT_EQ(number, "");
    } else {
      EXPECT_EQ(std::stof(number), value) << line;
    }
  }
  EXPECT_FALSE(std::getline(csv, line));
}

TEST_F(FigureFile, JsonHoldsTheNumbersExactly) {
  const auto json = nlohmann::json::parse(written(every_kind(), "x.json"));
  EXPECT_EQ(json["provenance"]["program"], "hydrascope");
  ASSERT_EQ(json["panels"].size(), 7u);
  const Figure figure = every_kind();
  const auto& values = std::get<HeatMapPanel>(figure.panels[0]).values.values;
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t column = 0; column < 4; ++column) {
      const auto& cell = json["panels"][0]["values"][row][column];
      const float value = values[row * 4 + column];
      if (std::isnan(value)) {
        EXPECT_TRUE(cell.is_null());
      } else {
        EXPECT_EQ(cell.get<float>(), value);
      }
    }
  }
  EXPECT_EQ(json["panels"][3]["values"], nlohmann::json({0.75, 0.125}));
  EXPECT_EQ(json["panels"][5]["lines"][0]["labels"], nlohmann::json({"elu", "relu", "cosformer"}));
  EXPECT_EQ(json["panels"][6]["values"], nlohmann::json({{0.51234567, 12.5}, {0.0625, nullptr}}));
}

TEST_F(FigureFile, NpyHoldsTheArrayAndAFileBesideItTheRest) {
  const std::string npy = written(heat_map_figure(), "x.npy");
  ASSERT_EQ(npy.substr(0, 6), "\x93NUMPY");
  const std::size_t header = static_cast<unsigned char>(npy[8]) + 256u * static_cast<unsigned char>(npy[9]);
  EXPECT_EQ((10 + header) % 64, 0u);
  EXPECT_NE(npy.find("'descr': '<f4', 'fortran_order': False, 'shape': (3, 4, ), "), std::string::npos);
  ASSERT_EQ(npy.size(), 10 + header + 12 * sizeof(float));
  float last = 0;
  std::memcpy(&last, npy.data() + npy.size() - sizeof last, sizeof last);
  const Figure figure = heat_map_figure();
  EXPECT_EQ(last, std::get<HeatMapPanel>(figure.panels[0]).values.values.back());
  const auto beside = nlohmann::json::parse(read_text_file(folder_ / "x.npy.json"));
  EXPECT_EQ(beside["provenance"]["program"], "hydrascope");
}

TEST_F(FigureFile, BinnedCellsHaveTheirAxesAndExactCentres) {
  Figure figure = heat_map_figure(); // 3 rows, 4 columns
  auto& panel = std::get<HeatMapPanel>(figure.panels[0]);
  panel.x_axis = Axis{-1, 3, false};
  panel.y_axis = Axis{1e-6, 1, true};
  panel.x_ticks = {"−0.5", "0.5", "1.5", "2.5"}; // as the window shows them
  panel.y_ticks = {"0.1", "0.001", "10⁻⁵"};
  for (const char* const name : {"b.json", "b.npy"}) {
    std::string text = written(figure, name);
    if (name == std::string("b.npy")) text = read_text_file(folder_ / "b.npy.json");
    const auto json = nlohmann::json::parse(text)["panels"][0];
    EXPECT_EQ(json["x_axis"], nlohmann::json({{"low", -1.0}, {"high", 3.0}, {"logarithmic", false}}));
    EXPECT_EQ(json["y_axis"], nlohmann::json({{"low", 1e-6}, {"high", 1.0}, {"logarithmic", true}}));
    EXPECT_EQ(json["column_labels"], nlohmann::json({"-0.5", "0.5", "1.5", "2.5"}));
    ASSERT_EQ(json["row_labels"].size(), 3U);
    for (std::size_t row = 0; row < 3; ++row) // the first is the uppermost
      EXPECT_NEAR(std::log10(std::stod(json["row_labels"][row].get<std::string>())),
                  -1 - 2 * static_cast<double>(row), 1e-9);
  }
  EXPECT_NE(written(figure, "b.csv").find(",0,-0.5,,"), std::string::npos);
}

TEST_F(FigureFile, NpyStacksPanelsOfOneShapeAndRefusesOthers) {
  Figure figure = heat_map_figure();
  figure.panels.push_back(figure.panels[0]);
  EXPECT_NE(written(figure, "x.npy").find("'shape': (2, 3, 4, )"), std::string::npos);
  EXPECT_THROW(write_figure(every_kind(), folder_ / "y.npy"), UsageError);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "y.npy"));
}

TEST_F(FigureFile, UnknownEndingsAreRefusedWithTheKnownOnes) {
  for (const char* const name : {"x.gif", "x", "x.svg.bak"}) {
    try {
      write_figure(heat_map_figure(), folder_ / name);
      FAIL() << name;
    } catch (const UsageError& error) {
      for (const auto& ending : figure_endings()) {
        EXPECT_NE(std::string(error.what()).find(ending), std::string::npos) << error.what();
      }
    }
    EXPECT_FALSE(std::filesystem::exists(folder_ / name));
  }
}

TEST_F(FigureFile, AFolderThatIsNotThereIsAnError) {
  EXPECT_THROW(write_figure(heat_map_figure(), folder_ / "none" / "x.png"), Error);
}

TEST_F(FigureFile, AbsurdStylesAreRefused) {
  FigureStyle style;
  style.dpi = 1e6;
  EXPECT_THROW(write_figure(heat_map_figure(), folder_ / "x.png", style), UsageError);
  style = {};
  style.width_mm = 0;
  EXPECT_THROW(write_figure(heat_map_figure(), folder_ / "x.svg", style), UsageError);
}

TEST_F(FigureFile, APageTooHighForPdfIsRefused) {
  Figure figure;
  figure.columns = 1;
  for (int map = 0; map < 90; ++map) figure.panels.push_back(heat_map_figure().panels[0]);
  try {
    write_figure(figure, folder_ / "high.pdf");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("mm high"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(".svg"), std::string::npos) << error.what();
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "high.pdf"));
  EXPECT_NO_THROW(write_figure(figure, folder_ / "high.svg"));
}

TEST_F(FigureFile, EmptyPanelsAndFiguresCanBeDrawn) {
  Figure figure;
  figure.title = "nothing";
  HeatMapPanel heat;
  heat.note = "no contribution is positive";
  figure.panels = {heat, OverlayPanel{}, TokensPanel{}, BarsPanel{}, LinesPanel{}};
  for (const char* const name : {"e.svg", "e.pdf", "e.png", "e.csv", "e.json"}) {
    EXPECT_NO_THROW(write_figure(figure, folder_ / name)) << name;
    EXPECT_NO_THROW(write_figure(Figure{}, folder_ / name)) << name;
  }
}

TEST_F(FigureFile, ACancelledFigureLeavesTheOldFile) {
  std::stop_source stop;
  stop.request_stop();
  for (const char* const name : {"c.svg", "c.pdf", "c.png", "c.csv"}) {
    const std::string before = written(heat_map_figure(), name);
    EXPECT_THROW(write_figure(every_kind(), folder_ / name, {}, stop.get_token()), Cancelled);
    EXPECT_EQ(read_text_file(folder_ / name), before);
  }
}

TEST_F(FigureFile, MarksAndWhiskersAreDrawnAndAmongTheNumbers) {
  BarsPanel bars;
  bars.labels = {"0  softmax", "1  elu"};
  bars.values = {2, 1};
  bars.marks = {2.5, 7};
  bars.marks_name = "p95 (ms)";
  LinesPanel lines;
  lines.log_x = lines.log_y = true;
  lines.lines = {{"softmax", {64, 128}, {0.5, 2}, {0, 0, 1, 1}, {0.75, 9}, "p95"}};
  Figure plain, figure;
  figure.panels = {bars, lines};
  const auto json = nlohmann::json::parse(written(figure, "marks.json"));
  EXPECT_EQ(json["panels"][0]["marks"], (std::vector<double>{2.5, 7}));
  EXPECT_EQ(json["panels"][0]["marks_are"], "p95 (ms)");
  EXPECT_EQ(json["panels"][1]["lines"][0]["upper"], (std::vector<double>{0.75, 9}));
  const std::string csv = written(figure, "marks.csv");
  EXPECT_NE(csv.find("p95 (ms),,7"), std::string::npos);
  EXPECT_NE(csv.find(",p95,128,9"), std::string::npos);

  bars.marks.clear();
  lines.lines.front().upper.clear();
  plain.panels = {bars, lines};
  EXPECT_NE(written(figure, "marks.svg"), written(plain, "plain.svg"));
}

} // namespace
} // namespace hydrascope
