// Sessions saved and opened in the window, with files that have moved. tests/app has the format.
#include "app/document/session.h"

#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/document/edits.h"
#include "app/document/session_edits.h"
#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "tests/support/checkout.h"
#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string written(const fs::path& folder) {
  FileHashes hashes;
  return session_text(present_session(editor(), "[Window][###focus]\nPos=1,2\n"), folder, hashes);
}

bool gives_document(const std::string& text, const fs::path& file) {
  return same_content(document(), read_session(text, file).session.document);
}

// A bit of everything that can be chosen.
void set_up_rich_view() {
  set_all_kernels(editor(), {.name = "performer", .parameters = {{"features", "32"}, {"seed", "7"}}});
  change_view(editor(), "B", [](ViewOptions& view) { view.shown = Shown::b; });
  apply_preset(editor(), Strategy::back, 2, {.name = "hydra-cosine", .parameters = {}});
  select_cell(editor(), 9, 3);
  mute_layer(editor(), 7, true);
  mute_head(editor(), {9, 1}, true);
  select_pair(editor(), 40, 51);
  hide_tokens(editor(), 12, 3, true);
  compare_kernel(editor(), 1, KernelSpec{.name = "elu", .parameters = {}});
  add_compared_kernel(editor(), std::nullopt);
  select_detail_kernel(editor(), KernelSpec{.name = "relu", .parameters = {}});
  select_target(editor(), {.kind = Target::Kind::class_index, .index = 281, .text = {}});
  show_panel(editor(), "kl", "KL", false);
  change_view(editor(), "View", [](ViewOptions& view) {
    view.shown = Shown::difference;
    view.maps = {MapKind::focus, MapKind::rollout};
    view.discard = 0.9;
    view.look.mode = OverlayMode::dimmed;
    view.look.opacity = 0.35f;
    view.look.interpolation = Interpolation::bicubic;
    view.percentile = true;
    view.pairs = TokenPairs::b_to_a;
    view.change_measure = ChangeMeasure::cosine;
    view.tokens.whole_words = true;
  });
  editor().change("Execution", [](Document& document) {
    document.execution.seed = 18446744073709551615U;
    document.execution.image_size = 224;
  });
  open_text(editor(), "Ein “Zitat”, und\nwhat follows.", "A second one.");
  show_kind(editor(), InputKind::image);
}

void same_again(ImGuiTestContext* context) {
  start_over(context);
  const fs::path file = fresh_folder("again") / "session.json";
  set_up_rich_view();
  const ReadSession read = read_session(written(file.parent_path()), file);
  IM_CHECK(read.notes.empty());
  IM_CHECK(read.missing.empty());
  IM_CHECK_STR_EQ(read.session.arrangement.c_str(), "[Window][###focus]\nPos=1,2\n");
  IM_CHECK(read.session.model_hashes.contains(document().scene().model_folder));
  IM_CHECK(gives_document(written(file.parent_path()), file));
  start_over(context);
}

// Bundled models and pictures by name, the user's own relative: nothing of this machine's folders.
void found_elsewhere(ImGuiTestContext* context) {
  start_over(context);
  const fs::path folder = fresh_folder("moved");
  fs::create_directories(folder / "pictures");
  fs::copy_file(example("coffee"), folder / "pictures" / "mine: 1.png");
  std::string text = written(folder);
  IM_CHECK(text.find("example:chelsea.png") != std::string::npos);
  IM_CHECK(text.find("model:vit-small") != std::string::npos);
  IM_CHECK(open_path(editor(), folder / "pictures" / "mine: 1.png"));
  text = written(folder);
  IM_CHECK(text.find(folder.string()) == std::string::npos);
  IM_CHECK(text.find(test::deps_folder().string()) == std::string::npos);
  const fs::path elsewhere = scratch_file("moved-there");
  fs::rename(folder, elsewhere);
  const ReadSession read = read_session(text, elsewhere / "session.json");
  IM_CHECK(read.missing.empty());
  const auto& image = std::get<ImageInput>(*read.session.document.scene().input);
  IM_CHECK(image.path == elsewhere / "pictures" / "mine: 1.png");
  IM_CHECK(image.image->rgb == std::get<ImageInput>(*document().scene().input).image->rgb);

  // Another picture under the same name is opened, and said.
  fs::copy_file(example("rocket"), elsewhere / "pictures" / "mine: 1.png",
                fs::copy_options::overwrite_existing);
  const ReadSession other = read_session(text, elsewhere / "session.json");
  IM_CHECK(other.session.document.scene().input.has_value());
  IM_CHECK_EQ(other.notes.size(), static_cast<std::size_t>(1));
  IM_CHECK(other.notes.front().find("has changed") != std::string::npos);
  start_over(context);
}

