#include <glad/gl.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <thread>
#include <utility>

#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>

#include <imgui.h>
#include <imgui_impl_glfw.h>
#include <imgui_impl_opengl3.h>

#include "app/ui/display.h"
#include "engine/base/error.h"

namespace hydrascope::app {

namespace {

std::string last_glfw_error() {
  const char* description = nullptr;
  glfwGetError(&description);
  return description == nullptr ? "unknown reason" : description;
}

// Whether GLFW starts, on X11 or on either window system.
bool started(int platform) {
  glfwInitHint(GLFW_PLATFORM, platform);
  return glfwInit() != GLFW_FALSE;
}

// Throws Error without a display. Falls back on X11 where a Wayland session cannot be used (no libxkbcommon).
void start_glfw() {
  if (std::getenv("WAYLAND_DISPLAY") != nullptr && started(GLFW_ANY_PLATFORM)) return;
  if (!started(GLFW_PLATFORM_X11))
    throw Error("display", last_glfw_error(), "start with a display, or use a subcommand");
}

// Of the fastest monitor.
std::chrono::steady_clock::duration refresh_period() {
  int count = 0, rate = 0;
  GLFWmonitor** const monitors = glfwGetMonitors(&count);
  for (int i = 0; i < count; ++i)
    if (const GLFWvidmode* const mode = glfwGetVideoMode(monitors[i]))
      rate = std::max(rate, mode->refreshRate);
  constexpr int usual_rate = 60;
  using Seconds = std::chrono::duration<double>;
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      Seconds(1.0 / (rate > 0 ? rate : usual_rate)));
}

class GlfwDisplay final : public Display {
public:
  GlfwDisplay(int width, int height, bool visible) {
    start_glfw();
    glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
    glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
    glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
    glfwWindowHint(GLFW_VISIBLE, visible ? GLFW_TRUE : GLFW_FALSE);
    glfwWindowHint(GLFW_SCALE_TO_MONITOR, GLFW_TRUE);
    // Of the desktop entry, hydrascope.desktop.
    glfwWindowHintString(GLFW_X11_CLASS_NAME, "hydrascope");
    glfwWindowHintString(GLFW_WAYLAND_APP_ID, "hydrascope");
    window_ = glfwCreateWindow(width, height, "Hydrascope", nullptr, nullptr);
    if (window_ == nullptr) {
      const std::string reason = last_glfw_error();
      glfwTerminate();
      throw Error("display", "no window with OpenGL 3.3: " + reason,
                  "install an OpenGL driver, or use a subcommand");
    }
    glfwSetWindowSizeLimits(window_, 800, 600, GLFW_DONT_CARE, GLFW_DONT_CARE);
    glfwMakeContextCurrent(window_);
    if (gladLoadGL(glfwGetProcAddress) == 0) {
      glfwDestroyWindow(window_);
      glfwTerminate();
      throw Error("display", "OpenGL's functions could not be loaded",
                  "install an OpenGL driver, or use a subcommand");
    }
    // On Wayland a swap that waits for the monitor would block while the window is hidden.
    const bool on_wayland = window_system() == WindowSystem::wayland;
    glfwSwapInterval(visible && !on_wayland ? 1 : 0);
    if (visible && on_wayland) swap_period_ = refresh_period();
    glfwSetWindowUserPointer(window_, this);
    glfwSetDropCallback(window_, [](GLFWwindow* window, int count, const char** paths) {
      for (int i = 0; i < count; ++i) of(window).dropped_.emplace_back(paths[i]);
    });
    ImGui_ImplGlfw_InitForOpenGL(window_, false);
    install_callbacks();
    glGenTextures(1, &texture_);
    glGenFramebuffers(1, &framebuffer_);
    ImGui_ImplOpenGL3_Init("#version 330 core");
  }

  ~GlfwDisplay() override {
    ImGui_ImplOpenGL3_Shutdown();
    ImGui_ImplGlfw_Shutdown();
    glDeleteFramebuffers(1, &framebuffer_);
    glDeleteTextures(1, &texture_);
    glfwDestroyWindow(window_);
    glfwTerminate();
  }

