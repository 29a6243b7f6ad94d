// What lies around the panels: menus, status bar, palette, help sheet, messages, file dialogs. All of it is
// made from the action table and the snapshot.
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/actions/actions.h"
#include "app/actions/tour.h"
#include "app/jobs/jobs.h"
#include "app/panels/panel.h"

namespace pfd {
class open_file;
class select_folder;
class save_file;
} // namespace pfd

namespace hydrascope::app {

// What lies over the panels.
struct Overlays {
  std::array<bool, 5> open{}; // by Overlay
  std::optional<TourState> tour;

  bool& operator[](Overlay overlay) { return open[static_cast<std::size_t>(overlay)]; }
  bool operator[](Overlay overlay) const { return open[static_cast<std::size_t>(overlay)]; }
};

// Menus by the actions' menu paths, in the table's order; the palette's entry on the right.
void draw_menu_bar(const std::vector<Action>& actions, Editor& editor, const Graphics& graphics);
// What runs, how it was computed, and the way to stop a run that takes long.
void draw_status_bar(const Snapshot& snapshot, const std::vector<Action>& actions, Editor& editor,
                     const Graphics& graphics);

// Runs the actions whose shortcuts were pressed; keys that are being typed into a text field are left alone.
void run_shortcuts(const std::vector<Action>& actions, Editor& editor);

// The look of what lies over the panels, for the windows begun during its life.
class OverlayStyle {
public:
  explicit OverlayStyle(const ImVec4& border = theme::line);
  ~OverlayStyle();
  OverlayStyle(const OverlayStyle&) = delete;
  OverlayStyle& operator=(const OverlayStyle&) = delete;
};

// Ctrl+P: type a few letters of what is wanted, arrows and Enter.
class Palette {
public:
  void draw(const std::vector<Action>& actions, Editor& editor, const Graphics& graphics, bool& open);

private:
  std::string query_;
  int chosen_ = 0;
  bool was_open_ = false;
};

// Each action's shortcut, to be changed by pressing keys; a shortcut that is taken is named before it moves.
class ShortcutsDialog {
public:
  void draw(const std::vector<Action>& actions, Editor& editor, const Graphics& graphics, bool& open);
  bool capturing() const { return !capturing_.empty(); } // the next keys become a shortcut, and run none

private:
  void stop();
  void capture(const std::vector<Action>& actions, Editor& editor);
  void draw_row(const std::vector<Action>& actions, const Action& action, Editor& editor,
                const Graphics& graphics);
  void draw_conflict(const std::vector<Action>& actions, Editor& editor);

  std::string filter_;
  std::string capturing_; // id of the action whose keys are being pressed
  std::string wanted_;    // what was pressed and is taken
};

class LayoutDialog {
public:
  void draw(Editor& editor, const Graphics& graphics, bool& open);

private:
  std::string name_;
  bool was_open_ = false;
};

// A model's name on the Hugging Face Hub, with some to choose from; then how far it is.
class GetModelDialog {
public:
  void draw(Editor& editor, const Graphics& graphics, ModelFetch& fetch, bool& open);

private:
  void look_into_cache();
  void choose(const std::string& repository, ModelFetch& fetch);
  void go(Editor& editor, ModelFetch& fetch, bool& open);
  bool draw_suggestions(const Graphics& graphics, ModelFetch& fetch);
  static void draw_progress(const Editor& editor, const Graphics& graphics, const ModelFetch& fetch);
  void draw_body(Editor& editor, const Graphics& graphics, ModelFetch& fetch, bool appearing, bool& open);

  std::string name_;
  bool name_cached_ = false;
  std::vector<bool> cached_; // of the suggestions
  bool offline_ = false;
  bool was_open_ = false, was_running_ = false;
};

// What a session that waits to be opened lacks, to be located or done without.
void draw_session_dialog(Editor& editor, const Graphics& graphics);
// The guided tour's card beside the panel that its step is about, which is framed.
void draw_tour(const std::vector<Action>& actions, Editor& editor, const Graphics& graphics,
               std::optional<TourState>& tour);
void draw_help_sheet(const std::vector<Action>& actions, const Graphics& graphics, bool& open);
// The newest messages as notices in the corner; errors stay longer.
void draw_messages(Editor& editor, const Graphics& graphics);

// The desktop's own dialogs; polled, so that frames go on while one is open.
class Dialogs {
public:
  Dialogs();
  ~Dialogs();
  // Nothing while another is open. `panel`: whose figure is exported.
  void show(Dialog dialog, Editor& editor, std::string panel = {});
  // Once per frame: opens what was chosen, or emits the command that was asked for with it.
  void poll(Editor& editor);
  Dialog shown() const { return open() ? shown_ : Dialog::none; }

private:
  bool open() const;
  void create(Dialog dialog, const Editor& editor);
  void take(Editor& editor, std::filesystem::path chosen); // empty: nothing was chosen

  Dialog shown_ = Dialog::none;
  std::string panel_;
  std::unique_ptr<pfd::open_file> file_;
  std::unique_ptr<pfd::select_folder> folder_;
  std::unique_ptr<pfd::save_file> save_;
};

} // namespace hydrascope::app
