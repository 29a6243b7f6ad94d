#include "app/state/document_json.h"

#include <nlohmann/json.hpp>

namespace hydrascope::app {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kind_name(InputKind kind) { return kind == InputKind::image ? "image" : "text"; }

constexpr const char* shown_name(Shown shown) {
  switch (shown) {
    case Shown::a: return "a";
    case Shown::b: return "b";
    case Shown::difference: return "difference";
    case Shown::all: return "all";
  }
  return "a";
}

constexpr const char* target_name(Target::Kind kind) {
  switch (kind) {
    case Target::Kind::predicted: return "predicted";
    case Target::Kind::class_index: return "class_index";
    case Target::Kind::class_name: return "class_name";
    case Target::Kind::similarity: return "similarity";
    case Target::Kind::norm: return "norm";
  }
  return "predicted";
}

constexpr const char* dialog_name(Dialog dialog) {
  switch (dialog) {
    case Dialog::none: return "none";
    case Dialog::open_file: return "open_file";
    case Dialog::open_folder: return "open_folder";
    case Dialog::open_model: return "open_model";
    case Dialog::open_adapter: return "open_adapter";
    case Dialog::export_figure: return "export_figure";
  }
  return "none";
}

Json input_json(const std::optional<RunInput>& input) {
  if (!input) return nullptr;
  if (const auto* image = std::get_if<ImageInput>(&*input)) {
    Json json = {{"name", image->name}, {"path", image->path.string()}};
    if (image->image) json["size"] = {image->image->width, image->image->height};
    return json;
  }
  const auto& text = std::get<TextInput>(*input);
  return {{"text", text.text}, {"pair", text.pair ? Json(*text.pair) : Json(nullptr)}};
}

const char* pairs_name(TokenPairs pairs) {
  switch (pairs) {
    case TokenPairs::a_to_a: return "a_to_a";
    case TokenPairs::a_to_b: return "a_to_b";
    case TokenPairs::b_to_a: return "b_to_a";
    case TokenPairs::b_to_b: return "b_to_b";
    case TokenPairs::all: break;
  }
  return "all";
}

const char* measure_name(ChangeMeasure measure) {
  switch (measure) {
    case ChangeMeasure::ratio: return "ratio";
    case ChangeMeasure::cosine: return "cosine";
    case ChangeMeasure::error: break;
  }
  return "error";
}

Json schedule_json(const Schedule& schedule) {
  Json json = Json::array();
  for (const KernelSpec& kernel : schedule.layers) json.push_back(kernel.text());
  return json;
}

Json scene_json(const Scene& scene) {
  Json json;
  json["input"] = input_json(scene.input);
  json["hidden_tokens"] = scene.hidden_tokens;
  json["muted_heads"] = Json::array();
  for (const HeadIndex& muted : scene.muted_heads) json["muted_heads"].push_back({muted.layer, muted.head});
  json["model"] = scene.model ? Json(scene.model->name) : Json(nullptr);
  json["model_folder"] = scene.model_folder.string();
  json["adapters"] = {{"automatic", scene.adapters.automatic}, {"files", Json::array()}};
  for (const auto& file : scene.adapters.files) json["adapters"]["files"].push_back(file.string());
  json["schedules"] = {schedule_json(scene.schedules[0]), schedule_json(scene.schedules[1])};
  json["layer"] = scene.layer;
  json["head"] = scene.head.text();
  json["query"] = scene.default_query ? Json("default") : (scene.query ? Json(*scene.query) : Json("all"));
  json["key"] = scene.key ? Json(*scene.key) : Json(nullptr);
  json["target"] = {
      {"kind", target_name(scene.target.kind)}, {"index", scene.target.index}, {"text", scene.target.text}};
  json["comparison"] = Json::array();
  for (const auto& kernel : scene.comparison)
    json["comparison"].push_back(kernel ? Json(kernel->text()) : Json(nullptr));
  json["detail_kernel"] = scene.detail_kernel ? Json(scene.detail_kernel->text()) : Json(nullptr);
  return json;
}

Json maps_json(const std::set<MapKind>& maps) {
  Json json = Json::array();
  for (const MapKind kind : maps) json.push_back(map_name(kind));
  return json;
}

Json view_json(const ViewOptions& view) {
  return {{"shown", shown_name(view.shown)},
          {"maps", maps_json(view.maps)},
          {"discard", view.discard},
          {"with_sign", view.with_sign},
          {"interpolation", interpolation_name(view.interpolation)},
          {"opacity", view.opacity},
          {"logarithmic", view.logarithmic},
          {"percentile", view.percentile},
          {"all_heads", view.all_heads},
          {"token_pairs", pairs_name(view.pairs)},
          {"shared_scale", view.shared_scale},
          {"cividis", view.cividis},
          {"value_weighted", view.value_weighted},
          {"teacher_forced", view.teacher_forced},
          {"change_measure", measure_name(view.change_measure)},
          {"special_tokens", view.tokens.special},
          {"whole_words", view.tokens.whole_words}};
}

Json execution_json(const ExecutionOptions& execution) {
  return {{"device", execution.device},
          {"dtype", execution.dtype},
          {"threads", execution.threads},
          {"image_size", execution.image_size ? Json(*execution.image_size) : Json(nullptr)},
          {"seed", execution.seed}};
}

} // namespace

Json document_json(const Document& document) {
  Json json;
  json["kind"] = kind_name(document.kind);
  json["scenes"] = {{"image", scene_json(document.scene_of(InputKind::image))},
                    {"text", scene_json(document.scene_of(InputKind::text))}};
  json["folder"] = document.folder ? Json(document.folder->path.string()) : Json(nullptr);
  json["wrong_first"] = document.wrong_first;
  json["view"] = view_json(document.view);
  json["execution"] = execution_json(document.execution);
  json["layout"] = document.layout;
  json["closed_panels"] = document.closed_panels;
  return json;
}

Json editor_json(const Editor& editor) {
  const Shell& shell = editor.shell;
  Json json;
  json["document"] = document_json(editor.document());
  json["settings"] = Json::parse(settings_text(editor.settings()));
  json["shell"] = {{"quit", shell.quit},
                   {"reset_layout", shell.reset_layout},
                   {"palette_open", shell.palette_open},
                   {"help_open", shell.help_open},
                   {"shortcuts_open", shell.shortcuts_open},
                   {"layout_dialog_open", shell.layout_dialog_open},
                   {"get_model_open", shell.get_model_open},
                   {"tour_step", shell.tour ? Json(shell.tour->step) : Json(nullptr)},
                   {"cancel_runs", shell.cancel_runs},
                   {"run_again", shell.run_again},
                   {"time_passes", shell.time_passes},
                   {"measure_scaling", shell.measure_scaling},
                   {"stop_scaling", shell.stop_scaling},
                   {"dialog", dialog_name(shell.dialog)},
                   {"panel_to_export", shell.panel_to_export},
                   {"copy_input", shell.copy_input},
                   {"paste", shell.paste},
                   {"panel_to_copy", shell.panel_to_copy},
                   {"panel_to_focus", shell.panel_to_focus}};
  return json;
}

} // namespace hydrascope::app
