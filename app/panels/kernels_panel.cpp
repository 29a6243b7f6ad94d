// Which model, and which attention kernel runs in which of its layers: any layer's kernel is one click.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <imgui_internal.h>

#include "app/panels/panels.h"
#include "app/state/edits.h"
#include "app/window/widgets.h"

namespace hydrascope::app {

namespace {

constexpr float row_height = 21;
constexpr float column_width = 19;
constexpr float sticky_width = 44; // a layer's number and its kernel's colour
constexpr float label_width = 96;
constexpr float slant = 1.15f; // of the headers, in radians above the horizontal

// Written at `from`, where all of it lies inside the panel (what lies outside is dropped at once), then
// turned to `at`.
void slanted_text(ImDrawList* list, ImVec2 from, ImVec2 at, ImU32 colour, const char* text) {
  const int first = list->VtxBuffer.Size;
  list->AddText(from, colour, text);
  ImGui::ShadeVertsTransformPos(list, first, list->VtxBuffer.Size, from, std::cos(slant), -std::sin(slant),
                                at);
}

// Why a kernel cannot run here at all; empty if it can.
std::string unsupported_reason(const KernelInfo& info, const ExecutionOptions& execution) {
  if (!execution.device.starts_with("cuda")) return {};
  for (const std::string& device : info.devices) {
    if (device == "cuda") return {};
  }
  return info.name + " has no CUDA path";
}

class KernelsPanel final : public Panel {
public:
  explicit KernelsPanel(PanelServices services)
      : Panel("kernels", "Model and kernels", services), catalogue_(model_catalogue()) {}
  bool shows_results() const override { return false; }

  void prepare(const Snapshot& snapshot) override {
    badges_.clear();
    if (snapshot.document->scene().model == nullptr) return;
    badges_.resize(static_cast<std::size_t>(snapshot.document->scene().model->layers));
    const RunResult* run = snapshot.shown().stale ? nullptr : snapshot.shown().any();
    if (run == nullptr) return;
    for (std::size_t layer = 0; layer < std::min(badges_.size(), run->layers.size()); ++layer) {
      if (run->layers[layer].untrained)
        badges_[layer] = "untrained";
      else if (run->layers[layer].other_resolution)
        badges_[layer] = "other resolution";
    }
  }

  void draw() override {
    draw_model();
    if (document().scene().model == nullptr) {
      empty_notice(graphics(),
                   "No model is open. Run tools/setup to fetch the bundled ones, or open a Hugging Face "
                   "folder by File › Open model folder.");
      return;
    }
    draw_grid();
    ImGui::Dummy({0, 2});
    draw_presets();
  }

private:
  void draw_model() {
    const Scene& scene = document().scene();
    field_label("Model", 56);
    ImGui::SetNextItemWidth(-1);
    if (ImGui::BeginCombo("##model", scene.model ? scene.model->name.c_str() : "none")) {
      for (const CatalogueEntry& entry : catalogue_) {
        if (ImGui::Selectable(entry.name.c_str(), scene.model_folder == entry.folder)) {
          open_model(editor(), entry.folder.string());
        }
        if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", entry.description.c_str());
      }
      ImGui::Separator();
      if (ImGui::Selectable("Open folder…")) editor().shell.dialog = Dialog::open_model;
      ImGui::EndCombo();
    }
  }

