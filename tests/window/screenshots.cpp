// Every panel on a photograph and on a sentence, in both themes, at one and at two pixels a point: pictures
// for the eye, kept in the build folder. What can be asserted is that each panel was drawn and is not one
// flat colour.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "app/document/edits.h"
#include "app/document/layouts.h"
#include "tests/support/checkout.h"
#include "tests/support/hub_server.h"
#include "tests/window/harness.h"
#include "tests/window/screenshot.h"
#include "tests/window/training_toy.h"

namespace hydrascope::app::window_tests {

namespace {

constexpr int width = 1600, height = 1000; // points

struct Look {
  ThemeChoice theme = ThemeChoice::dark;
  int scale = 1;

  std::filesystem::path folder() const {
    return test::program().parent_path() / "window_screenshots" /
           fmt::format("{}-{}x", theme == ThemeChoice::dark ? "dark" : "light", scale);
  }
};

bool flat(const Image& image) {
  for (std::size_t i = 3; i < image.rgb.size(); ++i) {
    if (image.rgb[i] != image.rgb[i % 3]) return false;
  }
  return true;
}

Image frame(ImGuiTestContext* context) {
  Image image;
  between_frames(context, [&] { image = application().read_frame(); });
  return image;
}

void keep_panel(const Look& look, const Image& window, const std::string& panel, const std::string& input) {
  const Image picture = cut_out(window, *application().panel_rectangle(panel));
  IM_CHECK_NO_RET(!flat(picture));
  write_png(look.folder() / fmt::format("{}-{}.png", panel, input), picture);
}

// Those that can be seen at once out of one frame, then the tabs behind them one by one.
void keep_panels(ImGuiTestContext* context, const Look& look, const std::string& input) {
  const Image window = frame(context);
  std::vector<std::string> behind;
  for (const PanelName& panel : application().panels()) {
    if (application().panel_rectangle(panel.id)) {
      keep_panel(look, window, panel.id, input);
    } else {
      behind.push_back(panel.id);
    }
  }
  for (const std::string& panel : behind) {
    editor().emit(BringToFront{panel});
    settle(context);
    IM_CHECK(application().panel_rectangle(panel).has_value());
    keep_panel(look, frame(context), panel, input);
  }
}

// What lies over the panels.
void keep_overlays(ImGuiTestContext* context, const Look& look) {
  const auto keep = [&](const std::string& name) {
    context->Yield(3);
    write_png(look.folder() / ("over-" + name + ".png"), frame(context));
  };
  Overlays& overlays = application().overlays();
  overlays[Overlay::palette] = true;
  keep("palette");
  overlays = {};
  overlays[Overlay::help] = true;
  keep("help");
  overlays = {};
  overlays[Overlay::gallery] = true;
  keep("gallery");
  overlays = {};
  overlays[Overlay::shortcuts] = true;
  keep("shortcuts");
  overlays = {};
  overlays[Overlay::save_layout] = true;
  editor().say(Severity::note, "Written: focus.pdf");
  for (int i = 0; i < 3; ++i)
    editor().say(Severity::error, "picture.png: is damaged at byte 8; open another picture");
  keep("messages");
  overlays = {};
  context->MenuAction(ImGuiTestAction_Hover, "//##MainMenuBar/Edit/Preferences/###view.larger");
  keep("menu");
  context->KeyPress(ImGuiKey_Escape, 2);
}

// Times of layers with A, B and their difference, parameters of kernels, and some points of time against N.
void keep_measurements(ImGuiTestContext* context, const Look& look) {
  show_kind(editor(), InputKind::image);
  context->MouseMoveToPos(ImVec2(1, 1)); // no tooltip in the pictures
  application().run("view.layout.measure");
  set_layer_kernel(editor(), 10, {.name = "hydra-cosine", .parameters = {}});
  set_layer_kernel(editor(), 11, {.name = "linear-cosine", .parameters = {{"heads", "48"}}});
  settle(context);
  application().run("model.time_passes");
  settle(context);
  application().run("model.measure_scaling");
  constexpr std::size_t some = 15; // of three kernels
  while (editor().scaling.points.size() < some && !context->IsError()) context->Yield();
  application().run("model.stop_scaling");
  context->Yield(4);
  write_png(look.folder() / "measured.png", frame(context));
  context->WindowFocus("//###roofline");
  context->Yield(4);
  keep_panel(look, frame(context), "roofline", "measured");
  change_view(editor(), "A - B", [](ViewOptions& view) { view.shown = Shown::difference; });
  settle(context);
  application().run("model.time_passes");
  settle(context);
  keep_panel(look, frame(context), "timing", "difference");
  change_view(editor(), "A", [](ViewOptions& view) { view.shown = Shown::a; });
  set_layer_kernel(editor(), 11, {.name = "hedgehog-softmax", .parameters = {{"bias", "0"}}});
  set_layer_kernel(editor(), 4, {.name = "cosformer", .parameters = {{"m", "20"}}});
  settle(context);
  keep_panel(look, frame(context), "kernels", "cannot-run");
}

void begin(ImGuiTestContext* context, const Look& look) {
  start_over(context);
  std::filesystem::create_directories(look.folder());
  editor().change_settings([&](Settings& settings) {
    settings.theme = look.theme;
    settings.scale = look.scale;
  });
  resize(context, width * look.scale, height * look.scale);
}

// Muted heads, heads like one of them, and the deletion curves of A and B.
void take_heads(ImGuiTestContext* context, const Look& look) {
  begin(context, look);
  editor().emit(ResetLayout{});
  change_view(editor(), "B", [](ViewOptions& view) { view.shown = Shown::b; });
  apply_preset(editor(), Strategy::back, 2, {.name = "hydra-cosine", .parameters = {}});
  select_cell(editor(), 11, 3);
  mute_layer(editor(), 7, true);
  mute_head(editor(), {9, 1}, true);
  change_view(editor(), "All", [](ViewOptions& view) {
    view.shown = Shown::all;
    view.all_heads = true;
    view.value_weighted = true;
  });
  for (const char* panel : {"similar", "deletion"}) {
    settle(context);
    editor().emit(BringToFront{panel});
  }
  settle(context);
  context->ItemClick("//###deletion/steps/5 steps");
  context->ItemClick("//###deletion/###measure");
  context->MouseMoveToPos(ImVec2(1, 1));
  settle(context);
  write_png(look.folder() / "heads.png", frame(context));
  keep_panel(look, frame(context), "deletion", "measured");
  resize(context, width, height);
  start_over(context);
}

// On a laptop: the menu of devices, a run on one of them, and About. The fake device stands for a GPU.
void take_devices(ImGuiTestContext* context, const Look& look) {
  begin(context, look);
  constexpr int laptop_width = 1280, laptop_height = 720;
  resize(context, laptop_width, laptop_height);
  const auto keep = [&](const char* name) {
    context->Yield(3);
    write_png(look.folder() / (std::string("devices-") + name + ".png"), frame(context));
  };
  open_model(editor(), (test::source_folder() / "tests/golden/models/deit").string());
  choose_device(editor(), "fake:0");
  settle(context);
  for (const Action& action : application().actions()) {
    if (!action.id.starts_with("model.device.")) continue;
    const std::string entry = "//##MainMenuBar/Model/Device/###" + action.id;
    context->MenuAction(ImGuiTestAction_Hover, entry.c_str());
    keep(("menu-" + action.id.substr(13, 4)).c_str());
    context->KeyPress(ImGuiKey_Escape, 3);
  }
  context->MouseMoveToPos(ImVec2(1, 1));
  keep("run");
  context->MouseMoveToPos(ImVec2(laptop_width - 100, laptop_height - 12));
  keep("numbers");
  context->MouseMoveToPos(ImVec2(1, 1));
  application().overlays()[Overlay::about] = true;
  keep("about");
  resize(context, width, height);
  start_over(context);
}

// A model on its way from the hub.
void take_get_model(ImGuiTestContext* context, const Look& look) {
  begin(context, look);
  test::HubServer server;
  const test::ScopedEnvironment environment(test::hub_environment(server, scratch_file("hf")));
  const auto model = test::source_folder() / "tests/golden/models/deit";
  server.add_folder("facebook/deit-tiny-patch16-224", model);
  server.add_folder("google/vit-base-patch16-224", model);
  fetch_model("google/vit-base-patch16-224", "main", hub_settings());
  server.misbehave({.holds = true});
  const auto keep = [&](const char* name) {
    context->MouseMoveToPos(ImVec2(1, 1)); // no tooltip in the pictures
    context->Yield(3);
    write_png(look.folder() / (std::string("get-model-") + name + ".png"), frame(context));
  };
  application().run("file.get_model");
  context->Yield(2);
  context->SetRef("//###get_model");
  context->ItemClick("facebook\\/deit-tiny-patch16-224");
  keep("choice");
  context->ItemClick("###go");
  const ModelFetch& fetch = application().model_fetch();
  while (fetch.running() && fetch.progress().received < 10'000 && !context->IsError()) context->Yield();
  keep("running");
  context->ItemClick("###stop");
  context->ItemClick("facebook\\/deit-base-patch16-224");
  context->ItemClick("###go");
  while (fetch.running() && !context->IsError()) context->Yield();
  keep("refused");
  resize(context, width, height);
  start_over(context);
}

// A training as it runs, paused, finished, and one that cannot be.
void take_training(ImGuiTestContext* context, const Look& look) {
  begin(context, look);
  ToyTraining toy(context);
  const auto keep = [&](const char* name) {
    context->MouseMoveToPos(ImVec2(1, 1)); // no tooltip in the pictures
    context->Yield(3);
    write_png(look.folder() / (std::string("training-") + name + ".png"), frame(context));
  };
  const TrainingReport& report = editor().training;
  training_plan().set("epochs", 10'000); // does not end by itself while pictures are taken
  context->Yield(2);
  context->ItemClick("###start");
  while (report.progress.epoch < 3 && report.active()) context->Yield();
  keep("running");
  context->ItemClick("###pause");
  while (report.active() && !(report.paused && report.waiting)) context->Yield();
  settle(context);
  keep("paused");
  context->ItemClick("###stop");
  while (report.active()) context->Yield();
  settle(context);
  keep("stopped");
  training_plan().set("epochs", 4);
  context->Yield(2);
  context->ItemClick("###start");
  keep("question");
  context->ItemClick("###question_replace");
  while (report.state != TrainingState::finished && !context->IsError()) context->Yield();
  settle(context);
  keep("finished");
  training_plan().set("output", std::string());
  training_plan().set("data", (toy.folder / "absent.txt").string());
  context->Yield(2);
  context->ItemClick("###start");
  context->Yield(2);
  while (report.active()) context->Yield();
  keep("error");
  editor().training_form.kind = TrainingKind::finetune;
  application().run("view.layout.explore");
  context->Yield(20); // the panels that were in front come there one by one
  editor().emit(BringToFront{"training"});
  settle(context);
  keep("explore");
  show_kind(editor(), InputKind::image);
  application().run("view.layout.train");
  settle(context);
  keep("finetune");
  resize(context, width, height);
  start_over(context);
}

// What a session that is opened on another machine may lack.
void take_missing_files(ImGuiTestContext* context, const Look& look) {
  begin(context, look);
  IncompleteSession waiting;
  waiting.file = "/home/ada/sessions/owls.json";
  waiting.read.missing = {
      {FileKind::picture, "/home/ada/Pictures/a rather long name of a picture of an owl at night.jpg",
       "is not there"},
      {FileKind::model, "/data/models/bert-base-uncased", "is not there"},
      {FileKind::adapter, "/data/adapters/hedgehog-cola.safetensors", "is not there"}};
  waiting.read.notes = {
      "/document/scenes/image/schedules/0/3: “hydra-kosine”: unknown kernel; did you mean "
      "hydra-cosine?; softmax is in its place"};
  editor().incomplete_session = waiting;
  context->MouseMoveToPos(ImVec2(1, 1));
  context->Yield(3);
  write_png(look.folder() / "over-missing-files.png", frame(context));
  resize(context, width, height);
  start_over(context);
}

void take(ImGuiTestContext* context, const Look& look) {
  begin(context, look);
  editor().emit(ResetLayout{});
  context->MouseMoveToPos(ImVec2(1, 1)); // no tooltip in the pictures
  for (const InputKind kind : {InputKind::image, InputKind::text}) {
    const std::string input = kind == InputKind::image ? "photograph" : "sentence";
    show_kind(editor(), kind);
    apply_preset(editor(), Strategy::back, 2, {.name = "hydra-cosine", .parameters = {}});
    settle(context);
    keep_panels(context, look, input);
  }
  if (look.scale == 1) keep_overlays(context, look);
  keep_measurements(context, look);
  // The layouts as a whole.
  for (const LayoutInfo& info : layout_infos()) {
    if (look.scale != 1 && info.id != default_layout) continue;
    show_kind(editor(), info.id == "text" ? InputKind::text : InputKind::image);
    apply_preset(editor(), Strategy::back, 2, {.name = "hydra-cosine", .parameters = {}});
    application().run("view.layout." + info.id);
    settle(context);
    write_png(look.folder() / ("layout-" + info.id + ".png"), frame(context));
  }
  resize(context, width, height);
  start_over(context);
  editor().emit(ResetLayout{});
  context->Yield(3);
}

void register_look(ImGuiTestEngine* engine, const char* name, Look look) {
  IM_REGISTER_TEST(engine, "screenshots", name)->TestFunc = [look](ImGuiTestContext* context) {
    take(context, look);
  };
}

} // namespace

void register_screenshots(ImGuiTestEngine* engine) {
  // A window's own frame cannot be read back where another one covers it, nor be larger than the screen.
  if (!application().display().description().starts_with("off screen")) return;
  register_look(engine, "dark_1x", {ThemeChoice::dark, 1});
  register_look(engine, "light_1x", {ThemeChoice::light, 1});
  register_look(engine, "dark_2x", {ThemeChoice::dark, 2});
  register_look(engine, "light_2x", {ThemeChoice::light, 2});
  for (const Look look : {Look{ThemeChoice::dark, 1}, Look{ThemeChoice::light, 1}})
    IM_REGISTER_TEST(engine, "screenshots",
                     look.theme == ThemeChoice::dark ? "devices_dark_1x" : "devices_light_1x")
        ->TestFunc = [look](ImGuiTestContext* context) { take_devices(context, look); };
  for (const Look look : {Look{ThemeChoice::dark, 1}, Look{ThemeChoice::light, 2}})
    IM_REGISTER_TEST(engine, "screenshots", look.scale == 1 ? "heads_dark_1x" : "heads_light_2x")->TestFunc =
        [look](ImGuiTestContext* context) { take_heads(context, look); };
  for (const Look look : {Look{ThemeChoice::dark, 1}, Look{ThemeChoice::light, 2}})
    IM_REGISTER_TEST(engine, "screenshots",
                     look.scale == 1 ? "missing_files_dark_1x" : "missing_files_light_2x")
        ->TestFunc = [look](ImGuiTestContext* context) { take_missing_files(context, look); };
  for (const Look look : {Look{ThemeChoice::dark, 1}, Look{ThemeChoice::light, 2}})
    IM_REGISTER_TEST(engine, "screenshots", look.scale == 1 ? "training_dark_1x" : "training_light_2x")
        ->TestFunc = [look](ImGuiTestContext* context) { take_training(context, look); };
  for (const Look look : {Look{ThemeChoice::dark, 1}, Look{ThemeChoice::light, 2}})
    IM_REGISTER_TEST(engine, "screenshots", look.scale == 1 ? "get_model_dark_1x" : "get_model_light_2x")
        ->TestFunc = [look](ImGuiTestContext* context) { take_get_model(context, look); };
}

} // namespace hydrascope::app::window_tests
