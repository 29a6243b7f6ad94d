// Figures that leave the window: numbers on the clipboard, everything open as a folder, and the way back from
// a figure to its view.
#include <algorithm>
#include <fstream>

#include <nlohmann/json.hpp>

#include "app/document/edits.h"
#include "app/document/session_edits.h"
#include "app/shell/export_folder.h"
#include "app/shell/window.h"
#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/figures/numbers.h"
#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

namespace {

namespace fs = std::filesystem;

void numbers_are_copied(ImGuiTestContext* context) {
  start_over(context);
  IM_CHECK(application().run("file.copy_numbers.predictions"));
  context->Yield(2);
  std::string text, csv;
  between_frames(context, [&] {
    const char* copied = ImGui::GetClipboardText();
    text = copied == nullptr ? "" : copied;
    csv = csv_text(application().figure_of("predictions").value());
  });
  IM_CHECK(text.starts_with("panel\tkind\ttitle\trow\t"));
  IM_CHECK_EQ(std::ranges::count(text, '\n') + 1, std::ranges::count(csv, '\n')); // without the provenance
  // A label with commas is one cell.
  IM_CHECK_EQ(std::ranges::count(text, '\t'), 8 * std::ranges::count(text, '\n'));
  IM_CHECK(text.find('"') == std::string::npos);
  start_over(context);
}

// It is on the screen, and the figure says by name what it shows.
void a_picture_that_is_gone(ImGuiTestContext* context) {
  start_over(context);
  const fs::path picture = scratch_file("gone.png"), figure = scratch_file("gone.svg");
  fs::copy_file(example("chelsea"), picture);
  IM_CHECK(open_path(editor(), picture));
  settle(context);
  fs::remove(picture);
  editor().emit(ExportFigure{.panel = "focus", .file = figure});
  context->Yield(3);
  while (editor().status().computing && !context->IsError()) context->Yield();
  IM_CHECK_STR_EQ(last_error().c_str(), "");
  IM_CHECK(read_text_file(figure).find("gone.png") != std::string::npos);
  IM_CHECK(application().run("file.copy_numbers.focus"));
  context->Yield(2);
  IM_CHECK_STR_EQ(last_error().c_str(), "");
  start_over(context);
}

void wait_for_everything(ImGuiTestContext* context) {
  context->Yield(2);
  while (application().everything().busy() && !context->IsError()) context->Yield();
  context->Yield(2);
}

void everything_open(ImGuiTestContext* context) {
  start_over(context);
  IM_CHECK(application().run("view.layout.compare"));
  select_cell(editor(), 11, 2);
  settle(context);
  const std::set<std::string> in_front = editor().status().panels_in_front;
  const Document before = copy_of_document();
  const fs::path folder = scratch_file("everything");
  editor().emit(ExportEverything{folder});
  wait_for_everything(context);
  IM_CHECK_STR_EQ(application().everything().error().c_str(), "");
  IM_CHECK(application().everything().written() == folder);
  IM_CHECK(document() == before);
  context->Yield(12); // one comes to the front in each frame
  IM_CHECK(editor().status().panels_in_front == in_front);
  const std::string page = read_text_file(folder / "index.html");
  for (const char* panel : {"focus", "weights", "predictions", "layers", "entropy", "kl"}) {
    for (const char* ending : {".svg", ".pdf", ".png", ".csv"}) {
      IM_CHECK_GT(fs::file_size(folder / (std::string(panel) + ending)), static_cast<std::uintmax_t>(100));
      IM_CHECK(page.find("\"" + std::string(panel) + ending + "\"") != std::string::npos);
    }
  }
  // It opens offline, and runs nothing.
  for (const char* never : {"http:", "https:", "<script", "url("})
    IM_CHECK(page.find(never) == std::string::npos);
  IM_CHECK(page.find("prefers-color-scheme: dark") != std::string::npos);
  const ReadSession read = read_session(read_text_file(folder / "session.json"), folder / "session.json");
  IM_CHECK(same_content(document(), read.session.document));

  // What is there is not written over: a new folder is made inside.
  editor().emit(ExportEverything{folder});
  wait_for_everything(context);
  IM_CHECK(application().everything().written() == folder / "hydrascope-figures");
  IM_CHECK(fs::exists(folder / "hydrascope-figures" / "index.html"));
  for (const auto& entry : fs::directory_iterator(folder))
    IM_CHECK(entry.path().filename().string().find("figures.") == std::string::npos); // nothing half-written
  bool refused = false;
  try {
    write_export_folder({}, folder);
  } catch (const Error& error) {
    refused = std::string(error.what()).find("not empty") != std::string::npos;
  }
  IM_CHECK(refused);
  start_over(context);
}

void cancelled(ImGuiTestContext* context) {
  start_over(context);
  const fs::path folder = scratch_file("cancelled");
  editor().emit(ExportEverything{folder});
  context->Yield(4);
  IM_CHECK(editor().status().computing);
  IM_CHECK(application().run("model.cancel"));
  wait_for_everything(context);
  IM_CHECK(!fs::exists(folder));
  start_over(context);
}

// Of every format: the figure leads back to what it was exported from.
void figures_lead_back(ImGuiTestContext* context) {
  start_over(context);
  apply_preset(editor(), Strategy::back, 2, {.name = "hydra-cosine", .parameters = {}});
  select_cell(editor(), 11, 2);
  mute_head(editor(), {9, 1}, true);
  hide_tokens(editor(), 40, 2, true);
  settle(context);
  const Document exported = copy_of_document();
  for (const char* ending : {".svg", ".pdf", ".png", ".csv", ".json", ".npy"}) {
    const fs::path file = scratch_file(std::string("entropy") + ending);
    write_figure(application().figure_of("entropy").value(), file);
    start_over_at_once();
    const Document before = copy_of_document();
    IM_CHECK(open_path(editor(), file));
    IM_CHECK(!editor().incomplete_session.has_value());
    IM_CHECK(same_content(exported, document()));
    IM_CHECK(editor().session().file.empty()); // Ctrl+S would not write over the figure
    editor().undo();
    IM_CHECK(document() == before);
    editor().redo();
    settle(context);
    context->Yield(12); // one comes to the front in each frame
    IM_CHECK(application().panel_rectangle("entropy").has_value());
  }
  // A photograph is a photograph.
  start_over(context);
  IM_CHECK(open_path(editor(), example_pictures().front()));
  start_over(context);
}

// As the command line would have written it.
fs::path figure_of_command(const std::string& name, const std::string& command) {
  Figure figure = application().figure_of("entropy").value();
  figure.provenance = nlohmann::json{{"program", "hydrascope"}, {"command", command}}.dump();
  fs::path file = scratch_file(name);
  write_figure(figure, file);
  return file;
}

void commands_lead_to_views(ImGuiTestContext* context) {
  start_over(context);
  editor().emit(BringToFront{"entropy"}); // whose figure the files below begin with
  settle(context);
  change_view(editor(), "Clip at 99 %", [](ViewOptions& view) { view.percentile = true; });
  const Document before = copy_of_document();
  IM_CHECK(open_path(editor(), figure_of_command("words.svg",
                                                 "hydrascope figure weights --text 'a hedgehog' --kernels "
                                                 "softmax,elu --layer 2 --head 3 --query 1 --log")));
  context->Yield(2);
  IM_CHECK_STR_EQ(last_error().c_str(), "");
  const Scene& scene = document().scene();
  IM_CHECK(document().kind == InputKind::text);
  IM_CHECK_STR_EQ(std::get<TextInput>(*scene.input).text.c_str(), "a hedgehog");
  IM_CHECK_EQ(scene.layer, 2);
  IM_CHECK(scene.head.head == 3);
  IM_CHECK(scene.query == 1);
  IM_CHECK_EQ(scene.comparison.size(), 2U);
  IM_CHECK_STR_EQ(scene.comparison.back()->text().c_str(), "elu");
  IM_CHECK(document().view.logarithmic);
  IM_CHECK(!document().view.percentile); // no session could hold both
  settle(context);
  IM_CHECK(application().figure_of("weights").has_value());
  editor().undo();
  IM_CHECK(document() == before);
  settle(context);

  // Weights are dropped as the command says, whatever the window dropped before.
  const std::string rollout = "hydrascope figure rollout --text 'a hedgehog'";
  const fs::path dropping = figure_of_command("dropping.svg", rollout + " --discard 0.25"),
                 whole = figure_of_command("whole.svg", rollout);
  for (const auto& [file, dropped] : {std::pair{dropping, 0.25}, std::pair{whole, 0.0}}) {
    IM_CHECK(open_path(editor(), file));
    context->Yield(2);
    IM_CHECK_STR_EQ(last_error().c_str(), "");
    IM_CHECK(document().view.maps.contains(MapKind::rollout));
    IM_CHECK_EQ(document().view.discard, dropped);
  }
  settle(context);

  // A picture, too, is a view first; its input is found beside it.
  fs::copy_file(example_pictures().front(), scratch_file("beside.png"), fs::copy_options::overwrite_existing);
  IM_CHECK(open_path(editor(), figure_of_command("map.png",
                                                 "hydrascope figure compare --image gone/beside.png "
                                                 "--replace back:2=hydra-cosine")));
  context->Yield(2);
  IM_CHECK_STR_EQ(last_error().c_str(), "");
  IM_CHECK(document().view.shown == Shown::all);
  IM_CHECK_STR_EQ(document().scene().schedules[0].layers.back().text().c_str(), "hydra-cosine");
  IM_CHECK_STR_EQ(document().scene().schedules[1].layers.back().text().c_str(), "softmax");

  settle(context); // there is a figure to write

  // What cannot be followed leaves all as it was.
  const Document shown = copy_of_document();
  for (const auto& [command, why] : {std::pair{"hydrascope figure layers --image gone.png", "gone.png"},
                                     std::pair{"hydrascope figure table --data a.txt", "many inputs"},
                                     std::pair{"hydrascope figure focus --unheard-of", "not understood"}}) {
    IM_CHECK(open_path(editor(), figure_of_command("wrong.csv", command)));
    context->Yield(2);
    IM_CHECK(last_error().find(why) != std::string::npos);
    IM_CHECK(document() == shown);
  }
  start_over(context);
}

} // namespace

void register_export_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "exports", "numbers_are_copied")->TestFunc = numbers_are_copied;
  IM_REGISTER_TEST(engine, "exports", "a_picture_that_is_gone")->TestFunc = a_picture_that_is_gone;
  IM_REGISTER_TEST(engine, "exports", "everything_open")->TestFunc = everything_open;
  IM_REGISTER_TEST(engine, "exports", "cancelled")->TestFunc = cancelled;
  IM_REGISTER_TEST(engine, "exports", "figures_lead_back")->TestFunc = figures_lead_back;
  IM_REGISTER_TEST(engine, "exports", "commands_lead_to_views")->TestFunc = commands_lead_to_views;
}

} // namespace hydrascope::app::window_tests