  void begin_frame(float scale) override {
    const bool other_scale = std::exchange(scale_, scale) != scale;
    ImGui_ImplOpenGL3_NewFrame();
    ImGui_ImplGlfw_NewFrame();
    const bool focused = glfwGetWindowAttrib(window_, GLFW_FOCUSED) != GLFW_FALSE;
    if (pointer_inside_ ? other_scale : focused) {
      // While the pointer is outside, the back end reads its position itself, in coordinates rather than
      // points.
      double x = 0, y = 0;
      glfwGetCursorPos(window_, &x, &y);
      const auto points = in_points(x, y);
      ImGui::GetIO().AddMousePosEvent(points.x, points.y);
    }
    const auto [width, height] = framebuffer_size();
    if (width > 0 && height > 0) set_display_size(width, height, scale);
  }
  // A swap invalidates the window's own buffers, so frames are drawn into a texture and copied.
  void bind() override {
    const auto size = framebuffer_size();
    glBindFramebuffer(GL_FRAMEBUFFER, framebuffer_);
    if (std::exchange(size_, size) == size) return;
    glBindTexture(GL_TEXTURE_2D, texture_);
    glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, size.first, size.second, 0, GL_RGBA, GL_UNSIGNED_BYTE, nullptr);
    glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, texture_, 0);
  }
  void swap() override {
    const auto [width, height] = size_;
    glBindFramebuffer(GL_READ_FRAMEBUFFER, framebuffer_);
    glBindFramebuffer(GL_DRAW_FRAMEBUFFER, 0);
    glBlitFramebuffer(0, 0, width, height, 0, 0, width, height, GL_COLOR_BUFFER_BIT, GL_NEAREST);
    std::this_thread::sleep_until(next_swap_);
    glfwSwapBuffers(window_);
    next_swap_ = std::chrono::steady_clock::now() + swap_period_;
  }
  bool take_exposed() override { return std::exchange(exposed_, false); }
  bool wait(double seconds) override {
    if (seconds <= 0) {
      glfwPollEvents();
      return false;
    }
    const double until = glfwGetTime() + seconds;
    glfwWaitEventsTimeout(seconds);
    return glfwGetTime() < until; // GLFW does not report why the wait ended
  }
  void wake() override { glfwPostEmptyEvent(); }
  bool close_requested() const override { return glfwWindowShouldClose(window_) != GLFW_FALSE; }
  void set_title(const std::string& title) override { glfwSetWindowTitle(window_, title.c_str()); }
  std::vector<std::filesystem::path> take_dropped() override { return std::exchange(dropped_, {}); }
  int width() const override { return framebuffer_size().first; }
  int height() const override { return framebuffer_size().second; }
  void resize(int width, int height) override {
    const double density = pixels_per_coordinate();
    glfwSetWindowSize(window_, static_cast<int>(std::lround(width / density)),
                      static_cast<int>(std::lround(height / density)));
  }
  float content_scale() const override {
    float x = 1, y = 1;
    glfwGetWindowContentScale(window_, &x, &y);
    return x > 0 ? x : 1;
  }
  std::string description() const override {
    return std::string(window_system() == WindowSystem::wayland ? "Wayland" : "X11") + " window, " +
           reinterpret_cast<const char*>(glGetString(GL_RENDERER));
  }
  WindowSystem window_system() const override {
    return glfwGetPlatform() == GLFW_PLATFORM_WAYLAND ? WindowSystem::wayland : WindowSystem::x11;
  }

private:
  static GlfwDisplay& of(GLFWwindow* window) {
    return *static_cast<GlfwDisplay*>(glfwGetWindowUserPointer(window));
  }

  // GLFW counts the window's size and the pointer's position in coordinates: pixels on X11, on Wayland what
  // the compositor scales to them.
  double pixels_per_coordinate() const {
    int width = 0, height = 0;
    glfwGetWindowSize(window_, &width, &height);
    const int pixels = framebuffer_size().first;
    return width > 0 && pixels > 0 ? static_cast<double>(pixels) / width : 1;
  }
  ImVec2 in_points(double x, double y) const {
    const double points = pixels_per_coordinate() / static_cast<double>(scale_);
    return {static_cast<float>(x * points), static_cast<float>(y * points)};
  }

  // All of Dear ImGui's own callbacks, with the pointer's position converted to points.
  void install_callbacks() {
    glfwSetCursorPosCallback(window_, [](GLFWwindow* window, double x, double y) {
      const ImVec2 points = of(window).in_points(x, y);
      ImGui_ImplGlfw_CursorPosCallback(window, static_cast<double>(points.x), static_cast<double>(points.y));
    });
    glfwSetCursorEnterCallback(window_, [](GLFWwindow* window, int entered) {
      of(window).pointer_inside_ = entered != GLFW_FALSE;
      ImGui_ImplGlfw_CursorEnterCallback(window, entered);
    });
    glfwSetWindowRefreshCallback(window_, [](GLFWwindow* window) { of(window).exposed_ = true; });
    glfwSetWindowFocusCallback(window_, ImGui_ImplGlfw_WindowFocusCallback);
    glfwSetMouseButtonCallback(window_, ImGui_ImplGlfw_MouseButtonCallback);
    glfwSetScrollCallback(window_, ImGui_ImplGlfw_ScrollCallback);
    glfwSetKeyCallback(window_, ImGui_ImplGlfw_KeyCallback);
    glfwSetCharCallback(window_, ImGui_ImplGlfw_CharCallback);
    glfwSetMonitorCallback(ImGui_ImplGlfw_MonitorCallback);
  }

  std::pair<int, int> framebuffer_size() const {
    int width = 0, height = 0;
    glfwGetFramebufferSize(window_, &width, &height);
    return {width, height};
  }

  GLFWwindow* window_ = nullptr;
  GLuint texture_ = 0, framebuffer_ = 0;
  std::pair<int, int> size_{0, 0}; // of the texture
  bool exposed_ = true;
  std::vector<std::filesystem::path> dropped_;
  float scale_ = 1;
  bool pointer_inside_ = false;
  std::chrono::steady_clock::duration swap_period_{}; // least time between two swaps
  std::chrono::steady_clock::time_point next_swap_;
};

} // namespace

std::unique_ptr<Display> open_window_display(int width, int height, bool visible) {
  return std::make_unique<GlfwDisplay>(width, height, visible);
}

} // namespace hydrascope::app
