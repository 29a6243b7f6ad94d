#include "engine/training/data/labelled_files.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "tests/engine/training/toy.h"

namespace hydrascope {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;
using testing::ToyFolder;

std::filesystem::path written(const ToyFolder& folder, const std::string& text) {
  std::ofstream(folder / "table.tsv", std::ios::binary) << text;
  return folder / "table.tsv";
}

TEST(LabelledText, TextAndLabelOfSst2) {
  const ToyFolder folder;
  const auto file = written(folder, "one long string of cliches\t0\nif you 've ever\t1\n");
  EXPECT_THAT(read_labelled_texts(file, {}, false, 0),
              ElementsAre(LabelledText{"one long string of cliches", {}, "0"},
                          LabelledText{"if you 've ever", {}, "1"}));
  EXPECT_THAT(read_labelled_texts(file, {}, false, 1), SizeIs(1));
}

TEST(LabelledText, LabelBeforeTextAndAnEmptyColumnOfCola) {
  const ToyFolder folder;
  const auto file = written(folder, "gj04\t1\t\tThe rope stretched.\ngj04\t0\t*\tRope the stretched.\n");
  EXPECT_THAT(read_labelled_texts(file, {4, 0, 2}, false, 0),
              ElementsAre(LabelledText{"The rope stretched.", {}, "1"},
                          LabelledText{"Rope the stretched.", {}, "0"}));
}

TEST(LabelledText, MarkHeaderCarriageReturnsAndQuotesOfMrpc) {
  const ToyFolder folder;
  const auto file = written(folder,
                            "\xef\xbb\xbfQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n"
                            "1\t7\t8\t\"Quoted once, he said.\tHe \"said\" so.\r\n\r\n"
                            "0\t9\t10\tA\t\r\n");
  const LabelledColumns columns{4, 5, 1};
  EXPECT_THAT(read_labelled_texts(file, columns, true, 0),
              ElementsAre(LabelledText{"\"Quoted once, he said.", "He \"said\" so.", "1"},
                          LabelledText{"A", "", "0"}));
  // Without a header the first line counts, and its mark is no part of the label.
  EXPECT_EQ(read_labelled_texts(file, columns, false, 1).front().label, "Quality");
}

TEST(LabelledText, ErrorsNameFileLineReasonAndRemedy) {
  const ToyFolder folder;
  const auto file = written(folder, "a\t1\n\nb\n");
  EXPECT_THAT([&] { read_labelled_texts(file, {}, false, 0); },
              ThrowsMessage<Error>(AllOf(HasSubstr("table.tsv"), HasSubstr("line 3 has no column 2"),
                                         HasSubstr("--label-column"))));
  EXPECT_EQ(read_labelled_texts(file, {}, false, 1).size(), 1U); // what is not asked for is not looked at
  EXPECT_THAT(
      [&] {
        read_labelled_texts(file, {1, 3, 2}, false, 0);
      },
      ThrowsMessage<Error>(AllOf(HasSubstr("line 1 has no column 3"), HasSubstr("--pair-column"))));
  EXPECT_THAT([&] { read_labelled_texts(written(folder, "a\t1\nb\t\n"), {}, false, 0); },
              ThrowsMessage<Error>(HasSubstr("line 2 has no label in column 2")));
  EXPECT_THAT([&] { read_labelled_texts(written(folder, "text\tlabel\n"), {}, true, 0); },
              ThrowsMessage<Error>(HasSubstr("no example below its header")));
  EXPECT_THROW(read_labelled_texts(folder / "none.tsv", {}, false, 0), Error);
  EXPECT_THROW(read_labelled_texts(folder.path(), {}, false, 0), UsageError);
  EXPECT_THROW(read_labelled_texts(file, {0, 0, 2}, false, 0), UsageError);
  EXPECT_THROW(read_labelled_texts(file, {2, 0, 2}, false, 0), UsageError);
  EXPECT_THROW(read_labelled_texts(file, {1, 1, 2}, false, 0), UsageError);
}

} // namespace
} // namespace hydrascope
