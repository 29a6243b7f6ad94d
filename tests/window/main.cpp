// Drives the window with Dear ImGui Test Engine: on the display there is, X11 or Wayland, or off screen
// through EGL. The argument is a filter: names of groups or tests, with commas.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string_view>
#include <utility>

#include <unistd.h>

#include <imgui_internal.h>
#include <imgui_te_exporters.h>
#include <nlohmann/json.hpp>

#include "app/commands/commands.h"
#include "app/document/edits.h"
#include "app/document/session.h"
#include "app/document/session_edits.h"
#include "engine/base/paths.h"
#include "tests/support/checkout.h"
#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

namespace {

Application* the_application = nullptr;
Document* the_start = nullptr;
Settings* the_settings = nullptr;
std::function<void()> the_work; // see between_frames

std::filesystem::path scratch_folder() {
  return std::filesystem::temp_directory_path() /
         ("hydrascope-window-tests-" + std::to_string(static_cast<long>(getpid())));
}

void register_all(ImGuiTestEngine* engine) {
  register_display_tests(engine);
  register_device_tests(engine);
  register_focus_tests(engine);
  register_focus_map_tests(engine);
  register_frame_tests(engine);
  register_input_tests(engine);
  register_hidden_token_tests(engine);
  register_head_tests(engine);
  register_folder_tests(engine);
  register_capture_tests(engine);
  register_get_model_tests(engine);
  register_clipboard_tests(engine);
  register_export_tests(engine);
  register_kernel_tests(engine);
  register_own_kernel_tests(engine);
  register_selection_tests(engine);
  register_shell_tests(engine);
  register_appearance_tests(engine);
  register_session_tests(engine);
  register_session_store_tests(engine);
  register_settings_tests(engine);
  register_layout_tests(engine);
  register_run_tests(engine);
  register_column_tests(engine);
  register_tour_tests(engine);
  register_gallery_tests(engine);
  register_view_tests(engine);
  register_decoder_tests(engine);
  register_timing_tests(engine);
  register_training_tests(engine);
  register_training_option_tests(engine);
  register_action_tests(engine);
  register_text_tests(engine);
  register_screenshots(engine);
  register_soak_tests(engine);
}

ImGuiTestEngine* make_engine() {
  ImGuiTestEngine* engine = ImGuiTestEngine_CreateContext();
  ImGuiTestEngineIO& io = ImGuiTestEngine_GetIO(engine);
  io.ConfigVerboseLevel = ImGuiTestVerboseLevel_Warning;
  io.ConfigVerboseLevelOnError = ImGuiTestVerboseLevel_Info;
  io.ConfigLogToTTY = true;
  io.ConfigNoThrottle = true;
  io.ConfigSavedSettings = false;
  io.ConfigMouseDrawCursor = false;
  io.ConfigWatchdogWarning = 300; // a slow machine is no failure
  io.ConfigWatchdogKillTest = 600;
  return engine;
}

} // namespace

Application& application() { return *the_application; }

void settle(ImGuiTestContext* context) {
  context->Yield(2);
  // Names what a window that never rests shows, before the test engine's own limit ends the test.
  constexpr std::chrono::seconds patience(240);
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!application().settled() && !context->IsError()) {
    if (std::chrono::steady_clock::now() > end)
      IM_ERRORF("the window does not rest in layout %s, computing %d, scale %g, panels in front: %s",
                document().layout.c_str(), static_cast<int>(editor().status().computing),
                editor().status().scale,
                fmt::format("{}", fmt::join(editor().status().panels_in_front, " ")).c_str());
    context->Yield();
  }
  context->Yield(2);
}

void start_over_at_once() {
  Document start = *the_start;
  start.session = editor().add_session({}); // one that no test has saved
  editor().set_initial(std::move(start));
  editor().change_settings([](Settings& settings) { settings = *the_settings; });
  editor().take_commands();
  editor().incomplete_session.reset();
  application().overlays() = {};
  application().dialogs().use_desktop(true);
  if (editor().scaling.running) editor().emit(StopScaling{});
  editor().scaling = {};
  if (editor().folder.running) editor().emit(StopFolder{});
  editor().folder.pictures.clear();
  ++editor().folder.edition;
  editor().writing = {}; // its job stops at the next frame
  if (editor().training.active()) editor().emit(StopTraining{});
  if (!editor().training.active()) editor().training = {};
  editor().training_form = {};
  dismiss_messages(editor());
}

