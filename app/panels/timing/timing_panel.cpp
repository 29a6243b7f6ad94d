// Median and p95 of each layer's last runs, and the sum and rate of each kernel; for A − B the differences of
// the medians.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/document/edits.h"
#include "app/panels/panel.h"
#include "app/panels/side_columns.h"
#include "app/ui/drawn_figure.h"
#include "app/ui/widgets.h"
#include "app/views/timing_view.h"
#include "engine/figures/scale.h"

namespace hydrascope::app {

namespace {

class TimingPanel final : public Panel {
public:
  explicit TimingPanel(PanelServices services) : Panel("timing", "Timing", services) {}
  bool exports() const override { return true; }

  void prepare(const Snapshot& snapshot) override {
    const bool both = shows_both(snapshot.document->view);
    for (std::size_t side = 0; side < views_.size(); ++side) {
      const bool needed = both || side == static_cast<std::size_t>(edited_side(snapshot.document->view));
      const RunResult* run = needed ? snapshot.results[side]->any() : nullptr;
      views_[side].reset();
      if (run == nullptr || snapshot.times == nullptr) continue;
      views_[side] = timing_view(*run, *snapshot.times, flops(side, *run));
    }
    both_ = both && views_[0] && views_[1] && views_[0]->rows.size() == views_[1]->rows.size();
    shown_ = static_cast<std::size_t>(edited_side(snapshot.document->view));
    if (both_) {
      const bool all = snapshot.document->view.shown == Shown::all;
      bars_.set(all ? timing_sides_figure(*views_[0], *views_[1])
                    : timing_difference_figure(*views_[0], *views_[1]));
    } else if (views_[shown_] && !view().rows.empty()) {
      bars_.set(timing_figure(view()));
    } else {
      bars_.clear();
    }
  }

  void draw() override {
    if (bars_.empty()) {
      empty_notice(graphics(), "Time of every layer, once the model has run.");
      return;
    }
    draw_header();
    const float line = theme::size_small + 3;
    const float summary = both_ ? 0
                                : line * static_cast<float>(view().kernels.size() + 1) + above_kernels +
                                      2 * ImGui::GetStyle().ItemSpacing.y;
    ImVec2 room = ImGui::GetContentRegionAvail();
    room.y = std::max(room.y - summary, 120.0f);
    constexpr float narrowest = 190; // for bars with their names
    bars_.arrange(room.x < narrowest * static_cast<float>(bars_.figure().panels.size()) ? 1 : 0);
    const DrawnFigure::Input input = bars_.draw("##layers", graphics(), room, brightness());
    for (std::size_t panel = 0; panel < bars_.figure().panels.size(); ++panel) mark_selected(panel);
    if (input.item) {
      const auto layer = static_cast<std::size_t>(input.item->item.index);
      text_tooltip(layer_text(layer));
      if (input.clicked) select_layer(editor(), view().rows.at(layer).layer);
    }
    if (!both_) draw_kernels(line);
  }

  std::optional<Figure> figure() const override {
    if (bars_.empty()) return std::nullopt;
    return bars_.figure();
  }

private:
  static constexpr float above_kernels = 4;

  const TimingView& view() const { return *views_[shown_]; }

  // Computed only after model, input or schedule have changed.
  const std::optional<Flops>& flops(std::size_t side, const RunResult& run) {
    std::string key =
        fmt::format("{}\n{} {} {}", run.model.folder.string(), run.tokens.size(), run.rows, run.columns);
    for (const KernelSpec& kernel : run.schedule.layers) key += "\n" + kernel.text();
    if (key != flops_key_[side]) {
      flops_[side] = flops_of_run(run);
      flops_key_[side] = std::move(key);
    }
    return flops_[side];
  }

  void draw_header() {
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    const WindowStatus& status = editor().status();
    const char* const label = status.timing ? "Cancel###time" : "Time 10 runs###time";
    const float button = button_width(label);
    const float end = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
    const std::string text =
        both_ ? fmt::format("{}, {}", view().setting, runs_of_sides(*views_[0], *views_[1]))
              : fmt::format("{}, {}", view().setting, view().runs);
    ImGui::AlignTextToFramePadding();
    const float room = ImGui::GetContentRegionAvail().x - button - 8;
    if (const std::string note = untimed(); !note.empty()) {
      ellipsis_text(note, room, theme::quiet);
      const float used = ImGui::GetItemRectSize().x + 12;
      const std::string shown = fitting_parts(parts_of(text), room - used);
      if (ImGui::CalcTextSize(shown.c_str()).x <= room - used) {
        ImGui::SameLine(0, 12);
        ellipsis_text(shown, room - used, theme::quiet);
      }
    } else {
      ellipsis_text(fitting_parts(parts_of(text), room), room, theme::quiet);
    }
    ImGui::SameLine(end - button);
    if (ImGui::Button(label)) {
      if (status.timing) {
        editor().emit(CancelRuns{});
      } else {
        editor().emit(TimePasses{});
      }
    }
    if (ImGui::IsItemHovered())
      text_tooltip(status.timing
                       ? "Stop the passes that are being timed"
                       : "Ten plain passes, after one that warms up: every layer is computed, none\n"
                         "is taken from the cache, and nothing is read off on the way");
    if (status.timing) progress_line(status.progress);
    ImGui::PopFont();
  }

