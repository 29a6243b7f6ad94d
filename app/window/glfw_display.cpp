#include <glad/gl.h>

#include <utility>

#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>

#include <imgui.h>
#include <imgui_impl_glfw.h>
#include <imgui_impl_opengl3.h>

#include "app/window/display.h"
#include "engine/plain/error.h"

namespace hydrascope::app {

namespace {

std::string last_glfw_error() {
  const char* description = nullptr;
  glfwGetError(&description);
  return description == nullptr ? "unknown reason" : description;
}

class GlfwDisplay final : public Display {
public:
  GlfwDisplay(int width, int height, bool visible) {
    if (glfwInit() == GLFW_FALSE)
      throw Error("display", last_glfw_error(), "start with a display, or use a subcommand");
    glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
    glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
    glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
    glfwWindowHint(GLFW_VISIBLE, visible ? GLFW_TRUE : GLFW_FALSE);
    glfwWindowHint(GLFW_SCALE_TO_MONITOR, GLFW_TRUE);
    glfwWindowHintString(GLFW_X11_CLASS_NAME, "hydrascope");
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
    glfwSwapInterval(visible ? 1 : 0);
    glfwSetWindowUserPointer(window_, this);
    glfwSetDropCallback(window_, [](GLFWwindow* window, int count, const char** paths) {
      auto* self = static_cast<GlfwDisplay*>(glfwGetWindowUserPointer(window));
      for (int i = 0; i < count; ++i) self->dropped_.emplace_back(paths[i]);
    });
    ImGui_ImplGlfw_InitForOpenGL(window_, true);
    ImGui_ImplOpenGL3_Init("#version 330 core");
  }

  ~GlfwDisplay() override {
    ImGui_ImplOpenGL3_Shutdown();
    ImGui_ImplGlfw_Shutdown();
    glfwDestroyWindow(window_);
    glfwTerminate();
  }

  void begin_frame() override {
    ImGui_ImplOpenGL3_NewFrame();
    ImGui_ImplGlfw_NewFrame();
  }
  void bind() override { glBindFramebuffer(GL_FRAMEBUFFER, 0); }
  void swap() override { glfwSwapBuffers(window_); }
  void wait(double seconds) override {
    if (seconds > 0) {
      glfwWaitEventsTimeout(seconds);
    } else {
      glfwPollEvents();
    }
  }
  void wake() override { glfwPostEmptyEvent(); }
  bool close_requested() const override { return glfwWindowShouldClose(window_) != GLFW_FALSE; }
  void set_title(const std::string& title) override { glfwSetWindowTitle(window_, title.c_str()); }
  std::vector<std::filesystem::path> take_dropped() override { return std::exchange(dropped_, {}); }
  int width() const override { return framebuffer_size().first; }
  int height() const override { return framebuffer_size().second; }
  std::string description() const override {
    return std::string("window, ") + reinterpret_cast<const char*>(glGetString(GL_RENDERER));
  }

private:
  std::pair<int, int> framebuffer_size() const {
    int width = 0, height = 0;
    glfwGetFramebufferSize(window_, &width, &height);
    return {width, height};
  }

  GLFWwindow* window_ = nullptr;
  std::vector<std::filesystem::path> dropped_;
};

} // namespace

std::unique_ptr<Display> open_window_display(int width, int height, bool visible) {
  return std::make_unique<GlfwDisplay>(width, height, visible);
}

} // namespace hydrascope::app
