// Layouts: the built-in ones, the user's own, and the way back.
#include <algorithm>
#include <cmath>

#include <imgui_internal.h>

#include "app/document/edits.h"
#include "app/document/layouts.h"
#include "app/shell/layout.h"
#include "engine/run/quantities/focus_map.h"
#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

namespace {

ImVec2 place_of(const char* panel) {
  const ImGuiWindow* window = ImGui::FindWindowByName((std::string("###") + panel).c_str());
  return window == nullptr ? ImVec2(-1, -1) : window->Pos;
}

bool same_place(ImVec2 left, ImVec2 right) {
  return std::abs(left.x - right.x) < 2 && std::abs(left.y - right.y) < 2;
}

// Every panel that a layout opens is docked and lies inside the window.
void built_in(ImGuiTestContext* context) {
  start_over(context);
  for (const LayoutInfo& info : layout_infos()) {
    IM_CHECK(application().run("view.layout." + info.id));
    context->Yield(4);
    for (const PanelName& panel : application().panels()) {
      const bool wanted = info.open.empty() || std::ranges::find(info.open, panel.id) != info.open.end();
      IM_CHECK_EQ(editor().panel_open(panel.id), wanted);
      if (!wanted) continue;
      const ImGuiWindow* window = ImGui::FindWindowByName(("###" + panel.id).c_str());
      IM_CHECK(window != nullptr);
      IM_CHECK(window->DockId != 0);
      IM_CHECK_GT(window->Size.x, 100.0f);
      IM_CHECK_GT(window->Size.y, 60.0f);
    }
  }
  settle(context);
  start_over(context);
}

// The three maps stand side by side, each of its own schedule, and the third is their difference.
void compare(ImGuiTestContext* context) {
  start_over(context);
  set_layer_kernel(editor(), document().scene().layer, {.name = "elu", .parameters = {}});
  IM_CHECK(application().run("view.layout.compare"));
  context->Yield();
  settle(context);
  IM_CHECK(document().view.shown == Shown::all);
  const int layer = document().scene().layer;
  const SideResults& b = application().coordinator().results(Side::b);
  IM_CHECK(find(results(), FocusKey{layer}).run->layers.back().kernel.name == "elu");
  IM_CHECK(find(b, FocusKey{layer}).run->layers.back().kernel.name == "softmax");
  context->SetRef("//###focus");
  ImVec2 last{-1, -1};
  for (const char* map : {"photograph", "$$1/photograph", "$$2/photograph"}) {
    const ImGuiTestItemInfo item = context->ItemInfo(map);
    IM_CHECK(item.ID != 0);
    IM_CHECK_GT(item.RectFull.Min.x, last.x);
    last = item.RectFull.Max;
  }
  context->ItemClick("$$2/photograph"); // a click in any of them chooses for all
  context->Yield(2);
  IM_CHECK(!document().scene().default_query);
  IM_CHECK(application().run("view.layout.explore"));
  IM_CHECK(document().view.shown == Shown::a);
  start_over(context);
}

// The part of a layer's row in the grid of kernels that is in view, 0…1.
float row_in_view(ImGuiTestContext* context, int layer) {
  const std::string row = "//###kernels/**/$$" + std::to_string(layer) + "/layer";
  const ImGuiTestItemInfo info = context->ItemInfo(row.c_str(), ImGuiTestOpFlags_NoError);
  const float height = info.ID == 0 ? 0 : info.RectFull.GetHeight();
  return height > 0 ? info.RectClipped.GetHeight() / height : 0;
}

void the_selected_row_stays_in_view(ImGuiTestContext* context) {
  start_over(context);
  const ImVec2 before = ImGui::GetMainViewport()->Size;
  const int last = document().scene().model->layers - 1;
  select_layer(editor(), last);
  context->Yield(4);
  IM_CHECK_EQ(row_in_view(context, 0), 1.0f); // all rows fit
  IM_CHECK_EQ(row_in_view(context, last), 1.0f);
  resize(context, 1280, 520);
  context->Yield(6);
  IM_CHECK_EQ_NO_RET(row_in_view(context, last), 1.0f); // the same layer, in a lower grid
  for (int layer = 0; layer < last; ++layer) {          // whole rows, or none of a row
    const float part = row_in_view(context, layer);
    IM_CHECK_NO_RET(part == 0 || part == 1);
  }
  IM_CHECK_EQ_NO_RET(row_in_view(context, 0), 0.0f);
  select_layer(editor(), 0);
  context->Yield(4);
  IM_CHECK_EQ_NO_RET(row_in_view(context, 0), 1.0f);
  resize(context, static_cast<int>(before.x), static_cast<int>(before.y));
  start_over(context);
}

void own(ImGuiTestContext* context) {
  start_over(context);
  context->WindowFocus("//###timing");
  context->UndockWindow("//###timing");
  context->WindowMove("//###timing", ImVec2(300, 200));
  show_panel(editor(), "kl", "KL", false);
  context->Yield(2);
  const ImVec2 moved = place_of("timing");
  IM_CHECK(application().run("view.save_layout"));
  context->Yield(2);
  context->SetRef("//###save_layout");
  context->ItemClick("##name");
  context->KeyCharsReplaceEnter("My layout");
  context->Yield(3);
  IM_CHECK(!is_shown("save_layout"));
  IM_CHECK(find_layout(editor().settings(), "My layout") != nullptr);
  IM_CHECK_STR_EQ(document().layout.c_str(), "own:My layout");

  IM_CHECK(application().run("view.layout.explore"));
  context->Yield(4);
  IM_CHECK(same_place(place_of("timing"), moved)); // as it was left
  IM_CHECK(application().run("view.reset_layout"));
  context->Yield(4);
  IM_CHECK(!same_place(place_of("timing"), moved));
  IM_CHECK(editor().panel_open("kl"));
  IM_CHECK(application().run("view.layout.own.My layout"));
  context->Yield(4);
  IM_CHECK(same_place(place_of("timing"), moved));
  IM_CHECK(!editor().panel_open("kl"));
  editor().undo();
  context->Yield(4);
  IM_CHECK_STR_EQ(document().layout.c_str(), "explore");
  IM_CHECK(!same_place(place_of("timing"), moved));

  IM_CHECK(application().run("view.forget_layout.My layout"));
  context->Yield(2);
  IM_CHECK(find_action(application().actions(), "view.layout.own.My layout") == nullptr);
  start_over(context);
}

void saving_changes_nothing_that_is_shown(ImGuiTestContext* context) {
  start_over(context);
  IM_CHECK(application().run("view.layout.compare"));
  context->Yield(4);
  const Document before = copy_of_document();
  IM_CHECK(before.view.shown == Shown::all);
  between_frames(context, [] { save_layout(editor(), "Side by side"); });
  context->Yield(4);
  IM_CHECK_STR_EQ(document().layout.c_str(), "own:Side by side");
  IM_CHECK(document().view == before.view);
  IM_CHECK(document().closed_panels == before.closed_panels);
  start_over(context);
}

void reset(ImGuiTestContext* context) {
  start_over(context);
  editor().emit(ResetLayout{});
  context->Yield(4);
  const ImVec2 before = place_of("timing");
  context->UndockWindow("//###timing");
  context->WindowMove("//###timing", ImVec2(300, 200));
  show_panel(editor(), "focus", "Focus map", false);
  context->Yield(2);
  IM_CHECK(!same_place(place_of("timing"), before));
  IM_CHECK(application().run("view.reset_layout"));
  context->Yield(4);
  IM_CHECK(same_place(place_of("timing"), before));
  IM_CHECK(editor().panel_open("focus"));
  // Panels that were still to come to the front no longer do.
  for (const char* const panel : {"training", "roofline", "loss"}) editor().emit(BringToFront{panel});
  IM_CHECK(application().run("view.reset_layout"));
  context->Yield(20); // one panel a frame
  IM_CHECK(editor().status().panels_in_front.contains("focus"));
  for (const char* const panel : {"training", "roofline", "loss"})
    IM_CHECK(!editor().status().panels_in_front.contains(panel));
  start_over(context);
}

} // namespace

void register_layout_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "layouts", "built_in")->TestFunc = built_in;
  IM_REGISTER_TEST(engine, "layouts", "compare")->TestFunc = compare;
  IM_REGISTER_TEST(engine, "layouts", "the_selected_row_stays_in_view")->TestFunc =
      the_selected_row_stays_in_view;
  IM_REGISTER_TEST(engine, "layouts", "own")->TestFunc = own;
  IM_REGISTER_TEST(engine, "layouts", "saving_changes_nothing_that_is_shown")->TestFunc =
      saving_changes_nothing_that_is_shown;
  IM_REGISTER_TEST(engine, "layouts", "reset")->TestFunc = reset;
}

} // namespace hydrascope::app::window_tests
