// Focus maps of many pictures on one sheet, right and wrong predictions told apart.
#include <algorithm>

#include <fmt/format.h>

#include "app/commands/figure/category_colours.h"
#include "app/commands/figure/data_provenance.h"
#include "app/commands/figure/many_inputs.h"
#include "app/commands/figure/run_figure.h"
#include "app/commands/progress_bar.h"
#include "app/views/focus_view.h"
#include "engine/base/error.h"
#include "engine/run/quantities/focus_map.h"

namespace hydrascope::app {
namespace {

using Verdict = PictureCheck::Verdict;

Verdict verdict_of(const RunResult& run, const std::string& label) {
  if (label.empty()) return Verdict::unknown;
  if (const auto right = is_right(run, label)) return *right ? Verdict::right : Verdict::wrong;
  return Verdict::unknown;
}

bool is_wanted(Verdict verdict, const std::string& only) {
  return only.empty() || verdict == (only == "right" ? Verdict::right : Verdict::wrong);
}

OverlayPanel sheet_panel(const RunResult& run, const ImageInput& image, int layer, Verdict verdict,
                         const std::string& label, const FocusOptions& view) {
  const FocusItem item{&run, layer, image.name};
  Figure one = focus_figure(std::span(&item, 1), &image, view);
  auto panel = std::get<OverlayPanel>(std::move(one.panels.back()));
  if (!run.predictions.empty()) {
    const Prediction& best = run.predictions.front();
    panel.title = fmt::format("{}\n{:.0f} %", best.label, 100 * best.probability);
  }
  if (verdict == Verdict::right) panel.title += ", right";
  if (verdict == Verdict::wrong) panel.title += ", wrong: " + label;
  if (verdict == Verdict::right) panel.frame = category::green; // the words say it too
  if (verdict == Verdict::wrong) panel.frame = category::vermilion;
  panel.note.clear();
  return panel;
}

} // namespace

Figure draw_sheet(FigureTask& task) {
  const FigureOptions& options = task.options;
  std::vector<std::string> where = options.images;
  where.insert(where.end(), options.data.data.begin(), options.data.data.end());
  if (where.empty()) throw UsageError("figure sheet", "there are no pictures", "name a folder with --images");
  const FocusOptions view{.normalise = parse_normalisation(options.normalise),
                          .with_sign = options.with_sign,
                          .opacity = options.opacity,
                          .interpolation = parse_interpolation(options.interpolation),
                          .photograph = false};
  const std::vector<FolderPicture> pictures = pictures_of(where);
  Figure figure;
  std::shared_ptr<const RunResult> last;
  RunRequest request;
  std::vector<std::filesystem::path> files;
  int right = 0, wrong = 0, layer = 0;
  ProgressBar bar("figure sheet");
  for (std::size_t index = 0; index < pictures.size(); ++index) {
    bar.show(static_cast<std::int64_t>(index), static_cast<std::int64_t>(pictures.size()));
    if (options.data.limit > 0 && std::ssize(files) == options.data.limit) break;
    const FolderPicture& picture = pictures[index];
    ImageInput image;
    try {
      image = read_image(picture.file);
    } catch (const Error& error) { // one broken file does not spoil a sheet
      task.notes.push_back(std::string("skipped ") + error.what());
      continue;
    }
    request = request_of(options, image);
    layer = one_layer(options, read_model_info(request.model_folder).layers);
    request.quantities = {FocusKey{layer}};
    last = task.runner.run(request);
    const Verdict verdict = verdict_of(*last, picture.label);
    if (!is_wanted(verdict, options.only)) continue;
    right += verdict == Verdict::right ? 1 : 0;
    wrong += verdict == Verdict::wrong ? 1 : 0;
    figure.panels.emplace_back(sheet_panel(*last, image, layer, verdict, picture.label, view));
    files.push_back(picture.file);
  }
  if (files.empty()) return {};
  figure.columns =
      options.columns > 0 ? options.columns : static_cast<int>(std::min<std::size_t>(6, files.size()));
  figure.title =
      fmt::format("{} · layer {} · focus maps of {} pictures", last->model.name, layer, files.size());
  figure.subtitle = last->schedule.summary();
  if (right + wrong > 0) figure.subtitle += fmt::format("; {} right, {} wrong", right, wrong);
  figure = finished(task, std::move(figure), request, *last);
  figure.provenance = with_files(figure.provenance, files);
  return figure;
}

} // namespace hydrascope::app
