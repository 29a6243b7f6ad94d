// Every format gives back where its figure came from.
#include "engine/figures/figure.h"

#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "tests/support/scratch_folder.h"

namespace hydrascope {
namespace {

// With what has to be escaped somewhere: brackets (PDF), angle brackets (SVG), a comment's end (Markdown),
// letters of one to four bytes.
constexpr const char* awkward =
    R"({"program":"hydrascope","command":"figure --text 'a (b) c) \\ \"q\" <x> & --> é 中 𝛼'","seed":0})";

Figure table_figure(const std::string& provenance) {
  TablePanel table;
  table.row_name = "kernel";
  table.rows = {"elu"};
  table.columns = {{"KL"}};
  table.values = {{0.5}};
  Figure figure;
  figure.title = "a table";
  figure.panels = {table};
  figure.provenance = provenance;
  return figure;
}

class InFolder {
protected:
  test::ScratchFolder folder_;
};

class Provenance : public testing::TestWithParam<std::string>, protected InFolder {};
class TruncatedFile : public testing::Test, protected InFolder {};

TEST_P(Provenance, IsReadBack) {
  for (const std::string text : {awkward, R"({"program":"hydrascope","seed":3})"}) {
    const auto file = folder_ / ("figure" + GetParam());
    write_figure(table_figure(text), file);
    EXPECT_EQ(nlohmann::json::parse(read_provenance(file)), nlohmann::json::parse(text));
  }
}

TEST_P(Provenance, OfAnotherName) {
  const auto file = folder_ / ("figure" + GetParam()), renamed = folder_ / "without an ending";
  write_figure(table_figure(awkward), file);
  if (GetParam() == ".npy") GTEST_SKIP() << "an array's text lies beside it under its name";
  std::filesystem::rename(file, renamed);
  EXPECT_EQ(nlohmann::json::parse(read_provenance(renamed)), nlohmann::json::parse(awkward));
}

INSTANTIATE_TEST_SUITE_P(Formats, Provenance,
                         testing::Values(".svg", ".pdf", ".png", ".csv", ".json", ".npy", ".tex", ".md"),
                         [](const auto& format) { return format.param.substr(1); });

TEST(ProvenanceOf, WhatIsNoFigureIsSaidToBeNone) {
  for (const std::string bytes :
       {"", "\x89PNG\r\n\x1a\n", "<svg></svg>", "%PDF-1.5\n%%EOF", "a,b\n1,2\n", "{}", "{"})
    EXPECT_THROW(provenance_of(bytes, "file"), ForeignFile) << bytes;
  EXPECT_THROW(provenance_of("# {\"program\":\"another\"}\n", "file"), BrokenFile);
  EXPECT_THROW(provenance_of("# {\"program\":[\"hydrascope\"]}\n", "file"), BrokenFile);
  EXPECT_THROW(provenance_of("# {\"program\":\n", "file"), BrokenFile);
  EXPECT_THROW(read_provenance("/nonexistent/figure.svg"), Error);
}

// Writing what is nested so deeply would overflow the stack.
TEST(ProvenanceOf, BracketsInBracketsAreRefused) {
  constexpr std::size_t levels = 1'000'000;
  const std::string deep = std::string(levels, '[') + std::string(levels, ']');
  EXPECT_THROW(provenance_of("{\"provenance\":" + deep + "}", "file"), ForeignFile);
  EXPECT_THROW(provenance_of("# {\"program\":\"hydrascope\",\"x\":" + deep + "}\n", "file"), BrokenFile);
}

// Each name is compared with all before it: a vocabulary took a minute.
TEST(ProvenanceOf, ObjectsOfTooManyNamesAreRefused) {
  constexpr int names = 200'000;
  std::string many = "{\"program\":\"hydrascope\"";
  for (int i = 0; i < names; ++i) many += fmt::format(",\"name {}\":{}", i, i);
  many += "}";
  EXPECT_THROW(provenance_of("{\"provenance\":" + many + "}", "file"), ForeignFile);
  EXPECT_THROW(provenance_of("# " + many + "\n", "file"), BrokenFile);
}

// What is cut off before its end is refused, or holds all of the text; never a part of it.
TEST_F(TruncatedFile, IsRefusedOrReadInFull) {
  for (const std::string ending : {".png", ".pdf", ".svg", ".csv", ".json", ".tex", ".md"}) {
    SCOPED_TRACE(ending);
    write_figure(table_figure(awkward), folder_ / ("x" + ending));
    const std::string bytes = read_text_file(folder_ / ("x" + ending));
    std::size_t refused = 0;
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      std::string found;
      try {
        found = provenance_of(std::string_view(bytes).substr(0, length), "file");
      } catch (const Error&) {
        ++refused;
        continue;
      }
      EXPECT_EQ(nlohmann::json::parse(found, nullptr, false), nlohmann::json::parse(awkward)) << length;
    }
    EXPECT_GT(refused, std::string_view(awkward).size()) << "the text and what stands before it";
  }
}

} // namespace
} // namespace hydrascope
