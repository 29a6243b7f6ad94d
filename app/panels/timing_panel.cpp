// Where the time goes: of each layer the median and p95 of its last runs, of each kernel the sum and what it
// makes of the machine. With A − B the differences of the medians.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "app/panels/panels.h"
#include "app/state/edits.h"
#include "app/views/timing_view.h"
#include "app/window/widgets.h"

namespace hydrascope::app {

namespace {

constexpr float number_width = 50; // of a column of numbers
constexpr float layer_width = 26;

// Where the columns are, from the left: layer, bar, three numbers (two without a third), kernel.
struct Columns {
  float left = 0, bar = 0, bar_width = 0, numbers = 0, kernel = 0, right = 0;

  Columns(float from, float width, int numbers_count) : left(from), right(from + width) {
    const float name_width = std::clamp(width * 0.26f, 70.0f, 170.0f);
    kernel = right - name_width;
    numbers = kernel - 8 - number_width * static_cast<float>(numbers_count);
    bar = left + layer_width;
    bar_width = std::max(24.0f, numbers - 4 - bar);
  }
};

std::string milliseconds(const RepeatedTime& time, double seconds) {
  return time.runs > 0 ? fmt::format("{:.2f}", seconds * 1e3) : "—";
}

class TimingPanel final : public Panel {
public:
  explicit TimingPanel(PanelServices services) : Panel("timing", "Timing", services) {}
  bool exports() const override { return true; }

  void prepare(const Snapshot& snapshot) override {
    const bool both = snapshot.document->view.shown == Shown::difference;
    for (std::size_t side = 0; side < views_.size(); ++side) {
      const bool wanted = both || side == static_cast<std::size_t>(edited_side(snapshot.document->view));
      const RunResult* run = wanted ? snapshot.results[side]->any() : nullptr;
      views_[side].reset();
      if (run == nullptr || snapshot.times == nullptr) continue;
      views_[side] = timing_view(*run, *snapshot.times, flops(side, *run));
    }
    difference_ = both && views_[0] && views_[1] && views_[0]->rows.size() == views_[1]->rows.size();
    shown_ = static_cast<std::size_t>(edited_side(snapshot.document->view));
  }

  void draw() override {
    if (!views_[shown_] || views_[shown_]->rows.empty()) {
      empty_notice(graphics(), "Time of every layer, once the model has run.");
      return;
    }
    draw_header();
    const float summary_lines = difference_ ? 0 : static_cast<float>(view().kernels.size() + 1);
    const auto count = static_cast<float>(view().rows.size());
    const float line = theme::size_small + 3;
    const float room = ImGui::GetContentRegionAvail().y - line * (summary_lines + 1) - 12;
    const float height = std::clamp(std::floor(room / count), 12.0f, 20.0f);
    ImGui::PushFont(graphics().fonts().mono, height >= 15 ? theme::size_small : 11.0f);
    if (difference_) {
      draw_differences(height);
    } else {
      draw_layers(height);
    }
    ImGui::PopFont();
    if (!difference_) draw_kernels(line);
  }

  std::optional<Figure> figure() const override {
    if (difference_) return timing_difference_figure(*views_[0], *views_[1]);
    if (!views_[shown_]) return std::nullopt;
    return timing_figure(view());
  }

private:
  const TimingView& view() const { return *views_[shown_]; }

  // Counted anew only when model, input or schedule are others.
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
    const ShellStatus& status = editor().status();
    const char* const label = status.timing ? "Cancel" : "Run again ×10";
    const float button = ImGui::CalcTextSize(label).x + 2 * ImGui::GetStyle().FramePadding.x;
    const float end = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
    const std::string text =
        difference_ ? fmt::format("{}, A {}, B {}", view().setting, views_[0]->runs, views_[1]->runs)
                    : fmt::format("{}, {}", view().setting, view().runs);
    ImGui::AlignTextToFramePadding();
    ellipsis_text(text, ImGui::GetContentRegionAvail().x - button - 8, theme::quiet);
    ImGui::SameLine(end - button);
    if (ImGui::Button(label)) {
      if (status.timing) {
        editor().emit(CancelRuns{});
      } else {
        editor().emit(TimePasses{});
      }
    }
    if (ImGui::IsItemHovered())
      ImGui::SetTooltip(status.timing
                            ? "Stop the passes that are being timed"
                            : "Ten plain passes, after one that warms up: every layer is computed, none\n"
                              "is taken from the cache, and nothing is read off on the way");
    if (status.timing) progress_line(status.progress);
    ImGui::PopFont();
  }

