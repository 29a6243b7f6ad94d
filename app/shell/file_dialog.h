// A file dialog of the window's own, where the desktop has none.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/ui/graphics.h"

namespace hydrascope::app {

// What a file dialog is for.
struct FileQuestion {
  enum class Kind { open_file, open_folder, save_file };

  Kind kind = Kind::open_file;
  std::string title;
  std::string name = {};                 // save_file: proposed, with or without a folder
  std::vector<std::string> filters = {}; // a name and its patterns in turn: "PDF", "*.pdf"; empty: all files
};

// A path field over the entries of its folder.
class FileDialog {
public:
  // Begins with an empty choice in `folder`.
  void open(FileQuestion question, const std::filesystem::path& folder);
  bool shown() const { return question_.has_value(); }
  // Why the last choice was not taken; empty if there was none, or it was.
  const std::string& problem() const { return problem_; }
  // Once per frame. Returns the answer once: the chosen path, or an empty one if the dialog was cancelled.
  std::optional<std::filesystem::path> draw(const Graphics& graphics);

private:
  struct Entry {
    std::string name;
    bool folder = false;
  };
  std::filesystem::path typed() const; // the path in the field, absolute
  void list();
  void enter(const std::filesystem::path& folder);
  bool draw_entries(); // whether an entry was double-clicked
  bool accept();       // whether the typed path is an answer

  std::optional<FileQuestion> question_;
  std::string path_; // in the field
  std::filesystem::path folder_;
  std::vector<Entry> entries_; // of folder_
  std::string problem_;
  std::filesystem::path to_replace_; // exists, and is replaced if it is chosen again
  bool appearing_ = false, focus_ = false;
};

// Whether the file's name fits one of the patterns ("*.png *.jpg") of `filters`. "*" counts only where it is
// the only one: other files are still opened by typing their names.
bool passes(const std::filesystem::path& file, const std::vector<std::string>& filters);

} // namespace hydrascope::app
