#include "app/state/document_json.h"

#include <nlohmann/json.hpp>

#include "app/state/document_form.h"

namespace hydrascope::app {

namespace {

constexpr const char* dialog_name(Dialog dialog) {
  switch (dialog) {
    case Dialog::none: return "none";
    case Dialog::open_file: return "open_file";
    case Dialog::open_folder: return "open_folder";
    case Dialog::open_model: return "open_model";
    case Dialog::open_adapter: return "open_adapter";
    case Dialog::open_session: return "open_session";
    case Dialog::save_session: return "save_session";
    case Dialog::locate: return "locate";
    case Dialog::export_figure: return "export_figure";
    case Dialog::export_everything: return "export_everything";
    case Dialog::training_data: return "training_data";
    case Dialog::training_validation: return "training_validation";
    case Dialog::training_output: return "training_output";
  }
  return "none";
}

} // namespace

Json document_json(const Document& document) {
  Writing writing;
  writing.reference = [](const std::filesystem::path& path) { return path.string(); };
  writing.hash = [](const std::filesystem::path&) { return std::string(); };
  return Form<Document>::write(document, writing);
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
                   {"start_training", static_cast<int>(shell.start_training)},
                   {"pause_training", shell.pause_training},
                   {"stop_training", shell.stop_training},
                   {"show_training", shell.show_training},
                   {"dialog", dialog_name(shell.dialog)},
                   {"panel_to_export", shell.panel_to_export},
                   {"copy_input", shell.copy_input},
                   {"paste", shell.paste},
                   {"panel_to_copy", shell.panel_to_copy},
                   {"numbers_to_copy", shell.numbers_to_copy},
                   {"new_session", shell.new_session},
                   {"save_session", shell.save_session},
                   {"reopen_last", shell.reopen_last},
                   {"export_everything", shell.export_everything},
                   {"panel_to_focus", shell.panel_to_focus}};
  return json;
}

} // namespace hydrascope::app