  // Which layers have no time, or that of a first run, which misleads; empty while they are being timed.
  std::string untimed() const {
    if (editor().status().timing) return {};
    const auto layers_of = [&](const char* what, const auto& layers_of_side) {
      std::string text;
      for (std::size_t side = 0; side < views_.size(); ++side) {
        if (!both_ && side != shown_) continue;
        const std::string layers = layers_of_side(*views_[side]);
        if (layers.empty()) continue;
        text += fmt::format("{}{}{}", text.empty() ? what : ", ",
                            both_ ? side_name(static_cast<Side>(side)) + std::string(" ") : "", layers);
      }
      return text;
    };
    std::vector<std::string> notes{layers_of("one run alone of ", cold_layers),
                                   layers_of("not timed: ", untimed_layers)};
    std::erase(notes, std::string());
    return fmt::format("{}", fmt::join(notes, ", "));
  }

  void mark_selected(std::size_t panel) const {
    const auto& rows = view().rows;
    const auto selected = std::ranges::find(rows, document().scene().layer, &TimingRow::layer);
    const auto place = bars_.place_of({panel, {static_cast<std::size_t>(selected - rows.begin())}});
    if (place)
      ImGui::GetWindowDrawList()->AddRect(place->from, place->to, theme::packed(theme::accent, 0.6f), 2.0f);
  }

  std::string layer_text(std::size_t index) const {
    const TimingRow& shown = view().rows.at(index);
    std::string text = fmt::format("layer {}", shown.layer);
    for (std::size_t side = 0; side < views_.size(); ++side) {
      if (!both_ && side != shown_) continue;
      const TimingRow& row = views_[side]->rows.at(index);
      const std::string name = both_ ? side_name(static_cast<Side>(side)) + std::string(": ") : "";
      text += fmt::format(
          "\n{}{}, path: {}\n{}", name, row.kernel.label(), row.path.empty() ? "—" : path_text(row.path),
          row.time.runs > 0 ? fmt::format("median {} ms, p95 {} ms, {}", number_text(row.time.median * 1e3),
                                          number_text(row.time.p95 * 1e3), runs_text(row.time.runs))
                            : "not timed: its output was known, or gradients were taken with it");
      if (row.cold) text += "\nthe first run, which also packs weights and warms up";
      if (row.earlier) text += "\nmeasured before heads were muted or tokens masked";
    }
    return text;
  }

  // A line for each kernel.
  void draw_kernels(float line) {
    ImGui::Dummy({1, above_kernels});
    const ImVec2 from = ImGui::GetCursorScreenPos();
    const float width = ImGui::GetContentRegionAvail().x;
    ImDrawList* list = ImGui::GetWindowDrawList();
    list->AddLine({from.x, from.y - 2}, {from.x + width, from.y - 2}, theme::packed(theme::line));
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    static constexpr std::array<const char*, 3> heads = {"ms", "GMACs", "GFLOP/s"};
    constexpr float column = 62;
    const float numbers = from.x + width - column * 3;
    for (std::size_t i = 0; i < heads.size(); ++i)
      right_aligned(list, numbers + column * static_cast<float>(i + 1), from.y, theme::packed(theme::quiet),
                    heads[i]);
    list->AddText(from, theme::packed(theme::quiet), "kernel, all its layers");
    float y = from.y + line;
    for (const KernelTiming& kernel : view().kernels) {
      draw_kernel(list, {from.x, y}, numbers, column, kernel);
      y += line;
    }
    ImGui::PopFont();
    ImGui::InvisibleButton("kernels", {width, y - from.y});
    if (ImGui::IsItemHovered()) kernels_tooltip();
  }

  void draw_kernel(ImDrawList* list, ImVec2 at, float numbers, float column, const KernelTiming& kernel) {
    kernel_square(list, {at.x + 6, at.y + ImGui::GetTextLineHeight() / 2}, 9, kernel.kernel.name);
    const std::string name =
        kernel.measured == kernel.layers
            ? fmt::format("{}: {} layer{}", kernel.kernel.label(), kernel.layers,
                          kernel.layers == 1 ? "" : "s")
            : fmt::format("{}: {} of {} layers timed", kernel.kernel.label(), kernel.measured, kernel.layers);
    list->AddText({at.x + 18, at.y}, theme::packed(theme::text), fitted(name, numbers - at.x - 22).c_str());
    ImGui::PushFont(graphics().fonts().mono, theme::size_small);
    const bool known = kernel.products > 0 && kernel.seconds > 0;
    const std::array<std::string, 3> cells = {
        kernel.measured > 0 ? fmt::format("{:.1f}", kernel.seconds * 1e3) : "—",
        known ? fmt::format("{:.2f}", kernel.products / 1e9) : "—",
        known ? fmt::format("{:.1f}", 2 * kernel.products / 1e9 / kernel.seconds) : "—"};
    for (std::size_t i = 0; i < cells.size(); ++i)
      right_aligned(list, numbers + column * static_cast<float>(i + 1), at.y, theme::packed(theme::text),
                    cells[i]);
    ImGui::PopFont();
  }

  void kernels_tooltip() const {
    std::string text =
        "Sums over the layers of a kernel. ms: of the medians. GMACs: multiply-accumulates of the blocks' "
        "matrix\nproducts by formula (the Hydra paper's GFLOPs, table 4). GFLOP/s: each counts as two "
        "operations.";
    for (const KernelTiming& kernel : view().kernels) {
      if (kernel.products > 0)
        text += fmt::format("\n{}: of these {} GMACs attention itself", kernel.kernel.label(),
                            number_text(kernel.attention / 1e9));
    }
    text_tooltip(text);
  }

  std::array<std::optional<TimingView>, 2> views_; // A, B; nullopt if not shown or without a run
  std::array<std::optional<Flops>, 2> flops_;
  std::array<std::string, 2> flops_key_;
  bool both_ = false;     // A and B are shown
  std::size_t shown_ = 0; // of views_
  DrawnFigure bars_;
};

} // namespace

std::unique_ptr<Panel> make_timing_panel(PanelServices services) {
  return std::make_unique<TimingPanel>(services);
}

} // namespace hydrascope::app
