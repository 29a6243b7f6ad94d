// The window around the panels: menu bar, status bar, palette, help sheet, messages, dialogs; made from the
// action table and the snapshot.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/actions/actions.h"
#include "app/actions/tour.h"
#include "app/document/gallery.h"
#include "app/jobs/jobs.h"
#include "app/panels/panel.h"
#include "app/shell/file_dialog.h"

namespace pfd {
class open_file;
class select_folder;
class save_file;
} // namespace pfd

namespace hydrascope::app {

// Which windows over the panels are open.
struct Overlays {
  std::array<bool, 7> open{}; // by Overlay
  std::optional<TourState> tour;
  std::string caption; // of a recording; empty: none

  bool& operator[](Overlay overlay) { return open[static_cast<std::size_t>(overlay)]; }
  bool operator[](Overlay overlay) const { return open[static_cast<std::size_t>(overlay)]; }
};

// Watches the sizes of Dear ImGui's windows. A window that fits its contents is hidden in its first frame and
// has its size a frame after its contents have changed, which no input announces.
class WindowSizes {
public:
  // Whether a window has appeared, gone or changed its size or contents' size since the last call. Once per
  // frame, after all windows.
  bool changed();

private:
  std::size_t last_ = 0; // hash
};

// Menus from the actions' menu paths, in the table's order, and the palette's button.
void draw_menu_bar(const std::vector<Action>& actions, Editor& editor, const Graphics& graphics);
// The model, running jobs, and how the results were computed; a button cancels long runs.
void draw_status_bar(const Snapshot& snapshot, const std::vector<Action>& actions, Editor& editor,
                     const Graphics& graphics);

// "text cut at 512 of 2003 tokens"; empty if the model read all of its input.
std::string cut_note(const RunResult& run);

// A small window that explains something and blocks nothing; as high as its contents.
inline constexpr float explaining_card_width = 312;
inline constexpr ImGuiWindowFlags explaining_card_flags =
    ImGuiWindowFlags_NoResize | ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoSavedSettings |
    ImGuiWindowFlags_NoFocusOnAppearing | ImGuiWindowFlags_NoNav | ImGuiWindowFlags_NoCollapse;

// Two corners of a rectangle in points.
struct ScreenRectangle {
  ImVec2 from, to;
};
// Of the panel with its tab; nullopt if it is not open.
std::optional<ScreenRectangle> panel_place(std::string_view panel);
// Of the window without menu and status bar.
ScreenRectangle work_place();

// Applies the style of windows over the panels during its lifetime.
class OverlayStyle {
public:
  explicit OverlayStyle(const ImVec4& border = theme::line);
  ~OverlayStyle();
  OverlayStyle(const OverlayStyle&) = delete;
  OverlayStyle& operator=(const OverlayStyle&) = delete;
};

// Searches the actions by a few letters.
class Palette {
public:
  void draw(const std::vector<Action>& actions, Editor& editor, const Graphics& graphics, bool& open);

private:
  std::string query_;
  int chosen_ = 0;
  bool was_open_ = false;
};

// Saves the arrangement of the panels under a name.
class LayoutDialog {
public:
  void draw(Editor& editor, const Graphics& graphics, bool& open);

private:
  std::string name_;
  bool was_open_ = false;
};

// Downloads a model from the Hugging Face Hub by its name, with suggestions.
class GetModelDialog {
public:
  void draw(Editor& editor, const Graphics& graphics, ModelFetch& fetch, bool& open);

private:
  void update_cached();
  void choose(const std::string& repository, ModelFetch& fetch);
  void open_or_fetch(Editor& editor, ModelFetch& fetch, bool& open);
  bool draw_suggestions(const Graphics& graphics, ModelFetch& fetch);
  static void draw_progress(const Editor& editor, const Graphics& graphics, const ModelFetch& fetch);
  void draw_body(Editor& editor, const Graphics& graphics, ModelFetch& fetch, bool appearing, bool& open);

