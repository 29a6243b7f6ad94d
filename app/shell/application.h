// The window at work: one object that owns document, worker, panels and display, and draws one frame at a
// time.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "app/actions/actions.h"
#include "app/jobs/coordinator.h"
#include "app/jobs/jobs.h"
#include "app/shell/clipboard.h"
#include "app/shell/everything_export.h"
#include "app/shell/exports.h"
#include "app/shell/panel_windows.h"
#include "app/shell/session_store.h"
#include "app/shell/settings_file.h"
#include "app/shell/shell.h"
#include "app/shell/window.h"
#include "app/ui/damage.h"
#include "app/ui/display.h"
#include "engine/base/image.h"

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
  // Waits until there is something to draw, at most `seconds`; returns at once if something moves already,
  // and whether a frame is due. While nothing happens, settings that have changed are written.
  bool wait(double seconds);
  bool running() const;
  // In the last frame something was on its way from one look to another (a map that fades).
  bool moved() const { return moved_; }
  bool exporting() const { return exports_->busy(); }
  const EverythingExport& everything() const { return *everything_; }
  EverythingExport& everything() { return *everything_; }
  bool saving() const { return sessions_->busy(); }
  // Every open panel has what it asked for, or an error says why not.
  bool settled() const;

  Editor& editor() { return *editor_; }
  const Coordinator& coordinator() const { return *coordinator_; }
  const ModelFetch& model_fetch() const { return jobs_->fetch; }
  Overlays& overlays() { return overlays_; }
  Dialog dialog() const { return dialogs_.shown(); } // of the desktop, that is open
  const std::vector<Action>& actions() const { return actions_; }
  Display& display() { return *display_; }
  bool run(std::string_view action) { return run_action(actions_, action, *editor_); }
  Image read_frame(); // the last frame's pixels
  // Draws all of the next frame, not only what has changed.
  void forget_frame() { damage_.forget(); }
  // Where a panel was drawn in the last frame, in pixels; nullopt if it was not.
  std::optional<std::array<int, 4>> panel_rectangle(std::string_view panel) const { // x, y, width, height
    return panels_->rectangle(panel);
  }
  const std::vector<PanelName>& panels() const { return panels_->names(); }
  // What the panel of this id exports, with where it comes from; nullopt if it shows nothing.
  std::optional<Figure> figure_of(const std::string& id) const;

private:
  void start(const WindowOptions& options);
  void apply_settings();
  void keep_arrangement();
  void update_state();
  bool take_results();
  void update_snapshot(const Requested& requested);
  void report_status();
  void draw_frame();

  // Dear ImGui's context.
  class Gui {
  public:
    Gui();
    ~Gui();
    Gui(const Gui&) = delete;
    Gui& operator=(const Gui&) = delete;

  private:
    ImGuiContext* context_;
  };

  // What is declared first is used by what follows, and outlives it.
  theme::Theme theme_; // Dear ImGui's context points to it
  Gui gui_;
  std::unique_ptr<Display> display_; // woken by the threads of all below
  std::unique_ptr<Graphics> graphics_;
  Damage damage_;
  std::unique_ptr<Editor> editor_;
  std::unique_ptr<Worker> worker_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<PanelWindows> panels_;
  std::vector<Action> actions_;
  std::unique_ptr<SettingsFile> settings_file_;
  std::unique_ptr<SessionStore> sessions_;
  std::shared_ptr<FileHashes> hashes_ = std::make_shared<FileHashes>(); // for what figures hold
  std::optional<Settings> applied_;                                     // the settings that are in force
  std::function<void(Editor&, const ShowFigure&)> show_figure_;
  Overlays overlays_;
  Palette palette_;
  ShortcutsDialog shortcuts_dialog_;
  LayoutDialog layout_dialog_;
  GetModelDialog get_model_dialog_;
  Dialogs dialogs_;
  std::unique_ptr<Exports> exports_;
  std::unique_ptr<EverythingExport> everything_;
  std::unique_ptr<Clipboard> clipboard_;
  std::unique_ptr<Jobs> jobs_;
  bool quit_ = false;
  double scale_ = 1; // pixels a point, in force
  Snapshot snapshot_;
  std::uint64_t drawn_revision_ = 0;
  bool moved_ = false;
  double drawn_at_ = 0;                                           // the last frame
  double give_back_at_ = std::numeric_limits<double>::infinity(); // memory; a while after the last run
  int redraw_ = 3; // frames still to be drawn; layout and hovering settle over a few
};

} // namespace hydrascope::app
