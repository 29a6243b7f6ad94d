// The panel "Your kernel": a map typed there becomes the layer's kernel, and what is wrong with it is said.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

#include "app/document/edits.h"
#include "app/document/session_edits.h"
#include "engine/attention/own/map_source.h"
#include "engine/base/paths.h"
#include "engine/run/quantities/weights.h"
#include "tests/support/checkout.h"
#include "tests/window/harness.h"
#include "tests/window/screenshot.h"

namespace hydrascope::app::window_tests {

namespace {

// Without a newline at its end, where the tests type. The editor's text has one.
const std::string squares = "import torch\n\n\ndef phi(x):\n    return x * x * 1.5";
std::string as_edited(const std::string& source) { return source.ends_with('\n') ? source : source + "\n"; }
const std::string misspelt = "import torch\n\n\ndef phi(x):\n    return torch.rellu(x)\n";

KernelSpec kernel_of_layer() { return selected_kernel(document()); }

// Waits for what a check that was asked for says.
void wait_for_check(ImGuiTestContext* context, std::uint64_t seen) {
  while (editor().map_report.number == seen && !context->IsError()) context->Yield();
  settle(context);
}

// The panel in front, with this source in it and checked.
void open_source(ImGuiTestContext* context, const MapText& source) {
  const std::uint64_t seen = editor().map_report.number;
  offer_map(editor(), source);
  context->Yield(2);
  wait_for_check(context, seen);
  while (editor().map_report.source.text != as_edited(source.text) && !context->IsError()) context->Yield();
  settle(context);
  context->SetRef("//###own_kernel");
}

// The caret at the end of the source, by a click and Ctrl+End.
void go_to_end(ImGuiTestContext* context) {
  const ImGuiTestItemInfo info = context->WindowInfo("##source");
  IM_CHECK(info.Window != nullptr);
  context->MouseMoveToPos(info.Window->Rect().GetCenter());
  context->MouseClick(ImGuiMouseButton_Left);
  context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_End);
}

void type_at_end(ImGuiTestContext* context, const char* letters) {
  std::string wanted = editor().typed_map.text;
  wanted.insert(wanted.size() - 1, letters);
  go_to_end(context);
  context->KeyChars(letters);
  while (editor().map_report.source.text != wanted && !context->IsError()) context->Yield();
  settle(context);
}

std::vector<float> weights_of(const KernelSpec& kernel) {
  const auto found = find(results(), WeightsKey{.layer = document().scene().layer, .kernel = kernel});
  return found ? found.result->weights.values : std::vector<float>();
}

// As other tests expect it: the focus map is in front.
void finish(ImGuiTestContext* context) {
  start_over(context);
  editor().emit(BringToFront{"focus"});
  settle(context);
}

void a_map_is_typed_for_a_layer(ImGuiTestContext* context) {
  start_over(context);
  select_layer(editor(), 5);
  set_layer_kernel(editor(), 5, elu);
  const Document before = copy_of_document();
  show_map_editor(editor());
  settle(context);
  context->SetRef("//###own_kernel");
  context->ItemClick("###type");
  while (kernel_of_layer().name != "phi" && !context->IsError()) context->Yield();
  settle(context);
  IM_CHECK_STR_EQ(kernel_of_layer().label().c_str(), "phi elu"); // the source of what ran there
  IM_CHECK_STR_EQ(editor().typed_map.text.c_str(), bundled_map("elu").c_str());
  IM_CHECK_STR_EQ(results().any()->layers[5].kernel.text().c_str(), kernel_of_layer().text().c_str());

  open_source(context, {"squares", squares});
  const KernelSpec first = kernel_of_layer();
  const std::vector<float> first_weights = weights_of(first);
  IM_CHECK(!first_weights.empty());
  type_at_end(context, " + 1"); // changes the weights
  const KernelSpec second = kernel_of_layer();
  IM_CHECK(second != first);
  IM_CHECK_STR_EQ(second.label().c_str(), "phi squares");
  IM_CHECK_STR_EQ(text_of_source(second).c_str(), as_edited(squares + " + 1").c_str());
  const std::vector<float> second_weights = weights_of(second);
  IM_CHECK_EQ(second_weights.size(), first_weights.size());
  IM_CHECK(second_weights != first_weights);
  IM_CHECK_STR_EQ(results().any()->layers[5].kernel.text().c_str(), second.text().c_str());

  // What was typed in one go is one step, and undo shows the text of before.
  editor().undo();
  settle(context);
  IM_CHECK(kernel_of_layer() == first);
  IM_CHECK_STR_EQ(editor().typed_map.text.c_str(), as_edited(squares).c_str());
  editor().redo();
  settle(context);
  IM_CHECK_STR_EQ(editor().typed_map.text.c_str(), as_edited(squares + " + 1").c_str());
  for (int step = 0; step < 3 && kernel_of_layer() != elu; ++step) editor().undo();
  IM_CHECK(kernel_of_layer() == elu);
  IM_CHECK(document().scene() == before.scene());
  finish(context);
}

void a_kernel_chosen_during_the_check_stays(ImGuiTestContext* context) {
  start_over(context);
  select_layer(editor(), 5);
  const std::uint64_t checks = editor().map_report.number;
  editor().emit(CheckMap{.name = "squares", .text = squares, .apply = true});
  context->Yield(); // it runs
  set_layer_kernel(editor(), 5, elu);
  while (editor().map_report.number == checks && !context->IsError()) context->Yield();
  context->Yield(2);
  IM_CHECK(kernel_of_layer() == elu);
  finish(context);
}

void an_error_keeps_the_last_map(ImGuiTestContext* context) {
  start_over(context);
  open_source(context, {"squares", squares});
  const KernelSpec good = kernel_of_layer();
  IM_CHECK_STR_EQ(good.name.c_str(), "phi");
  type_at_end(context, ")");
  IM_CHECK(kernel_of_layer() == good);
  const MapReport& report = editor().map_report;
  IM_CHECK(report.result.problem.has_value());
  IM_CHECK_EQ(report.result.problem->line, 5);
  IM_CHECK_STR_EQ(editor().typed_map.text.c_str(), as_edited(squares + ")").c_str()); // is not lost

  open_source(context, {"misspelt", misspelt});
  IM_CHECK(kernel_of_layer() == good);
  IM_CHECK_EQ(report.result.problem->line, 5);
  IM_CHECK(report.result.problem->reason.find("rellu") != std::string::npos);
  between_frames(context, [] { // for the eye, in the build folder
    if (!application().display().description().starts_with("off screen")) return;
    const auto folder = test::program().parent_path() / "window_screenshots" / "own_kernel";
    std::filesystem::create_directories(folder);
    write_png(folder / "error.png", application().read_frame());
  });
  // Another layer shows its own, and this one what was typed.
  const int layer = document().scene().layer;
  select_layer(editor(), 2);
  settle(context);
  IM_CHECK(kernel_of_layer() == softmax);
  IM_CHECK(context->ItemExists("###type"));
  select_layer(editor(), layer);
  wait_for_check(context, report.number);
  IM_CHECK_STR_EQ(editor().typed_map.text.c_str(), misspelt.c_str());
  IM_CHECK_EQ(report.result.problem->line, 5);

  // Wrong shapes are found, too.
  open_source(context, {"narrow", "import torch\n\n\ndef phi(x):\n    return x.sum(-1)\n"});
  IM_CHECK(report.result.problem.has_value());
  IM_CHECK(kernel_of_layer() == good);
  open_source(context, {"squares", squares + "\n"});
  IM_CHECK(!report.result.problem.has_value());
  IM_CHECK(kernel_of_layer() == report.result.kernel);
  finish(context);
}

void only_a_map_that_compiles_goes_to_every_layer(ImGuiTestContext* context) {
  start_over(context);
  select_layer(editor(), 5);
  set_layer_kernel(editor(), 5, elu);
  open_source(context, {"misspelt", misspelt});
  IM_CHECK(kernel_of_layer() == elu);
  const auto disabled = [&] {
    return (context->ItemInfo("**/###every_layer").ItemFlags & ImGuiItemFlags_Disabled) != 0;
  };
  IM_CHECK(disabled()); // it would set elu
  open_source(context, {"squares", squares});
  IM_CHECK_STR_EQ(kernel_of_layer().label().c_str(), "phi squares");
  IM_CHECK(!disabled());
  finish(context);
}

void templates_begin_a_map(ImGuiTestContext* context) {
  start_over(context);
  show_map_editor(editor());
  settle(context);
  context->SetRef("//###own_kernel");
  context->ItemClick("##templates");
  context->ItemClick("//$FOCUSED/hedgehog");
  while (kernel_of_layer().label() != "phi hedgehog" && !context->IsError()) context->Yield();
  settle(context);
  IM_CHECK_STR_EQ(text_of_source(kernel_of_layer()).c_str(), bundled_map("hedgehog").c_str());
  const MapFacts& facts = editor().map_report.result.facts;
  const ModelInfo& model = *document().scene().model;
  const std::int64_t width = model.width / model.heads;
  IM_CHECK_EQ(facts.features, 2 * width);
  IM_CHECK_EQ(facts.parameters, 2 * model.heads * (width * width + width)); // of queries and of keys
  IM_CHECK_EQ(facts.trained, facts.parameters);

  // In every layer, and then changed in all of them.
  context->SetRef("//###own_kernel");
  context->ItemClick("**/###every_layer");
  settle(context);
  open_source(context, {"squares", squares});
  for (const KernelSpec& kernel : document().scene().schedules[0].layers)
    IM_CHECK_STR_EQ(kernel.label().c_str(), "phi squares");
  finish(context);
}

void a_map_is_saved_and_opened(ImGuiTestContext* context) {
  start_over(context);
  open_source(context, {"squares", squares});
  const std::filesystem::path file = fresh_folder("maps") / "cubes.py";
  answer_dialog(file.parent_path() / "cubes"); // without an ending
  context->ItemClick("**/Save…");
  IM_CHECK_STR_EQ(title_of_dialog(context).c_str(), "Save the source");
  while (kernel_of_layer().label() != "phi cubes" && !context->IsError()) context->Yield();
  IM_CHECK_STR_EQ(read_text_file(file).c_str(), as_edited(squares).c_str());

  start_over(context);
  IM_CHECK(kernel_of_layer() == softmax);
  std::ofstream(file) << squares << " * x * x";
  show_map_editor(editor());
  settle(context);
  context->SetRef("//###own_kernel");
  answer_dialog(file);
  context->ItemClick("**/###open_map");
  IM_CHECK_STR_EQ(title_of_dialog(context).c_str(), "Open the source of a kernel");
  while (kernel_of_layer().label() != "phi cubes" && !context->IsError()) context->Yield();
  IM_CHECK_STR_EQ(text_of_source(kernel_of_layer()).c_str(), as_edited(squares + " * x * x").c_str());
  finish(context);
}

void a_session_keeps_the_source(ImGuiTestContext* context) {
  start_over(context);
  open_source(context, {"squares", squares});
  const KernelSpec kernel = kernel_of_layer();
  const std::filesystem::path file = scratch_file("typed-map.json");
  editor().emit(SaveSession{file});
  context->Yield(2);
  while (application().saving() && !context->IsError()) context->Yield();
  const auto written = nlohmann::json::parse(read_text_file(file));
  bool found = false;
  for (const auto& each : written.at("document").at("scenes").at("image").at("schedules").at(0))
    found |= each.is_object() && each.at("source") == as_edited(squares);
  IM_CHECK(found);
  start_over(context);
  IM_CHECK(open_path(editor(), file));
  settle(context);
  IM_CHECK(kernel_of_layer() == kernel);
  IM_CHECK_STR_EQ(editor().typed_map.text.c_str(), as_edited(squares).c_str());
  finish(context);
}

void the_grid_opens_the_editor(ImGuiTestContext* context) {
  start_over(context);
  set_map(editor(), kernel_of_source("squares", squares), false, "");
  settle(context);
  IM_CHECK(!editor().status().panels_in_front.contains("own_kernel"));
  context->SetRef("//###kernels");
  context->ItemClick("map/###source");
  settle(context);
  IM_CHECK(editor().status().panels_in_front.contains("own_kernel"));
  IM_CHECK_STR_EQ(editor().typed_map.text.c_str(), as_edited(squares).c_str());
  finish(context);
}

// Where the message below a wrong line begins: the left of what is drawn in the errors' colour.
float start_of_message(const ImGuiWindow& window) {
  float left = FLT_MAX;
  for (const ImDrawVert& vertex : window.DrawList->VtxBuffer)
    if (vertex.col == theme::packed(theme::red)) left = std::min(left, vertex.pos.x);
  return left;
}

void an_error_stays_beside_the_line_numbers(ImGuiTestContext* context) {
  start_over(context);
  show_map_editor(editor());
  settle(context);
  // Its first line is wrong, and a later one wider than the panel.
  open_source(context, {"wide", "from here\n\n# " + std::string(400, 'x') + "\n"});
  IM_CHECK(editor().map_report.result.problem.has_value());
  IM_CHECK_EQ(editor().map_report.result.problem->line, 1);
  ImGuiWindow* const window = context->WindowInfo("##source").Window;
  IM_CHECK(window != nullptr);
  const float before = start_of_message(*window);
  IM_CHECK_LT(before, window->Rect().GetCenter().x);
  context->ScrollToX(window->ID, 300);
  context->Yield(2);
  IM_CHECK_GT(window->Scroll.x, 200.0f);
  IM_CHECK_LT(std::abs(start_of_message(*window) - before), 1.5f); // a letter begins at a whole pixel
  finish(context);
}

} // namespace

