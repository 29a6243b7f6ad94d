// The target of drawing: a window on a display, or an off-screen framebuffer through EGL. Owns the OpenGL
// context and Dear ImGui's back end; Dear ImGui's context must outlive it.
#pragma once

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <imgui.h>

namespace hydrascope::app {

enum class WindowSystem { none, x11, wayland };

class Display {
public:
  Display() = default;
  virtual ~Display() = default;
  Display(const Display&) = delete;
  Display& operator=(const Display&) = delete;

  // Passes size, time and the input that wait() polled to Dear ImGui, which counts in points of `scale`
  // pixels.
  virtual void begin_frame(float scale) = 0;
  virtual void bind() = 0; // binds the framebuffer, whose contents persist from frame to frame
  virtual void swap() = 0; // shows the framebuffer; off screen: waits for the drawing to finish
  // Whether the screen lost its contents since the last call, so that swap() is needed even without damage.
  virtual bool take_exposed() { return false; }
  // Waits for an event or wake(), at most `seconds` (0: only polls). Returns whether there was one.
  virtual bool wait(double seconds) = 0;
  virtual void wake() = 0; // from any thread
  virtual bool close_requested() const = 0;
  virtual void set_title(const std::string& title) = 0;
  // Returns the files dropped on the window since the last call.
  virtual std::vector<std::filesystem::path> take_dropped() = 0;
  virtual int width() const = 0; // of the framebuffer, in pixels
  virtual int height() const = 0;
  virtual void resize(int width, int height) = 0; // a window may refuse
  virtual float content_scale() const = 0;        // pixels per point according to the monitor's settings
  virtual std::string description() const = 0;
  virtual WindowSystem window_system() const = 0; // none: off screen
};

// Opens a GLFW window: on Wayland if WAYLAND_DISPLAY names a display there, unless XDG_SESSION_TYPE is "x11";
// else on X11. Throws Error without a display or OpenGL 3.3.
std::unique_ptr<Display> open_window_display(int width, int height, bool visible);

// Creates an EGL context: on a device if there is one (machines with a GPU and no display), else on Mesa's
// surfaceless platform. Throws Error if neither has OpenGL 3.3.
std::unique_ptr<Display> open_offscreen_display(int width, int height);

// Sets Dear ImGui's display size and density for a framebuffer of `width` × `height` pixels.
inline void set_display_size(int width, int height, float scale) {
  ImGuiIO& io = ImGui::GetIO();
  io.DisplaySize = ImVec2(static_cast<float>(width) / scale, static_cast<float>(height) / scale);
  io.DisplayFramebufferScale = ImVec2(static_cast<float>(width) / std::max(io.DisplaySize.x, 1e-3f),
                                      static_cast<float>(height) / std::max(io.DisplaySize.y, 1e-3f));
}

} // namespace hydrascope::app
