// Which model, and which attention kernel runs in which of its layers: any layer's kernel is one click. Below
// the grid the selected layer's parameters and adapters, and presets for all layers.
#include <algorithm>
#include <array>

#include "app/document/document.h"
#include "app/document/edits.h"
#include "app/panels/kernels/adapter_section.h"
#include "app/panels/kernels/kernel_grid.h"
#include "app/panels/kernels/kernel_parameters.h"
#include "app/panels/panels.h"
#include "app/ui/widgets.h"
#include "engine/measure/kernel_support.h"

namespace hydrascope::app {

namespace {

class KernelsPanel final : public Panel {
public:
  explicit KernelsPanel(PanelServices services)
      : Panel("kernels", "Model and kernels", services), catalogue_(model_catalogue()) {}
  bool shows_results() const override { return false; }

  void prepare(const Snapshot& snapshot) override {
    const Scene& scene = snapshot.document->scene();
    if (scene.model == nullptr) return;
    const RunResult* any = snapshot.shown().any();
    prepare_support(layer_shape(*snapshot.document, any), edited_schedule(*snapshot.document));
    const bool fresh = any != nullptr && !snapshot.shown().stale && any->model.folder == scene.model->folder;
    notes_.badges.assign(static_cast<std::size_t>(scene.model->layers), "");
    adapters_ = {};
    if (!fresh) return;
    for (std::size_t layer = 0; layer < std::min(notes_.badges.size(), any->layers.size()); ++layer) {
      if (any->layers[layer].untrained)
        notes_.badges[layer] = "untrained";
      else if (any->layers[layer].other_resolution)
        notes_.badges[layer] = "other resolution";
    }
    const auto selected = static_cast<std::size_t>(scene.layer);
    if (selected >= any->layers.size()) return;
    adapters_.found = found_adapters(*any, scene.layer, any->layers[selected].kernel);
    adapters_.state = adapter_state(*any, scene.layer, adapters_.found);
  }

  void draw() override {
    draw_model();
    if (document().scene().model == nullptr) {
      empty_notice(
          graphics(),
          "No model is open. Run tools/setup to fetch the bundled ones, get one from the Hugging Face "
          "Hub by File › Get a model, or open a folder by File › Open model folder.");
      return;
    }
    const float most = ImGui::GetContentRegionAvail().y - below_height_ - ImGui::GetStyle().ItemSpacing.y;
    grid_.draw(editor(), graphics(), notes_, most);
    const float top = ImGui::GetCursorPosY();
    // Low rows, so that the grid above has room.
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(ImGui::GetStyle().FramePadding.x, 2));
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(ImGui::GetStyle().ItemSpacing.x, 4));
    const auto layer = static_cast<std::size_t>(document().scene().layer);
    parameters_.draw(editor(), graphics(), shape_,
                     layer < notes_.layers.size() ? notes_.layers[layer] : std::string());
    draw_adapter_section(editor(), graphics(), adapters_);
    draw_presets();
    ImGui::PopStyleVar(2);
    below_height_ = ImGui::GetCursorPosY() - top;
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
      if (ImGui::Selectable("Open folder…")) editor().emit(ShowDialog{Dialog::open_model});
      if (ImGui::Selectable("Get a model…")) editor().emit(ShowOverlay{Overlay::get_model});
      ImGui::EndCombo();
    }
  }

  // Asked of every kernel only when what attention is given has changed.
  void prepare_support(const LayerShape& shape, const Schedule& schedule) {
    if (notes_.kernels.empty() || shape != shape_) {
      shape_ = shape;
      notes_.kernels.clear();
      for (const KernelInfo& info : kernel_infos())
        notes_.kernels.push_back(why_unsupported({.name = info.name, .parameters = {}}, shape));
    }
    notes_.layers.clear();
    for (const KernelSpec& kernel : schedule.layers) notes_.layers.push_back(why_unsupported(kernel, shape));
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

  std::vector<CatalogueEntry> catalogue_;
  KernelGrid grid_;
  KernelParametersView parameters_;
  LayerShape shape_; // that notes_.kernels is about
  GridNotes notes_;
  AdapterNotes adapters_;
  float below_height_ = 190; // of what stands below the grid, in the last frame
  KernelSpec preset_kernel_{.name = "hydra-cosine", .parameters = {}};
  Strategy strategy_ = Strategy::back;
  int preset_count_ = 2;
};

} // namespace

std::unique_ptr<Panel> make_kernels_panel(PanelServices services) {
  return std::make_unique<KernelsPanel>(services);
}

} // namespace hydrascope::app
