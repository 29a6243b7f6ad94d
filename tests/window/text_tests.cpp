// No text is cut or drawn over another, in any panel of any layout, at the sizes people have.
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <imgui_internal.h>

#include "app/document/edits.h"
#include "app/document/layouts.h"
#include "app/panels/write/running_text.h"
#include "tests/window/drawn_text.h"
#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

namespace {

struct WindowLook {
  int width, height; // pixels
  double scale;
  bool light;
};

// Of the last frame.
std::vector<std::string> illegible_now(ImGuiTestContext* context) {
  std::vector<std::string> found;
  between_frames(context, [&found] { found = illegible_text(*ImGui::GetDrawData()); });
  return found;
}

// Every layout with every panel in front of the others, and the windows over them.
std::set<std::string> illegible(ImGuiTestContext* context, const std::string& input) {
  std::set<std::string> found;
  const auto note = [&](const std::string& where) {
    for (const std::string& each : illegible_now(context)) found.insert(fmt::format("{}: {}", where, each));
  };
  for (const LayoutInfo& layout : layout_infos()) {
    application().run("view.layout." + layout.id);
    application().run("view.reset_layout"); // the layout may be in force with other sizes already
    context->Yield(4);
    settle(context);
    note(fmt::format("{}, {}", input, layout.id));
    for (const PanelName& panel : application().panels()) {
      if (!editor().panel_open(panel.id) || application().panel_rectangle(panel.id)) continue;
      context->WindowFocus(("//###" + panel.id).c_str());
      context->Yield(2);
      settle(context);
      note(fmt::format("{}, {} with {}", input, layout.id, panel.id));
    }
  }
  application().run("view.layout.explore");
  for (const char* const action :
       {"help.gallery", "help.tour", "help.sheet", "help.shortcuts", "help.about", "view.palette"}) {
    if (!application().run(action)) IM_ERRORF("no action %s", action);
    context->Yield(4);
    settle(context);
    note(fmt::format("{}, {}", input, action));
    application().overlays() = {};
    context->Yield(2);
  }
  return found;
}

void check_legible(ImGuiTestContext* context, const WindowLook& look) {
  start_over(context);
  const int own_width = application().display().width(), own_height = application().display().height();
  resize(context, look.width, look.height);
  editor().change_settings([&](Settings& settings) {
    settings.scale = look.scale;
    settings.theme = look.light ? ThemeChoice::light : ThemeChoice::dark;
  });
  std::set<std::string> found = illegible(context, "photograph");
  open_text(editor(), "The quick brown fox jumped over the lazy dog because it was late.");
  settle(context);
  found.merge(illegible(context, "sentence"));
  start_over_at_once();
  open_decoder(context);
  editor().emit(StartWriting{});
  context->Yield(2);
  settle(context);
  found.merge(illegible(context, "decoder"));
  start_over_at_once();
  resize(context, own_width, own_height);
  settle(context);
  for (const std::string& each : found) IM_ERRORF("%s", each.c_str());
}

// What the others rely on: a cut text, two texts on each other and a covered text in a window of the test's
// own.
void cut_and_overlapping_text_is_seen(ImGuiTestContext* context) {
  start_over(context);
  context->Yield(3);
  std::string all;
  for (const std::string& each : illegible_now(context))
    if (each.starts_with("Legible")) all += each + "\n";
  IM_CHECK_EQ(std::ranges::count(all, '\n'), 2);
  IM_CHECK(all.find("\"one\" and \"two\" overlap") != std::string::npos);
  IM_CHECK(all.find("\"running past") != std::string::npos); // letters beyond the edge are not drawn at all
  IM_CHECK(all.find("is cut at the right") != std::string::npos);
}

void draw_illegible_window(ImGuiTestContext*) {
  ImGui::SetNextWindowPos({200, 200});
  ImGui::SetNextWindowSize({200, 200});
  if (ImGui::Begin(
          "Legible###legible", nullptr,
          ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoTitleBar)) {
    ImDrawList& list = *ImGui::GetWindowDrawList();
    const ImU32 white = IM_COL32_WHITE;
    list.AddText({220, 220}, white, "whole");
    list.AddText({220, 250}, white, "one");
    list.AddText({224, 253}, white, "two");
    list.AddText({300, 280}, white, "running past the edge");
    list.AddText({220, 310}, white, "covered");
    list.AddRectFilled({210, 300}, {390, 330}, IM_COL32_BLACK);
    list.AddText({220, 310}, white, "above");
    list.AddText({220, 340}, white, "shadow");
    list.AddText({221, 341}, white, "shadow");
  }
  ImGui::End();
}

// A text in a narrow window that became wide, beside the same text that was laid out only there.
struct RunningTexts {
  std::optional<Graphics> graphics; // made and freed between frames, where there is OpenGL
  RunningText narrowed, fresh;
  float width = 70;

