// Measured times: timing, scaling. Their numbers differ from one call to the next.
#include "app/commands/figure/data_provenance.h"
#include "app/commands/figure/run_figure.h"
#include "app/commands/progress_bar.h"
#include "app/views/scaling_view.h"
#include "app/views/table_views.h"
#include "engine/base/error.h"

namespace hydrascope::app {

Figure draw_timing(FigureTask& task) {
  const RunTask run = run_task(task);
  const auto result = task.runner.run(run.request);
  return finished(task, timing_figure(*result), run.request, *result);
}

Figure draw_scaling(FigureTask& task) {
  const FigureOptions& options = task.options;
  const std::filesystem::path folder = model_folder(options.common, InputKind::image);
  const ModelInfo model = read_model_info(folder);
  const std::vector<KernelSpec> kernels =
      options.kernels.empty()
          ? std::vector<KernelSpec>{{"softmax", {}}, {"hydra-cosine", {}}, {"hedgehog", {}}}
          : parse_kernel_list(options.kernels);
  std::vector<std::int64_t> lengths = options.lengths.empty() ? scaling_lengths() : options.lengths;
  ScalingCurves curves;
  curves.device = "cpu";
  curves.setting = {.heads = model.heads,
                    .head_width = model.width / std::max(model.heads, 1),
                    .image = model.input == InputKind::image,
                    .dtype = options.common.execution.dtype,
                    .threads = options.common.execution.threads};
  {
    ProgressBar bar("figure scaling");
    const auto total = static_cast<std::int64_t>(kernels.size() * lengths.size());
    for (const KernelSpec& kernel : kernels) {
      ScalingMeasurer measurer(kernel, curves.setting);
      for (const std::int64_t tokens : lengths) {
        curves.points.push_back(measurer.measure(tokens));
        bar.show(static_cast<std::int64_t>(curves.points.size()), total);
      }
    }
  }
  Figure figure = scaling_figure(curves, scaling_lines(curves, kernels));
  figure.provenance = data_provenance(task, {}, "", {}, {});
  return figure;
}

} // namespace hydrascope::app
