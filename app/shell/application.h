// The application with its window: owns document, worker, panels and display, and draws frames.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "app/actions/actions.h"
#include "app/jobs/coordinator.h"
#include "app/jobs/jobs.h"
#include "app/jobs/listener.h"
#include "app/jobs/preload.h"
#include "app/jobs/side_pair.h"
#include "app/shell/clipboard.h"
#include "app/shell/exports.h"
#include "app/shell/panel_windows.h"
#include "app/shell/shell.h"
#include "app/shell/shortcuts.h"
#include "app/shell/storage.h"
#include "app/shell/window.h"
#include "app/ui/display.h"
#include "app/ui/draw_data.h"
#include "engine/base/image.h"

struct ImGuiContext;

namespace hydrascope::app {

struct FrameTime {
  double cpu_ms = 0;   // from the begin to the end of Dear ImGui's work
  double total_ms = 0; // to the buffer swap
};

// Parts of the constructor's time.
struct StartTimes {
  double display_ms = 0;  // opening the display: an EGL or GLFW context
  double graphics_ms = 0; // reading fonts, and compiling shaders
};

class Application {
public:
  // Opens the display, loads fonts and shaders, sets the initial document and starts the worker. Throws Error
  // if there is neither a window nor an off-screen display.
  explicit Application(const WindowOptions& options);
  ~Application();
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

  const StartTimes& start_times() const { return start_times_; }

  // Draws one frame. Calls `before_swap` (of tests) on the finished frame.
  FrameTime frame(const std::function<void()>& before_swap = {});
  // Waits for a reason to draw a frame, at most `seconds`. Returns whether there is one. While idle, saves
  // changed settings and the session's copy.
  bool wait(double seconds);
  bool running() const;
  // Whether an animation was running in the last frame (a fading map).
  bool moved() const { return moved_; }
  bool exporting() const { return exports_->busy(); }
  const EverythingExport& everything() const { return *everything_; }
  bool saving() const { return sessions_->busy(); }
  // Whether every visible panel has its results, or an error, and no memory is being freed.
  bool settled() const;

  Editor& editor() { return *editor_; }
  const Coordinator& coordinator() const { return *coordinator_; }
  const ModelFetch& model_fetch() const { return jobs_->fetch; }
  Overlays& overlays() { return overlays_; }
  Dialog dialog() const { return dialogs_.shown(); } // the open file dialog
  Dialogs& dialogs() { return dialogs_; }
  const std::vector<Action>& actions() const { return actions_; }
  Display& display() { return *display_; }
  bool run(std::string_view action) { return run_action(actions_, action, *editor_); }
  Image read_frame(); // the pixels of the last frame
  // Draws all of the last frame again, not only what had changed.
  void draw_whole();
  // The panel's rectangle in the last frame, in pixels; nullopt if it was not drawn.
  std::optional<std::array<int, 4>> panel_rectangle(std::string_view panel) const { // x, y, width, height
    return panels_->rectangle(panel);
  }
  const std::vector<PanelName>& panels() const { return panels_->names(); }
  // The figure that the panel exports, with its provenance; nullopt if it shows nothing.
  std::optional<Figure> figure_of(const std::string& id) const;

private:
  void start(const WindowOptions& options);
  void apply_settings();
  void store_arrangement();
  void update_state();
  bool take_devices();
  bool take_results();
  const Document& shown_document() const { return followed_ ? *followed_ : editor_->document(); }
  void update_snapshot(const Requested& requested);
  void report_status();
  bool focus_map_seen() const; // the Focus panel is in front and its maps are not empty
  void draw_frame();
  void draw_inside(std::span<const ScreenBox> boxes);

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

  // Each member uses only those declared before it, and is destroyed before them: threads (jobs, clipboard,
  // exports, sessions, worker) end before the display that they wake, and OpenGL objects before its context.
  theme::Theme theme_; // Dear ImGui's context points to it
  Gui gui_;
  std::unique_ptr<Display> display_; // woken by threads
  // Deletes the textures of all members below while their context exists: the next one has the same names.
  struct LastTextures {
    LastTextures() = default;
    ~LastTextures();
    LastTextures(const LastTextures&) = delete;
    LastTextures& operator=(const LastTextures&) = delete;
  } last_textures_;
  std::unique_ptr<Graphics> graphics_;
  DamageTracker damage_;
  std::unique_ptr<Editor> editor_;
  std::unique_ptr<Worker> worker_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<PanelWindows> panels_;
  std::vector<Action> actions_;
  std::unique_ptr<SettingsFile> settings_file_;
  std::unique_ptr<SessionStore> sessions_;
  std::unique_ptr<FileHashes> hashes_ = std::make_unique<FileHashes>(); // of files named in figures
  std::optional<Settings> applied_;                                     // the settings in force
  std::function<void(Editor&, const ShowFigure&)> show_figure_;
  Overlays overlays_;
  Palette palette_;
  ShortcutsDialog shortcuts_dialog_;
  LayoutDialog layout_dialog_;
  GetModelDialog get_model_dialog_;
  GalleryWindow gallery_;
  LessonCard lesson_card_;
  AboutWindow about_;
  Dialogs dialogs_;
  std::unique_ptr<Exports> exports_;
  std::unique_ptr<EverythingExport> everything_;
  std::unique_ptr<Clipboard> clipboard_;
  std::unique_ptr<Jobs> jobs_;
  std::unique_ptr<Preload> preload_;
  std::unique_ptr<Listener> listener_; // null unless asked for
  WindowSizes windows_;
  std::string cut_note_;                      // of the last run
  std::shared_ptr<const DeviceList> devices_; // null until the worker has found them
  bool quit_ = false;
  double scale_ = 1; // pixels per point
  SidePair pair_;    // of snapshot_
  Snapshot snapshot_;
  std::optional<Document> followed_; // what the panels show in place of the document; see followed_document()
  std::uint64_t drawn_revision_ = 0;
  bool moved_ = false;
  StartTimes start_times_;
  double drawn_at_ = 0;                                           // on the window's clock
  double give_back_at_ = std::numeric_limits<double>::infinity(); // when to return freed memory to the system
  int redraw_ = 3; // frames to be drawn: layout and hovering take a few to settle
};

} // namespace hydrascope::app
