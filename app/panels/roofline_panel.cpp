// What the kernels in use reach beside what the machine allows: of what the Scaling panel measures.
#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <implot.h>

#include "app/panels/panels.h"
#include "app/panels/plot_style.h"
#include "app/views/roofline_view.h"
#include "app/window/widgets.h"

namespace hydrascope::app {

namespace {

constexpr float label_gap = 7; // between a point and its N

class RooflinePanel final : public Panel {
public:
  explicit RooflinePanel(PanelServices services) : Panel("roofline", "Roofline", services) {}
  bool exports() const override { return true; }
  bool shows_results() const override { return false; }

  void prepare(const Snapshot& snapshot) override {
    const Document& document = *snapshot.document;
    const ScalingCurves& curves = editor().scaling;
    lines_.clear();
    if (!document.scene().model || curves.setting != scaling_setting(document)) return;
    lines_ = roofline_lines(scaling_lines(curves, kernels_in_use(document)));
    plot_ = roofline_panel(curves.limits, lines_);
    caption_ = scaling_caption(curves.setting, curves.device);
    if (curves.limits.bandwidth > 0)
      caption_ += fmt::format("; line: {:.3g} GB/s of memory, {:.3g} GFLOP/s of matrix products",
                              curves.limits.bandwidth / 1e9, curves.limits.matrix_rate / 1e9);
  }

  void draw() override {
    if (lines_.empty()) {
      empty_notice(graphics(),
                   "What the kernels in use reach, beside this machine's bandwidth and matrix rate. Press "
                   "Measure in Scaling.");
      return;
    }
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    ellipsis_text(caption_, ImGui::GetContentRegionAvail().x, theme::quiet);
    draw_plot(ImGui::GetContentRegionAvail());
    ImGui::PopFont();
  }

  std::optional<Figure> figure() const override {
    if (lines_.empty()) return std::nullopt;
    return roofline_figure(editor().scaling, lines_);
  }

private:
  void draw_plot(const ImVec2 size) const {
    const PlotStyle style;
    constexpr ImPlotFlags flags =
        ImPlotFlags_NoTitle | ImPlotFlags_NoMenus | ImPlotFlags_NoBoxSelect | ImPlotFlags_NoMouseText;
    if (!ImPlot::BeginPlot("##roofline", size, flags)) return;
    set_up_axes();
    ImPlot::SetupLegend(ImPlotLocation_SouthEast, ImPlotLegendFlags_NoMenus);
    for (const LinesPanel::Line& line : plot_.lines) plot_line(line);
    draw_labels();
    if (ImPlot::IsPlotHovered()) point_tooltip();
    ImPlot::EndPlot();
  }

  void set_up_axes() const {
    double left = HUGE_VAL, right = 0, bottom = HUGE_VAL, top = 0;
    for (const LinesPanel::Line& line : plot_.lines) {
      const bool roof = line.style == LinesPanel::Style::dashed;
      left = std::min(left, std::ranges::min(line.x));
      right = std::max(right, std::ranges::max(line.x));
      if (!roof)
        bottom = std::min(bottom, std::ranges::min(line.y)); // the roof may begin far below the points
      top = std::max(top, std::ranges::max(line.y));
    }
    constexpr ImPlotAxisFlags axis = ImPlotAxisFlags_NoMenus;
    ImPlot::SetupAxes(plot_.x_label.c_str(), plot_.y_label.c_str(), axis, axis);
    ImPlot::SetupAxisScale(ImAxis_X1, ImPlotScale_Log10);
    ImPlot::SetupAxisScale(ImAxis_Y1, ImPlotScale_Log10);
    ImPlot::SetupAxisLimits(ImAxis_X1, left / 1.2, right * 1.2, ImPlotCond_Always);
    ImPlot::SetupAxisLimits(ImAxis_Y1, bottom / 2, top * 2, ImPlotCond_Always);
  }

  static void plot_line(const LinesPanel::Line& line) {
    const int count = static_cast<int>(line.x.size());
    ImPlotSpec spec;
    if (line.style == LinesPanel::Style::dashed) {
      spec.LineColor = theme::quiet;
      spec.LineWeight = 1.6f;
      spec.Flags = ImPlotItemFlags_NoLegend;
      ImPlot::PlotLine(line.name.c_str(), line.x.data(), line.y.data(), count, spec);
      return;
    }
    const Colour colour = theme::kernel(line.name);
    spec.MarkerFillColor = spec.MarkerLineColor = {colour.red, colour.green, colour.blue, 1};
    spec.Marker = ImPlotMarker_Circle;
    spec.MarkerSize = 3.5f;
    ImPlot::PlotScatter(line.name.c_str(), line.x.data(), line.y.data(), count, spec);
  }

  // N beside the points, where they do not lie too close.
  void draw_labels() const {
    ImPlot::PushPlotClipRect();
    const float height = ImGui::GetTextLineHeight();
    std::vector<ImVec2> taken;
    for (const RooflineLine& line : lines_) {
      for (std::size_t i = 0; i < line.rate.size(); ++i) {
        const ImVec2 at = ImPlot::PlotToPixels(line.intensity[i], line.rate[i]);
        const float width = ImGui::CalcTextSize(line.labels[i].c_str()).x + label_gap;
        const bool covers = std::ranges::any_of(taken, [&](const ImVec2& other) {
          return std::abs(other.x - at.x) < width && std::abs(other.y - at.y) < height;
        });
        if (covers) continue;
        taken.push_back(at);
        ImPlot::GetPlotDrawList()->AddText({at.x + label_gap, at.y - height / 2}, theme::packed(theme::quiet),
                                           line.labels[i].c_str());
      }
    }
    ImPlot::PopPlotClipRect();
  }

  // Of the point nearest to the pointer.
  void point_tooltip() const {
    NearestPoint pointed;
    const RooflineLine* nearest = nullptr;
    std::size_t point = 0;
    for (const RooflineLine& line : lines_) {
      for (std::size_t i = 0; i < line.rate.size(); ++i) {
        if (!pointed.offer(line.intensity[i], line.rate[i])) continue;
        nearest = &line;
        point = i;
      }
    }
    if (nearest == nullptr) return;
    const MachineLimits& limits = editor().scaling.limits;
    const double rate = nearest->rate[point], intensity = nearest->intensity[point];
    std::string text = fmt::format("{}, N = {}\n{:.1f} GFLOP/s at {:.1f} flops per byte", nearest->kernel,
                                   nearest->labels[point], rate, intensity);
    if (limits.bandwidth > 0) {
      const double share = rate * 1e9 / std::min(limits.matrix_rate, limits.bandwidth * intensity);
      text += fmt::format("\n{:.0f} % of the roof", 100 * share);
      if (share > 1) text += ": q, k and v come from cache, which is faster than memory";
    }
    text_tooltip(text);
  }

  std::vector<RooflineLine> lines_;
  LinesPanel plot_;
  std::string caption_;
};

} // namespace

std::unique_ptr<Panel> make_roofline_panel(PanelServices services) {
  return std::make_unique<RooflinePanel>(services);
}

} // namespace hydrascope::app
