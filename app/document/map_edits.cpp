// Edits of the sources of kernels `phi`.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "app/document/edits.h"
#include "engine/attention/own/map_source.h"
#include "engine/base/error.h"
#include "engine/base/paths.h"

namespace hydrascope::app {

std::string map_place(const Document& document) {
  const Scene& scene = document.scene();
  return fmt::format("{} {} {} {}", document.kind == InputKind::image ? "image" : "text",
                     static_cast<int>(edited_side(document.view)), scene.layer, scene.model_folder.string());
}

MapText first_map(const Document& document) {
  const KernelSpec kernel = selected_kernel(document);
  const std::vector<std::string> bundled = bundled_maps();
  if (kernel.name != "phi" && std::ranges::find(bundled, kernel.name) != bundled.end())
    return {kernel.name, bundled_map(kernel.name)};
  const KernelSpec map = kernel.name == "phi" ? kernel : KernelSpec{.name = "phi", .parameters = {}};
  const MapSource& source = source_of(map);
  return {source.name == "default" ? "my-map" : source.name, source.text};
}

void show_map_editor(Editor& editor) {
  const std::string panel = "own_kernel";
  if (!editor.panel_open(panel)) show_panel(editor, panel, "Your kernel", true);
  editor.emit(BringToFront{panel});
}

void offer_map(Editor& editor, MapText source) {
  show_map_editor(editor);
  editor.offered_map = std::move(source);
  editor.draw_now();
}

bool open_map(Editor& editor, const std::filesystem::path& file) {
  try {
    if (!editor.document().scene().model)
      throw Error(file.string(), "a kernel needs a model that runs it", "open a model first");
    offer_map(editor, {file.stem().string(), read_text_file(file)});
    return true;
  } catch (const Error& error) {
    editor.say(Severity::error, error.what());
    return false;
  }
}

void save_map(Editor& editor, const std::filesystem::path& file) {
  try {
    const MapText source = editor.typed_map;
    write_file_atomically(file, source.text);
    editor.say(Severity::note, "Saved " + file.string());
    if (const std::string name = file.stem().string(); name != source.name)
      offer_map(editor, {name, source.text});
  } catch (const Error& error) {
    editor.say(Severity::error, error.what());
  }
}

void set_map(Editor& editor, const KernelSpec& kernel, bool everywhere, const std::string& gesture) {
  const KernelSpec before = selected_kernel(editor.document());
  editor.change(
      fmt::format("Layer {} to {}", editor.document().scene().layer, kernel.label()),
      [&](Document& document) {
        Schedule& schedule = edited_schedule(document);
        const auto layer = static_cast<std::size_t>(document.scene().layer);
        if (layer >= schedule.layers.size()) return;
        if (everywhere) std::ranges::replace(schedule.layers, before, kernel);
        schedule.layers[layer] = kernel;
      },
      gesture);
}

} // namespace hydrascope::app
