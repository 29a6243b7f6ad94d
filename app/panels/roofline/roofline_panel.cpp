// The rates of the measured kernels below the machine's roofline, from the measurements of the Scaling panel.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "app/jobs/scaling_run.h"
#include "app/panels/panel.h"
#include "app/ui/drawn_figure.h"
#include "app/ui/widgets.h"
#include "app/views/scaling_view.h"
#include "engine/figures/scale.h"

namespace hydrascope::app {

namespace {

class RooflinePanel final : public Panel {
public:
  explicit RooflinePanel(PanelServices services) : Panel("roofline", "Roofline", services) {}
  bool exports() const override { return true; }
  bool shows_results() const override { return false; }

  void prepare(const Snapshot& snapshot) override {
    const Document& document = *snapshot.document;
    const ScalingCurves& curves = editor().scaling;
    lines_.clear();
    view_.clear();
    if (!document.scene().model || curves.setting != scaling_setting(editor())) return;
    lines_ = roofline_lines(scaling_lines(curves, measured_kernels(document)));
    if (!lines_.empty()) view_.set(roofline_figure(curves, lines_));
    caption_ = scaling_caption(curves.setting);
    if (curves.limits.bandwidth > 0)
      caption_ += fmt::format("; line: {} GB/s of memory, {} GFLOP/s of matrix products",
                              number_text(curves.limits.bandwidth / 1e9),
                              number_text(curves.limits.matrix_rate / 1e9));
  }

  void draw() override {
    if (lines_.empty()) {
      empty_notice(graphics(),
                   "The speed of the kernels in use, and the limits that this machine's memory bandwidth and "
                   "matrix products set. Press Measure in Scaling.");
      return;
    }
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    ellipsis_text(caption_, ImGui::GetContentRegionAvail().x, theme::quiet);
    ImGui::PopFont();
    if (const auto item = view_.draw("##roofline", graphics(), ImGui::GetContentRegionAvail()).item)
      point_tooltip(item->item);
  }

  std::optional<Figure> figure() const override {
    if (view_.empty()) return std::nullopt;
    return view_.figure();
  }

private:
  void point_tooltip(const PanelItem& item) const {
    const auto& plot = std::get<LinesPanel>(view_.figure().panels.front());
    const std::size_t roofs = plot.lines.size() - lines_.size();
    if (item.index < roofs) return;
    const RooflineLine& line = lines_[item.index - roofs];
    const std::size_t point = item.within;
    const MachineLimits& limits = editor().scaling.limits;
    const double rate = line.rate[point], intensity = line.intensity[point];
    std::string text = fmt::format("{}, N = {}\n{} GFLOP/s at {} flops per byte", line.kernel,
                                   line.labels[point], number_text(rate), number_text(intensity));
    if (limits.bandwidth > 0) {
      const double share = rate * 1e9 / std::min(limits.matrix_rate, limits.bandwidth * intensity);
      text += fmt::format("\n{} of the roof", percent_text(share));
      if (share > 1) text += ": q, k and v come from cache, which is faster than memory";
    }
    text_tooltip(text);
  }

  std::vector<RooflineLine> lines_;
  DrawnFigure view_;
  std::string caption_;
};

} // namespace

std::unique_ptr<Panel> make_roofline_panel(PanelServices services) {
  return std::make_unique<RooflinePanel>(services);
}

} // namespace hydrascope::app
