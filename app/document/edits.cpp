#include "app/document/edits.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace hydrascope::app {

namespace {

// What was chosen for the tokens of one input means nothing for those of another.
void put_input(Document& document, RunInput input) {
  document.kind = std::holds_alternative<ImageInput>(input) ? InputKind::image : InputKind::text;
  Scene& scene = document.scene();
  scene.input = std::move(input);
  scene.hidden_tokens.clear();
  scene.default_query = true;
  scene.query.reset();
  scene.key.reset();
}

} // namespace

void open_image(Editor& editor, ImageInput image) {
  editor.change("Open " + image.name, [&](Document& document) {
    if (document.folder && !find_picture(*document.folder, image.path)) document.folder.reset();
    put_input(document, std::move(image));
    document.scene().target = {};
  });
}

void open_in_folder(Editor& editor, ImageInput image, const std::shared_ptr<const PictureFolder>& folder) {
  editor.change("Open " + image.name, [&](Document& document) {
    // A class chosen for one picture is looked for in the next: that is what stepping is for.
    if (document.folder != folder) document.scene_of(InputKind::image).target = {};
    document.folder = folder;
    put_input(document, std::move(image));
  });
}

void close_folder(Editor& editor) {
  editor.change("Close the folder", [](Document& document) { document.folder.reset(); });
}

void show_wrong_first(Editor& editor, bool wrong_first) {
  editor.change(wrong_first ? "Wrong predictions first" : "Pictures by name",
                [&](Document& document) { document.wrong_first = wrong_first; });
}

void remember(Editor& editor, RecentInput recent) {
  constexpr std::size_t most = 12;
  std::error_code none; // a path that cannot be made absolute stays as it is
  if (const auto path = std::filesystem::absolute(recent.value, none); !recent.is_text && !none)
    recent.value = path.lexically_normal().string();
  editor.change_settings([&](Settings& settings) {
    std::erase(settings.recent, recent);
    settings.recent.insert(settings.recent.begin(), recent);
    if (settings.recent.size() > most) settings.recent.resize(most);
  });
}

void open_text(Editor& editor, const std::string& text, const std::optional<std::string>& pair) {
  editor.change("Open text", [&](Document& document) { put_input(document, TextInput{text, pair}); });
}