  void draw_heads(const Columns& columns, std::span<const char* const> numbers, const char* bar) {
    ImDrawList* list = ImGui::GetWindowDrawList();
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const ImU32 ink = theme::packed(theme::quiet);
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    list->AddText({columns.bar, at.y}, ink, fitted(bar, columns.bar_width).c_str());
    for (std::size_t i = 0; i < numbers.size(); ++i)
      right_aligned(list, columns.numbers + number_width * static_cast<float>(i + 1), at.y, ink, numbers[i]);
    list->AddText({columns.kernel, at.y}, ink, "kernel");
    ImGui::PopFont();
    ImGui::Dummy({1, theme::size_small + 3});
  }

  void draw_layers(float height) {
    const ImVec2 from = ImGui::GetCursorScreenPos();
    const Columns columns(from.x, ImGui::GetContentRegionAvail().x, 2);
    static constexpr std::array<const char*, 2> heads = {"median", "p95"};
    draw_heads(columns, heads, "ms, tick: p95");
    double most = 1e-6;
    for (const TimingRow& row : view().rows) most = std::max(most, row.time.p95);
    ImDrawList* list = ImGui::GetWindowDrawList();
    for (const TimingRow& row : view().rows) {
      const float y = row_start(columns, row, height);
      const ImVec2 bar{columns.bar, y + 2};
      const auto x = [&](double seconds) {
        return bar.x + columns.bar_width * static_cast<float>(seconds / most);
      };
      if (row.time.runs > 0) {
        list->AddRectFilled(bar, {std::max(bar.x + 1, x(row.time.median)), y + height - 2},
                            theme::packed(theme::kernel(row.kernel.name), brightness()), 2.0f);
        list->AddLine({x(row.time.p95), bar.y - 1}, {x(row.time.p95), y + height - 1},
                      theme::packed(theme::text, brightness()), 1.0f);
      }
      const float text_y = y + (height - ImGui::GetTextLineHeight()) / 2;
      if (row.time.runs == 0)
        list->AddText({bar.x, text_y}, theme::packed(theme::quiet),
                      fitted("not timed while it is looked at", columns.bar_width).c_str());
      const ImU32 ink = theme::packed(row.time.runs > 0 ? theme::text : theme::faint);
      right_aligned(list, columns.numbers + number_width, text_y, ink,
                    milliseconds(row.time, row.time.median));
      right_aligned(list, columns.numbers + 2 * number_width, text_y, theme::packed(theme::quiet),
                    milliseconds(row.time, row.time.p95));
      list->AddText({columns.kernel, text_y}, theme::packed(theme::quiet),
                    fitted(row.kernel.text(), columns.right - columns.kernel).c_str());
      row_end(columns, row, height,
              row.time.runs > 0 ? fmt::format("median {:.3f} ms, p95 {:.3f} ms, n = {}",
                                              row.time.median * 1e3, row.time.p95 * 1e3, row.time.runs)
                                : "not measured yet: its output was known, or gradients were taken with it");
    }
  }