  void draw() {
    if (!graphics) return;
    for (RunningText* const text : {&narrowed, &fresh}) {
      if (text == &fresh && width < 300) continue;
      if (text->empty()) text->set("The cat sat on the mat, and the dog ran.", {}, std::nullopt);
      ImGui::SetNextWindowPos({200, 200});
      ImGui::SetNextWindowSize({width, 200});
      if (ImGui::Begin(
              text == &fresh ? "###fresh_text" : "###narrowed_text", nullptr,
              ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoTitleBar))
        text->draw(*graphics, 1);
      ImGui::End();
    }
  }
};

// Where the letters are.
std::vector<ImVec2> letters_of(const char* window) {
  std::vector<ImVec2> places;
  for (const ImDrawVert& vertex : ImGui::FindWindowByName(window)->DrawList->VtxBuffer)
    places.push_back(vertex.pos);
  return places;
}

void a_text_keeps_its_spaces(ImGuiTestContext* context) {
  auto& texts = context->GetVars<RunningTexts>();
  between_frames(context, [&] { texts.graphics.emplace(theme::Fonts{}); });
  context->Yield(4);
  texts.width = 400;
  context->Yield(4);
  const std::vector<ImVec2> narrowed = letters_of("###narrowed_text"), fresh = letters_of("###fresh_text");
  between_frames(context, [&] { texts.graphics.reset(); });
  IM_CHECK_GT(fresh.size(), 100u);
  IM_CHECK(std::ranges::equal(narrowed, fresh, [](const ImVec2 left, const ImVec2 right) {
    return left.x == right.x && left.y == right.y;
  }));
}

} // namespace

void register_text_tests(ImGuiTestEngine* engine) {
  ImGuiTest* spaces = IM_REGISTER_TEST(engine, "text", "a_text_keeps_its_spaces");
  spaces->SetVarsDataType<RunningTexts>();
  spaces->GuiFunc = [](ImGuiTestContext* context) { context->GetVars<RunningTexts>().draw(); };
  spaces->TestFunc = a_text_keeps_its_spaces;
  ImGuiTest* own = IM_REGISTER_TEST(engine, "text", "cut_and_overlapping_text_is_seen");
  own->GuiFunc = draw_illegible_window;
  own->TestFunc = cut_and_overlapping_text_is_seen;
  // A window may not grow beyond its display.
  if (!application().display().description().starts_with("off screen")) return;
  const auto add = [&](const char* name, WindowLook look) {
    IM_REGISTER_TEST(engine, "text", name)->TestFunc = [look](ImGuiTestContext* context) {
      check_legible(context, look);
    };
  };
  add("legible_at_1280x720", {1280, 720, 1, false});
  add("legible_at_1600x1000", {1600, 1000, 1, true});
  add("legible_at_2560x1440", {2560, 1440, 1, false});
  add("legible_at_2560x1440_scale_2", {2560, 1440, 2, true});
}

} // namespace hydrascope::app::window_tests
