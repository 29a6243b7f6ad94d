// A decoder goes on with the document's text under A and under B: the work in the background, what can go on,
// what is taken over, and what a session keeps.
#include "app/jobs/writing_job.h"

#include <chrono>
#include <thread>

#include <gmock/gmock.h>

#include "app/document/edits.h"
#include "app/document/session_edits.h"
#include "app/document/writing_edits.h"
#include "app/jobs/jobs.h"
#include "engine/base/paths.h"
#include "tests/app/fixture.h"

namespace hydrascope::app::tests {
namespace {

using Ids = std::vector<int>;

class WritingTest : public ::testing::Test {
protected:
  WritingTest() {
    Document document = decoder_document();
    document.scene().schedules[1].layers.assign(3, {.name = "elu", .parameters = {}});
    document.writing.tokens = 12;
    editor_.set_initial(std::move(document));
  }

  void finish() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (job_.running() && std::chrono::steady_clock::now() < end) {
      job_.update(editor_, false);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_FALSE(job_.running());
  }
  void write(bool anew = true) {
    job_.start(editor_, anew);
    finish();
  }
  void set(const std::function<void(WritingOptions&)>& edit) { change_writing(editor_, "Option", edit); }
  Ids ids(Side side) const {
    Ids all;
    for (const WrittenToken& token : editor_.writing.side(side).tokens) all.push_back(token.id);
    return all;
  }
  void save(const std::filesystem::path& file) const {
    FileHashes hashes;
    write_file_atomically(file, session_text(present_session(editor_, ""), file.parent_path(), hashes));
  }
  // Saves the session and opens it in the other editor.
  void reopen_in(Editor& other) const {
    const ScratchFolder scratch;
    const auto file = scratch / "session.json";
    save(file);
    other.set_initial(small_document());
    ASSERT_TRUE(open_session(other, file));
  }
  std::string text() const { return std::get<TextInput>(*editor_.document().scene().input).text; }