  void draw_grid() {
    const auto& infos = kernel_infos();
    const Schedule& schedule = edited_schedule(document());
    const int layers = static_cast<int>(schedule.layers.size());
    const float visible = std::max(row_height * 4, ImGui::GetContentRegionAvail().y - 100);
    const float header_height = slanted_height(infos);
    const float wanted = header_height + static_cast<float>(layers) * row_height + 2;
    const float width = sticky_width + static_cast<float>(infos.size()) * column_width + label_width;
    // More kernels than the panel is wide: columns scroll below the layers' numbers and their kernels'
    // colours.
    const bool scrolls = width > ImGui::GetContentRegionAvail().x;
    const float bar = scrolls ? ImGui::GetStyle().ScrollbarSize : 0;
    ImGui::SetNextWindowContentSize({width, 0});
    if (!ImGui::BeginChild("grid", {0, std::min(visible, wanted + bar)}, 0,
                           ImGuiWindowFlags_HorizontalScrollbar)) {
      ImGui::EndChild();
      return;
    }
    ImDrawList* list = ImGui::GetWindowDrawList();
    const ImVec2 origin = ImGui::GetCursorScreenPos();
    const float left = origin.x + ImGui::GetScrollX(); // what does not scroll sideways
    const float number_width = sticky_width;
    const auto column_x = [&](std::size_t kernel) {
      return origin.x + number_width + (static_cast<float>(kernel) + 0.5f) * column_width;
    };
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    for (std::size_t kernel = 0; kernel < infos.size(); ++kernel) {
      const bool usable = unsupported_reason(infos[kernel], document().execution).empty();
      // Written where it can be seen, so that nothing of it is left out, and then turned to its place.
      slanted_text(list, {left, origin.y + header_height - 12},
                   {column_x(kernel) - 5, origin.y + header_height - 12},
                   theme::packed(usable ? theme::quiet : theme::faint), infos[kernel].name.c_str());
    }
    // Slanted names of columns out of sight would lie over the numbers.
    list->AddRectFilled({left, origin.y}, {left + sticky_width, origin.y + wanted},
                        theme::packed(theme::surface));
    for (int layer = 0; layer < layers; ++layer) {
      draw_row(list, {left, origin.y + header_height + static_cast<float>(layer) * row_height}, layer,
               schedule.layers[static_cast<std::size_t>(layer)], column_x);
    }
    ImGui::PopFont();
    ImGui::SetCursorScreenPos(origin);
    ImGui::Dummy({width, wanted - 2});
    bring_to_view(schedule, width);
    ImGui::EndChild();
  }

  // A kernel that was chosen elsewhere is not left out of sight.
  void bring_to_view(const Schedule& schedule, float width) {
    const auto layer = static_cast<std::size_t>(document().scene().layer);
    if (layer >= schedule.layers.size() || shown_kernel_ == schedule.layers[layer].name) return;
    shown_kernel_ = schedule.layers[layer].name;
    const auto& infos = kernel_infos();
    const auto found = std::ranges::find(infos, shown_kernel_, &KernelInfo::name);
    const auto column = static_cast<float>(found - infos.begin());
    const float room = ImGui::GetWindowWidth() - sticky_width;
    const float x = column * column_width;
    if (x < ImGui::GetScrollX() || x + 2 * column_width > ImGui::GetScrollX() + room)
      ImGui::SetScrollX(std::clamp(x - room / 2, 0.0f, width));
  }

  // Room for the longest name, as slanted as it is written.
  float slanted_height(const std::vector<KernelInfo>& infos) const {
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    float longest = 0;
    for (const KernelInfo& info : infos)
      longest = std::max(longest, ImGui::CalcTextSize(info.name.c_str()).x);
    ImGui::PopFont();
    return longest * std::sin(slant) + 20;
  }

  template <typename ColumnX>
  void draw_row(ImDrawList* list, ImVec2 at, int layer, const KernelSpec& kernel, const ColumnX& column_x) {
    const float right = column_x(kernel_infos().size()) - column_width / 2 + label_width;
    const bool selected = layer == document().scene().layer;
    if (selected) {
      list->AddRectFilled(at, {right, at.y + row_height}, theme::packed(theme::accent, 0.16f), 2.0f);
    }
    ImGui::PushID(layer);
    const float middle = at.y + row_height / 2;
    ImGui::SetCursorScreenPos(at);
    if (ImGui::InvisibleButton("layer", {sticky_width, row_height})) select_layer(editor(), layer);
    const std::string& badge = badges_[static_cast<std::size_t>(layer)];
    if (ImGui::IsItemHovered())
      ImGui::SetTooltip("Select layer %d: %s%s%s", layer, kernel.text().c_str(), badge.empty() ? "" : ", ",
                        badge.c_str());
    ImGui::PushFont(graphics().fonts().mono, theme::size_small);
    const std::string number = fmt::format("{:>2}", layer);
    const float text_y = middle - ImGui::GetTextLineHeight() / 2;
    ImGui::PopFont();

    const auto& infos = kernel_infos();
    for (std::size_t i = 0; i < infos.size(); ++i)
      draw_cell(list, {column_x(i), middle}, layer, infos[i], kernel);

    // Over the cells that have been scrolled away.
    list->AddRectFilled(at, {at.x + sticky_width, at.y + row_height}, theme::packed(theme::surface));
    if (selected)
      list->AddRectFilled(at, {at.x + sticky_width, at.y + row_height}, theme::packed(theme::accent, 0.16f));
    ImGui::PushFont(graphics().fonts().mono, theme::size_small);
    list->AddText({at.x + 6, text_y}, theme::packed(selected ? theme::text : theme::quiet), number.c_str());
    ImGui::PopFont();
    kernel_square(list, {at.x + 34, middle}, 9, kernel.name);
    const float name_x = column_x(infos.size()) - column_width / 2 + 8;
    const std::string label = badge.empty() ? kernel.text() : badge;
    list->AddText({name_x, text_y}, theme::packed(badge.empty() ? theme::quiet : theme::amber),
                  fitted(label, right - name_x - 2).c_str());
    ImGui::SetCursorScreenPos({name_x, at.y});
    if (ImGui::InvisibleButton("name", {std::max(right - name_x, 1.0f), row_height}))
      select_layer(editor(), layer);
    if (ImGui::IsItemHovered()) {
      ImGui::SetTooltip("layer %d: %s%s%s", layer, kernel.text().c_str(), badge.empty() ? "" : ", ",
                        badge.c_str());
    }
    ImGui::PopID();
  }

