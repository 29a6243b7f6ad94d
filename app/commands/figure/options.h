// The options of `figure`, and how the kinds read those that several of them have. Plain header.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/commands/kl.h"
#include "app/document/common_options.h"
#include "app/views/token_map.h"
#include "app/views/weights_view.h"
#include "engine/figures/figure.h"

namespace hydrascope::app {

struct FigureOptions {
  CommonOptions common;
  std::string kind, kernels, layer, head, query, key, target, normalise = "max", interpolation = "nearest",
                                                              overlay = "value";
  std::string image, text, pair;
  bool with_pair = false;
  std::vector<std::string> images;   // patterns, folders, files
  std::string texts;                 // a file with one text per line
  std::vector<std::string> captures; // files or folders; one alone becomes common.capture
  std::string session;
  double discard = 0; // rollout
  bool with_sign = false, own_scale = false, logarithmic = false, teacher_forced = false,
       value_weighted = false;
  float opacity = OverlayPanel().opacity;
  std::string against = "softmax"; // compare: the other side's kernel
  DataOptions data;
  std::vector<std::int64_t> lengths; // table, entropy, kl: of pieces; scaling: N; state: tokens before
  bool joined = false;
  std::vector<int> counts;            // heads: H; strategies: k
  bool untrained = false;             // heads, strategies: no adapter but the model's own tail
  std::string trained;                // heads, strategies: a folder of adapters, each for its own schedule
  std::string measure = "similarity"; // heads, strategies: or accuracy
  std::string only;                   // sheet: right or wrong
  int columns = 0;                    // sheet
  std::string preset;
  std::string theme = "light";
  FigureStyle style;
  std::string output;
};

// Adds all options; `options` must outlive the parse.
void add_figure_options(CLI::App& command, FigureOptions& options);

// A number from 0 to `limit` − 1; `what` it is called in errors. Throws UsageError.
int number_below(std::string_view text, const char* option, int limit, const char* what);

// The layers of --layer: a number, several separated by commas, or all of `count`; by default the last.
std::vector<int> layers_of(const FigureOptions& options, int count);
int one_layer(const FigureOptions& options, int count);
// The heads of --head: numbers, mean, min or max, separated by commas, or all of `count`; by default the
// mean.
std::vector<HeadChoice> heads_of(const FigureOptions& options, int count);
HeadChoice one_head(const FigureOptions& options);

// With the kind's default model, where it is of decoders.
CommonOptions model_options(const FigureOptions& options);
// --image, or --text with --pair. Throws UsageError for none or both, Error for a file that cannot be read.
RunInput input_of(const FigureOptions& options);
ImageInput read_image(const std::filesystem::path& file);
// How maps lie over a picture. Throws UsageError.
MapLook map_look(const FigureOptions& options);
// A request for the input with model, schedule, target and query, without quantities.
RunRequest request_of(const FigureOptions& options, RunInput input);

} // namespace hydrascope::app
