// Theme, scale, fonts, and the fading of maps.
#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "app/document/edits.h"
#include "app/ui/widgets.h"
#include "engine/figures/colour_map.h"
#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

namespace {

Colour colour_of_role(theme::Mode mode, const theme::Role& role) {
  const ImVec4& colour = theme::palette(mode).at(role.index);
  return {colour.x, colour.y, colour.z, 1};
}

// WCAG 2.1: 4.5 for text, 3 for what only has to be seen.
void legible(ImGuiTestContext*) {
  for (const theme::Mode mode : {theme::Mode::dark, theme::Mode::light}) {
    for (const theme::Role ground : {theme::surface, theme::raised, theme::popup, theme::ground}) {
      for (const theme::Role ink : {theme::text, theme::quiet, theme::accent, theme::amber, theme::red}) {
        IM_CHECK_GT(contrast(colour_of_role(mode, ink), colour_of_role(mode, ground)), 4.5);
      }
    }
    for (const theme::Role bar : {theme::side_a, theme::side_b}) {
      IM_CHECK_GT(contrast(colour_of_role(mode, bar), colour_of_role(mode, theme::raised)), 2.5);
    }
  }
}

void themes_change_what_is_drawn(ImGuiTestContext* context) {
  start_over(context);
  for (const bool light : {false, true}) {
    IM_CHECK(application().run(light ? "view.theme.light" : "view.theme.dark"));
    context->Yield(3);
    IM_CHECK(theme::current_mode() == (light ? theme::Mode::light : theme::Mode::dark));
    const ImVec4 ground = ImGui::GetStyleColorVec4(ImGuiCol_WindowBg);
    IM_CHECK_EQ(ground.x > 0.5f, light);
    for (const KernelInfo& info : kernel_infos()) {
      IM_CHECK_GT(contrast(theme::kernel(info.name), {ground.x, ground.y, ground.z, 1}), 2.99);
    }
  }
  start_over(context);
}

void scale_moves_everything(ImGuiTestContext* context) {
  start_over(context);
  const int width = application().display().width();
  for (const double scale : {2.0, 1.25, 0.75}) {
    editor().change_settings([&](Settings& settings) { settings.scale = scale; });
    context->Yield(20); // panels that appear take the focus, and a click under way with it
    IM_CHECK_LT(std::abs(static_cast<double>(ImGui::GetIO().DisplaySize.x) * scale - width), 1.0);
    IM_CHECK_LT(std::abs(static_cast<double>(ImGui::GetIO().DisplayFramebufferScale.x) - scale), 1e-3);
    const ImVec2 size = ImGui::GetMainViewport()->Size;
    const auto focus = application().panel_rectangle("focus");
    IM_CHECK(focus.has_value());
    IM_CHECK_LE((*focus)[0] + (*focus)[2], width + 1);
    IM_CHECK_LT(std::abs(static_cast<double>(size.x) * scale - width), 1.0);
    // What is clicked lies where it is drawn.
    context->SetRef("//###focus");
    const bool before = document().view.shown == Shown::b;
    context->ItemClick(before ? "side/A" : "side/B");
    context->Yield(2);
    IM_CHECK_EQ(document().view.shown == Shown::b, !before);
  }
  start_over(context);
}

// Expects no control beyond the right side of its panel, where it could be neither read nor clicked.
void controls_fit(ImGuiTestContext* context) {
  int controls = 0;
  std::string beyond; // reported at the end: after an error no items are gathered
  for (const PanelName& panel : application().panels()) {
    const std::string window = "//###" + panel.id;
    if (!editor().panel_open(panel.id)) continue;
    context->WindowFocus(window.c_str());
    settle(context);
    ImGuiTestItemList items;
    context->GatherItems(&items, window.c_str());
    for (const ImGuiTestItemInfo& item : items) {
      ++controls;
      if ((item.Window->Flags & ImGuiWindowFlags_HorizontalScrollbar) != 0) continue;
      const float distance = item.RectFull.Max.x - item.Window->InnerRect.Max.x;
      if (distance > 1) beyond += fmt::format("\n{}: {} by {}", panel.id, item.DebugLabel, distance);
    }
  }
  IM_CHECK_STR_EQ(beyond.c_str(), "");
  IM_CHECK_GT(controls, 100);
}

// Letters twice as large on a laptop's display.
void large_letters_fit(ImGuiTestContext* context) {
  start_over(context);
  const ImVec2 before = ImGui::GetMainViewport()->Size;
  resize(context, 1280, 720);
  editor().change_settings([](Settings& settings) { settings.scale = 2; });
  editor().emit(ResetLayout{});
  context->Yield(20);
  settle(context);
  controls_fit(context);
  change_view(editor(), "all", [](ViewOptions& view) { view.shown = Shown::all; });
  settle(context);
  controls_fit(context);
  change_view(editor(), "A", [](ViewOptions& view) { view.shown = Shown::a; });
  open_text(editor(), "The cat sat on the mat.");
  settle(context);
  controls_fit(context);
  open_decoder(context);
  controls_fit(context);
  start_over(context);
  resize(context, static_cast<int>(before.x), static_cast<int>(before.y));
  editor().emit(ResetLayout{});
  settle(context);
}

void scale_steps(ImGuiTestContext* context) {
  start_over(context);
  context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Equal);
  context->Yield(2);
  IM_CHECK(editor().settings().scale == 1.1);
  context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_KeypadAdd);
  context->Yield(2);
  IM_CHECK(editor().settings().scale == 1.25);
  context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Minus);
  context->Yield(2);
  IM_CHECK(editor().settings().scale == 1.1);
  context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_0);
  context->Yield(2);
  IM_CHECK(!editor().settings().scale.has_value());
  IM_CHECK_EQ(stepped_scale(greatest_scale, 1), greatest_scale);
  IM_CHECK_EQ(stepped_scale(least_scale, -1), least_scale);
  IM_CHECK_EQ(stepped_scale(1.33, 1), 1.5);
  IM_CHECK_EQ(stepped_scale(1.33, -1), 1.25);
  start_over(context);
}

