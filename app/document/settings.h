// The user's settings, which belong to no document and are not undoable, and their file.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hydrascope::app {

enum class ThemeChoice { follow, dark, light }; // follow: the desktop's preference, dark if it has none

// A named arrangement of the panels.
struct SavedLayout {
  std::string name;
  std::string arrangement;         // in Dear ImGui's format
  std::vector<std::string> closed; // ids of the closed panels

  bool operator==(const SavedLayout&) const = default;
};

// A recently opened input: the path of a picture, text file, session, folder or model, or a sentence.
struct RecentInput {
  std::string value;
  bool is_text = false;

  bool operator==(const RecentInput&) const = default;
};

inline constexpr double least_scale = 0.75, greatest_scale = 2.5;

struct Settings {
  ThemeChoice theme = ThemeChoice::follow;
  std::optional<double> scale; // of the window, within the limits above; nullopt: the monitor's
  bool fade = true;            // changed maps fade in
  bool reopen_last = true;     // reopen the last session if the program starts without arguments
  bool tour_seen = false;      // or the start page, which offers it, was closed
  bool hint_seen = false;      // the message that names tour and gallery
  // By action id, where they differ from the default; "" = none.
  std::map<std::string, std::string> shortcuts;
  std::vector<SavedLayout> layouts;
  std::optional<SavedLayout> last; // the arrangement when the window was closed
  std::vector<RecentInput> recent; // newest first
  std::string training;            // the last training's form, by training_text(); empty: none
  std::string other;               // unknown entries of a later version, as a JSON object

  bool operator==(const Settings&) const = default;
};

struct LoadedSettings {
  Settings settings;
  std::string problem;  // why the file was not used; empty if it was, or does not exist
  bool writable = true; // false: the file could neither be read nor renamed and must not be overwritten
};

// Renames a file that cannot be read to FILE.unreadable (or .unreadable-2, …), so that the user's settings
// are not lost, and returns the defaults.
LoadedSettings load_settings(const std::filesystem::path& file);
// Replaces the file atomically and creates its folder. Throws Error.
void save_settings(const Settings& settings, const std::filesystem::path& file);

std::string settings_text(const Settings& settings); // as JSON
// Throws BrokenFile naming `subject` and the entry.
Settings parse_settings(std::string_view text, std::string_view subject);

// The scale `steps` steps larger (negative: smaller), within the limits.
double stepped_scale(double scale, int steps);

const SavedLayout* find_layout(const Settings& settings, std::string_view name);

// The preference in GTK's settings file, which the tools of GNOME and KDE both write; nullopt if there is
// none.
std::optional<ThemeChoice> desktop_theme();

} // namespace hydrascope::app
