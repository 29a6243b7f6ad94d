// The gallery: every lesson is whole, opens with what set-up fetches, and is not saved over.
#include "app/document/gallery.h"

#include <gmock/gmock.h>

#include "app/document/edits.h"
#include "app/document/session_edits.h"
#include "engine/base/error.h"
#include "engine/base/image.h"
#include "engine/base/paths.h"
#include "tests/app/fixture.h"

namespace hydrascope::app::tests {
namespace {

TEST(GalleryLessons, AreWhole) {
  const std::vector<GalleryEntry>& entries = gallery().entries;
  EXPECT_THAT(gallery().problems, ::testing::IsEmpty());
  EXPECT_EQ(entries.size(), 10U);
  const std::vector<PanelName> panels = {{"input", "", false}, {"layers", "", true}};
  for (const GalleryEntry& entry : entries) {
    const Lesson& lesson = entry.lesson;
    for (const std::string& text : {lesson.title, lesson.look, lesson.click, lesson.shows})
      EXPECT_FALSE(text.empty()) << entry.id;
    EXPECT_LE(lesson.title.size(), 32U) << entry.id; // one line of a card
    EXPECT_LE(lesson.text.size(), 200U) << entry.id;
    EXPECT_NE(lesson.text.find(". "), std::string::npos) << entry.id; // two sentences
    EXPECT_LT(std::filesystem::file_size(entry.thumbnail), 30'000U) << entry.id;
    const Image picture = load_image(entry.thumbnail);
    EXPECT_EQ(picture.width * 3, picture.height * 5) << entry.id;
    EXPECT_TRUE(std::ranges::any_of(panels, [&](const PanelName& panel) { return panel.id == lesson.panel; }))
        << entry.id;
  }
}

TEST(GalleryLessons, OpenWithNothingMissing) {
  for (const GalleryEntry& entry : gallery().entries) {
    const ReadSession read = read_session(read_text_file(entry.session), entry.session);
    EXPECT_TRUE(read.missing.empty()) << entry.id;
    EXPECT_THAT(read.notes, ::testing::IsEmpty()) << entry.id;
    EXPECT_EQ(read.session.lesson, entry.lesson);
    EXPECT_FALSE(read.session.document.closed_panels.contains(entry.lesson.panel)) << entry.id;
  }
}

TEST(GalleryLessons, AreOpenedAsOneStepAndNotSavedOver) {
  Editor editor;
  editor.set_initial(small_document());
  const Document before = editor.document();
  const GalleryEntry entry = gallery().entries.front();
  ASSERT_TRUE(open_session(editor, entry.session));
  ASSERT_NE(shown_lesson(editor), nullptr);
  EXPECT_EQ(*shown_lesson(editor), entry.lesson);
  EXPECT_TRUE(editor.session().file.empty()); // Save asks for a file
  EXPECT_TRUE(editor.settings().recent.empty());
  editor.undo();
  EXPECT_EQ(editor.document(), before);
  EXPECT_EQ(shown_lesson(editor), nullptr);
}

TEST(GalleryLessons, AreKeptInTheSessionUntilTheyAreClosed) {
  Editor editor;
  editor.set_initial(small_document());
  ASSERT_TRUE(open_session(editor, gallery().entries.front().session));
  EXPECT_TRUE(present_session(editor, "").lesson.has_value());
  editor.session().lesson_closed = true;
  EXPECT_EQ(shown_lesson(editor), nullptr);
  EXPECT_FALSE(present_session(editor, "").lesson.has_value());
}

TEST(GalleryLessons, WithoutTheirPictureNameIt) {
  Editor editor;
  editor.set_initial(small_document());
  const Document before = editor.document();
  const GalleryEntry entry = gallery().entries.front();
  std::string text = read_text_file(entry.session);
  const std::string name = "example:chelsea.png";
  text.replace(text.find(name), name.size(), "example:gone.png");
  ASSERT_TRUE(open_session_text(editor, text, entry.session));
  EXPECT_EQ(editor.document(), before);
  ASSERT_TRUE(editor.incomplete_session.has_value());
  EXPECT_THAT(missing_text(*editor.incomplete_session), ::testing::HasSubstr("gone.png"));
}

TEST(GalleryLessons, WithAWrongEntryAreRefused) {
  const char* const text =
      R"({"format": "hydrascope-session", "version": 1, "lesson": {"title": 3}, "document": {}})";
  EXPECT_THROW(read_lesson(text, "x.json"), BrokenFile);
  EXPECT_FALSE(read_lesson(R"({"format": "hydrascope-session", "version": 1, "document": {}})", "x.json"));
}

} // namespace
} // namespace hydrascope::app::tests