void pasted_pictures_are_inside(ImGuiTestContext* context) {
  start_over(context);
  Image image{3, 2, {}};
  for (int i = 0; i < 18; ++i) image.rgb.push_back(static_cast<std::uint8_t>(i * 13));
  open_image(editor(), {std::make_shared<const Image>(image), "pasted picture", {}});
  const fs::path file = fresh_folder("pasted") / "session.json";
  const ReadSession read = read_session(written(file.parent_path()), file);
  const auto& back = std::get<ImageInput>(*read.session.document.scene().input);
  IM_CHECK_STR_EQ(back.name.c_str(), "pasted picture");
  IM_CHECK(back.path.empty());
  IM_CHECK_EQ(back.image->width, 3);
  IM_CHECK(back.image->rgb == image.rgb);
  start_over(context);
}

void missing_files_are_located(ImGuiTestContext* context) {
  start_over(context);
  const fs::path folder = fresh_folder("before"), home = fresh_folder("sessions");
  fs::create_directories(folder / "more");
  fs::copy_file(example("coffee"), folder / "a.png");
  fs::copy_file(example("rocket"), folder / "more" / "b.jpg");
  IM_CHECK(open_path(editor(), folder / "more"));
  editor().change("Picture of a test", [&](Document& document) {
    document.scene_of(InputKind::image).input =
        ImageInput{std::make_shared<const Image>(load_image(folder / "a.png")), "a.png", folder / "a.png"};
  });
  const Document wanted = copy_of_document();
  const fs::path file = home / "owl.json";
  std::ofstream(file) << written(home);
  start_over(context);

  const fs::path after = scratch_file("after");
  fs::rename(folder, after);
  const Document before = copy_of_document();
  IM_CHECK(open_path(editor(), file));
  IM_CHECK(document() == before); // nothing is half open
  IM_CHECK(editor().incomplete_session.has_value());
  IM_CHECK_EQ(editor().incomplete_session->read.missing.size(), static_cast<std::size_t>(2));
  context->Yield(3);
  IM_CHECK(context->ItemExists("//###missing_files/**/$$0/Locate…"));
  const fs::path missing = editor().incomplete_session->read.missing.front().path;
  locate_missing(editor(), missing, after / "a.png"); // the folder was beside it
  IM_CHECK(!editor().incomplete_session.has_value());
  IM_CHECK_STR_EQ(input_name(*document().scene().input).c_str(), "a.png");
  IM_CHECK(document().folder != nullptr);
  IM_CHECK(document().folder->path == after / "more");
  editor().undo();
  IM_CHECK(document() == before);

  // Or without them.
  IM_CHECK(open_path(editor(), file));
  context->Yield(3);
  context->ItemClick("//###missing_files/Open without them");
  context->Yield(2);
  IM_CHECK(!document().scene().input.has_value());
  IM_CHECK(document().folder == nullptr);
  IM_CHECK(open_path(editor(), file));
  context->Yield(3);
  context->ItemClick("//###missing_files/Cancel");
  context->Yield(2);
  IM_CHECK(!editor().incomplete_session.has_value());
  start_over(context);
}

