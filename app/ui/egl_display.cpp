// EGL's headers come before glad's: glad carries its own copy of khrplatform.h.
#include <EGL/egl.h>
#include <EGL/eglext.h>

#include <glad/gl.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include <imgui.h>
#include <imgui_impl_opengl3.h>

#include "app/ui/display.h"
#include "engine/base/error.h"

namespace hydrascope::app {

namespace {

// The current OpenGL context of an EGL display; empty where none could be created.
class EglContext {
public:
  EglContext() = default;
  EglContext(EGLDisplay display, EGLContext context) : display_(display), context_(context) {}
  EglContext(EglContext&& other) noexcept
      : display_(std::exchange(other.display_, EGL_NO_DISPLAY)),
        context_(std::exchange(other.context_, EGL_NO_CONTEXT)) {}
  EglContext& operator=(EglContext&&) = delete;
  ~EglContext() {
    if (context_ == EGL_NO_CONTEXT) return;
    eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
    eglDestroyContext(display_, context_);
    eglTerminate(display_);
  }

  explicit operator bool() const { return context_ != EGL_NO_CONTEXT; }

private:
  EGLDisplay display_ = EGL_NO_DISPLAY;
  EGLContext context_ = EGL_NO_CONTEXT;
};

// Returns an empty context where the display has no OpenGL 3.3.
EglContext try_context(EGLDisplay display) {
  if (display == EGL_NO_DISPLAY || eglInitialize(display, nullptr, nullptr) == EGL_FALSE) return {};
  constexpr std::array<EGLint, 5> config_attributes = {EGL_SURFACE_TYPE, 0, EGL_RENDERABLE_TYPE,
                                                       EGL_OPENGL_BIT, EGL_NONE};
  constexpr std::array<EGLint, 7> attributes = {EGL_CONTEXT_MAJOR_VERSION,
                                                3,
                                                EGL_CONTEXT_MINOR_VERSION,
                                                3,
                                                EGL_CONTEXT_OPENGL_PROFILE_MASK,
                                                EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT,
                                                EGL_NONE};
  EGLConfig config = nullptr;
  EGLint count = 0;
  if (eglBindAPI(EGL_OPENGL_API) == EGL_TRUE &&
      eglChooseConfig(display, config_attributes.data(), &config, 1, &count) == EGL_TRUE && count > 0) {
    EGLContext context = eglCreateContext(display, config, EGL_NO_CONTEXT, attributes.data());
    if (context != EGL_NO_CONTEXT) {
      if (eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context) == EGL_TRUE)
        return EglContext(display, context);
      eglDestroyContext(display, context);
    }
  }
  eglTerminate(display);
  return {};
}

EglContext make_context() {
  const auto get_display =
      reinterpret_cast<PFNEGLGETPLATFORMDISPLAYEXTPROC>(eglGetProcAddress("eglGetPlatformDisplayEXT"));
  const auto query_devices =
      reinterpret_cast<PFNEGLQUERYDEVICESEXTPROC>(eglGetProcAddress("eglQueryDevicesEXT"));
  if (get_display != nullptr && query_devices != nullptr) {
    std::array<EGLDeviceEXT, 16> devices{};
    EGLint count = 0;
    if (query_devices(static_cast<EGLint>(devices.size()), devices.data(), &count) == EGL_TRUE) {
      for (EGLint i = 0; i < count; ++i) {
        if (EglContext made = try_context(
                get_display(EGL_PLATFORM_DEVICE_EXT, devices[static_cast<std::size_t>(i)], nullptr)))
          return made;
      }
    }
  }
  if (get_display == nullptr) return {};
  return try_context(get_display(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, nullptr));
}

class EglOffscreen final : public Display {
public:
  EglOffscreen(int width, int height) : width_(width), height_(height), egl_(make_context()) {
    if (!egl_ || gladLoadGL(eglGetProcAddress) == 0)
      throw Error("display", "there is no display, and EGL gives no OpenGL 3.3 either",
                  "install Mesa's libegl1 and libgl1-mesa-dri, or use a subcommand");
    glGenTextures(1, &texture_);
    EglOffscreen::resize(width, height);
    glGenFramebuffers(1, &framebuffer_);
    glBindFramebuffer(GL_FRAMEBUFFER, framebuffer_);
    glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, texture_, 0);
    ImGui_ImplOpenGL3_Init("#version 330 core");
  }

  ~EglOffscreen() override {
    ImGui_ImplOpenGL3_Shutdown();
    glDeleteFramebuffers(1, &framebuffer_);
    glDeleteTextures(1, &texture_);
  }

  void begin_frame(float scale) override {
    ImGui_ImplOpenGL3_NewFrame();
    set_display_size(width_, height_, scale);
    ImGuiIO& io = ImGui::GetIO();
    const auto now = std::chrono::steady_clock::now();
    io.DeltaTime = std::max(std::chrono::duration<float>(now - last_).count(), 1e-4f);
    last_ = now;
  }
  void bind() override { glBindFramebuffer(GL_FRAMEBUFFER, framebuffer_); }
  void swap() override { glFinish(); }
  bool wait(double seconds) override {
    std::unique_lock lock(mutex_);
    if (seconds > 0) woken_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return wake_; });
    return std::exchange(wake_, false);
  }
  void wake() override {
    {
      const std::lock_guard lock(mutex_);
      wake_ = true;
    }
    woken_.notify_one();
  }
  bool close_requested() const override { return false; }
  void set_title(const std::string&) override {}
  std::vector<std::filesystem::path> take_dropped() override { return {}; }
  int width() const override { return width_; }
  int height() const override { return height_; }
  void resize(int width, int height) override {
    width_ = width;
    height_ = height;
    glBindTexture(GL_TEXTURE_2D, texture_);
    glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, width_, height_, 0, GL_RGBA, GL_UNSIGNED_BYTE, nullptr);
  }
  float content_scale() const override { return 1; }
  WindowSystem window_system() const override { return WindowSystem::none; }
  std::string description() const override {
    return std::string("off screen, ") + reinterpret_cast<const char*>(glGetString(GL_RENDERER));
  }

private:
  int width_, height_;
  EglContext egl_;
  GLuint texture_ = 0, framebuffer_ = 0;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable woken_;
  bool wake_ = false;
};

} // namespace

std::unique_ptr<Display> open_offscreen_display(int width, int height) {
  return std::make_unique<EglOffscreen>(width, height);
}

} // namespace hydrascope::app
