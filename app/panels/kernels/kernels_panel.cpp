// The model, and the attention kernel of each of its layers; below the grid the parameters and adapters of
// the selected layer, and presets for all layers.
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "app/document/document.h"
#include "app/document/editor.h"
#include "app/document/edits.h"
#include "app/panels/kernels/kernel_grid.h"
#include "app/panels/panel.h"
#include "app/ui/graphics.h"
#include "app/ui/widgets.h"
#include "app/views/adapter_view.h"
#include "engine/measure/kernel_support.h"

namespace hydrascope::app {

namespace {

constexpr float least_label_width = 56;
constexpr float reset_width = 44;

// The control of one parameter of a layer's kernel.
struct Control {
  Editor& editor;
  const Graphics& graphics;
  const LayerShape& shape;
  const ParameterInfo& parameter;
  int layer = 0;
  bool everywhere = false;
  std::optional<std::string> value = {}; // as text; nullopt: the default

  void set(const std::optional<std::string>& wanted, const std::string& gesture = {}) const {
    set_kernel_parameter(editor, layer, parameter.name, wanted, everywhere, gesture);
  }
  std::string gesture() const { return fmt::format("parameter {} {}", parameter.name, layer); }
};

std::int64_t number_of(const Control& control, const ParameterRange& range) {
  std::int64_t number = range.initial;
  if (control.value)
    std::from_chars(control.value->data(), control.value->data() + control.value->size(), number);
  return number;
}

// The name of a parameter in the window; a schedule's text has the short one.
std::string parameter_label(const std::string& name) {
  return name == "w" ? "window size" : name == "m" ? "length M" : name;
}

void draw_divisor(const Control& control) {
  const ParameterRange range = control.parameter.range(control.shape);
  const std::int64_t width = range.most, now = number_of(control, range);
  const std::vector<std::int64_t> divisors = divisors_of(width);
  const auto found = std::ranges::lower_bound(divisors, now);
  int index = static_cast<int>(found == divisors.end() ? divisors.size() - 1
                                                       : static_cast<std::size_t>(found - divisors.begin()));
  const std::string text = width % std::max<std::int64_t>(now, 1) == 0
                               ? fmt::format("{}, d = {}", now, width / now)
                               : fmt::format("{}, no divisor of {}", now, width);
  ImGui::PushFont(control.graphics.fonts().mono, theme::size_small);
  const float room = ImGui::CalcTextSize("384, d = 384").x;
  if (value_slider("##value", &index, 0, static_cast<int>(divisors.size()) - 1, text, room,
                   ImGuiSliderFlags_NoInput))
    control.set(std::to_string(divisors[static_cast<std::size_t>(index)]), control.gesture());
  ImGui::PopFont();
}

void draw_number(const Control& control) {
  const ParameterRange range = control.parameter.range(control.shape);
  int number = static_cast<int>(number_of(control, range));
  ImGui::PushFont(control.graphics.fonts().mono, theme::size_small);
  const float room = ImGui::CalcTextSize(std::to_string(range.most).c_str()).x;
  if (value_slider("##value", &number, static_cast<int>(range.least), static_cast<int>(range.most),
                   std::to_string(number), room, ImGuiSliderFlags_None))
    control.set(std::to_string(std::max(number, static_cast<int>(range.least))), control.gesture());
  ImGui::PopFont();
}

void draw_flag(const Control& control) {
  bool on = control.value.value_or(control.parameter.initial) == "1";
  if (ImGui::Checkbox("##value", &on)) control.set(on ? "1" : "0");
}

void draw_choice(const Control& control) {
  std::vector<const char*> labels;
  for (const std::string& choice : control.parameter.choices) labels.push_back(choice.c_str());
  const auto now =
      std::ranges::find(control.parameter.choices, control.value.value_or(control.parameter.initial));
  const int clicked = segmented("value", labels, static_cast<int>(now - control.parameter.choices.begin()));
  if (clicked >= 0) control.set(control.parameter.choices[static_cast<std::size_t>(clicked)]);
}

void draw_control(const Control& control, float label_width) {
  ImGui::PushID(control.parameter.name.c_str());
  field_label(parameter_label(control.parameter.name).c_str(), label_width);
  const float end = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
  ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x - reset_width - 6);
  ImGui::BeginGroup();
  switch (control.parameter.kind) {
    case ParameterInfo::Kind::divisor: draw_divisor(control); break;
    case ParameterInfo::Kind::number: draw_number(control); break;
    case ParameterInfo::Kind::flag: draw_flag(control); break;
    case ParameterInfo::Kind::choice: draw_choice(control); break;
  }
  ImGui::EndGroup();
  if (ImGui::IsItemHovered())
    text_tooltip(fmt::format("{}\ndefault: {}", control.parameter.meaning, control.parameter.initial));
  ImGui::SameLine(end - reset_width);
  ImGui::PushFont(control.graphics.fonts().regular, theme::size_small);
  ImGui::BeginDisabled(!control.value.has_value());
  if (ImGui::Button("reset", {reset_width, 0})) control.set(std::nullopt);
  ImGui::EndDisabled();
  ImGui::PopFont();
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
    text_tooltip(fmt::format("{}: {}", control.value ? "back to the default" : "this is the default",
                             control.parameter.initial));
  ImGui::PopID();
}

// The parameters of the selected layer's kernel, made from the registry.
class KernelParametersView {
public:
  // The ranges of the sliders depend on `shape`, that of attention in the layers. `reason`: why the kernel
  // with its parameters cannot run; empty if it can.
  void draw(Editor& editor, const Graphics& graphics, const LayerShape& shape, const std::string& reason);

private:
  bool everywhere_ = false; // changes apply to all layers with this kernel
};

void KernelParametersView::draw(Editor& editor, const Graphics& graphics, const LayerShape& shape,
                                const std::string& reason) {
  const Document& document = editor.document();
  const int layer = document.scene().layer;
  const Schedule& schedule = edited_schedule(document);
  if (layer < 0 || static_cast<std::size_t>(layer) >= schedule.layers.size()) return;
  const KernelSpec kernel = schedule.layers[static_cast<std::size_t>(layer)];
  const KernelInfo& info = kernel_info(kernel.name);
  const auto alike = std::ranges::count(schedule.layers, kernel.name, &KernelSpec::name);

  ImGui::PushFont(graphics.fonts().regular, theme::size_small);
  ImGui::AlignTextToFramePadding();
  const float room = ImGui::GetContentRegionAvail().x;
  const bool shares = alike > 1 && !info.parameters.empty();
  const std::string all = fmt::format("all {}", alike);
  const float box = shares ? ImGui::GetFrameHeight() + 8 + ImGui::CalcTextSize(all.c_str()).x : 0;
  const float end = ImGui::GetCursorPosX() + room;
  ellipsis_text(fmt::format("Layer {}: {}{}", layer, info.name,
                            info.parameters.empty() ? ", no parameters to set" : ""),
                room - box - 8, theme::text);
  if (shares) {
    ImGui::SameLine(end - box);
    ImGui::Checkbox("##everywhere", &everywhere_);
    const bool hovered = ImGui::IsItemHovered();
    ImGui::SameLine(0, 4);
    ImGui::TextColored(theme::quiet, "%s", all.c_str());
    if (hovered || ImGui::IsItemHovered())
      text_tooltip(fmt::format("change all {} layers with {} at once", alike, info.name));
  }
  ImGui::PopFont();
  float label_width = least_label_width;
  for (const ParameterInfo& parameter : info.parameters)
    label_width = std::max(label_width, ImGui::CalcTextSize(parameter_label(parameter.name).c_str()).x + 8);
  for (const ParameterInfo& parameter : info.parameters) {
    const auto set = kernel.parameters.find(parameter.name);
    draw_control({.editor = editor,
                  .graphics = graphics,
                  .shape = shape,
                  .parameter = parameter,
                  .layer = layer,
                  .everywhere = everywhere_ && shares,
                  .value = set == kernel.parameters.end() ? std::nullopt : std::optional(set->second)},
                 label_width);
  }
  if (!reason.empty()) wrapped_small_text(graphics, "cannot run: " + reason, theme::amber);
}

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
    text += fmt::format("\nlayer {}: {}", layer.layer, layer.kernel.text());
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

// The choice of adapters, and a line on the parameters of the selected layer.
void draw_adapter_section(Editor& editor, const Graphics& graphics, const AdapterNotes& notes) {
  const AdapterChoice& choice = editor.document().scene().adapters;
  field_label("Adapter", 56);
  const float width = ImGui::GetContentRegionAvail().x;
  ImGui::SetNextItemWidth(width);
  const std::string shown = fitted(choice_text(choice), width - ImGui::GetFrameHeight() - 12);
  if (ImGui::BeginCombo("##adapter", shown.c_str(), ImGuiComboFlags_HeightLarge)) {
    if (ImGui::Selectable("automatic", choice.automatic)) choose_adapters(editor, {});
    if (ImGui::IsItemHovered())
      ImGui::SetTooltip("The model's own tail, and bundled adapters that fit the kernels, by themselves");
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
  ellipsis_text(notes.state.text.empty() ? "known once the model has run" : notes.state.text,
                ImGui::GetContentRegionAvail().x, notes.state.warning ? theme::amber : theme::quiet);
  ImGui::PopFont();
}

struct Preset {
  KernelSpec kernel{.name = "hydra-cosine", .parameters = {}};
  Strategy strategy = Strategy::back;
  int count = 2;
};

std::vector<KernelSpec> preset_schedule(const Preset& preset, int layers) {
  std::vector<KernelSpec> kernels(static_cast<std::size_t>(layers));
  for (const int layer : replaced_layers(preset.strategy, preset.count, layers))
    kernels[static_cast<std::size_t>(layer)] = preset.kernel;
  return kernels;
}

// The preset that makes this schedule; nullopt without one, and for softmax in all layers.
std::optional<Preset> preset_of(const Schedule& schedule) {
  const auto replaced =
      std::ranges::find_if(schedule.layers, [](const KernelSpec& kernel) { return kernel != KernelSpec{}; });
  if (replaced == schedule.layers.end()) return std::nullopt;
  const int count = static_cast<int>(std::ranges::count(schedule.layers, *replaced));
  for (const Strategy strategy : {Strategy::back, Strategy::front, Strategy::interleave}) {
    const Preset preset{.kernel = *replaced, .strategy = strategy, .count = count};
    if (preset_schedule(preset, static_cast<int>(schedule.layers.size())) == schedule.layers) return preset;
  }
  return std::nullopt;
}

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
    // Low rows leave room for the grid.
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

  // The kernels' support is computed only after the shape has changed.
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

  // Shows the preset in force, or the user's choice, which Apply puts in force: a schedule made by hand is
  // not lost by looking at the controls.
  void draw_presets() {
    const Schedule schedule = edited_schedule(document());
    const int layers = static_cast<int>(schedule.layers.size());
    if (schedule.layers != preset_schedule_) { // changed elsewhere
      preset_schedule_ = schedule.layers;
      preset_ = preset_of(schedule);
    }
    Preset preset = preset_.value_or(Preset{});
    bool changed = false;
    const float label_width = ImGui::CalcTextSize("Fill layers with").x + 8;
    field_label("Fill layers with", label_width);
    const float room = ImGui::GetContentRegionAvail().x;
    const int picked = kernel_combo("##preset kernel", preset_ ? preset.kernel.name : "none", false, room);
    if (picked >= 0) {
      preset.kernel = {.name = kernel_infos()[static_cast<std::size_t>(picked)].name, .parameters = {}};
      changed = true;
    }
    field_label("Where", label_width);
    static constexpr std::array<const char*, 3> strategies = {"first", "last", "every other"};
    const int clicked = segmented("strategy", strategies, preset_ ? static_cast<int>(preset.strategy) : -1);
    if (ImGui::IsItemHovered())
      ImGui::SetTooltip("Choose which layers get the kernel; every other: alternating from the last one");
    if (clicked >= 0) {
      preset.strategy = static_cast<Strategy>(clicked);
      changed = true;
    }
    field_label("Layers", label_width);
    constexpr const char* apply = "Apply###apply_preset";
    const float button = ImGui::CalcTextSize(apply, nullptr, true).x + 2 * ImGui::GetStyle().FramePadding.x;
    ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x - button - 8);
    preset.count = std::min(preset.count, layers);
    const std::string count =
        preset_ ? fmt::format("{} {}", preset.count, preset.count == 1 ? "layer" : "layers") : "none";
    changed |= value_slider("##k", &preset.count, 0, layers, count, ImGui::CalcTextSize("12 layers").x);
    if (changed) preset_ = preset;
    ImGui::SameLine(0, 8);
    const bool in_force = !preset_ || preset_schedule(*preset_, layers) == schedule.layers;
    ImGui::BeginDisabled(in_force);
    if (ImGui::Button(apply)) {
      apply_preset(editor(), preset.strategy, preset.count, preset.kernel);
      preset_schedule_ = edited_schedule(document()).layers;
    }
    ImGui::EndDisabled();
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
      ImGui::SetTooltip(in_force ? "Choose a kernel and its layers"
                                 : "Set these layers to the kernel and the others to softmax");
  }

  std::vector<CatalogueEntry> catalogue_;
  KernelGrid grid_;
  KernelParametersView parameters_;
  LayerShape shape_; // of notes_.kernels
  GridNotes notes_;
  AdapterNotes adapters_;
  float below_height_ = 190;                // of the controls below the grid, in the last frame
  std::optional<Preset> preset_;            // in force or chosen; nullopt: neither
  std::vector<KernelSpec> preset_schedule_; // with which preset_ was last compared
};

} // namespace

std::unique_ptr<Panel> make_kernels_panel(PanelServices services) {
  return std::make_unique<KernelsPanel>(services);
}

} // namespace hydrascope::app
