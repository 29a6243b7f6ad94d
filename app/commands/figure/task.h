// What the kinds of figure share: the task, its run, provenance, colours. Plain header.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/commands/figure/options.h"
#include "engine/figures/colour_map.h"
#include "engine/figures/figure.h"
#include "engine/models/model_info.h"
#include "engine/run/runner.h"

namespace hydrascope::app {

// One figure to draw.
struct FigureTask {
  const FigureOptions& options;
  Runner& runner;             // caches models and hidden states between figures
  const std::string& command; // for the provenance
  std::vector<std::string> notes = {};
};

// Says so where letters of --text and --pair are read from right to left, and the format of the output has
// them the other way round.
std::vector<std::string> notes_of_letters(const FigureOptions& options);

// The run of the task's input, without quantities yet.
struct RunTask {
  RunRequest request;
  int layers = 0, heads = 0; // of the model
  bool causal = false;       // a decoder
};
RunTask run_task(const FigureTask& task);

// The picture of a request's input; null for a sentence.
const ImageInput* picture_of(const RunRequest& request);

// Returns the figure with its provenance, and adds the run's notes to the task's.
Figure finished(FigureTask& task, Figure figure, const RunRequest& request, const RunResult& run);

// The kernels of --kernels, by default the layer's own.
std::vector<KernelSpec> kernels_or_own(const FigureOptions& options, const RunTask& run, int layer);

// Throws UsageError with the heads that exist where no kernel has any of the chosen ones; `most`: the number
// of heads of the kernel that has the most.
void require_heads_anywhere(const HeadChoice& head, int most);

// A run's provenance with `inputs` [{name, hash}] in place of `input`.
std::string with_files(const std::string& provenance, const std::vector<std::filesystem::path>& files);

// {program, version, command, model {name, hash}, adapters, inputs, device, dtype, seed}, as provenance_json.
// A folder's hash is that of the pictures in it. `model` is empty for a figure without a model.
std::string data_provenance(const FigureTask& task, const std::filesystem::path& model,
                            const std::string& model_hash, const std::vector<AdapterInfo>& adapters,
                            const std::vector<std::filesystem::path>& data);

// Okabe and Ito's palette, distinguishable with colour blindness: for series that are not kernels.
namespace category {
inline constexpr Colour blue{0, 0.447f, 0.698f, 1}, vermilion{0.835f, 0.369f, 0, 1},
    green{0, 0.620f, 0.451f, 1}, purple{0.800f, 0.475f, 0.655f, 1}, sky{0.337f, 0.706f, 0.914f, 1},
    orange{0.902f, 0.624f, 0, 1};
} // namespace category

// The colours in order, repeated.
inline Colour category_colour(std::size_t index) {
  constexpr std::array colours = {category::blue,   category::vermilion, category::green,
                                  category::purple, category::sky,       category::orange};
  return colours[index % colours.size()];
}

} // namespace hydrascope::app