void start_over(ImGuiTestContext* context) {
  start_over_at_once();
  settle(context);
}

void point_at_head(ImGuiTestContext* context, HeadIndex head) {
  const ImRect table = context->ItemInfo("**/table").RectFull;
  const auto hovered = [&](float across, float down) {
    const ImVec2 size = table.GetSize();
    context->MouseMoveToPos({table.Min.x + across * size.x, table.Min.y + down * size.y});
    context->Yield(2);
    return editor().hovered_head();
  };
  // The labels at the table's edges have a room that only its layout knows: look for the row, then the
  // column.
  constexpr int steps = 50;
  const auto share = [](int step) { return static_cast<float>(step) / steps; };
  for (int down = 1; down < steps; ++down) {
    if (const auto found = hovered(0.5f, share(down)); !found || found->layer != head.layer) continue;
    for (int across = 1; across < steps; ++across)
      if (hovered(share(across), share(down)) == head) return;
  }
  IM_ERRORF("no cell of layer %d, head %d", head.layer, head.head);
}

bool is_shown(const char* window) {
  const ImGuiWindow* const found = ImGui::FindWindowByName((std::string("###") + window).c_str());
  return found != nullptr && found->WasActive;
}

// The desktop's file dialogs are a script that stands in zenity's place.
namespace {

void install_dialogs() {
  const auto folder = fresh_folder("bin");
  const auto script = folder / "zenity";
  std::ofstream(script) << "#!/bin/sh\n"
                           "while [ $# -gt 0 ]; do\n"
                           "  [ \"$1\" = --title ] && printf %s \"$2\" > '"
                        << (folder / "title").string()
                        << "'\n  shift\ndone\n"
                           "cat '"
                        << (folder / "answer").string() << "' 2>/dev/null\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const char* const path = std::getenv("PATH");
  setenv("PATH", (folder.string() + ":" + (path == nullptr ? "" : path)).c_str(), 1);
  unsetenv("XDG_SESSION_DESKTOP"); // KDE's have a dialog of their own
}

} // namespace

void answer_dialog(const std::filesystem::path& file) {
  std::ofstream(scratch_folder() / "bin" / "answer") << file.string() << '\n';
}

std::string title_of_dialog(ImGuiTestContext* context) {
  const auto title = scratch_folder() / "bin" / "title";
  constexpr int patience = 5'000;
  for (int i = 0; i < patience && !std::filesystem::exists(title); ++i) context->Yield();
  while (application().dialog() != Dialog::none) context->Yield();
  context->Yield(); // what was chosen is applied
  std::string text = std::filesystem::exists(title) ? read_text_file(title) : std::string();
  std::filesystem::remove(title);
  std::filesystem::remove(scratch_folder() / "bin" / "answer");
  return text;
}

void between_frames(ImGuiTestContext* context, std::function<void()> work) {
  the_work = std::move(work);
  while (the_work) context->Yield();
}

void resize(ImGuiTestContext* context, int width, int height) {
  between_frames(context, [=] { application().display().resize(width, height); });
}

std::vector<double> logits(const RunResult& run) {
  std::vector<double> values(run.predictions.size());
  for (const Prediction& each : run.predictions) values.at(static_cast<std::size_t>(each.index)) = each.logit;
  return values;
}

std::string last_error() {
  for (std::size_t i = editor().messages().size(); i-- > 0;) {
    if (editor().messages()[i].severity == Severity::error) return editor().messages()[i].text;
  }
  return {};
}

void dismiss_messages(Editor& editor) {
  for (std::size_t i = editor.messages().size(); i-- > 0;) editor.dismiss_message(i);
}

std::string written_session(const std::filesystem::path& file) {
  FileHashes hashes;
  std::string text = session_text(present_session(editor(), ""), file.parent_path(), hashes);
  const ReadSession read = read_session(text, file);
  IM_CHECK_RETV(read.missing.empty() && read.notes.empty(), text);
  const std::string read_back = document_json(read.session.document).dump();
  const std::string shown = document_json(document()).dump();
  if (read_back != shown) IM_ERRORF("%s reads back as %s", shown.c_str(), read_back.c_str());
  return text;
}

