// Drives the window with Dear ImGui Test Engine: on the display there is, or off screen through EGL.
#include <cstdio>
#include <cstdlib>
#include <memory>

#include <imgui_te_exporters.h>

#include "app/state/edits.h"
#include "tests/support/checkout.h"
#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

namespace {
Application* the_application = nullptr;
Document* the_start = nullptr;
} // namespace

Application& application() { return *the_application; }

void settle(ImGuiTestContext* context) {
  context->Yield(2);
  while (!application().settled() && !context->IsError()) context->Yield();
  context->Yield(2);
}

void start_over(ImGuiTestContext* context) {
  editor().set_initial(*the_start);
  for (std::size_t i = editor().messages().size(); i-- > 0;) editor().dismiss_message(i);
  settle(context);
}

std::string last_error() {
  for (std::size_t i = editor().messages().size(); i-- > 0;) {
    if (editor().messages()[i].severity == Severity::error) return editor().messages()[i].text;
  }
  return {};
}

std::filesystem::path scratch_file(const std::string& name) {
  const auto folder = std::filesystem::temp_directory_path() / "hydrascope-window-tests";
  std::filesystem::create_directories(folder);
  std::filesystem::remove(folder / name);
  return folder / name;
}

} // namespace hydrascope::app::window_tests

int main(int argc, char** argv) {
  using namespace hydrascope::app;
  setenv("HYDRASCOPE_HOME", hydrascope::test::source_folder().c_str(), 0);
  setenv("HYDRASCOPE_DEPS", hydrascope::test::deps_folder().c_str(), 0);
  WindowOptions options;
  options.hidden = std::getenv("DISPLAY") == nullptr;
  auto running = std::make_unique<Application>(options);
  ImGui::GetIO().IniFilename = nullptr; // a user's layout does not belong into a test
  window_tests::the_application = running.get();
  auto start = running->editor().document();
  window_tests::the_start = &start;
  std::printf("drawing: %s\n", running->display().description().c_str());

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
  window_tests::register_input_tests(engine);
  window_tests::register_kernel_tests(engine);
  window_tests::register_selection_tests(engine);
  window_tests::register_shell_tests(engine);
  ImGuiTestEngine_Start(engine, ImGui::GetCurrentContext());
  ImGuiTestEngine_QueueTests(engine, ImGuiTestGroup_Tests, argc > 1 ? argv[1] : nullptr,
                             ImGuiTestRunFlags_RunFromCommandLine);
  while (!ImGuiTestEngine_IsTestQueueEmpty(engine)) {
    running->frame([&] { ImGuiTestEngine_PreSwap(engine); });
    ImGuiTestEngine_PostSwap(engine);
    running->display().wait(0);
  }
  ImGuiTestEngineResultSummary summary;
  ImGuiTestEngine_GetResultSummary(engine, &summary);
  std::printf("window tests: %d of %d passed\n", summary.CountSuccess, summary.CountTested);
  ImGuiTestEngine_Stop(engine);
  running.reset();
  ImGuiTestEngine_DestroyContext(engine);
  return summary.CountTested > 0 && summary.CountTested == summary.CountSuccess ? 0 : 1;
}
