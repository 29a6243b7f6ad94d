// The model, and the attention kernel of each of its layers; below the grid the parameters and adapters of
// the selected layer, and presets for all layers.
#include <algorithm>
#include <cfloat>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "app/document/document.h"
#include "app/document/editor.h"
#include "app/document/edits.h"
#include "app/panels/kernels/kernel_card.h"
#include "app/panels/kernels/kernel_grid.h"
#include "app/panels/kernels/kernel_parameters.h"
#include "app/panels/kernels/kernel_presets.h"
#include "app/panels/panel.h"
#include "app/ui/graphics.h"
#include "app/ui/widgets.h"
#include "app/views/adapter_view.h"
#include "engine/attention/own/map_check.h"
#include "engine/measure/kernel_support.h"

namespace hydrascope::app {

namespace {

struct AdapterNotes {
  std::vector<FoundAdapter> found;
  AdapterState state;
};

std::string choice_text(const AdapterChoice& choice) {
  if (choice.automatic) return "automatic";
  return choice.files.empty() ? "none" : choice.files.back().stem().string();
}

std::string adapter_tooltip(const FoundAdapter& adapter) {
  std::string text =
      fmt::format("{}\n{}\n{}", adapter.info.name, adapter.info.summary, adapter.info.path.string());
  for (const AdapterInfo::Layer& layer : adapter.info.layers)
    text += fmt::format("\nlayer {}: {}", layer.layer, layer.kernel.label());
  return text;
}

void draw_found(Editor& editor, const FoundAdapter& adapter) {
  const AdapterChoice& choice = editor.document().scene().adapters;
  const bool chosen = !choice.automatic && std::ranges::count(choice.files, adapter.info.path) > 0;
  std::string label = adapter.info.name + (adapter.bundled ? "" : " (your file)");
  if (adapter.holds) label += ": holds this layer's kernel";
  if (ImGui::Selectable(with_known_glyphs(label).c_str(), chosen)) open_adapter(editor, adapter.info.path);
  if (ImGui::IsItemHovered()) text_tooltip(adapter_tooltip(adapter));
}

void draw_adapter_state(const AdapterState& state, float width) {
  if (state.warning) return ellipsis_text(state.text, width, theme::amber);
  if (state.text.empty()) return ellipsis_text("known once the model has run", width, theme::quiet);
  const std::string shown = fitted(fitting_parts(parts_of(state.text), width), width, Cut::middle);
  ImGui::TextColored(theme::quiet, "%s", shown.c_str());
  if (ImGui::IsItemHovered()) text_tooltip(state.text);
}

// The choice of adapters, and a line on the parameters of the selected layer, which leaves room at its end.
void draw_adapter_section(Editor& editor, const Graphics& graphics, const AdapterNotes& notes,
                          float room_at_end) {
  const AdapterChoice& choice = editor.document().scene().adapters;
  field_label("Adapter", 56);
  const float width = ImGui::GetContentRegionAvail().x;
  ImGui::SetNextItemWidth(width);
  const std::string shown = fitted(choice_text(choice), width - ImGui::GetFrameHeight() - 12, Cut::middle);
  if (ImGui::BeginCombo("##adapter", shown.c_str(), ImGuiComboFlags_HeightLarge)) {
    if (ImGui::Selectable("automatic", choice.automatic)) choose_adapters(editor, {});
    if (ImGui::IsItemHovered())
      text_tooltip("The model's own tail, and bundled adapters that fit the kernels, by themselves");
    const bool none = !choice.automatic && choice.files.empty();
    if (ImGui::Selectable("none", none)) choose_adapters(editor, {.automatic = false, .files = {}});
    ImGui::Separator();
    for (std::size_t i = 0; i < notes.found.size(); ++i) {
      ImGui::PushID(static_cast<int>(i));
      draw_found(editor, notes.found[i]);
      ImGui::PopID();
    }
    if (ImGui::Selectable("Open file…")) editor.emit(ShowDialog{Dialog::open_adapter});
    ImGui::EndCombo();
  }
  ImGui::PushFont(graphics.fonts().regular, theme::size_small);
  draw_adapter_state(notes.state, ImGui::GetContentRegionAvail().x - room_at_end);
  ImGui::PopFont();
}

class KernelsPanel final : public Panel {
public:
  explicit KernelsPanel(PanelServices services)
      : Panel("kernels", "Model and kernels", services), catalogue_(model_catalogue()) {}
  bool shows_results() const override { return false; }

  void request(const Document& document, Requested& requested) const override {
    card_.request(document, requested);
  }

