// Where the time of the last run went: one bar a layer in its kernel's colour.
#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "app/panels/panels.h"
#include "app/state/edits.h"
#include "app/views/table_views.h"
#include "app/window/widgets.h"

namespace hydrascope::app {

namespace {

class TimingPanel final : public Panel {
public:
  explicit TimingPanel(PanelServices services) : Panel("timing", "Timing", services) {}
  bool exports() const override { return true; }

  void prepare(const Snapshot& snapshot) override {
    const RunResult* run = snapshot.shown().any();
    if (run == nullptr) return;
    // The first part is the plain pass; later ones may carry gradients and would be slower for no fault of a
    // kernel.
    const auto& first = snapshot.shown().parts.front();
    layers_ = first->layers;
    const std::string subject = fmt::format("{} {} {}", run->model.name, run->tokens.size(), run->dtype);
    if (subject != subject_) remembered_.clear();
    subject_ = subject;
    for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
      const std::pair key{layer, layers_[layer].kernel};
      if (!layers_[layer].cached) remembered_[key] = layers_[layer].seconds;
      const auto known = remembered_.find(key);
      if (layers_[layer].cached && known != remembered_.end()) layers_[layer].seconds = known->second;
    }
    run_ = first;
    caption_ = fmt::format("milliseconds a layer   {} {}, {} {}", run->device, run->dtype, run->threads,
                           run->threads == 1 ? "thread" : "threads");
  }

  void draw() override {
    if (layers_.empty()) {
      empty_notice(graphics(), "Time of every layer, once the model has run.");
      return;
    }
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    ellipsis_text(caption_, ImGui::GetContentRegionAvail().x, theme::quiet);
    ImGui::PopFont();
    double most = 1e-6;
    for (const LayerRun& layer : layers_) most = std::max(most, layer.seconds);
    const ImVec2 from = ImGui::GetCursorScreenPos();
    const ImVec2 room = ImGui::GetContentRegionAvail();
    const float height = std::min(20.0f, room.y / static_cast<float>(layers_.size()));
    ImGui::PushFont(graphics().fonts().mono, height >= 14 ? theme::size_small : 11.0f);
    for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
      draw_layer({from.x, from.y + static_cast<float>(layer) * height}, room.x, height,
                 static_cast<int>(layer), most);
    }
    ImGui::PopFont();
  }

  std::optional<Figure> figure() const override {
    if (!run_) return std::nullopt;
    return timing_figure(*run_);
  }

private:
  void draw_layer(ImVec2 at, float width, float height, int layer, double most) {
    ImDrawList* list = ImGui::GetWindowDrawList();
    const LayerRun& run = layers_[static_cast<std::size_t>(layer)];
    const float text_y = at.y + (height - ImGui::GetTextLineHeight()) / 2;
    const bool selected = layer == document().scene().layer;
    list->AddText({at.x, text_y}, theme::packed(selected ? theme::text : theme::quiet),
                  fmt::format("{:>2}", layer).c_str());
    constexpr float left = 26, right = 158;
    const float bar = std::max(20.0f, width - left - right);
    const ImVec2 bar_from{at.x + left, at.y + 2};
    // A layer out of the cache shows what it took when it was last run, as an outline.
    const ImVec2 bar_to{bar_from.x + std::max(1.0f, bar * static_cast<float>(run.seconds / most)),
                        at.y + height - 2};
    if (run.cached) {
      list->AddRect(bar_from, bar_to, theme::packed(theme::kernel(run.kernel.name), brightness()), 2.0f);
    } else {
      list->AddRectFilled(bar_from, bar_to, theme::packed(theme::kernel(run.kernel.name), brightness()),
                          2.0f);
    }
    const std::string number =
        run.cached && run.seconds == 0 ? "cached" : fmt::format("{:.1f}", run.seconds * 1e3);
    const float number_width = ImGui::CalcTextSize(number.c_str()).x;
    list->AddText({at.x + left + bar + 50 - number_width, text_y},
                  theme::packed(run.cached ? theme::faint : theme::text), number.c_str());
    list->AddText({at.x + left + bar + 58, text_y}, theme::packed(theme::quiet),
                  fitted(run.kernel.name, right - 60).c_str());
    ImGui::SetCursorScreenPos(at);
    ImGui::PushID(layer);
    if (ImGui::InvisibleButton("layer", {width, height})) select_layer(editor(), layer);
    ImGui::PopID();
    if (ImGui::IsItemHovered()) {
      ImGui::SetTooltip("layer %d: %s\npath: %s\n%s", layer, run.kernel.text().c_str(),
                        run.path.empty() ? "—" : run.path.c_str(),
                        fmt::format("{:.2f} ms{}", run.seconds * 1e3,
                                    run.cached ? " when last run; now taken from the cache" : "")
                            .c_str());
    }
  }

  std::vector<LayerRun> layers_;
  std::map<std::pair<std::size_t, KernelSpec>, double> remembered_; // seconds of a layer under a kernel
  std::string subject_;                                             // what they were measured on
  std::shared_ptr<const RunResult> run_;
  std::string caption_;
};

} // namespace

std::unique_ptr<Panel> make_timing_panel(PanelServices services) {
  return std::make_unique<TimingPanel>(services);
}

} // namespace hydrascope::app
