#include "app/panels/kernels/kernel_parameters.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "app/document/edits.h"
#include "app/panels/choices.h"
#include "app/ui/widgets.h"
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
  if (check_box("##value", &on)) control.set(on ? "1" : "0");
}

void draw_choice(const Control& control) {
  std::vector<const char*> labels;
  for (const std::string& choice : control.parameter.choices) labels.push_back(choice.c_str());
  const auto now =
      std::ranges::find(control.parameter.choices, control.value.value_or(control.parameter.initial));
  const int clicked = segmented("value", labels, static_cast<int>(now - control.parameter.choices.begin()));
  if (clicked >= 0) control.set(control.parameter.choices[static_cast<std::size_t>(clicked)]);
}

void draw_source(const Control& control) {
  const std::string name = control.value ? control.value->substr(0, control.value->find('@')) : "default";
  const float width = ImGui::CalcItemWidth();
  if (ImGui::Button(fmt::format("{}###source", fitted(name, width - 12)).c_str(), {width, 0}))
    show_map_editor(control.editor);
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
    case ParameterInfo::Kind::source: draw_source(control); break;
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

} // namespace

void KernelParametersView::draw(Editor& editor, const Graphics& graphics, const LayerShape& shape,
                                const std::string& reason) {
  const Document& document = editor.document();
  const int layer = document.scene().layer;
  const Schedule& schedule = edited_schedule(document);
  if (layer < 0 || static_cast<std::size_t>(layer) >= schedule.layers.size()) return;
  const KernelSpec kernel = schedule.layers[static_cast<std::size_t>(layer)];
  const KernelInfo& info = kernel_info(kernel);
  const auto alike = std::ranges::count(schedule.layers, kernel.name, &KernelSpec::name);

  ImGui::PushFont(graphics.fonts().regular, theme::size_small);
  ImGui::AlignTextToFramePadding();
  const float room = ImGui::GetContentRegionAvail().x;
  const bool shares = alike > 1 && !info.parameters.empty();
  const std::string title =
      sides_differ(document.scene())
          ? fmt::format("{}, layer {}: {}", side_name(edited_side(document.view)), layer, info.name)
          : fmt::format("Layer {}: {}", layer, info.name);
  const auto box_with = [](const std::string& label) {
    return ImGui::GetFrameHeight() + 8 + ImGui::CalcTextSize(label.c_str()).x;
  };
  std::string all = fmt::format("all {} layers", alike);
  if (ImGui::CalcTextSize(title.c_str()).x + 8 + box_with(all) > room) all = fmt::format("all {}", alike);
  const float box = shares ? box_with(all) : 0;
  const float end = ImGui::GetCursorPosX() + room;
  ellipsis_text(title, room - box - 8, theme::text);
  if (shares) {
    ImGui::SameLine(end - box);
    check_box("##everywhere", &everywhere_);
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
  if (!reason.empty()) {
    wrapped_small_text(graphics, "cannot run: " + reason, theme::amber);
  } else if (info.parameters.empty()) { // a row, so that the grid keeps its height as a click changes it
    ImGui::AlignTextToFramePadding();
    ImGui::TextColored(theme::quiet, "no parameters to set");
  }
}

} // namespace hydrascope::app
