// Time of attention against the number of tokens for the kernels in use, measured on request in the
// background.
#include <algorithm>

#include <fmt/format.h>

#include "app/jobs/scaling_run.h"
#include "app/panels/panel.h"
#include "app/ui/drawn_figure.h"
#include "app/ui/widgets.h"
#include "app/views/scaling_view.h"
#include "app/views/timing_view.h"
#include "engine/figures/scale.h"

namespace hydrascope::app {

namespace {

class ScalingPanel final : public Panel {
public:
  explicit ScalingPanel(PanelServices services) : Panel("scaling", "Scaling", services) { view_.let_zoom(); }
  bool exports() const override { return true; }
  bool shows_results() const override { return false; }

  void prepare(const Snapshot& snapshot) override {
    const Document& document = *snapshot.document;
    const ScalingCurves& curves = editor().scaling;
    lines_.clear();
    caption_.clear();
    other_setting_ = false;
    if (!document.scene().model) return;
    const ScalingSetting setting = scaling_setting(editor());
    caption_ = scaling_caption(setting);
    other_setting_ = !curves.points.empty() && curves.setting != setting;
    if (!other_setting_) lines_ = scaling_lines(curves, measured_kernels(document));
    if (!lines_.empty()) view_.set(scaling_figure(curves, lines_));
    skipped_.clear();
    for (const ScalingLine& line : lines_) {
      if (!line.skipped.empty())
        skipped_ += fmt::format("{}{}, {}", skipped_.empty() ? "" : "; ", line.kernel.label(), line.skipped);
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
              : "How time and memory of attention grow with the number of tokens, for the kernels of both "
                "schedules and for softmax in its three forms. Press Measure: it runs in the background and "
                "waits while the model computes.");
      return;
    }
    const float below = skipped_.empty() ? 0 : theme::size_small + ImGui::GetStyle().ItemSpacing.y + 2;
    const ImVec2 room = ImGui::GetContentRegionAvail();
    view_.arrange(room.x > 2 * room.y ? 0 : 1);
    if (const auto item = view_.draw("##scaling", graphics(), {room.x, std::max(room.y - below, 60.0f)}).item)
      point_tooltip(lines_.at(item->item.index).points.at(item->item.within));
    if (skipped_.empty()) return;
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    ellipsis_text("Left out: " + skipped_, ImGui::GetContentRegionAvail().x, theme::quiet);
    ImGui::PopFont();
  }

  std::optional<Figure> figure() const override {
    if (lines_.empty()) return std::nullopt;
    return view_.figure();
  }

private:
  void draw_header() {
    const ScalingCurves& curves = editor().scaling;
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    const char* const label = curves.running ? "Cancel" : (lines_.empty() ? "Measure" : "Measure again");
    const float button = button_width(label);
    const float end = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
    ImGui::AlignTextToFramePadding();
    const float room = ImGui::GetContentRegionAvail().x - button - 8;
    ellipsis_text(fitting_parts(parts_of(caption_), room), room, theme::quiet);
    if (ImGui::IsItemHovered()) text_tooltip(caption_);
    ImGui::SameLine(end - button);
    // A fixed id, whatever the label.
    if (ImGui::Button(fmt::format("{}###measure", label).c_str())) {
      if (curves.running) {
        editor().emit(StopScaling{});
      } else {
        editor().emit(MeasureScaling{});
      }
    }
    if (ImGui::IsItemHovered())
      text_tooltip(curves.running ? "Stop; what has been measured stays"
                                  : "Measures each kernel of both schedules at N = 64 to 32768");
    if (curves.running) progress_line(static_cast<float>(curves.progress));
    ImGui::PopFont();
  }

  static void point_tooltip(const ScalingPoint& point) {
    const RepeatedTime& time = point.time;
    text_tooltip(
        fmt::format("{}, N = {}\nmedian {} ms, p95 {} ms, {}\n{} GMACs, {} GFLOP/s\n{} MB\npath: {}",
                    point.kernel.label(), point.tokens, number_text(time.median * 1e3),
                    number_text(time.p95 * 1e3), runs_text(time.runs), number_text(point.products / 1e9),
                    number_text(2 * point.products / 1e9 / time.median),
                    number_text(static_cast<double>(point.peak_bytes) / 1e6), path_text(point.path)));
  }

  std::vector<ScalingLine> lines_;
  std::string caption_, skipped_;
  bool other_setting_ = false; // the measurements are of another model or setting
  DrawnFigure view_;
};

} // namespace

std::unique_ptr<Panel> make_scaling_panel(PanelServices services) {
  return std::make_unique<ScalingPanel>(services);
}

} // namespace hydrascope::app