  void draw_differences(float height) {
    const ImVec2 from = ImGui::GetCursorScreenPos();
    const Columns columns(from.x, ImGui::GetContentRegionAvail().x, 3);
    static constexpr std::array<const char*, 3> heads = {"A ms", "B ms", "A − B"};
    draw_heads(columns, heads, "← B longer, A longer →");
    double most = 1e-6;
    for (std::size_t i = 0; i < views_[0]->rows.size(); ++i) {
      if (std::optional<double> by = difference(i)) most = std::max(most, std::abs(*by));
    }
    ImDrawList* list = ImGui::GetWindowDrawList();
    const float middle = columns.bar + columns.bar_width / 2;
    const float top = ImGui::GetCursorScreenPos().y;
    for (std::size_t i = 0; i < views_[0]->rows.size(); ++i) {
      const TimingRow &a = views_[0]->rows[i], &b = views_[1]->rows[i];
      const float y = row_start(columns, a, height);
      const float text_y = y + (height - ImGui::GetTextLineHeight()) / 2;
      const std::optional<double> by = difference(i);
      if (by) {
        const float end = middle + columns.bar_width / 2 * static_cast<float>(*by / most);
        list->AddRectFilled({std::min(middle, end), y + 2}, {std::max(middle, end), y + height - 2},
                            theme::packed(*by > 0 ? theme::side_a : theme::side_b, brightness()), 2.0f);
      }
      const std::array<std::string, 3> numbers = {milliseconds(a.time, a.time.median),
                                                  milliseconds(b.time, b.time.median),
                                                  by ? fmt::format("{:+.2f}", *by * 1e3) : "—"};
      for (std::size_t column = 0; column < numbers.size(); ++column)
        right_aligned(list, columns.numbers + number_width * static_cast<float>(column + 1), text_y,
                      theme::packed(column == 2 ? theme::text : theme::quiet), numbers[column]);
      const std::string kernels =
          a.kernel == b.kernel ? a.kernel.text() : a.kernel.text() + " − " + b.kernel.text();
      list->AddText({columns.kernel, text_y}, theme::packed(theme::quiet),
                    fitted(kernels, columns.right - columns.kernel).c_str());
      row_end(columns, a, height, fmt::format("{}\nA n = {}, B n = {}", kernels, a.time.runs, b.time.runs));
    }
    list->AddLine({middle, top}, {middle, ImGui::GetCursorScreenPos().y}, theme::packed(theme::line));
  }

  std::optional<double> difference(std::size_t layer) const {
    const RepeatedTime &a = views_[0]->rows[layer].time, &b = views_[1]->rows[layer].time;
    if (a.runs == 0 || b.runs == 0) return std::nullopt;
    return a.median - b.median;
  }

  // Draws the layer's number; returns the row's top.
  float row_start(const Columns& columns, const TimingRow& row, float height) const {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const bool selected = row.layer == document().scene().layer;
    ImGui::GetWindowDrawList()->AddText({columns.left, at.y + (height - ImGui::GetTextLineHeight()) / 2},
                                        theme::packed(selected ? theme::accent : theme::quiet),
                                        fmt::format("{:>2}", row.layer).c_str());
    return at.y;
  }

  void row_end(const Columns& columns, const TimingRow& row, float height, const std::string& numbers) {
    ImGui::PushID(row.layer);
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(0, 0));
    if (ImGui::InvisibleButton("layer", {columns.right - columns.left, height}))
      select_layer(editor(), row.layer);
    ImGui::PopStyleVar();
    ImGui::PopID();
    if (ImGui::IsItemHovered())
      text_tooltip(fmt::format("layer {}: {}\npath: {}\n{}", row.layer, row.kernel.text(),
                               row.path.empty() ? "—" : row.path, numbers));
  }

  // A line for each kernel, and one for all layers where there are several.
  void draw_kernels(float line) {
    ImGui::Dummy({1, 4});
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
            ? fmt::format("{} ×{}", kernel.kernel.text(), kernel.layers)
            : fmt::format("{} ×{} of {}", kernel.kernel.text(), kernel.measured, kernel.layers);
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
        text += fmt::format("\n{}: of these {:.3f} GMACs attention itself", kernel.kernel.text(),
                            kernel.attention / 1e9);
    }
    text_tooltip(text);
  }

  std::array<std::optional<TimingView>, 2> views_; // A, B: where shown and run
  std::array<std::optional<Flops>, 2> flops_;
  std::array<std::string, 2> flops_key_;
  bool difference_ = false;
  std::size_t shown_ = 0; // of views_
};

} // namespace

std::unique_ptr<Panel> make_timing_panel(PanelServices services) {
  return std::make_unique<TimingPanel>(services);
}

} // namespace hydrascope::app
