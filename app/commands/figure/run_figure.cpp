#include "app/commands/figure/run_figure.h"

#include <algorithm>

#include "app/views/provenance.h"

namespace hydrascope::app {

RunTask run_task(const FigureTask& task) {
  RunTask run;
  run.request = request_of(task.options, input_of(task.options));
  const ModelInfo model = read_model_info(run.request.model_folder);
  run.layers = model.layers;
  run.heads = model.heads;
  return run;
}

const ImageInput* picture_of(const RunRequest& request) { return std::get_if<ImageInput>(&request.input); }

Figure finished(FigureTask& task, Figure figure, const RunRequest& request, const RunResult& run) {
  for (const std::string& note : run.notes) {
    if (std::ranges::find(task.notes, note) == task.notes.end()) task.notes.push_back(note);
  }
  figure.provenance = provenance_json(run, request.input, request.execution, task.command);
  return figure;
}

std::vector<KernelSpec> kernels_or_own(const FigureOptions& options, const RunTask& run, int layer) {
  if (!options.kernels.empty()) return parse_kernel_list(options.kernels);
  return {resolved(run.request.schedule, run.layers).layers.at(static_cast<std::size_t>(layer))};
}

} // namespace hydrascope::app