void missing_models_and_adapters(ImGuiTestContext* context) {
  start_over(context);
  const Json whole = Json::parse(written({}));
  Json other = whole;
  other[Json::json_pointer("/document/scenes/image/model/folder")] = "/nowhere/model";
  other[Json::json_pointer("/document/scenes/text/adapters/files")] =
      Json::array({"adapter:none.safetensors"});
  const ReadSession read = read_session(other.dump(), "/nowhere/session.json");
  IM_CHECK_EQ(read.missing.size(), static_cast<std::size_t>(2));
  IM_CHECK(read.missing[0].kind == FileKind::model);
  IM_CHECK(read.missing[1].kind == FileKind::adapter);
  IM_CHECK_STR_EQ(read.session.document.scene().model->name.c_str(), "vit-small"); // stands in
  const ReadSession found =
      read_session(other.dump(), "/nowhere/session.json",
                   {{"/nowhere/model", document().scene_of(InputKind::image).model_folder}});
  IM_CHECK_EQ(found.missing.size(), static_cast<std::size_t>(1));
  start_over(context);
}

// Whether a value is what a part of the schema says, with no entry that it does not name; else where not.
std::string unlike_schema(const Json& value, Json schema, const Json& root, const std::string& at) {
  if (schema.contains("$ref"))
    schema = root.at(Json::json_pointer(schema["$ref"].get<std::string>().substr(1)));
  if (schema.contains("anyOf")) {
    std::string all;
    for (const Json& each : schema["anyOf"]) {
      const std::string wrong = unlike_schema(value, each, root, at);
      if (wrong.empty()) return {};
      all += " " + wrong;
    }
    return all;
  }
  if (schema.contains("const")) return value == schema["const"] ? std::string() : at;
  if (schema.contains("enum"))
    return std::ranges::find(schema["enum"], value) == schema["enum"].end() ? at : std::string();
  const std::string type = schema.at("type");
  const bool right = (type == "object" && value.is_object()) || (type == "array" && value.is_array()) ||
                     (type == "string" && value.is_string()) || (type == "boolean" && value.is_boolean()) ||
                     (type == "integer" && value.is_number_integer()) ||
                     (type == "number" && value.is_number()) || (type == "null" && value.is_null());
  if (!right) return at;
  if (schema.contains("minimum") && value.get<double>() < schema["minimum"].get<double>()) return at;
  if (schema.contains("maximum") && value.get<double>() > schema["maximum"].get<double>()) return at;
  std::string wrong;
  if (type == "array") {
    for (std::size_t i = 0; i < value.size(); ++i)
      wrong += unlike_schema(value[i], schema["items"], root, fmt::format("{}/{}", at, i));
  }
  if (type == "object") {
    for (const auto& [name, entry] : value.items()) {
      const bool known = schema["properties"].contains(name);
      const std::string place = fmt::format("{}/{}", at, name);
      wrong += known ? unlike_schema(entry, schema["properties"][name], root, place)
                     : fmt::format(" {} is not in the schema", place);
    }
  }
  return wrong;
}

void saved_sessions_fit_the_schema(ImGuiTestContext* context) {
  start_over(context);
  const Json schema = Json::parse(read_text_file(test::source_folder() / "assets" / "session.schema.json"));
  const auto check = [&] { return unlike_schema(Json::parse(written({})), schema, schema, ""); };
  IM_CHECK_STR_EQ(check().c_str(), "");
  set_up_rich_view();
  IM_CHECK_STR_EQ(check().c_str(), "");
  IM_CHECK_STR_EQ(unlike_schema(Json{{"formt", 1}}, schema, schema, "").c_str(),
                  " /formt is not in the schema");
  Json wrong = Json::parse(written({}));
  wrong["document"]["view"]["opacity"] = "much";
  IM_CHECK_STR_EQ(unlike_schema(wrong, schema, schema, "").c_str(), "/document/view/opacity");
  start_over(context);
}

} // namespace

void register_session_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "sessions", "same_again")->TestFunc = same_again;
  IM_REGISTER_TEST(engine, "sessions", "found_elsewhere")->TestFunc = found_elsewhere;
  IM_REGISTER_TEST(engine, "sessions", "pasted_pictures_are_inside")->TestFunc = pasted_pictures_are_inside;
  IM_REGISTER_TEST(engine, "sessions", "missing_files_are_located")->TestFunc = missing_files_are_located;
  IM_REGISTER_TEST(engine, "sessions", "missing_models_and_adapters")->TestFunc = missing_models_and_adapters;
  IM_REGISTER_TEST(engine, "sessions", "saved_sessions_fit_the_schema")->TestFunc =
      saved_sessions_fit_the_schema;
}

} // namespace hydrascope::app::window_tests