// What no font has is named by its number; what a fallback font has is left as it is.
void unknown_letters_are_named(ImGuiTestContext* context) {
  start_over(context);
  const ImFont* font = ImGui::GetFont();
  IM_CHECK_STR_EQ(with_known_glyphs("plain").c_str(), "plain");
  IM_CHECK_STR_EQ(with_known_glyphs("κόσμος жизнь").c_str(), "κόσμος жизнь");
  IM_CHECK_STR_EQ(with_known_glyphs("\U0001F600").c_str(),
                  "U+1F600"); // beyond what Dear ImGui's letters reach
  IM_CHECK_STR_EQ(with_known_glyphs("a\u0378b").c_str(), "aU+0378b"); // a number that no letter has
  IM_CHECK_STR_EQ(with_known_glyphs("\xff").c_str(), "U+FFFD");
  for (const char* text : {"語", "한", "ع"}) {
    unsigned int code = 0;
    ImTextCharFromUtf8(&code, text, nullptr);
    const bool known = const_cast<ImFont*>(font)->IsGlyphInFont(static_cast<ImWchar>(code));
    IM_CHECK_EQ(with_known_glyphs(text) == text, known);
  }
}

void labels_show_all_of_a_text(ImGuiTestContext* context) {
  start_over(context);
  IM_CHECK_STR_EQ(as_label("“sat”").c_str(), "“sat”");
  for (const char* const each : {"“##ing”", "####", "a ## b", "C#"}) {
    const std::string text = each, label = as_label(text);
    IM_CHECK_EQ(label.find("##"), std::string::npos);
    IM_CHECK_EQ((label + "###id").find("##"), label.size());
    IM_CHECK_EQ(std::ranges::count(label, '#'), std::ranges::count(text, '#'));
  }
}

// A changed map takes some frames to its new look, and only if the user has not turned that off.
void changed_maps_fade(ImGuiTestContext* context) {
  for (const bool fade : {true, false}) {
    start_over(context);
    editor().change_settings([&](Settings& settings) { settings.fade = fade; });
    context->Yield(3);
    change_view(editor(), "Signed map", [](ViewOptions& view) { view.with_sign = !view.with_sign; });
    bool moved = false;
    while (!moved && !application().settled()) { // frames in which something fades
      context->Yield();
      moved = application().moved();
    }
    for (int i = 0; i < 3 && !moved; ++i) {
      context->Yield();
      moved = application().moved();
    }
    IM_CHECK_EQ(moved, fade);
    settle(context);
  }
  start_over(context);
}

} // namespace

void register_appearance_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "appearance", "text_is_legible_in_both_themes")->TestFunc = legible;
  IM_REGISTER_TEST(engine, "appearance", "themes")->TestFunc = themes_change_what_is_drawn;
  IM_REGISTER_TEST(engine, "appearance", "scale")->TestFunc = scale_moves_everything;
  IM_REGISTER_TEST(engine, "appearance", "large_letters_fit")->TestFunc = large_letters_fit;
  IM_REGISTER_TEST(engine, "appearance", "scale_steps")->TestFunc = scale_steps;
  IM_REGISTER_TEST(engine, "appearance", "unknown_letters")->TestFunc = unknown_letters_are_named;
  IM_REGISTER_TEST(engine, "appearance", "labels_show_all_of_a_text")->TestFunc = labels_show_all_of_a_text;
  IM_REGISTER_TEST(engine, "appearance", "fade")->TestFunc = changed_maps_fade;
}

} // namespace hydrascope::app::window_tests
