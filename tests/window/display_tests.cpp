// The display that the window opens on.
#include <cstdlib>
#include <string>

#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

namespace {

constexpr const char* name_of(WindowSystem system) {
  switch (system) {
    case WindowSystem::none: return "none";
    case WindowSystem::x11: return "X11";
    case WindowSystem::wayland: return "Wayland";
  }
  return "";
}

void opens_where_there_is_a_display(ImGuiTestContext* context) {
  const bool x11 = std::getenv("DISPLAY") != nullptr, wayland = std::getenv("WAYLAND_DISPLAY") != nullptr;
  if (x11 && wayland) return context->LogInfo("there are both: a desktop with XWayland");
  const WindowSystem expected = x11       ? WindowSystem::x11
                                : wayland ? WindowSystem::wayland
                                          : WindowSystem::none;
  IM_CHECK_STR_EQ(name_of(application().display().window_system()), name_of(expected));
}

void has_the_displays_density(ImGuiTestContext* /*context*/) {
  const char* const scale = std::getenv("UNDER_WESTON_SCALE"); // of tests/window/under_weston
  const float expected = scale == nullptr ? 1 : std::stof(scale);
  IM_CHECK_EQ(application().display().content_scale(), expected);
  IM_CHECK_EQ(application().display().width(), static_cast<int>(expected) * WindowOptions().width);
}

} // namespace

void register_display_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "display", "opens_where_there_is_a_display")->TestFunc =
      opens_where_there_is_a_display;
  if (application().display().window_system() == WindowSystem::wayland)
    IM_REGISTER_TEST(engine, "display", "has_the_displays_density")->TestFunc = has_the_displays_density;
}

} // namespace hydrascope::app::window_tests
