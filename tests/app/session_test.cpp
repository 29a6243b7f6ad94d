// Sessions: every field survives, and invalid or missing parts are reported.
#include "app/document/session.h"

#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "app/document/edits.h"
#include "app/document/session_edits.h"
#include "engine/attention/own/map_source.h"
#include "engine/base/error.h"
#include "engine/base/image.h"
#include "engine/base/paths.h"
#include "tests/app/changed_document.h"
#include "tests/app/fixture.h"

namespace hydrascope::app::tests {
namespace {

using Json = nlohmann::ordered_json;

class Sessions : public ::testing::Test {
protected:
  Sessions() {
    Image image{4, 2, std::vector<std::uint8_t>(24, 128)};
    write_file_atomically(picture(), encode_png(image));
  }
  std::filesystem::path picture() const { return scratch_ / "owl.png"; }
  std::filesystem::path file() const { return scratch_ / "session.json"; }
  std::string text_of(const Session& session) { return session_text(session, file().parent_path(), hashes_); }
  // What reading `text` throws; empty if nothing.
  std::string refusal(const std::string& text) const {
    try {
      read_session(text, file());
      return {};
    } catch (const Error& error) {
      return error.what();
    }
  }
  static Session session_of(Document document) {
    Session session;
    session.document = std::move(document);
    return session;
  }
  Json whole() { return Json::parse(text_of(session_of(changed_document(picture())))); }
  static std::string with(Json json, const char* pointer, const Json& value) {
    json[Json::json_pointer(pointer)] = value;
    return json.dump();
  }

