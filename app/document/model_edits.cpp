// Edits of the model: kernels, adapters, muted heads.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "app/document/edits.h"

namespace hydrascope::app {

void set_layer_kernel(Editor& editor, int layer, const KernelSpec& kernel) {
  editor.change(fmt::format("Layer {} to {}", layer, kernel.label()), [&](Document& document) {
    Schedule& schedule = edited_schedule(document);
    if (layer < 0 || static_cast<std::size_t>(layer) >= schedule.layers.size()) return;
    schedule.layers[static_cast<std::size_t>(layer)] = kernel;
    document.scene().layer = layer;
  });
}

namespace {

// Applies `edit` to the kernel of a layer, with `everywhere` to all kernels of the same name.
void change_kernels(Schedule& schedule, int layer, bool everywhere,
                    const std::function<void(KernelSpec&)>& edit) {
  if (layer < 0 || static_cast<std::size_t>(layer) >= schedule.layers.size()) return;
  const std::string name = schedule.layers[static_cast<std::size_t>(layer)].name;
  for (std::size_t i = 0; i < schedule.layers.size(); ++i) {
    const bool selected = static_cast<int>(i) == layer || everywhere;
    if (selected && schedule.layers[i].name == name) edit(schedule.layers[i]);
  }
}

} // namespace

void set_kernel_parameter(Editor& editor, int layer, const std::string& parameter,
                          const std::optional<std::string>& value, bool everywhere,
                          const std::string& gesture) {
  editor.change(
      value ? fmt::format("Layer {}: {} = {}", layer, parameter, *value)
            : fmt::format("Layer {}: {} as by default", layer, parameter),
      [&](Document& document) {
        change_kernels(edited_schedule(document), layer, everywhere, [&](KernelSpec& kernel) {
          kernel.parameters.erase(parameter);
          if (value) kernel.parameters[parameter] = *value;
          kernel = parse_kernel_spec(kernel.text()); // without what is as by default
        });
      },
      gesture);
}

void reset_kernel_parameters(Editor& editor, int layer, bool everywhere) {
  editor.change(fmt::format("Layer {}: parameters as by default", layer), [&](Document& document) {
    change_kernels(edited_schedule(document), layer, everywhere,
                   [](KernelSpec& kernel) { kernel.parameters.clear(); });
  });
}

void choose_adapters(Editor& editor, const AdapterChoice& choice) {
  const std::string label = choice.automatic       ? "Adapters: automatic"
                            : choice.files.empty() ? "Adapters: none"
                                                   : "Adapter " + choice.files.back().stem().string();
  editor.change(label, [&](Document& document) {
    Scene& scene = document.scene();
    // Pictures have the size that adapters were trained at, and with another one other patches.
    const bool sized = document.kind == InputKind::image && !document.execution.image_size;
    if (sized && scene.adapters != choice) forget_tokens(scene);
    scene.adapters = choice;
  });
}

void choose_device(Editor& editor, const std::string& device) {
  editor.change("Device: " + device, [&](Document& document) { document.execution.device = device; });
}

void set_all_kernels(Editor& editor, const KernelSpec& kernel) {
  editor.change(fmt::format("All layers: {}", kernel.label()),
                [&](Document& document) { std::ranges::fill(edited_schedule(document).layers, kernel); });
}

void apply_preset(Editor& editor, Strategy strategy, int k, const KernelSpec& kernel,
                  const std::string& gesture) {
  editor.change(
      fmt::format("{} layers: {}", k, kernel.label()),
      [&](Document& document) {
        Schedule& schedule = edited_schedule(document);
        const int count = static_cast<int>(schedule.layers.size());
        std::ranges::fill(schedule.layers, KernelSpec{});
        for (const int layer : replaced_layers(strategy, std::clamp(k, 0, count), count)) {
          schedule.layers[static_cast<std::size_t>(layer)] = kernel;
        }
      },
      gesture);
}

void swap_sides(Editor& editor) {
  editor.change("Swap A and B", [](Document& document) {
    auto& schedules = document.scene().schedules;
    std::swap(schedules[0], schedules[1]);
  });
}

void compare_kernel(Editor& editor, int position, const std::optional<KernelSpec>& kernel) {
  editor.change("Compare kernels", [&](Document& document) {
    auto& kernels = document.scene().comparison;
    const auto index = static_cast<std::size_t>(position);
    if (index >= kernels.size()) kernels.resize(index + 1);
    kernels[index] = kernel;
  });
}

void select_detail_kernel(Editor& editor, const std::optional<KernelSpec>& kernel) {
  editor.change("Select the kernel of the details",
                [&](Document& document) { document.scene().detail_kernel = kernel; });
}

void add_compared_kernel(Editor& editor, const std::optional<KernelSpec>& kernel) {
  editor.change("Add a kernel to the comparison",
                [&](Document& document) { document.scene().comparison.push_back(kernel); });
}

void drop_compared_kernel(Editor& editor, int position) {
  editor.change("Remove a kernel from the comparison", [&](Document& document) {
    auto& kernels = document.scene().comparison;
    const auto index = static_cast<std::size_t>(position);
    if (kernels.size() > 1 && index < kernels.size())
      kernels.erase(kernels.begin() + static_cast<std::ptrdiff_t>(index));
  });
}

namespace {

void set_muted(Scene& scene, HeadIndex head, bool muted) {
  if (!scene.model || head.layer < 0 || head.layer >= scene.model->layers || head.head < 0 ||
      head.head >= scene.model->heads || is_capture(scene))
    return;
  std::vector<HeadIndex>& heads = scene.muted_heads;
  const auto at = std::ranges::lower_bound(heads, head);
  const bool there = at != heads.end() && *at == head;
  if (there && !muted) heads.erase(at);
  if (!there && muted) heads.insert(at, head);
}

} // namespace

std::string why_not_muted(const Document& document) {
  return is_capture(document.scene()) ? "a capture holds no model that could run without the head" : "";
}

bool is_muted(const Document& document, HeadIndex head) {
  return std::ranges::binary_search(document.scene().muted_heads, head);
}

int muted_in_layer(const Document& document, int layer) {
  return static_cast<int>(std::ranges::count(document.scene().muted_heads, layer, &HeadIndex::layer));
}

bool layer_is_muted(const Document& document, int layer) {
  const auto& model = document.scene().model;
  return model && model->heads > 0 && muted_in_layer(document, layer) == model->heads;
}

std::string muted_words(const Document& document, int layer) {
  const int muted = muted_in_layer(document, layer);
  if (muted == 0) return {};
  const int heads = document.scene().model ? document.scene().model->heads : 0;
  if (muted == heads) return "muted";
  return fmt::format("{} of {} heads muted", muted, heads);
}

void mute_head(Editor& editor, HeadIndex head, bool muted) {
  editor.change(fmt::format("{} head {} of layer {}", muted ? "Mute" : "Unmute", head.head, head.layer),
                [&](Document& document) { set_muted(document.scene(), head, muted); });
}

void mute_layer(Editor& editor, int layer, bool muted) {
  editor.change(fmt::format("{} layer {}", muted ? "Mute" : "Unmute", layer), [&](Document& document) {
    Scene& scene = document.scene();
    for (int head = 0; scene.model && head < scene.model->heads; ++head)
      set_muted(scene, {layer, head}, muted);
  });
}

void unmute_all(Editor& editor) {
  editor.change("Unmute everything", [](Document& document) { document.scene().muted_heads.clear(); });
}

std::optional<HeadIndex> chosen_head(const Editor& editor) {
  if (editor.hovered_head()) return editor.hovered_head();
  const Scene& scene = editor.document().scene();
  if (!scene.model || !scene.head.head) return std::nullopt;
  return HeadIndex{scene.layer, *scene.head.head};
}

} // namespace hydrascope::app
