// What the user set once and for all, apart from any document: kept in a file from session to session, and
// touched by no undo.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hydrascope::app {

enum class ThemeChoice {
  follow,
  dark,
  light
}; // follow: what the desktop asks for, dark where it says nothing

// Where the panels are, under a name of the user's.
struct SavedLayout {
  std::string name;
  std::string arrangement;         // as Dear ImGui writes it
  std::vector<std::string> closed; // ids of the panels that are not open

  bool operator==(const SavedLayout&) const = default;
};

// What was open before: a picture, a text file, a session, a folder or a model by its path, or a sentence.
struct RecentInput {
  std::string value;
  bool is_text = false;

  bool operator==(const RecentInput&) const = default;
};

inline constexpr double least_scale = 0.75, greatest_scale = 2.5;

struct Settings {
  ThemeChoice theme = ThemeChoice::follow;
  std::optional<double> scale; // of everything drawn, within the two above; nullopt: the monitor's own
  bool fade = true;            // a changed map fades in
  bool reopen_last = true;     // started without anything to open, the program goes on where it was left
  bool tour_seen = false;      // or declined: it is not offered again
  std::map<std::string, std::string>
      shortcuts; // by action's id, where they differ from the table's; "" = none
  std::vector<SavedLayout> layouts;
  std::optional<SavedLayout> last; // where the panels were when the window was closed
  std::vector<RecentInput> recent; // newest first
  std::string training;            // the form of the last one, as training_text writes it; empty: none yet
  std::string other;               // what a later version wrote and this one does not know, as a JSON object

  bool operator==(const Settings&) const = default;
};

struct LoadedSettings {
  Settings settings;
  std::string problem;  // why the file's settings are not used; empty if they are, or if there is no file
  bool writable = true; // false: the file could neither be read nor kept aside, and is not to be overwritten
};

// A file that cannot be understood is renamed to FILE.unreadable (or .unreadable-2, …), so that nothing that
// the user once set is lost, and the defaults are returned.
LoadedSettings load_settings(const std::filesystem::path& file);
// Writes beside the file and renames; makes its folder. Throws Error.
void save_settings(const Settings& settings, const std::filesystem::path& file);

std::string settings_text(const Settings& settings); // as JSON
// Throws BrokenFile that names `subject` and the entry.
Settings parse_settings(std::string_view text, std::string_view subject);

// The scale one step larger (`steps` = 1) or smaller (−1), within the limits.
double stepped_scale(double scale, int steps);

const SavedLayout* find_layout(const Settings& settings, std::string_view name);

// Dark or light, as GTK's settings file says that applications should prefer (GNOME's and KDE's tools both
// write it); nullopt where it says nothing.
std::optional<ThemeChoice> desktop_theme();

} // namespace hydrascope::app