void type_text(Editor& editor, const std::string& text, const std::optional<std::string>& pair, int burst) {
  editor.change(
      "Type text",
      [&](Document& document) {
        put_input(document, TextInput{text, pair});
      },
      fmt::format("type {}", burst));
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

namespace {

// Changes the kernel of a layer, and with `everywhere` of all layers that have a kernel of its name.
void change_kernels(Schedule& schedule, int layer, bool everywhere,
                    const std::function<void(KernelSpec&)>& edit) {
  if (layer < 0 || static_cast<std::size_t>(layer) >= schedule.layers.size()) return;
  const std::string name = schedule.layers[static_cast<std::size_t>(layer)].name;
  for (std::size_t i = 0; i < schedule.layers.size(); ++i) {
    const bool meant = static_cast<int>(i) == layer || everywhere;
    if (meant && schedule.layers[i].name == name) edit(schedule.layers[i]);
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
          if (value) {
            kernel.parameters[parameter] = *value;
          } else {
            kernel.parameters.erase(parameter);
          }
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
  editor.change(label, [&](Document& document) { document.scene().adapters = choice; });
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

std::string why_not_hidden(const Document& document, std::int64_t token) {
  const Scene& scene = document.scene();
  if (!scene.model || !scene.input) return "nothing is open";
  const bool image = document.kind == InputKind::image;
  if (token < (image ? scene.model->prefix_tokens : 1))
    return image ? "only patches can be hidden" : "the result is read from [CLS]";
  return "";
}

bool is_hidden(const Document& document, std::int64_t token) {
  return std::ranges::binary_search(document.scene().hidden_tokens, token);
}

void hide_tokens(Editor& editor, std::int64_t first, std::int64_t count, bool hidden) {
  const bool image = editor.document().kind == InputKind::image;
  const std::string label = std::string(hidden ? "Hide" : "Show") + (image ? " patch" : " token");
  editor.change(label, [&](Document& document) {
    std::vector<std::int64_t>& tokens = document.scene().hidden_tokens;
    for (std::int64_t token = first; token < first + count; ++token) {
      const auto at = std::ranges::lower_bound(tokens, token);
      const bool there = at != tokens.end() && *at == token;
      if (there && !hidden) tokens.erase(at);
      if (!there && hidden && why_not_hidden(document, token).empty()) tokens.insert(at, token);
    }
  });
}

void show_all_tokens(Editor& editor) {
  editor.change("Show all tokens", [](Document& document) { document.scene().hidden_tokens.clear(); });
}

void select_key(Editor& editor, std::optional<std::int64_t> token) {
  editor.change("Key token", [&](Document& document) { document.scene().key = token; });
}

void select_pair(Editor& editor, std::int64_t query, std::int64_t key) {
  editor.change(fmt::format("Query token {}, key token {}", query, key), [&](Document& document) {
    document.scene().default_query = false;
    document.scene().query = query;
    document.scene().key = key;
  });
}

void toggle_head(Editor& editor, int head) {
  editor.change(fmt::format("Show or hide head {}", head), [&](Document& document) {
    Scene& scene = document.scene();
    if (!scene.model || head < 0 || head >= scene.model->heads) return;
    std::vector<int> shown = shown_heads(scene.head, scene.model->heads);
    const auto found = std::ranges::find(shown, head);
    if (found == shown.end()) {
      shown.insert(std::ranges::lower_bound(shown, head), head);
    } else if (shown.size() > 1) {
      shown.erase(found);
    }
    const bool all = static_cast<int>(shown.size()) == scene.model->heads;
    scene.head.head = shown.size() == 1 ? std::optional(shown.front()) : std::nullopt;
    scene.head.subset = all || shown.size() == 1 ? std::vector<int>{} : std::move(shown);
  });
}

void isolate_head(Editor& editor, int head) {
  editor.change(fmt::format("Head {} alone, or all heads", head), [&](Document& document) {
    Scene& scene = document.scene();
    if (!scene.model || head < 0 || head >= scene.model->heads) return;
    const bool alone = scene.head.head == head;
    scene.head.head = alone ? std::nullopt : std::optional(head);
    scene.head.subset.clear();
  });
}

void select_target(Editor& editor, const Target& target) {
  editor.change("Choose target", [&](Document& document) { document.scene().target = target; });
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
  editor.change("Look into a kernel", [&](Document& document) { document.scene().detail_kernel = kernel; });
}

void add_compared_kernel(Editor& editor, const std::optional<KernelSpec>& kernel) {
  editor.change("Add a kernel to the comparison",
                [&](Document& document) { document.scene().comparison.push_back(kernel); });
}

void drop_compared_kernel(Editor& editor, int position) {
  editor.change("Take a kernel from the comparison", [&](Document& document) {
    auto& kernels = document.scene().comparison;
    const auto index = static_cast<std::size_t>(position);
    if (kernels.size() > 1 && index < kernels.size())
      kernels.erase(kernels.begin() + static_cast<std::ptrdiff_t>(index));
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

void toggle_map(Editor& editor, MapKind kind) {
  const std::set<MapKind>& maps = editor.document().view.maps;
  if (maps.size() == 1 && maps.contains(kind)) return;
  const std::string name = map_name(kind);
  change_view(editor, (maps.contains(kind) ? "Hide " : "Show ") + name, [&](ViewOptions& view) {
    if (!view.maps.erase(kind)) view.maps.insert(kind);
  });
}

void change_view(Editor& editor, const std::string& label, const std::function<void(ViewOptions&)>& edit,
                 const std::string& gesture) {
  editor.change(
      label, [&](Document& document) { edit(document.view); }, gesture);
}

} // namespace hydrascope::app
