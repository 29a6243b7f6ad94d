#include "app/state/edits.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace hydrascope::app {

void open_text(Editor& editor, const std::string& text, const std::optional<std::string>& pair) {
  editor.change("Open text", [&](Document& document) {
    document.kind = InputKind::text;
    Scene& scene = document.scene();
    scene.input = TextInput{text, pair};
    scene.default_query = true;
    scene.query.reset();
  });
}

void type_text(Editor& editor, const std::string& text, const std::optional<std::string>& pair) {
  editor.change(
      "Type text",
      [&](Document& document) {
        document.kind = InputKind::text;
        Scene& scene = document.scene();
        scene.input = TextInput{text, pair};
        scene.default_query = true;
        scene.query.reset();
      },
      "type");
}

void show_kind(Editor& editor, InputKind kind) {
  editor.change(kind == InputKind::image ? "Show the photograph" : "Show the sentence",
                [&](Document& document) { document.kind = kind; });
}

void set_layer_kernel(Editor& editor, int layer, const KernelSpec& kernel) {
  editor.change(fmt::format("Layer {}: {}", layer, kernel.text()), [&](Document& document) {
    Schedule& schedule = edited_schedule(document);
    if (layer < 0 || static_cast<std::size_t>(layer) >= schedule.layers.size()) return;
    schedule.layers[static_cast<std::size_t>(layer)] = kernel;
    document.scene().layer = layer;
  });
}

void set_all_kernels(Editor& editor, const KernelSpec& kernel) {
  editor.change(fmt::format("All layers: {}", kernel.text()),
                [&](Document& document) { std::ranges::fill(edited_schedule(document).layers, kernel); });
}

void apply_preset(Editor& editor, Strategy strategy, int k, const KernelSpec& kernel,
                  const std::string& gesture) {
  editor.change(
      fmt::format("{} layers: {}", k, kernel.text()),
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

void select_layer(Editor& editor, int layer) {
  editor.change("Select layer", [&](Document& document) {
    Scene& scene = document.scene();
    if (scene.model) scene.layer = std::clamp(layer, 0, std::max(scene.model->layers - 1, 0));
  });
}

void select_head(Editor& editor, const HeadChoice& head) {
  editor.change("Select head", [&](Document& document) {
    Scene& scene = document.scene();
    scene.head = head;
    if (scene.model && scene.head.head)
      *scene.head.head = std::clamp(*head.head, 0, std::max(scene.model->heads - 1, 0));
  });
}

void select_cell(Editor& editor, int layer, int head) {
  editor.change(fmt::format("Select layer {}, head {}", layer, head), [&](Document& document) {
    Scene& scene = document.scene();
    if (!scene.model) return;
    scene.layer = std::clamp(layer, 0, std::max(scene.model->layers - 1, 0));
    scene.head = HeadChoice{.head = std::clamp(head, 0, std::max(scene.model->heads - 1, 0)),
                            .fusion = HeadFusion::mean};
  });
}

void select_query(Editor& editor, std::optional<std::int64_t> token) {
  editor.change(token ? fmt::format("Query token {}", *token) : "All queries", [&](Document& document) {
    document.scene().default_query = false;
    document.scene().query = token;
  });
}

void select_default_query(Editor& editor) {
  editor.change("Query: what the target reads", [](Document& document) {
    document.scene().default_query = true;
    document.scene().query.reset();
  });
}

void select_target(Editor& editor, const Target& target) {
  editor.change("Choose target", [&](Document& document) { document.scene().target = target; });
}

void compare_kernel(Editor& editor, int position, const std::optional<KernelSpec>& kernel) {
  editor.change("Compare kernels", [&](Document& document) {
    document.scene().comparison[static_cast<std::size_t>(position)] = kernel;
  });
}

void show_panel(Editor& editor, const std::string& id, const std::string& title, bool open) {
  editor.change((open ? "Open panel " : "Close panel ") + title, [&](Document& document) {
    if (open) {
      document.closed_panels.erase(id);
    } else {
      document.closed_panels.insert(id);
    }
  });
}

void change_view(Editor& editor, const std::string& label, const std::function<void(ViewOptions&)>& edit,
                 const std::string& gesture) {
  editor.change(
      label, [&](Document& document) { edit(document.view); }, gesture);
}

} // namespace hydrascope::app
