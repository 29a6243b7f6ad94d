// The start page and the gallery, by mouse and keys, and the card of a lesson.
#include <fstream>

#include "app/document/edits.h"
#include "app/document/gallery.h"
#include "app/document/session_edits.h"
#include "engine/base/paths.h"
#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

namespace {

const GalleryEntry& lesson(std::size_t index) { return gallery().entries.at(index); }

bool shows_lesson(std::size_t index) {
  const Lesson* const shown = shown_lesson(editor());
  return shown != nullptr && *shown == lesson(index).lesson && is_shown("lesson");
}

void show_gallery(ImGuiTestContext* context) {
  editor().emit(ShowOverlay{Overlay::gallery});
  context->Yield(3);
}

// What a new user sees, clicks and closes.
void start_page(ImGuiTestContext* context) {
  start_over(context);
  IM_CHECK(!editor().settings().tour_seen);
  show_gallery(context);
  IM_CHECK(is_shown("gallery"));
  IM_CHECK(!is_shown("lesson"));
  context->ItemClick(("//###gallery/**/" + lesson(0).id).c_str());
  settle(context);
  IM_CHECK(!is_shown("gallery"));
  IM_CHECK(editor().settings().tour_seen); // it does not come again by itself
  IM_CHECK(shows_lesson(0));
  IM_CHECK(document().view.shown == Shown::all);
  IM_CHECK_EQ(document().scene().layer, 11);
  IM_CHECK(results().any() != nullptr);
  IM_CHECK(!application().panel_rectangle("weights").has_value());
  context->ItemClick("//###lesson/Next lesson");
  settle(context);
  IM_CHECK(shows_lesson(1));
  IM_CHECK(document().kind == InputKind::text);
  editor().undo();
  context->Yield(3);
  IM_CHECK(shows_lesson(0));
  context->ItemClick("//###lesson/All lessons");
  context->Yield(3);
  IM_CHECK(is_shown("gallery"));
  context->KeyPress(ImGuiKey_Escape);
  context->Yield(2);
  IM_CHECK(!is_shown("gallery"));
  context->ItemClick("//###lesson/#CLOSE");
  context->Yield(3);
  IM_CHECK(!is_shown("lesson"));
  editor().undo(); // what was open before
  context->Yield(3);
  IM_CHECK(document().session != 0 || shown_lesson(editor()) == nullptr);
  IM_CHECK(!is_shown("lesson"));
  start_over(context);
}

void keys_choose_and_open(ImGuiTestContext* context) {
  start_over(context);
  const int layer = document().scene().layer;
  show_gallery(context);
  context->KeyPress(ImGuiKey_LeftArrow, 20); // whatever was chosen last
  context->KeyPress(ImGuiKey_RightArrow, 2);
  context->Yield();
  IM_CHECK_EQ(document().scene().layer, layer); // the keys are the gallery's
  IM_CHECK_EQ(document().scene().head.head.value_or(-1), 0);
  context->KeyPress(ImGuiKey_Enter);
  settle(context);
  IM_CHECK(shows_lesson(2));
  start_over(context);
}

void help_menu_opens_it(ImGuiTestContext* context) {
  start_over(context);
  editor().change_settings([](Settings& settings) { settings.tour_seen = true; });
  context->MenuClick("//##MainMenuBar/Help/###help.gallery");
  context->Yield(3);
  IM_CHECK(is_shown("gallery"));
  context->ItemClick("//###gallery/Guided tour");
  context->Yield(3);
  IM_CHECK(!is_shown("gallery"));
  IM_CHECK(application().overlays().tour.has_value());
  show_gallery(context);
  context->ItemClick(("//###gallery/**/" + lesson(1).id).c_str()); // ends the tour
  settle(context);
  IM_CHECK(!application().overlays().tour.has_value());
  IM_CHECK(shows_lesson(1));
  show_gallery(context);
  select_layer(editor(), 3); // what changes the document wants to be seen
  context->Yield(3);
  IM_CHECK(!is_shown("gallery"));
  show_gallery(context);
  context->ItemClick("//###gallery/Close");
  context->Yield(3);
  IM_CHECK(!is_shown("gallery"));
  start_over(context);
}

// Every lesson runs, and each panel that its text names is open.
void every_lesson_runs(ImGuiTestContext* context) {
  start_over(context);
  for (const GalleryEntry& entry : gallery().entries) {
    IM_CHECK(application().run("help.lesson." + entry.id));
    settle(context);
    IM_CHECK_STR_EQ(last_error().c_str(), "");
    IM_CHECK(is_shown("lesson"));
    const ImGuiWindow* const card = ImGui::FindWindowByName("###lesson");
    IM_CHECK_GE(card->Pos.y, 0.0f);
    IM_CHECK_LE(card->Pos.y + card->Size.y, ImGui::GetIO().DisplaySize.y);
    IM_CHECK(results().any() != nullptr);
    const std::string text = entry.lesson.look + entry.lesson.click;
    for (const PanelName& panel : application().panels()) {
      if (text.find(panel.title + ":") == std::string::npos) continue;
      if (!application().panel_rectangle(panel.id))
        IM_ERRORF("%s: %s is not shown", entry.id.c_str(), panel.id.c_str());
    }
  }
  start_over(context);
}

// The card can be dragged aside and stays there until another lesson is opened.
void card_moves_aside(ImGuiTestContext* context) {
  start_over(context);
  IM_CHECK(open_session(editor(), lesson(0).session));
  settle(context);
  const ImVec2 before = ImGui::FindWindowByName("###lesson")->Pos;
  context->WindowMove("//###lesson", {before.x - 200, before.y - 100});
  context->Yield(5);
  const ImVec2 after = ImGui::FindWindowByName("###lesson")->Pos;
  IM_CHECK_LT(std::abs(after.x - before.x + 200), 3.0f);
  IM_CHECK_LT(std::abs(after.y - before.y + 100), 3.0f);
  start_over(context);
}

// A picture that set-up has not fetched: it is named, and nothing is half open.
void missing_picture_is_named(ImGuiTestContext* context) {
  start_over(context);
  std::string text = read_text_file(lesson(0).session);
  const std::string name = "example:chelsea.png";
  text.replace(text.find(name), name.size(), "example:gone.png");
  const auto file = scratch_file("lesson.json");
  std::ofstream(file) << text;
  IM_CHECK(open_path(editor(), file));
  context->Yield(3);
  IM_CHECK(is_shown("missing_files"));
  IM_CHECK(!is_shown("lesson"));
  context->ItemClick("//###missing_files/Open without them");
  settle(context);
  IM_CHECK(is_shown("lesson")); // someone's own file teaches as well
  IM_CHECK(!document().scene().input.has_value());
  start_over(context);
}

} // namespace

void register_gallery_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "gallery", "start_page")->TestFunc = start_page;
  IM_REGISTER_TEST(engine, "gallery", "keys_choose_and_open")->TestFunc = keys_choose_and_open;
  IM_REGISTER_TEST(engine, "gallery", "help_menu_opens_it")->TestFunc = help_menu_opens_it;
  IM_REGISTER_TEST(engine, "gallery", "every_lesson_runs")->TestFunc = every_lesson_runs;
  IM_REGISTER_TEST(engine, "gallery", "card_moves_aside")->TestFunc = card_moves_aside;
  IM_REGISTER_TEST(engine, "gallery", "missing_picture_is_named")->TestFunc = missing_picture_is_named;
}

} // namespace hydrascope::app::window_tests