bool same_content(const Document& left, Document right) {
  right.session = left.session;
  for (std::size_t kind = 0; kind < left.scenes.size(); ++kind) {
    const auto& wanted = left.scenes[kind].input;
    auto& found = right.scenes[kind].input;
    if (!wanted || !found || wanted->index() != found->index()) continue;
    const auto* image = std::get_if<ImageInput>(&*wanted);
    auto* other = std::get_if<ImageInput>(&*found);
    if (image != nullptr && image->image->rgb == other->image->rgb) other->image = image->image;
  }
  if (left.folder && right.folder && left.folder->path == right.folder->path) right.folder = left.folder;
  return left == right;
}

std::filesystem::path scratch_file(const std::string& name) {
  std::filesystem::create_directories(scratch_folder());
  std::filesystem::remove_all(scratch_folder() / name);
  return scratch_folder() / name;
}

std::filesystem::path fresh_folder(const std::string& name) {
  std::filesystem::path folder = scratch_file(name);
  std::filesystem::create_directories(folder);
  return folder;
}

std::filesystem::path golden_decoder() { return test::source_folder() / "tests/golden/decoders/written"; }

void open_decoder(ImGuiTestContext* context, const std::string& text) {
  open_text(editor(), text);
  open_model(editor(), golden_decoder().string());
  editor().change("Kernels of B", [](Document& document) {
    document.scene().schedules[1].layers.assign(3, {.name = "elu", .parameters = {}});
  });
  settle(context);
}

std::filesystem::path example(const std::string& name) {
  const auto pictures = example_pictures();
  const auto found =
      std::ranges::find_if(pictures, [&](const auto& picture) { return picture.stem() == name; });
  return found == pictures.end() ? std::filesystem::path() : *found;
}

int run_all(const char* filter) {
  WindowOptions options;
  options.hidden = std::getenv("DISPLAY") == nullptr && std::getenv("WAYLAND_DISPLAY") == nullptr;
  options.show_figure = show_figure;
  options.settings_file = scratch_file("settings.json"); // a user's own do not belong into a test
  install_dialogs();
  auto running = std::make_unique<Application>(options);
  the_application = running.get();
  Document start = running->editor().document();
  the_start = &start;
  Settings settings = running->editor().settings();
  settings.scale = 1; // whatever this machine's monitor has
  the_settings = &settings;
  std::printf("drawing: %s\n", running->display().description().c_str());

  ImGui::GetIO().MouseDoubleClickTime = 60; // seconds: a frame may take long here
  ImGuiTestEngine* engine = make_engine();
  register_all(engine);
  ImGuiTestEngine_Start(engine, ImGui::GetCurrentContext());
  ImGuiTestEngine_QueueTests(engine, ImGuiTestGroup_Tests, filter, ImGuiTestRunFlags_RunFromCommandLine);
  while (!ImGuiTestEngine_IsTestQueueEmpty(engine)) {
    running->frame([&] { ImGuiTestEngine_PreSwap(engine); });
    ImGuiTestEngine_PostSwap(engine);
    if (the_work) std::exchange(the_work, nullptr)();
    running->display().wait(0);
  }
  ImGuiTestEngineResultSummary summary;
  ImGuiTestEngine_GetResultSummary(engine, &summary);
  std::printf("window tests: %d of %d passed\n", summary.CountSuccess, summary.CountTested);
  start_over_at_once();
  const std::string idle = check_idle_gate(*running);
  std::printf("idle gate: %s\n", idle.empty() ? "passed" : idle.c_str());
  ImGuiTestEngine_Stop(engine);
  running.reset();
  ImGuiTestEngine_DestroyContext(engine);
  const bool restarts = filter == nullptr || std::string_view(filter).starts_with("sessions");
  const std::string restart = restarts ? check_restart(options) : std::string();
  if (restarts) std::printf("restart: %s\n", restart.empty() ? "passed" : restart.c_str());
  std::filesystem::remove_all(scratch_folder());
  const bool passed = summary.CountTested > 0 && summary.CountTested == summary.CountSuccess;
  return passed && idle.empty() && restart.empty() ? 0 : 1;
}

} // namespace hydrascope::app::window_tests

int main(int argc, char** argv) {
  setenv("HYDRASCOPE_HOME", hydrascope::test::source_folder().c_str(), 0);
  setenv("HYDRASCOPE_DEPS", hydrascope::test::deps_folder().c_str(), 0);
  return hydrascope::app::window_tests::run_all(argc > 1 ? argv[1] : nullptr);
}
