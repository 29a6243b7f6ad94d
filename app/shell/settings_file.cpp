#include "app/shell/settings_file.h"

#include <exception>
#include <utility>

namespace hydrascope::app {

SettingsFile::SettingsFile(std::filesystem::path file, Editor& editor) : file_(std::move(file)) {
  if (file_.empty()) return;
  LoadedSettings loaded = load_settings(file_);
  if (!loaded.problem.empty()) editor.say(Severity::error, loaded.problem);
  if (!loaded.writable) file_.clear();
  saved_ = loaded.settings;
  editor.change_settings([&](Settings& settings) { settings = std::move(loaded.settings); });
}

void SettingsFile::save(Editor& editor) {
  if (file_.empty() || editor.settings() == saved_) return;
  saved_ = editor.settings();
  try {
    save_settings(saved_, file_);
  } catch (const std::exception& error) {
    editor.say(Severity::error, error.what());
  }
}

} // namespace hydrascope::app
