// Between the settings in memory and their file.
#pragma once

#include <filesystem>

#include "app/document/editor.h"

namespace hydrascope::app {

class SettingsFile {
public:
  // Reads the file, if a path is given, into the editor; says there what is wrong with it.
  SettingsFile(std::filesystem::path file, Editor& editor);

  // Writes the file if the settings have changed since. Says once what keeps it from being written.
  void save(Editor& editor);
  bool exists() const { return !file_.empty(); }

private:
  std::filesystem::path file_; // empty: none
  Settings saved_;
};

} // namespace hydrascope::app
