// How the time of attention grows with the number of tokens, for the kernels in use: measured when the user
// asks for it, point by point in the background.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <implot.h>

#include "app/panels/panels.h"
#include "app/panels/plot_style.h"
#include "app/views/scaling_view.h"
#include "app/window/widgets.h"

namespace hydrascope::app {

namespace {

// Kernels of one name and so of one colour differ in their markers.
constexpr std::array<ImPlotMarker, 4> markers = {ImPlotMarker_Circle, ImPlotMarker_Square,
                                                 ImPlotMarker_Diamond, ImPlotMarker_Up};

void set_up_axes(double low, double high, bool fit) {
  ImPlot::SetupAxes("number of tokens N", "time (ms)", ImPlotAxisFlags_NoMenus, ImPlotAxisFlags_NoMenus);
  ImPlot::SetupAxisScale(ImAxis_X1, ImPlotScale_Log10);
  ImPlot::SetupAxisScale(ImAxis_Y1, ImPlotScale_Log10);
  const ImPlotCond when = fit ? ImPlotCond_Always : ImPlotCond_Once;
  const std::vector<std::int64_t> lengths = scaling_lengths();
  const auto shortest = static_cast<double>(lengths.front()), longest = static_cast<double>(lengths.back());
  ImPlot::SetupAxisLimits(ImAxis_X1, shortest / 1.3, longest * 1.3, when);
  ImPlot::SetupAxisLimits(ImAxis_Y1, low / 1.6, high * 1.6, when);
  static const std::vector<double> tokens(lengths.begin(), lengths.end());
  static const std::vector<std::string> texts = [&] {
    std::vector<std::string> made;
    for (const std::int64_t length : lengths) made.push_back(std::to_string(length));
    return made;
  }();
  std::vector<const char*> labels;
  for (const std::string& text : texts) labels.push_back(text.c_str());
  ImPlot::SetupAxisTicks(ImAxis_X1, tokens.data(), static_cast<int>(tokens.size()), labels.data());
  static constexpr std::array<double, 9> times = {1e-3, 1e-2, 1e-1, 1, 10, 100, 1e3, 1e4, 1e5};
  static constexpr std::array<const char*, 9> names = {"0.001", "0.01", "0.1",   "1",     "10",
                                                       "100",   "1000", "10000", "100000"};
  ImPlot::SetupAxisTicks(ImAxis_Y1, times.data(), static_cast<int>(times.size()), names.data());
}

class ScalingPanel final : public Panel {
public:
  explicit ScalingPanel(PanelServices services) : Panel("scaling", "Scaling", services) {}
  bool exports() const override { return true; }
  bool shows_results() const override { return false; }

  void prepare(const Snapshot& snapshot) override {
    const Document& document = *snapshot.document;
    const ScalingCurves& curves = editor().scaling;
    lines_.clear();
    caption_.clear();
    other_setting_ = false;
    if (!document.scene().model) return;
    const ScalingSetting wanted = scaling_setting(document);
    caption_ = scaling_caption(wanted, "");
    other_setting_ = !curves.points.empty() && curves.setting != wanted;
    if (!other_setting_) lines_ = scaling_lines(curves, kernels_in_use(document));
    const std::pair<double, double> range{low_, high_};
    find_range();
    fit_ = fit_ || range != std::pair{low_, high_};
    skipped_.clear();
    for (const ScalingLine& line : lines_) {
      if (!line.skipped.empty())
        skipped_ += fmt::format("{}{}, {}", skipped_.empty() ? "" : "; ", line.kernel.text(), line.skipped);
    }
  }

  void draw() override {
    if (!document().scene().model) {
      empty_notice(graphics(), "Time against the number of tokens, once a model is open.");
      return;
    }
    draw_header();
    if (lines_.empty()) {
      empty_notice(
          graphics(),
          other_setting_
              ? "What was measured is of another model or another setting. Press Measure for this one."
              : "How the time of attention grows with the number of tokens, for the kernels of both "
                "schedules. Press Measure: it runs in the background and waits while the model computes.");
      return;
    }
    const float below = skipped_.empty() ? 0 : theme::size_small + ImGui::GetStyle().ItemSpacing.y + 2;
    const ImVec2 room = ImGui::GetContentRegionAvail();
    draw_plot({room.x, std::max(room.y - below, 60.0f)});
    if (skipped_.empty()) return;
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    ellipsis_text("Left out: " + skipped_, ImGui::GetContentRegionAvail().x, theme::quiet);
    ImGui::PopFont();
  }

  std::optional<Figure> figure() const override {
    if (lines_.empty()) return std::nullopt;
    return scaling_figure(editor().scaling, lines_);
  }

private:
  void find_range() {
    low_ = std::numeric_limits<double>::infinity();
    high_ = 0;
    for (const ScalingLine& line : lines_) {
      for (const double time : line.median) low_ = std::min(low_, std::max(time, 1e-4));
      for (const double time : line.p95) high_ = std::max(high_, time);
    }
    if (!(low_ < high_)) {
      low_ = 0.01;
      high_ = 100;
    }
  }