  std::string name_;
  bool name_cached_ = false;
  std::vector<bool> cached_; // of the suggestions
  bool offline_ = false;
  bool was_open_ = false, was_running_ = false;
};

// The start page of new users, and Help › Gallery: a card for each lesson, which opens it.
class GalleryWindow {
public:
  void draw(const std::vector<GalleryEntry>& entries, Editor& editor, Graphics& graphics, Overlays& overlays);
  // Whether it handles the keys: all but those with Ctrl or Alt.
  bool has_keys() const { return has_keys_; }

private:
  void load_thumbnails(const std::vector<GalleryEntry>& entries);
  void draw_cards(const std::vector<GalleryEntry>& entries, Editor& editor, Graphics& graphics,
                  Overlays& overlays);
  // Whether it was clicked.
  bool draw_card(const GalleryEntry& entry, std::size_t index, ImVec2 size, Graphics& graphics);
  bool choose_with_keys(std::size_t count, int columns); // whether Enter was pressed

  std::vector<std::shared_ptr<const Image>> thumbnails_; // by entry; null where there is none
  std::size_t chosen_ = 0;
  std::uint64_t revision_ = 0; // of the document when it was opened
  bool was_open_ = false, has_keys_ = false;
  bool scroll_ = false; // to the chosen card
};

// The lesson of the document's session, on a card that can be moved aside.
class LessonCard {
public:
  void draw(const std::vector<GalleryEntry>& entries, Editor& editor, const Graphics& graphics,
            const Overlays& overlays);

private:
  std::string title_;  // of the lesson drawn last
  bool moved_ = false; // by the user, so that it keeps its place
};

// The program's version, what it runs on, and licences.
class AboutWindow {
public:
  // `run`: the present one; null before the first. `devices`: null while they are looked for.
  void draw(const RunResult* run, const DeviceList* devices, const Graphics& graphics, bool& open);

private:
  std::string facts_; // looked up when it opens
};

// Lists the missing files of the incomplete session, to be located or omitted.
void draw_session_dialog(Editor& editor, const Graphics& graphics);
// The guided tour: a card beside the framed panel of its current step.
void draw_tour(const std::vector<Action>& actions, Editor& editor, const Graphics& graphics,
               std::optional<TourState>& tour);
// The shortcuts by menu, in columns, and the gestures.
void draw_help_sheet(const std::vector<Action>& actions, const Graphics& graphics, bool& open);
// Dims what lies behind the dialogs, and keeps clicks beside them from it. After all of them.
void draw_dim();
// A line of text at the window's lower edge, for a recording; none if empty.
void draw_caption(const std::string& caption, const Graphics& graphics);
// The newest messages, in a corner; errors stay longer.
void draw_messages(Editor& editor, const Graphics& graphics);

// File dialogs: the desktop's, polled, so that frames continue while one is open; without zenity and kdialog
// the window's own.
class Dialogs {
public:
  Dialogs();
  ~Dialogs();
  // Does nothing while a dialog is open. `panel`: for export_figure.
  void show(const ShowDialog& command, Editor& editor, std::string panel = {});
  // Once per frame: opens the chosen file, or emits the command with it.
  void poll(Editor& editor, const Graphics& graphics);
  Dialog shown() const { return open() ? shown_ : Dialog::none; }
  bool polls() const { return open() && !own_.shown(); } // a dialog of the desktop, which wakes no frame
  const FileDialog& own() const { return own_; }
  // Whether the desktop's dialogs are used; by default if there are any. Cancels the window's own.
  void use_desktop(bool on) {
    desktop_ = on;
    own_ = {};
  }

private:
  bool open() const;
  std::optional<FileQuestion> question(Dialog dialog, const Editor& editor) const;
  void take(Editor& editor, std::filesystem::path chosen); // empty: cancelled

  Dialog shown_ = Dialog::none;
  std::string panel_;
  std::filesystem::path missing_; // for Dialog::locate
  std::optional<bool> desktop_;   // empty: no dialog was shown yet
  FileDialog own_;
  std::filesystem::path folder_; // of the last choice in own_; empty: none yet
  std::unique_ptr<pfd::open_file> file_;
  std::unique_ptr<pfd::select_folder> folder_dialog_;
  std::unique_ptr<pfd::save_file> save_;
};

} // namespace hydrascope::app
