#include "app/document/edits.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace hydrascope::app {

namespace {

void set_input(Document& document, RunInput input) {
  document.kind = std::holds_alternative<ImageInput>(input) ? InputKind::image : InputKind::text;
  Scene& scene = document.scene();
  if (is_capture(scene)) { // it has but one input
    scene.model.reset();
    take_bundled_model(scene, document.kind);
  }
  scene.input = std::move(input);
  forget_tokens(scene);
}

} // namespace

void open_image(Editor& editor, ImageInput image) {
  editor.change("Open " + image.name, [&](Document& document) {
    if (document.folder && !find_picture(*document.folder, image.path)) document.folder.reset();
    set_input(document, std::move(image));
    document.scene().target = {};
  });
}

void open_in_folder(Editor& editor, ImageInput image, const std::shared_ptr<const PictureFolder>& folder) {
  editor.change("Open " + image.name, [&](Document& document) {
    // The target stays while stepping through a folder.
    if (document.folder != folder) document.scene_of(InputKind::image).target = {};
    document.folder = folder;
    set_input(document, std::move(image));
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
  std::error_code none; // such a path stays unchanged
  if (const auto path = std::filesystem::absolute(recent.value, none); !recent.is_text && !none)
    recent.value = path.lexically_normal().string();
  editor.change_settings([&](Settings& settings) {
    std::erase(settings.recent, recent);
    settings.recent.insert(settings.recent.begin(), recent);
    if (settings.recent.size() > most) settings.recent.resize(most);
  });
}

void open_text(Editor& editor, const std::string& text, const std::optional<std::string>& pair) {
  editor.change("Open text", [&](Document& document) { set_input(document, TextInput{text, pair}); });
}

void type_text(Editor& editor, const std::string& text, const std::optional<std::string>& pair, int burst) {
  editor.change(
      "Type text",
      [&](Document& document) {
        const InputKind shown = document.kind; // another kind may have been chosen since
        set_input(document, TextInput{text, pair});
        document.kind = shown;
      },
      fmt::format("type {}", burst));
}

void show_kind(Editor& editor, InputKind kind) {
  editor.change(kind == InputKind::image ? "Show the photograph" : "Show the sentence",
                [&](Document& document) { document.kind = kind; });
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
  editor.change("Reset query", [](Document& document) {
    document.scene().default_query = true;
    document.scene().query.reset();
  });
}

std::string why_not_hidden(const Editor& editor, std::int64_t token) {
  const Document& document = editor.document();
  const Scene& scene = document.scene();
  if (!scene.model || !scene.input) return "nothing is open";
  if (is_capture(scene)) return "a capture holds no model that could run without it";
  if (scene.model->causal)
    return token + 1 == editor.status().tokens ? "the next token is predicted from the last one" : "";
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
      if (!there && hidden && why_not_hidden(editor, token).empty()) tokens.insert(at, token);
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
  if (kind == MapKind::focus && is_capture(editor.document().scene()))
    return editor.say(Severity::note, "A focus map needs the model itself: a capture holds attention alone");
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