void register_own_kernel_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "own_kernel", "a_map_is_typed_for_a_layer")->TestFunc = a_map_is_typed_for_a_layer;
  IM_REGISTER_TEST(engine, "own_kernel", "a_kernel_chosen_during_the_check_stays")->TestFunc =
      a_kernel_chosen_during_the_check_stays;
  IM_REGISTER_TEST(engine, "own_kernel", "an_error_keeps_the_last_map")->TestFunc =
      an_error_keeps_the_last_map;
  IM_REGISTER_TEST(engine, "own_kernel", "only_a_map_that_compiles_goes_to_every_layer")->TestFunc =
      only_a_map_that_compiles_goes_to_every_layer;
  IM_REGISTER_TEST(engine, "own_kernel", "templates_begin_a_map")->TestFunc = templates_begin_a_map;
  IM_REGISTER_TEST(engine, "own_kernel", "a_map_is_saved_and_opened")->TestFunc = a_map_is_saved_and_opened;
  IM_REGISTER_TEST(engine, "own_kernel", "a_session_keeps_the_source")->TestFunc = a_session_keeps_the_source;
  IM_REGISTER_TEST(engine, "own_kernel", "an_error_stays_beside_the_line_numbers")->TestFunc =
      an_error_stays_beside_the_line_numbers;
  IM_REGISTER_TEST(engine, "own_kernel", "the_grid_opens_the_editor")->TestFunc = the_grid_opens_the_editor;
}

} // namespace hydrascope::app::window_tests
