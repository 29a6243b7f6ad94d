// One figure for each of many pictures or sentences, into files named by a pattern.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/commands/figure/kinds.h"
#include "app/document/picture_folder.h"

namespace hydrascope::app {

// The pictures that patterns (as a shell's), folders and files name, each argument's by name; their folder's
// name is their label. Throws UsageError for an argument that names none.
std::vector<FolderPicture> pictures_of(const std::vector<std::string>& arguments);

// Whether an output name holds one of {stem}, {folder}, {line}, {index}, {kernel}.
bool is_pattern(const std::string& output);

struct BatchOutcome {
  struct Failure {
    std::string output, reason;
  };
  std::int64_t written = 0;
  std::int64_t kept = 0; // were there already, by the same command from the same input, model and adapters
  std::vector<Failure> failures;
};

// Draws what `options` asks for of every input in turn, with {kernel} by every kernel of --kernels; goes on
// after an input that fails. Folders in the pattern are made. Each file's provenance holds the command that
// draws that one file alone. Throws UsageError where two figures would go into one file, and for what no
// input can mend.
BatchOutcome draw_many(const FigureOptions& options, const std::string& command);

} // namespace hydrascope::app
