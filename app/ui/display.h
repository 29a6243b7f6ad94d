// Where frames are drawn: a window on a display, or off screen through EGL. Owns the OpenGL context and Dear
// ImGui's back end. Dear ImGui's context must exist before and outlive it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace hydrascope::app {

class Display {
public:
  Display() = default;
  virtual ~Display() = default;
  Display(const Display&) = delete;
  Display& operator=(const Display&) = delete;

  // Tells Dear ImGui of size, time and input; events were polled by wait(). Dear ImGui counts in points, each
  // `scale` pixels long.
  virtual void begin_frame(float scale) = 0;
  virtual void bind() = 0; // the framebuffer that is drawn into; what it holds stays from frame to frame
  virtual void swap() = 0; // shows it; off screen: waits until it is drawn
  // Whether what was shown is gone, so that swap() is needed although nothing was drawn.
  virtual bool take_exposed() { return false; }
  // For events, at most so long (0: only polls); wake() ends it. Returns whether anything came.
  virtual bool wait(double seconds) = 0;
  virtual void wake() = 0; // from any thread
  virtual bool close_requested() const = 0;
  virtual void set_title(const std::string& title) = 0;
  virtual std::vector<std::filesystem::path> take_dropped() = 0; // files dropped on the window since the last
                                                                 // call
  virtual int width() const = 0;                                 // of the framebuffer, in pixels
  virtual int height() const = 0;
  virtual void resize(int width, int height) = 0; // a window may refuse
  virtual float content_scale() const = 0;        // pixels a point, as the monitor's settings have it
  virtual std::string description() const = 0;
  // Why pictures can be neither copied nor pasted here; empty if they can.
  virtual std::string picture_clipboard_obstacle() const = 0;
};

// A GLFW window on the display that DISPLAY names. Throws Error if there is none or it has no OpenGL 3.3.
std::unique_ptr<Display> open_window_display(int width, int height, bool visible);

// An own EGL context: on a device first (as machines with a GPU and no display have), then Mesa's surfaceless
// platform. Throws Error if neither gives OpenGL 3.3.
std::unique_ptr<Display> open_offscreen_display(int width, int height);

// Dear ImGui's display size and density for a framebuffer of so many pixels.
void set_display_size(int width, int height, float scale);

} // namespace hydrascope::app
