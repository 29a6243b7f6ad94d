// What `figure` is told on the command line, and what of it several kinds read alike.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/commands/command.h"
#include "app/commands/measure_options.h"
#include "app/views/weights_view.h"
#include "engine/figures/figure.h"

namespace hydrascope::app {

struct FigureOptions {
  CommonOptions common;
  std::string kind, kernels, layer, head, query, key, target, normalise = "max", interpolation = "nearest";
  std::string image, text, pair;
  bool with_pair = false;
  std::vector<std::string> images; // patterns, folders, files
  std::string texts;               // a file with a text a line
  std::string session;
  bool with_sign = false, own_scale = false, logarithmic = false, teacher_forced = false,
       value_weighted = false;
  float opacity = 0.6f;
  std::string against = "softmax"; // compare: the other side's kernel
  DataOptions data;
  std::vector<std::int64_t> lengths; // table: of pieces; scaling: N
  bool joined = false;
  std::vector<int> counts;            // heads: H; strategies: k
  std::string measure = "similarity"; // heads, strategies: or accuracy
  std::string only;                   // sheet: right or wrong
  int columns = 0;                    // sheet
  std::string preset;
  FigureStyle style;
  std::string output;
};

// Adds all options; `options` must outlive the parse.
void add_figure_options(CLI::App& command, FigureOptions& options);

// A number from 0 to below `limit`. Throws UsageError that names the option.
int whole_number(std::string_view text, const char* option, int limit, const char* what);

// The layers that --layer names: a number, several with commas, or all; the last one where it is left out.
std::vector<int> layers_of(const FigureOptions& options, int count);
int one_layer(const FigureOptions& options, int count);
// The heads that --head names: numbers, mean, min, max, separated by commas, or all; the mean where it is
// left out.
std::vector<HeadChoice> heads_of(const FigureOptions& options, int count);
HeadChoice one_head(const FigureOptions& options);

// --image or --text with --pair. Throws UsageError where there is none or both, Error where it cannot be
// read.
RunInput input_of(const FigureOptions& options);
ImageInput read_image(const std::filesystem::path& file);
// A request for the input with model, schedule, target and query; asks are the kind's own.
RunRequest request_of(const FigureOptions& options, RunInput input);

} // namespace hydrascope::app
