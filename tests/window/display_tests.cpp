// The display that the window opens on, and the pointer's way from there into the window.
#include <cmath>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>
#include <xcb/xcb.h>

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

// The pointer of the X server that shows the compositor: an input device as far as its clients can tell.
class HostPointer {
public:
  explicit HostPointer(const char* display)
      : connection_(xcb_connect(display, nullptr)),
        root_(xcb_setup_roots_iterator(xcb_get_setup(connection_)).data->root) {}
  ~HostPointer() { xcb_disconnect(connection_); }
  HostPointer(const HostPointer&) = delete;
  HostPointer& operator=(const HostPointer&) = delete;

  void move(std::int16_t x, std::int16_t y) const {
    xcb_warp_pointer(connection_, XCB_WINDOW_NONE, root_, 0, 0, 0, 0, x, y);
    xcb_flush(connection_);
  }

private:
  xcb_connection_t* connection_;
  xcb_window_t root_;
};

} // namespace

std::string check_pointer(Application& application, const char* host) {
  const HostPointer pointer(host);
  const ImVec2& position = ImGui::GetIO().MousePos;
  // The first movement may only bring the pointer into the window.
  for (const std::int16_t place : {std::int16_t{600}, std::int16_t{700}}) {
    pointer.move(place, place);
    while (application.wait(0.2)) application.frame(); // until it rests
  }
  const ImVec2 before = position;
  constexpr int across = 160, down = 100; // pixels
  pointer.move(700 + across, 700 + down);
  const double scale = application.editor().status().scale;
  const auto moved = [&] {
    return std::abs(position.x - before.x - across / scale) < 0.5 &&
           std::abs(position.y - before.y - down / scale) < 0.5;
  };
  constexpr int patience = 500;
  for (int i = 0; i < patience; ++i) {
    if (application.wait(0.02)) application.frame();
    if (moved()) return {};
  }
  return fmt::format("the pointer moved by {} {} pixels, and by {} {} points of {} pixels", across, down,
                     position.x - before.x, position.y - before.y, scale);
}

void register_display_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "display", "opens_where_there_is_a_display")->TestFunc =
      opens_where_there_is_a_display;
}

} // namespace hydrascope::app::window_tests