  void prepare(const Snapshot& snapshot) override {
    const Scene& scene = snapshot.document->scene();
    if (scene.model == nullptr) return;
    card_.prepare(snapshot);
    const RunResult* any = snapshot.shown().any();
    prepare_support(layer_shape(*snapshot.document, any), edited_schedule(*snapshot.document));
    const bool fresh = any != nullptr && !snapshot.shown().stale && any->model.folder == scene.model->folder;
    notes_.badges.assign(static_cast<std::size_t>(scene.model->layers), "");
    adapters_ = {};
    if (any == nullptr || any->model.folder != scene.model->folder) notes_.marks.clear();
    if (!fresh) return;
    notes_.marks = parameter_marks(*any, scene.adapters);
    const bool maps_alone =
        has_trained(notes_.marks, KernelFamily::trained) && !has_trained(notes_.marks, KernelFamily::hydra);
    grid_.prefer(maps_alone ? KernelFamily::trained : KernelFamily::hydra);
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
    const float room = ImGui::GetContentRegionAvail().y;
    const float most = room - below_height_ - ImGui::GetStyle().ItemSpacing.y;
    if (card_.point(editor(), notes_, grid_.draw(editor(), graphics(), notes_, most))) prepare_again();
    card_.draw(editor(), graphics());
    const float top = ImGui::GetCursorPosY();
    // Low rows leave room for the grid.
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(ImGui::GetStyle().FramePadding.x, 2));
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(ImGui::GetStyle().ItemSpacing.x, 4));
    const auto layer = static_cast<std::size_t>(document().scene().layer);
    parameters_.draw(editor(), graphics(), shape_,
                     layer < notes_.layers.size() ? notes_.layers[layer] : std::string());
    constexpr float low = 520; // where the grid needs the room of the presets
    const bool folded = room < low;
    const float button = folded ? KernelPresets::button_width() : 0;
    draw_adapter_section(editor(), graphics(), adapters_, button > 0 ? button + theme::grid : 0);
    if (folded) ImGui::SameLine(ImGui::GetContentRegionMax().x - button);
    presets_.draw(editor(), folded);
    ImGui::PopStyleVar(2);
    below_height_ = ImGui::GetCursorPosY() - top;
  }

private:
  void draw_model() {
    const Scene& scene = document().scene();
    field_label("Model", 56);
    constexpr float search_width = 92, gap = 8, least_width = 72;
    const float line = ImGui::GetContentRegionAvail().x;
    const bool search_beside = scene.model && line >= least_width + gap + search_width;
    const float width = search_beside ? line - gap - search_width : line;
    ImGui::SetNextItemWidth(width);
    const std::string name = scene.model ? scene.model->name : "none";
    const bool open =
        ImGui::BeginCombo("##model", fitted(name, width - ImGui::GetFrameHeight() - 12).c_str());
    if (!open && ImGui::IsItemHovered()) text_tooltip(name);
    if (open) {
      for (const CatalogueEntry& entry : catalogue_) {
        if (ImGui::Selectable(entry.name.c_str(), scene.model_folder == entry.folder)) {
          open_model(editor(), entry.folder.string());
        }
        if (ImGui::IsItemHovered()) text_tooltip(entry.description);
      }
      ImGui::Separator();
      if (ImGui::Selectable("Open folder…")) editor().emit(ShowDialog{Dialog::open_model});
      if (ImGui::Selectable("Get a model…")) editor().emit(ShowOverlay{Overlay::get_model});
      ImGui::EndCombo();
    }
    if (scene.model == nullptr) return;
    if (search_beside) ImGui::SameLine(0, gap);
    grid_.draw_search(editor(), notes_, search_beside ? search_width : -FLT_MIN);
  }

  // The kernels' support is computed only after the shape or the device has changed. A device that is not
  // known to work is not asked: that would load CUDA here. A source that was not tried yet is left to the
  // run.
  void prepare_support(LayerShape shape, const Schedule& schedule) {
    const DeviceList* const devices = editor().status().devices.get();
    shape.device = listed_name(devices, shape.device);
    const std::string obstacle = why_unusable(devices, shape.device);
    const auto why = [&](const KernelSpec& kernel) {
      if (!obstacle.empty()) return obstacle;
      return is_tried(kernel, shape) ? why_unsupported(kernel, shape) : std::string();
    };
    if (notes_.kernels.empty() || shape != shape_ || obstacle != obstacle_) {
      shape_ = shape;
      obstacle_ = obstacle;
      notes_.kernels.clear();
      for (const KernelInfo& info : kernel_infos())
        notes_.kernels.push_back(why({.name = info.name, .parameters = {}}));
    }
    notes_.layers.clear();
    for (const KernelSpec& kernel : schedule.layers) notes_.layers.push_back(why(kernel));
  }

  std::vector<CatalogueEntry> catalogue_;
  KernelGrid grid_;
  KernelCard card_;
  KernelParametersView parameters_;
  KernelPresets presets_;
  LayerShape shape_;     // of notes_.kernels
  std::string obstacle_; // of its device
  GridNotes notes_;
  AdapterNotes adapters_;
  float below_height_ = 190; // of the controls below the grid, in the last frame
};

} // namespace

std::unique_ptr<Panel> make_kernels_panel(PanelServices services) {
  return std::make_unique<KernelsPanel>(services);
}

} // namespace hydrascope::app