  void draw_header() {
    const ScalingCurves& curves = editor().scaling;
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    const char* const label = curves.running ? "Cancel" : (lines_.empty() ? "Measure" : "Measure again");
    const float button = ImGui::CalcTextSize(label).x + 2 * ImGui::GetStyle().FramePadding.x;
    const float end = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
    ImGui::AlignTextToFramePadding();
    ellipsis_text(caption_ + "; median, whisker: p95", ImGui::GetContentRegionAvail().x - button - 8,
                  theme::quiet);
    ImGui::SameLine(end - button);
    // One name whatever it says, so that it stays the same button.
    if (ImGui::Button(fmt::format("{}###measure", label).c_str())) {
      if (curves.running) {
        editor().emit(StopScaling{});
      } else {
        editor().emit(MeasureScaling{});
      }
    }
    if (ImGui::IsItemHovered())
      ImGui::SetTooltip(curves.running ? "Stop; what has been measured stays"
                                       : "Times each kernel of both schedules at N = 64 to 16384");
    if (curves.running) progress_line(static_cast<float>(curves.progress));
    ImGui::PopFont();
  }

  void draw_plot(ImVec2 size) {
    const PlotStyle style;
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    constexpr ImPlotFlags flags =
        ImPlotFlags_NoTitle | ImPlotFlags_NoMenus | ImPlotFlags_NoBoxSelect | ImPlotFlags_NoMouseText;
    if (ImPlot::BeginPlot("##scaling", size, flags)) {
      set_up_axes(low_, high_, std::exchange(fit_, false));
      ImPlot::SetupLegend(ImPlotLocation_NorthWest, ImPlotLegendFlags_NoMenus);
      for (std::size_t i = 0; i < lines_.size(); ++i) plot_line(i);
      if (ImPlot::IsPlotHovered()) {
        point_tooltip();
        if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) fit_ = true;
      }
      ImPlot::EndPlot();
    }
    ImGui::PopFont();
  }

  void plot_line(std::size_t index) const {
    const ScalingLine& line = lines_[index];
    if (line.points.empty()) return;
    const auto before =
        std::count_if(lines_.begin(), lines_.begin() + static_cast<std::ptrdiff_t>(index),
                      [&](const ScalingLine& other) { return other.kernel.name == line.kernel.name; });
    const Colour colour = theme::kernel(line.kernel.name);
    ImPlotSpec spec;
    spec.LineColor = {colour.red, colour.green, colour.blue, 1};
    spec.LineWeight = 1.6f;
    spec.Marker = markers[static_cast<std::size_t>(before) % markers.size()];
    spec.MarkerSize = 3;
    const std::string name = line.kernel.text();
    const int count = static_cast<int>(line.points.size());
    std::vector<double> up(line.p95), down(line.p95.size(), 0.0);
    for (std::size_t i = 0; i < up.size(); ++i) up[i] -= line.median[i];
    ImPlotSpec whisker;
    whisker.LineColor = spec.LineColor;
    whisker.Size = 5;
    whisker.Flags = ImPlotItemFlags_NoLegend | ImPlotItemFlags_NoFit;
    ImPlot::PlotErrorBars(("##whiskers " + name).c_str(), line.tokens.data(), line.median.data(), down.data(),
                          up.data(), count, whisker);
    ImPlot::PlotLine(name.c_str(), line.tokens.data(), line.median.data(), count, spec);
  }

  // Of the point nearest to the pointer.
  void point_tooltip() const {
    NearestPoint pointed;
    const ScalingPoint* nearest = nullptr;
    for (const ScalingLine& line : lines_) {
      for (std::size_t i = 0; i < line.points.size(); ++i) {
        if (pointed.offer(line.tokens[i], line.median[i])) nearest = &line.points[i];
      }
    }
    if (nearest == nullptr) return;
    const RepeatedTime& time = nearest->time;
    text_tooltip(
        fmt::format("{}, N = {}\nmedian {:.3f} ms, p95 {:.3f} ms, n = {}\n{:.3f} GMACs, {:.1f} "
                    "GFLOP/s\npath: {}",
                    nearest->kernel.text(), nearest->tokens, time.median * 1e3, time.p95 * 1e3, time.runs,
                    nearest->products / 1e9, 2 * nearest->products / 1e9 / time.median, nearest->path));
  }

  std::vector<ScalingLine> lines_;
  std::string caption_, skipped_;
  bool other_setting_ = false; // what was measured is of another model
  double low_ = 0, high_ = 0;  // ms, of what is shown
  bool fit_ = true;            // the axes are to show all of it
};

} // namespace

std::unique_ptr<Panel> make_scaling_panel(PanelServices services) {
  return std::make_unique<ScalingPanel>(services);
}

} // namespace hydrascope::app