  void draw_cell(ImDrawList* list, ImVec2 centre, int layer, const KernelInfo& info,
                 const KernelSpec& chosen) {
    const bool on = info.name == chosen.name;
    const std::string reason = unsupported_reason(info, document().execution);
    ImGui::SetCursorScreenPos({centre.x - column_width / 2, centre.y - row_height / 2});
    ImGui::BeginDisabled(!reason.empty());
    if (ImGui::InvisibleButton(info.name.c_str(), {column_width, row_height})) {
      set_layer_kernel(editor(), layer, KernelSpec{.name = info.name, .parameters = {}});
    }
    ImGui::EndDisabled();
    const bool hovered = ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled);
    if (on) {
      kernel_square(list, centre, 13, info.name);
    } else if (hovered && reason.empty()) {
      kernel_square(list, centre, 13, info.name, 0.45f);
    } else {
      list->AddRectFilled({centre.x - 2, centre.y - 2}, {centre.x + 2, centre.y + 2},
                          theme::packed(theme::faint, reason.empty() ? 1.0f : 0.4f), 1.0f);
    }
    if (hovered) {
      ImGui::SetTooltip("Layer %d: %s\n%s   %s%s%s", layer, info.name.c_str(), info.definition.c_str(),
                        info.complexity.c_str(), reason.empty() ? "" : "\n", reason.c_str());
    }
  }

  void draw_presets() {
    const int layers = document().scene().model->layers;
    field_label("Preset", 56);
    const float room = ImGui::GetContentRegionAvail().x;
    const int picked = kernel_combo("##preset kernel", preset_kernel_.name, false, room);
    if (picked >= 0) {
      preset_kernel_ =
          KernelSpec{.name = kernel_infos()[static_cast<std::size_t>(picked)].name, .parameters = {}};
      apply_preset(editor(), strategy_, preset_count_, preset_kernel_);
    }
    field_label("Where", 56);
    static constexpr std::array<const char*, 3> strategies = {"front", "back", "interleave"};
    const int clicked = segmented("strategy", strategies, static_cast<int>(strategy_));
    if (clicked >= 0) {
      strategy_ = static_cast<Strategy>(clicked);
      apply_preset(editor(), strategy_, preset_count_, preset_kernel_);
    }
    field_label("Layers", 56);
    ImGui::SetNextItemWidth(-1);
    preset_count_ = std::min(preset_count_, layers);
    ImGui::PushFont(graphics().fonts().mono, theme::size_small);
    if (ImGui::SliderInt("##k", &preset_count_, 0, layers, "k = %d")) {
      apply_preset(editor(), strategy_, preset_count_, preset_kernel_, "preset slider");
    }
    ImGui::PopFont();
  }

  std::string shown_kernel_; // of the selected layer, when it was last brought to view
  std::vector<CatalogueEntry> catalogue_;
  std::vector<std::string> badges_; // by layer: "", "untrained", "other resolution"
  KernelSpec preset_kernel_{.name = "hydra-cosine", .parameters = {}};
  Strategy strategy_ = Strategy::back;
  int preset_count_ = 2;
};

} // namespace

std::unique_ptr<Panel> make_kernels_panel(PanelServices services) {
  return std::make_unique<KernelsPanel>(services);
}

} // namespace hydrascope::app
