// Sessions, figures and captures that earlier versions have written open for ever:
// tests/golden/compatibility.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "app/document/edits.h"
#include "app/document/session.h"
#include "app/views/provenance.h"
#include "engine/attention/own/map_source.h"
#include "engine/base/capture.h"
#include "engine/base/files.h"
#include "engine/base/paths.h"
#include "engine/figures/figure.h"
#include "tests/app/changed_document.h"
#include "tests/app/fixture.h"

namespace hydrascope::app::tests {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using testing::IsEmpty;

fs::path kept(const std::string& kind) { return test::source_folder() / "tests/golden/compatibility" / kind; }

std::vector<fs::path> kept_files(const std::string& kind, const std::string& ending = {}) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(kept(kind)))
    if (ending.empty() || entry.path().extension() == ending) files.push_back(entry.path());
  std::ranges::sort(files);
  EXPECT_THAT(files, testing::Not(IsEmpty())) << kind;
  return files;
}

// Of what the schema allows, whatever it says in words: another one is a change of the format.
std::string schema_fingerprint() {
  Json schema = Json::parse(session_schema_text());
  const std::function<void(Json&)> forget_words = [&](Json& json) {
    if (json.is_object() && json.contains("description") && json["description"].is_string())
      json.erase("description");
    if (json.is_structured())
      for (Json& part : json) forget_words(part);
  };
  forget_words(schema);
  constexpr std::size_t digits = 8;
  return sha256_of_text(nlohmann::json(schema).dump()).substr(0, digits); // whatever its order
}

// Something in every entry, also in those that a document alone does not have.
Session whole_session() {
  Session session;
  session.document = changed_document(kept("sessions") / "owl.png");
  session.document.scene().schedules[1].layers[1] =
      kernel_of_source("mine", "def phi(x):\n    return x * x + 1\n");
  session.lesson = Lesson{"A title", "Two. Sentences.", "here", "this", "that", "focus"};
  session.arrangement = "[Window][###focus]\nPos=1,2\n";
  session.model_hashes[golden_model("bert")] = "abc";
  session.writing.model = "bert";
  session.writing.prompt = "the cat";
  for (WrittenSide& side : session.writing.sides)
    side = {
        .schedule = "elu",
        .kernel = "elu",
        .prompt_tokens = 3,
        .prefill_ms = 1.5,
        .tokens = {{.id = 7, .name = " sat", .text = " sat", .logprob = -0.5, .ms = 2.5, .state_bytes = 64}},
        .text = " sat",
        .ended = "end of text",
        .problem = "none",
        .notes = {}};
  return session;
}

// As a version of this program writes it, with the tests' models named relative to it.
std::string portable_text(const Session& session, const fs::path& file) {
  FileHashes hashes;
  std::string text = session_text(session, file.parent_path(), hashes);
  // As sessions name it: with ~ where the checkout lies below the home folder.
  const std::string golden = reference_of(test::source_folder() / "tests/golden", file.parent_path());
  for (std::size_t at = 0; (at = text.find(golden, at)) != std::string::npos;)
    text.replace(at, golden.size(), "../..");
  return text;
}

std::string describe(const ReadSession& read) {
  std::string text;
  for (const std::string& note : read.notes) text += note + "\n";
  for (const MissingFile& file : read.missing) text += file.path.string() + " " + file.reason + "\n";
  return text;
}

// Every entry of the file is in what the session is written as now, under the same name and with the same
// value.
TEST(CompatibleSessions, KeepEveryValue) {
  for (const fs::path& file : kept_files("sessions", ".json")) {
    SCOPED_TRACE(file.filename());
    Json then = Json::parse(read_text_file(file));
    auto closed = then.at("document").at("closed_panels").get<std::vector<std::string>>();
    std::ranges::sort(closed); // of those written by hand
    then["document"]["closed_panels"] = closed;
    const ReadSession read = read_session(then.dump(), file);
    EXPECT_EQ(describe(read), "");
    const Json now = Json::parse(portable_text(read.session, file));
    const Json entries = then.flatten();
    int compared = 0;
    for (const auto& [pointer, value] : entries.items()) {
      const bool of_this_version = pointer == "/version" || pointer == "/program";
      if (of_this_version || value.is_null()) continue;
      const Json::json_pointer place(pointer);
      ASSERT_TRUE(now.contains(place)) << pointer;
      EXPECT_EQ(now.at(place), value) << pointer;
      ++compared;
    }
    EXPECT_GT(compared, 20);
    Editor editor;
    editor.set_initial(small_document());
    EXPECT_TRUE(open_path(editor, file));
    EXPECT_EQ(document_json(editor.document()), document_json(read.session.document));
  }
}

TEST(CompatibleSessions, HaveAFileOfThePresentFormat) {
  const fs::path file =
      kept("sessions") / (std::to_string(session_version) + "-" + schema_fingerprint() + ".json");
  if (std::getenv("HYDRASCOPE_ADD_COMPATIBILITY") != nullptr)
    write_file_atomically(file, portable_text(whole_session(), file));
  EXPECT_TRUE(fs::exists(file))
      << "the sessions' format has changed: keep the files that are there, and add " << file
      << " with HYDRASCOPE_ADD_COMPATIBILITY=1 build/app_tests --gtest_filter='Compatible*'";
}

TEST(CompatibleFigures, LeadBackToTheirViews) {
  int with_session = 0;
  for (const fs::path& file : kept_files("figures")) {
    if (file.string().ends_with(".npy.json")) continue; // is read with its array
    SCOPED_TRACE(file.filename());
    const std::string provenance = read_provenance(file);
    EXPECT_EQ(Json::parse(provenance).at("program"), "hydrascope");
    const FigureView view = view_of(provenance);
    if (view.session.empty()) {
      EXPECT_TRUE(view.command.starts_with("hydrascope figure ")) << view.command;
      continue;
    }
    ++with_session;
    EXPECT_EQ(view.panel, "focus");
    const ReadSession read = read_session(view.session, file);
    EXPECT_THAT(read.notes, IsEmpty());
    EXPECT_EQ(read.session.document.scene_of(InputKind::image).layer, 1);
  }
  EXPECT_GE(with_session, 2);
}

TEST(CompatibleCaptures, Open) {
  bool present = false;
  for (const fs::path& file : kept_files("captures", ".safetensors")) {
    SCOPED_TRACE(file.filename());
    const Capture capture = Capture::open(file);
    ASSERT_EQ(capture.layers().size(), 2U);
    EXPECT_EQ(capture.layers()[0].heads, 4);
    capture.check_numbers(0, 0);
    Editor editor;
    editor.set_initial(small_document());
    EXPECT_TRUE(open_path(editor, file));
    present = present || file.filename().string().starts_with(std::string(capture_format) + "-");
  }
  EXPECT_TRUE(present) << "the captures' format has changed: keep the files that are there, and add one to "
                       << kept("captures");
}

} // namespace
} // namespace hydrascope::app::tests
