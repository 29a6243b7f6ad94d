// Writing without half-written files: temporary files and folders beside what they will replace. Their names
// are fixed, so that the next writing of the same target takes the place of what a killed process left; locks
// tell this from what another process is writing.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace hydrascope {

// FILE.hydrascope-part, with the mode of the file that it will replace, and its group if the system allows
// that; where FILE is a symbolic link of this user or root, beside and in place of what the link leads to.
// Removed unless commit() succeeds. All functions throw Error.
class TemporaryFile {
public:
  explicit TemporaryFile(const std::filesystem::path& target);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void write(std::string_view bytes);
  void commit(); // flushes the file and gives it its name
  // Only gives it its name: for many files, after which flush_file_system() is called once.
  void commit_unflushed();

private:
  std::filesystem::path target_, name_;
  int descriptor_ = -1;
  std::optional<unsigned> read_only_mode_; // of the file that it replaces, given at the end
  bool committed_ = false;
};

// FOLDER.hydrascope-part, empty at first; removed unless commit() succeeds. Throws Error.
class TemporaryFolder {
public:
  explicit TemporaryFolder(const std::filesystem::path& target);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return name_; }
  void commit(); // gives it its name, which may be that of an empty folder

private:
  std::filesystem::path target_, name_;
  int descriptor_ = -1;
  bool committed_ = false;
};

// Makes a folder and those above it. Throws Error.
void create_folders(const std::filesystem::path& folder);

// Flushes the names in a folder: without this a loss of power may undo a renaming. Errors are ignored, as
// some file systems cannot do it.
void flush_folder(const std::filesystem::path& folder);

// Flushes everything on the folder's file system. Throws Error.
void flush_file_system(const std::filesystem::path& folder);

// What to do about a file that cannot be written, by the number of the system's error.
const char* remedy_of_writing(int error);

} // namespace hydrascope
