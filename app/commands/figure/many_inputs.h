// A figure for each of many pictures or sentences, written to files named by a pattern. Plain header.
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "app/commands/figure/options.h"
#include "app/document/picture_folder.h"

namespace hydrascope::app {

// The pictures of patterns (as a shell's), folders and files, those of one argument sorted by name; each has
// its folder's name as its label. Throws UsageError for an argument without pictures.
std::vector<FolderPicture> pictures_of(const std::vector<std::string>& arguments);

// The captures of these files, and of folders those in them, sorted by name. Throws UsageError for a folder
// without one.
std::vector<std::filesystem::path> captures_of(const std::vector<std::string>& arguments);

// Whether an output name contains {stem}, {folder}, {line}, {index} or {kernel}.
bool is_pattern(const std::string& output);

struct BatchOutcome {
  struct Failure {
    std::string output, reason;
  };
  std::int64_t written = 0;
  std::int64_t kept = 0; // existed already, drawn by the same command from the same input, model and adapters
  std::vector<Failure> failures;
  std::exception_ptr broken; // a BrokenDevice, after which nothing was drawn
};

// Draws the figure of every input, with {kernel} one for each of --kernels, and continues after an input that
// fails, unless the device is broken then. Creates the folders of the pattern. Each file's provenance has the
// command that draws that file alone. Throws UsageError if two figures would be written to one file, and the
// first input's for options that no input can be drawn with.
BatchOutcome draw_many(const FigureOptions& options, const std::string& command);

} // namespace hydrascope::app
