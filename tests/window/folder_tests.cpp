// A folder of pictures: stepping through it, the wrong ones first, and what is remembered of what was open.
#include <chrono>
#include <fstream>
#include <thread>

#include "app/document/edits.h"
#include "app/jobs/folder_jobs.h"
#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

namespace {

namespace fs = std::filesystem;

std::string shown_name() { return input_name(*document().scene().input); }

void stepped_through(ImGuiTestContext* context) {
  start_over(context);
  const fs::path folder = fresh_folder("pictures");
  fs::copy_file(example("chelsea"), folder / "a.png");
  fs::copy_file(example("coffee"), folder / "b.png");
  std::ofstream(folder / "c.png") << "no picture";
  fs::copy_file(example("rocket"), folder / "d.jpg");
  std::ofstream(folder / "notes.txt") << "neither";
  IM_CHECK(open_path(editor(), folder));
  IM_CHECK(document().folder != nullptr);
  IM_CHECK_EQ(document().folder->pictures.size(), static_cast<std::size_t>(4));
  IM_CHECK(!document().folder->labelled);
  IM_CHECK_STR_EQ(shown_name().c_str(), "a.png");
  context->KeyPress(ImGuiKey_PageDown);
  context->Yield(2);
  IM_CHECK_STR_EQ(shown_name().c_str(), "b.png");
  context->KeyPress(ImGuiKey_PageDown); // past what is no picture, which is said
  context->Yield(2);
  IM_CHECK_STR_EQ(shown_name().c_str(), "d.jpg");
  IM_CHECK(last_error().find("c.png") != std::string::npos);
  context->KeyPress(ImGuiKey_PageDown); // the last stays
  context->Yield(2);
  IM_CHECK_STR_EQ(shown_name().c_str(), "d.jpg");
  context->KeyPress(ImGuiKey_PageUp);
  context->Yield(2);
  IM_CHECK_STR_EQ(shown_name().c_str(), "b.png");
  context->SetRef(context->WindowInfo("//###input/folder").ID);
  context->ItemClick("$$0/picture");
  settle(context);
  IM_CHECK_STR_EQ(shown_name().c_str(), "a.png");
  IM_CHECK(results().any() != nullptr);
  IM_CHECK(!results().stale);
  // A picture from elsewhere leaves the folder.
  open_path(editor(), example("astronaut"));
  IM_CHECK(document().folder == nullptr);
  editor().undo();
  IM_CHECK(document().folder != nullptr);
}

void wrong_ones_first(ImGuiTestContext* context) {
  start_over(context);
  const std::string cat = results().any()->predictions.front().label;
  const fs::path folder = fresh_folder("classes");
  fs::create_directories(folder / cat.substr(0, cat.find(',')));
  fs::copy_file(example("chelsea"), folder / cat.substr(0, cat.find(',')) / "a.png");
  fs::copy_file(example("rocket"), folder / cat.substr(0, cat.find(',')) / "b.jpg");
  fs::create_directories(folder / "no such class");
  fs::copy_file(example("coffee"), folder / "no such class" / "c.png");
  IM_CHECK(open_path(editor(), folder));
  IM_CHECK(document().folder->labelled);
  settle(context);
  context->SetRef("//###input");
  context->ItemClick("order/wrong first");
  context->Yield(2);
  IM_CHECK(document().wrong_first);
  while ((editor().checks.running || editor().checks.found.size() < 3) && !context->IsError())
    context->Yield();
  const PictureChecks& checks = editor().checks;
  IM_CHECK_EQ(checks.wrong, static_cast<std::size_t>(1));
  IM_CHECK_EQ(checks.right, static_cast<std::size_t>(1));
  const auto order = shown_order(*document().folder, true, checks);
  const auto file = [&](std::size_t place) {
    return document().folder->pictures[order[place]].file.filename().string();
  };
  IM_CHECK_STR_EQ(file(0).c_str(), "b.jpg");
  IM_CHECK_STR_EQ(file(1).c_str(), "c.png");
  IM_CHECK_STR_EQ(file(2).c_str(), "a.png");
  open_folder_picture(editor(), order[0]);
  context->KeyPress(ImGuiKey_PageDown); // steps go by the order shown
  context->Yield(2);
  IM_CHECK_STR_EQ(shown_name().c_str(), "c.png");

  // Listed anew, with a picture more: it is looked at, too.
  fs::copy_file(example("coffee"), folder / "no such class" / "d.png");
  IM_CHECK(open_path(editor(), folder));
  context->Yield(3);
  while ((editor().checks.running || editor().checks.found.size() < 4) && !context->IsError())
    context->Yield();
  IM_CHECK_EQ(editor().checks.wrong, static_cast<std::size_t>(1));

  // Other kernels, other predictions: all are looked at again.
  const std::string setup = checks.setup;
  set_all_kernels(editor(), {.name = "elu", .parameters = {}});
  context->Yield(3);
  IM_CHECK(editor().checks.setup != setup);
  while ((editor().checks.running || editor().checks.found.size() < 3) && !context->IsError())
    context->Yield();
  IM_CHECK_STR_EQ(last_error().c_str(), "");
  start_over(context);
  IM_CHECK(!editor().checks.running);
}

void folder_without_anything(ImGuiTestContext* context) {
  start_over(context);
  const Document before = copy_of_document();
  const fs::path folder = fresh_folder("nothing");
  IM_CHECK(!open_path(editor(), folder));
  IM_CHECK(last_error().find("neither a model") != std::string::npos);
  IM_CHECK(document() == before);
}

void dropped_model_and_text(ImGuiTestContext* context) {
  start_over(context);
  const fs::path text = scratch_file("two lines.txt");
  std::ofstream(text) << "Two owls\nsat there.\n";
  IM_CHECK(open_path(editor(), text));
  IM_CHECK_STR_EQ(std::get<TextInput>(*document().scene().input).text.c_str(), "Two owls sat there.");
  const fs::path model = document().scene_of(InputKind::image).model_folder;
  IM_CHECK(open_path(editor(), model));
  IM_CHECK(document().kind == InputKind::image);
}

void recent_ones_reopen(ImGuiTestContext* context) {
  start_over(context);
  editor().change_settings([](Settings& settings) { settings.recent.clear(); });
  const fs::path picture = scratch_file("mine.png");
  fs::copy_file(example("coffee"), picture);
  IM_CHECK(open_path(editor(), picture));
  open_path(editor(), example("rocket")); // examples have their own menu
  remember(editor(), {"One owl.\tTwo owls.", true});
  IM_CHECK_EQ(editor().settings().recent.size(), static_cast<std::size_t>(2));
  IM_CHECK(editor().settings().recent.back() == (RecentInput{picture.string(), false}));
  context->Yield(2); // the table is made anew
  IM_CHECK(application().run("file.recent.0"));
  const auto& text = std::get<TextInput>(*document().scene().input);
  IM_CHECK_STR_EQ(text.text.c_str(), "One owl.");
  IM_CHECK(text.pair == "Two owls.");
  context->MenuClick("//##MainMenuBar/File/Open recent/###file.recent.1");
  context->Yield(2);
  IM_CHECK_STR_EQ(shown_name().c_str(), "mine.png");
  IM_CHECK(editor().settings().recent.front() == (RecentInput{picture.string(), false}));
  // What is no longer there is said, and what was open stays.
  fs::remove(picture);
  const Document before = copy_of_document();
  IM_CHECK(!open_recent(editor(), {picture.string(), false}));
  IM_CHECK(document() == before);
  start_over(context);
}

void folder_is_measured(ImGuiTestContext* context) {
  start_over(context);
  const fs::path folder = fresh_folder("measured");
  fs::copy_file(example("chelsea"), folder / "a.png");
  fs::copy_file(example("coffee"), folder / "b.png");
  std::ofstream(folder / "c.png") << "no picture";
  IM_CHECK(open_path(editor(), folder));
  apply_preset(editor(), Strategy::back, 3, {.name = "elu", .parameters = {}});
  settle(context);
  context->WindowFocus("//###folder");
  context->Yield(2);
  context->SetRef("//###folder");
  context->ItemClick("###measure");
  for (int i = 0; i < 2000 && context->ItemExists("###measure") &&
                  context->ItemInfo("**/$$2/##picture", ImGuiTestOpFlags_NoError).ID == 0;
       ++i) {
    context->Yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  // The picture that elu changes most comes first; what is no picture comes last. A row's middle may lie on
  // a border between columns.
  context->ItemClick("**/$$0/##picture", ImGuiMouseButton_Left, ImGuiTestOpFlags_MoveToEdgeL);
  settle(context);
  const std::string first = shown_name();
  IM_CHECK(first == "a.png" || first == "b.png");
  context->WindowFocus("//###folder");
  context->ItemClick("**/$$1/##picture", ImGuiMouseButton_Left, ImGuiTestOpFlags_MoveToEdgeL);
  settle(context);
  IM_CHECK(shown_name() == (first == "a.png" ? "b.png" : "a.png"));
  IM_CHECK_STR_EQ(last_error().c_str(), "");
}

} // namespace

void register_folder_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "folder", "folder_is_measured")->TestFunc = folder_is_measured;
  IM_REGISTER_TEST(engine, "folder", "stepped_through")->TestFunc = stepped_through;
  IM_REGISTER_TEST(engine, "folder", "wrong_ones_first")->TestFunc = wrong_ones_first;
  IM_REGISTER_TEST(engine, "folder", "without_anything")->TestFunc = folder_without_anything;
  IM_REGISTER_TEST(engine, "folder", "dropped_model_and_text")->TestFunc = dropped_model_and_text;
  IM_REGISTER_TEST(engine, "folder", "recent_ones_reopen")->TestFunc = recent_ones_reopen;
}

} // namespace hydrascope::app::window_tests
