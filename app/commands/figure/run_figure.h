// What the kinds that draw one run share.
#pragma once

#include <memory>
#include <optional>

#include "app/commands/figure/kinds.h"

namespace hydrascope::app {

// One run of the task's input, ready to be asked for something.
struct RunTask {
  RunRequest request;
  int layers = 0, heads = 0; // of the model
};
RunTask run_task(const FigureTask& task);

// The picture of a request's input; null for a sentence.
const ImageInput* picture_of(const RunRequest& request);

// Takes up the run's notes and says in the figure where it comes from.
Figure finished(FigureTask& task, Figure figure, const RunRequest& request, const RunResult& run);

// --kernels, or the layer's own kernel.
std::vector<KernelSpec> kernels_or_own(const FigureOptions& options, const RunTask& run, int layer);

} // namespace hydrascope::app