  ScratchFolder scratch_;
  FileHashes hashes_;
};

TEST_F(Sessions, KeepEveryField) {
  const Document document = changed_document(picture());
  Session session = session_of(document);
  session.lesson = Lesson{"A title", "Two. Sentences.", "here", "this", "that", "focus"};
  session.arrangement = "[Window][###focus]\nPos=1,2\n";
  session.model_hashes[golden_model("bert")] = "abc";
  session.file = scratch_ / "original.json";
  session.changed = true;
  const ReadSession read = read_session(text_of(session), file());
  EXPECT_TRUE(read.missing.empty());
  EXPECT_THAT(read.notes, ::testing::IsEmpty());
  EXPECT_EQ(document_json(read.session.document).dump(1), document_json(document).dump(1));
  EXPECT_EQ(read.session.lesson, session.lesson);
  EXPECT_EQ(read.session.arrangement, session.arrangement);
  EXPECT_EQ(read.session.model_hashes, session.model_hashes);
  EXPECT_EQ(read.session.file, session.file);
  EXPECT_TRUE(read.session.changed);
}

TEST_F(Sessions, TestAboveChangesEveryField) {
  // A new field must be added to changed_document() above: no entry may equal the default's.
  Document plain = small_document();
  plain.scene().input.reset();
  plain.kind = InputKind::image;
  const Json defaults = document_json(plain), changed = document_json(changed_document(picture()));
  for (const char* entry : {"/scenes/text/", "/view/", "/execution/", "/"}) {
    const Json::json_pointer pointer(std::string(entry).substr(0, std::string(entry).size() - 1));
    for (const auto& [name, value] : changed.at(pointer).items()) {
      const bool unchanged_here =
          name == "model" || name == "folder" || name == "logarithmic"; // excludes percentile
      if (unchanged_here) continue;
      EXPECT_NE(value, defaults.at(pointer).at(name)) << entry << name;
    }
  }
}

TEST_F(Sessions, HoldTheSourcesOfMaps) {
  const std::string source = "def phi(x):\n    return x * x + 1\n";
  const KernelSpec map = kernel_of_source("mine", source);
  Document document = small_document();
  document.scene().schedules[0].layers[1] = map;
  document.scene().comparison = {map, std::nullopt};
  Json json = Json::parse(text_of(session_of(document)));
  const Json::json_pointer place("/document/scenes/text/schedules/0/1");
  EXPECT_EQ(json[place], (Json{{"kernel", map.text()}, {"source", source}}));
  const ReadSession read = read_session(json.dump(), file());
  EXPECT_THAT(read.notes, ::testing::IsEmpty());
  EXPECT_EQ(read.session.document.scene().schedules[0].layers[1], map);
  EXPECT_EQ(read.session.document.scene().comparison.front(), map);
  // Another source than the kernel's name stands for.
  json[place]["source"] = "def phi(x):\n    return x * x + 2\n";
  const ReadSession changed = read_session(json.dump(), file());
  EXPECT_EQ(changed.session.document.scene().schedules[0].layers[1], KernelSpec{});
  EXPECT_THAT(changed.notes, ::testing::Contains(::testing::HasSubstr("softmax is in its place")));
}

TEST_F(Sessions, NameFilesSoThatTheFolderCanMove) {
  const std::string text = text_of(session_of(changed_document(picture())));
  EXPECT_EQ(Json::parse(text)["document"]["scenes"]["image"]["input"]["path"], "owl.png");
  const std::filesystem::path other = scratch_ / "moved";
  std::filesystem::create_directories(other);
  std::filesystem::rename(picture(), other / "owl.png");
  const ReadSession read = read_session(text, other / "session.json");
  EXPECT_TRUE(read.missing.empty());
}

TEST_F(Sessions, ReportAMissingFileOnceAndFindItWhereTheUserLocatesIt) {
  Editor editor;
  editor.set_initial(small_document());
  const Document before = editor.document();
  const std::string text = text_of(session_of(changed_document(picture())));
  const std::filesystem::path other = scratch_ / "other.png";
  std::filesystem::rename(picture(), other);
  EXPECT_TRUE(open_session_text(editor, text, file()));
  ASSERT_TRUE(editor.incomplete_session.has_value());
  EXPECT_EQ(missing_text(*editor.incomplete_session), "picture " + picture().string() + " is not there");
  EXPECT_EQ(editor.document(), before);                    // nothing is open before the session is complete
  locate_missing(editor, scratch_ / "another.png", other); // which is not missing
  ASSERT_TRUE(editor.incomplete_session.has_value());
  locate_missing(editor, picture(), other);
  EXPECT_FALSE(editor.incomplete_session.has_value());
  EXPECT_EQ(input_name(*editor.document().scene_of(InputKind::image).input), "other.png");
  editor.undo();
  EXPECT_EQ(editor.document(), before);
}

TEST_F(Sessions, NameEveryEntryOfTheWrongType) {
  const Json json = whole(), flat = json.flatten();
  int tried = 0;
  for (const auto& [pointer, value] : flat.items()) {
    if (value.is_null() || value.is_structured()) continue;
    const std::string message =
        refusal(with(json, pointer.c_str(), value.is_string() ? Json(5.5) : Json("five")));
    EXPECT_NE(message.find(file().string()), std::string::npos) << pointer << ": " << message;
    const std::string named = pointer == "/format" ? "" : pointer;
    EXPECT_NE(message.find(named), std::string::npos) << message;
    ++tried;
  }
  EXPECT_GT(tried, 60);
}

TEST_F(Sessions, RefuseValuesThatNoModelAllows) {
  const Json json = whole();
  const auto expect = [&](const char* pointer, const Json& value, const char* reason) {
    const std::string message = refusal(with(json, pointer, value));
    EXPECT_NE(message.find(reason), std::string::npos) << pointer << ": " << message;
  };
  expect("/version", 2, "newer Hydrascope");
  expect("/version", 0, "/version");
  expect("/format", "other", "is no session");
  expect("/document/view/shown", "c", "none of a, b");
  expect("/document/view/opacity", 1.5, "from 0 to 1");
  expect("/document/view/maps", Json::array(), "/document/view/maps is empty");
  expect("/document/scenes/text/layer", 1e30, "/layer");
  expect("/document/scenes/text/hidden_tokens", {5, 3}, "ascending");
  expect("/document/scenes/text/hidden_tokens", {-1, 3}, "below 0");
  expect("/document/scenes/text/muted_heads", {{1, 0}, {0, 0}}, "ascending");
  expect("/document/scenes/text/query", "some", "neither default, nor all");
  expect("/document/scenes/text/schedules/1", Json(std::vector<std::string>(1001, "elu")),
         "has more than 1000 layers");
  Json maps = Json::array(); // that are refused, each with a note
  for (int i = 0; i < 65; ++i)
    maps.push_back({{"kernel", fmt::format("phi:map=map{}@0123456789abcdef", i)}, {"source", "no map"}});
  expect("/document/scenes/text/schedules/1", maps, "at most 64 different ones");
  maps.erase(maps.begin());
  EXPECT_EQ(refusal(with(json, "/document/scenes/text/schedules/1", maps)), "");
  expect("/document/scenes/image/input", {{"text", "a cat"}}, "of the other kind");
}

TEST_F(Sessions, ReplaceWhatThisModelDoesNotHaveWithANote) {
  const Json json = whole();
  const auto read = [&](const char* pointer, const Json& value) {
    return read_session(with(json, pointer, value), file());
  };
  const auto expect = [](const ReadSession& session, const char* note) {
    ASSERT_FALSE(session.notes.empty()) << note;
    EXPECT_NE(session.notes.front().find(note), std::string::npos) << session.notes.front();
  };
  ReadSession session = read("/document/scenes/text/layer", 99);
  expect(session, "bert has no layer 99");
  EXPECT_EQ(session.session.document.scene().layer, 1);
  session = read("/document/scenes/text/head/head", 7);
  expect(session, "has no head 7");
  EXPECT_EQ(session.session.document.scene().head.head, 0);
  session = read("/document/scenes/text/muted_heads", {{0, 1}, {5, 0}});
  expect(session, "names heads");
  EXPECT_EQ(session.session.document.scene().muted_heads, (std::vector<HeadIndex>{{0, 1}}));
  session = read("/document/scenes/text/schedules/1", Json::array({"elu"}));
  expect(session, "all are softmax");
  EXPECT_EQ(session.session.document.scene().schedules[1].layers, std::vector<KernelSpec>(2));
  expect(read("/document/scenes/text/schedules/0/1", "hydra-kosine"), "hydra-cosine");
  expect(read("/document/view/glow", true), "/document/view/glow");
  session = read("/document/view/logarithmic", true);
  expect(session, "/document/view/percentile");
  EXPECT_TRUE(session.session.document.view.logarithmic);
  EXPECT_FALSE(session.session.document.view.percentile);
}

TEST_F(Sessions, ReadACutOffFileAsDamagedAndAnotherAsForeign) {
  const std::string text = whole().dump();
  EXPECT_THROW(read_session(text.substr(0, text.size() / 2), file()), BrokenFile);
  EXPECT_THROW(read_session("{}", file()), ForeignFile);
  const std::string deep = ",\"x\":" + std::string(100, '[') + std::string(100, ']') + "}";
  EXPECT_THROW(read_session(text.substr(0, text.size() - 1) + deep, file()), BrokenFile);
  EXPECT_THROW(read_session(text.substr(0, text.size() - 1) + ",\"x\":1e999}", file()), BrokenFile);
  std::string names = "{\"name\":0"; // each is compared with all before it
  for (int i = 0; i < 200'000; ++i) names += fmt::format(",\"name {}\":{}", i, i);
  EXPECT_THROW(read_session(text.substr(0, text.size() - 1) + ",\"x\":" + names + "}}", file()), BrokenFile);
  EXPECT_TRUE(is_session(text.substr(0, text.size() / 2)));
  EXPECT_FALSE(is_session("{\"format\": \"other\"}"));
}

TEST_F(Sessions, HaveTheSchemaInAssets) {
  EXPECT_EQ(session_schema_text(), read_text_file(test::source_folder() / "assets/session.schema.json"));
}

TEST_F(Sessions, InAFigureHaveNoArrangementAndNoPastedPictures) {
  Session session = session_of(small_document());
  session.arrangement = "[Window]";
  session.document.scene_of(InputKind::image).input =
      ImageInput{std::make_shared<const Image>(load_image(picture())), "pasted picture", {}};
  const std::string compact = compact_session_text(session, hashes_);
  EXPECT_EQ(compact.find('\n'), std::string::npos);
  const Json json = Json::parse(compact);
  EXPECT_FALSE(json.contains("arrangement"));
  EXPECT_FALSE(json["document"]["scenes"]["image"]["input"].contains("png"));
  EXPECT_TRUE(Json::parse(text_of(session))["document"]["scenes"]["image"]["input"].contains("png"));
}

} // namespace
} // namespace hydrascope::app::tests