  Editor editor_;
  WritingJob job_{{}, make_model_store()};
};

TEST_F(WritingTest, WritesUnderBothSchedules) {
  write();
  const Writing& writing = editor_.writing;
  EXPECT_FALSE(writing.running);
  EXPECT_FALSE(writing.alike);
  for (const Side side : {Side::a, Side::b}) {
    const WrittenSide& written = writing.side(side);
    EXPECT_EQ(written.problem, "");
    EXPECT_GT(written.prompt_tokens, 3);
    EXPECT_TRUE(written.tokens.size() == 12 || !written.ended.empty()) << written.tokens.size();
    for (const WrittenToken& token : written.tokens) {
      EXPECT_LE(token.logprob, 0);
      EXPECT_GT(token.ms, 0);
    }
  }
  EXPECT_EQ(writing.side(Side::b).kernel, "elu");
  EXPECT_TRUE(writing_fits(editor_));
}

TEST_F(WritingTest, SoftmaxsStateGrowsAndALinearKernelsDoesNot) {
  write();
  const auto& softmax = editor_.writing.side(Side::a).tokens;
  const auto& linear = editor_.writing.side(Side::b).tokens;
  ASSERT_GT(softmax.size(), 2U);
  ASSERT_GT(linear.size(), 2U);
  EXPECT_GT(softmax.back().state_bytes, softmax.front().state_bytes);
  EXPECT_EQ(linear.back().state_bytes, linear.front().state_bytes);
  EXPECT_GT(linear.front().state_bytes, 0);
}

TEST_F(WritingTest, EqualSchedulesAreWrittenOnce) {
  set_all_kernels(editor_, {.name = "elu", .parameters = {}});
  write();
  EXPECT_TRUE(editor_.writing.alike);
  EXPECT_TRUE(editor_.writing.sides[1].tokens.empty());
  EXPECT_EQ(&editor_.writing.side(Side::b), &editor_.writing.sides[0]);
}

// A token depends on the seed and its position alone.
TEST_F(WritingTest, GoesOnAsIfItHadNotStopped) {
  set([](WritingOptions& options) { options.temperature = 1.5; });
  write();
  const Ids a = ids(Side::a), b = ids(Side::b);
  const std::string all = editor_.writing.side(Side::a).text;
  set([](WritingOptions& options) { options.tokens = 5; });
  write();
  ASSERT_EQ(ids(Side::a).size(), std::min<std::size_t>(5, a.size()));
  set([](WritingOptions& options) { options.tokens = 7; });
  write(false);
  EXPECT_EQ(ids(Side::a), a);
  EXPECT_EQ(ids(Side::b), b);
  EXPECT_EQ(editor_.writing.side(Side::a).text, all);
}

TEST_F(WritingTest, AnotherSeedWritesAnotherText) {
  set([](WritingOptions& options) { options.temperature = 1.5; });
  write();
  const Ids first = ids(Side::a);
  set([](WritingOptions& options) { options.seed = 1; });
  write();
  EXPECT_NE(ids(Side::a), first);
}

TEST_F(WritingTest, WaitsForInteractiveRuns) {
  set([](WritingOptions& options) { options.tokens = 30; });
  job_.start(editor_, true);
  job_.update(editor_, true);
  std::this_thread::sleep_for(std::chrono::milliseconds(300)); // the step under way is finished
  job_.update(editor_, true);
  const std::size_t before = editor_.writing.sides[0].tokens.size();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  job_.update(editor_, true);
  EXPECT_EQ(editor_.writing.sides[0].tokens.size(), before);
  EXPECT_TRUE(editor_.writing.running);
  finish();
  EXPECT_GT(editor_.writing.sides[0].tokens.size(), before);
}

TEST_F(WritingTest, StopsAndKeepsWhatIsThere) {
  set([](WritingOptions& options) { options.tokens = 30; });
  job_.start(editor_, true);
  while (editor_.writing.sides[0].tokens.empty()) job_.update(editor_, false);
  job_.stop(editor_);
  EXPECT_FALSE(editor_.writing.running);
  EXPECT_FALSE(ids(Side::a).empty());
  EXPECT_EQ(why_not_continued(editor_), "");
}

TEST_F(WritingTest, EndsWithTheModelsPositions) {
  set([](WritingOptions& options) { options.tokens = 1000; });
  write();
  const WrittenSide& side = editor_.writing.side(Side::a);
  EXPECT_THAT(side.ended, testing::AnyOf("positions", "end of text"));
  EXPECT_LE(side.prompt_tokens + std::ssize(side.tokens), 513);
}

TEST_F(WritingTest, AKernelThatCannotWriteSaysSoAndTheOtherSideGoesOn) {
  editor_.change("Kernels", [](Document& document) {
    document.scene().schedules[1].layers.assign(3, {.name = "cosformer", .parameters = {}});
  });
  write();
  EXPECT_NE(editor_.writing.side(Side::b).problem, "");
  EXPECT_TRUE(editor_.writing.side(Side::b).tokens.empty());
  EXPECT_FALSE(editor_.writing.side(Side::a).tokens.empty());
}

TEST_F(WritingTest, FitsItsTextAndKernelsAlone) {
  write();
  ASSERT_TRUE(writing_fits(editor_));
  set_layer_kernel(editor_, 0, {.name = "elu", .parameters = {}});
  EXPECT_FALSE(writing_fits(editor_));
  EXPECT_EQ(why_not_continued(editor_), "the text or its kernels have changed since");
  editor_.undo();
  EXPECT_TRUE(writing_fits(editor_));
  open_text(editor_, "another text");
  EXPECT_FALSE(writing_fits(editor_));
}

TEST_F(WritingTest, IsTakenOverInOneStepOfUndo) {
  write();
  const std::string prompt = text(), written = editor_.writing.side(Side::b).text;
  ASSERT_FALSE(written.empty());
  take_over_writing(editor_, Side::b);
  EXPECT_EQ(text(), prompt + written);
  EXPECT_TRUE(is_taken_over(editor_.document(), editor_.writing, Side::b));
  EXPECT_NE(why_not_taken_over(editor_, Side::b), "");
  editor_.undo();
  EXPECT_EQ(text(), prompt);
  EXPECT_EQ(why_not_continued(editor_), "");
}

TEST_F(WritingTest, OtherPanelsFollowTheSideThatIsShown) {
  EXPECT_FALSE(followed_document(editor_).has_value());
  write();
  EXPECT_FALSE(followed_document(editor_).has_value());
  set([](WritingOptions& options) { options.follow = true; });
  const auto text_of = [](const std::optional<Document>& document) {
    return document ? std::get<TextInput>(*document->scene().input).text : std::string();
  };
  EXPECT_EQ(text_of(followed_document(editor_)), text() + editor_.writing.side(Side::a).text);
  change_view(editor_, "B", [](ViewOptions& view) { view.shown = Shown::b; });
  EXPECT_EQ(text_of(followed_document(editor_)), text() + editor_.writing.side(Side::b).text);
  show_panel(editor_, "write", "Write", false);
  EXPECT_FALSE(followed_document(editor_).has_value());
}

// Written tokens are chosen and hidden while the panels follow; the document's own text has none of them.
TEST_F(WritingTest, NoTokenIsNamedThatTheShownTextDoesNotHave) {
  write();
  set([](WritingOptions& options) { options.follow = true; });
  const std::int64_t own = editor_.writing.side(Side::a).prompt_tokens;
  ASSERT_GT(editor_.writing.side(Side::a).tokens.size(), 2U);
  const auto shown = [](const Editor& editor) {
    const std::optional<Document> followed = followed_document(editor);
    return followed ? followed->scene() : editor.document().scene();
  };
  select_query(editor_, own + 1);
  select_key(editor_, own);
  hide_tokens(editor_, 1, 1, true);
  hide_tokens(editor_, own, 1, true);
  EXPECT_EQ(shown(editor_).query, own + 1);
  EXPECT_EQ(shown(editor_).key, own);
  EXPECT_EQ(shown(editor_).hidden_tokens, (std::vector<std::int64_t>{1, own}));
  const auto expect_none_beyond = [&](const Editor& editor) {
    EXPECT_TRUE(shown(editor).default_query);
    EXPECT_FALSE(shown(editor).query.has_value());
    EXPECT_FALSE(shown(editor).key.has_value());
    EXPECT_EQ(shown(editor).hidden_tokens, (std::vector<std::int64_t>{1}));
    EXPECT_EQ(editor.document().scene().query, own + 1); // as it was chosen
  };
  set([](WritingOptions& options) { options.follow = false; });
  expect_none_beyond(editor_);
  Editor other;
  ASSERT_NO_FATAL_FAILURE(reopen_in(other));
  expect_none_beyond(other);
  set([](WritingOptions& options) { options.follow = true; });
  job_.start(editor_, true); // anew: the text has not been read again
  expect_none_beyond(editor_);
  finish();
  EXPECT_EQ(shown(editor_).query, own + 1);
}

TEST_F(WritingTest, ASessionKeepsItAndGoesOnAlike) {
  set([](WritingOptions& options) { options.temperature = 1.5; });
  write();
  const Ids whole = ids(Side::a);
  set([](WritingOptions& options) { options.tokens = 4; });
  write();
  Editor other;
  ASSERT_NO_FATAL_FAILURE(reopen_in(other));
  const Writing& read = other.writing;
  EXPECT_EQ(read.prompt, editor_.writing.prompt);
  EXPECT_EQ(read.model, "written");
  ASSERT_EQ(read.side(Side::a).tokens.size(), editor_.writing.side(Side::a).tokens.size());
  EXPECT_EQ(read.side(Side::a).tokens.back().name, editor_.writing.side(Side::a).tokens.back().name);
  EXPECT_EQ(read.side(Side::b).text, editor_.writing.side(Side::b).text);
  ASSERT_EQ(why_not_continued(other), "");
  change_writing(other, "Tokens", [](WritingOptions& options) { options.tokens = 8; });
  job_.start(other, false);
  while (job_.running()) job_.update(other, false);
  Ids goes_on;
  for (const WrittenToken& token : read.side(Side::a).tokens) goes_on.push_back(token.id);
  EXPECT_EQ(goes_on, whole);
}

TEST_F(WritingTest, ASessionsTextReplacesOneThatIsBeingWritten) {
  const ScratchFolder scratch;
  const auto file = scratch / "session.json";
  save(file);
  set([](WritingOptions& options) { options.tokens = 30; });
  job_.start(editor_, true);
  while (editor_.writing.sides[0].tokens.empty()) job_.update(editor_, false);
  ASSERT_TRUE(open_session(editor_, file));
  finish();
  EXPECT_TRUE(editor_.writing.empty());
  EXPECT_FALSE(editor_.writing.running);
}

TEST_F(WritingTest, SaysWhyNothingCanBeWritten) {
  EXPECT_EQ(why_not_written(editor_.document()), "");
  open_text(editor_, " ");
  EXPECT_EQ(why_not_written(editor_.document()), "there is no text to go on with");
  open_text(editor_, "one", "two");
  EXPECT_NE(why_not_written(editor_.document()), "");
  editor_.set_initial(small_document());
  EXPECT_EQ(why_not_written(editor_.document()), "no decoder is open");
  job_.start(editor_, true);
  EXPECT_FALSE(job_.running());
  EXPECT_FALSE(editor_.messages().empty());
}

TEST_F(WritingTest, IsAmongTheRunningJobs) {
  job_.start(editor_, true);
  const auto jobs = running_jobs(editor_);
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_THAT(jobs.front().text, testing::StartsWith("writing"));
  finish();
  EXPECT_TRUE(running_jobs(editor_).empty());
}

// ---- Views

Writing made_up() {
  Writing writing;
  writing.model = "tiny";
  writing.prompt = "Once";
  for (std::size_t side = 0; side < 2; ++side) {
    writing.sides[side].schedule = side == 0 ? "softmax ×2" : "elu ×2";
    writing.sides[side].kernel = side == 0 ? "softmax" : "elu";
    writing.sides[side].prompt_tokens = 10;
    for (int i = 0; i < 300; ++i)
      writing.sides[side].tokens.push_back({.id = i < 7 ? i : i + static_cast<int>(side),
                                            .name = " x",
                                            .text = " x",
                                            .logprob = -1.5,
                                            .ms = 20.0 + i,
                                            .state_bytes = side == 0 ? 4000 * (11 + i) : 60000});
  }
  return writing;
}

TEST(WritingViews, CountTheTokensInCommon) {
  const Writing writing = made_up();
  EXPECT_EQ(common_tokens(writing.sides[0], writing.sides[1]), 7U);
  EXPECT_EQ(common_tokens(writing.sides[0], {}), 0U);
}

TEST(WritingViews, PlotTimeAndStateAgainstTheLength) {
  const Figure figure = writing_speed_figure(made_up());
  ASSERT_EQ(figure.panels.size(), 2U);
  const auto& times = std::get<LinesPanel>(figure.panels[0]);
  const auto& states = std::get<LinesPanel>(figure.panels[1]);
  ASSERT_EQ(times.lines.size(), 2U);
  EXPECT_LE(times.lines[0].x.size(), 128U);
  EXPECT_GT(times.lines[0].x.size(), 90U);
  EXPECT_EQ(states.y_label, "MB");
  EXPECT_EQ(states.lines[1].y.front(), 0.06);
  EXPECT_GT(states.lines[0].y.back(), 10 * states.lines[0].y.front());
  EXPECT_EQ(times.lines[0].x.front(), 12); // three tokens from the eleventh on
  EXPECT_TRUE(writing_speed_figure({}).panels.empty());
}

TEST(WritingViews, SayHowFarItIs) {
  Writing writing = made_up();
  EXPECT_EQ(writing_progress_text(writing, Side::a), "300 tokens");
  writing.running = true;
  writing.wanted = {320, 320};
  EXPECT_EQ(writing_progress_text(writing, Side::b), "300 of 320 tokens");
  writing.sides[1].ended = "end of text";
  EXPECT_EQ(writing_progress_text(writing, Side::b), "end of text after 300 tokens");
  EXPECT_EQ(writing_speed_text(writing.sides[1]), "312 ms a token, state 60 kB");
  EXPECT_EQ(writing_speed_text({}), "");
}

TEST(WritingViews, AFigureHasTextsAndPlots) {
  const Figure figure = writing_figure(made_up());
  ASSERT_EQ(figure.panels.size(), 4U);
  EXPECT_EQ(std::get<TokensPanel>(figure.panels[0]).values.front(), 1.5);
  EXPECT_EQ(figure.subtitle, "After: Once");
}

} // namespace
} // namespace hydrascope::app::tests
