// The window at work: one object that owns document, worker, panels and display, and draws one frame at a
// time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "app/panels/panel.h"
#include "app/state/actions.h"
#include "app/state/coordinator.h"
#include "app/window/display.h"
#include "app/window/shell.h"
#include "app/window/window.h"
#include "engine/plain/image.h"

struct ImGuiContext;

namespace hydrascope::app {

struct FrameTime {
  double cpu_ms = 0;   // from the frame's begin to handing the draw lists to OpenGL
  double total_ms = 0; // to the buffer swap
};

class Application {
public:
  // Opens the display (off screen if the options say so), loads fonts and shaders, builds the document,
  // starts the worker. Throws Error where no display of either kind can be had.
  explicit Application(const WindowOptions& options);
  ~Application();
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

  // One frame, from input to swap. `before_swap` may look at the finished frame's state (tests hook in
  // there).
  FrameTime frame(const std::function<void()>& before_swap = {});
  // Waits until there is something to draw, at most `seconds`; returns at once if something moves already.
  void wait(double seconds);
  bool running() const;
  // Every open panel has what it asked for, or an error says why not.
  bool settled() const;

  Editor& editor() { return *editor_; }
  const Coordinator& coordinator() const { return *coordinator_; }
  const std::vector<Action>& actions() const { return actions_; }
  Display& display() { return *display_; }
  bool run(std::string_view action) { return run_action(actions_, action, *editor_); }
  Image read_frame(); // the last frame's pixels

private:
  void start_document(const WindowOptions& options);
  void update_state();
  void draw_frame();
  void draw_panels();
  void draw_panel(Panel& panel);
  void export_figure();

  ImGuiContext* context_ = nullptr;
  std::unique_ptr<Display> display_;
  std::unique_ptr<Graphics> graphics_;
  std::unique_ptr<Editor> editor_;
  std::unique_ptr<Worker> worker_;
  std::unique_ptr<Coordinator> coordinator_;
  std::vector<std::unique_ptr<Panel>> panels_;
  std::vector<Action> actions_;
  Palette palette_;
  Dialogs dialogs_;
  Snapshot snapshot_;
  std::vector<std::uint64_t> prepared_; // by panel: the snapshot's stamp it was prepared for
  std::vector<bool> in_front_;          // by panel: it was drawn in the last frame
  std::uint64_t drawn_revision_ = 0;
  int redraw_ = 3; // frames still to be drawn; layout and hovering settle over a few
  bool saves_layout_ = false;
  std::string layout_file_;
};

} // namespace hydrascope::app
