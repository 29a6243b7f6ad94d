// No frame is drawn while nothing changes: counted in the program's own loop.
#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <imgui_internal.h>

#include "app/document/edits.h"
#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

namespace {

constexpr double pause = 0.02;

// Frames that the program's loop draws while it waits so many times.
int frames_in(Application& application, int waits) {
  int frames = 0;
  for (int i = 0; i < waits; ++i) {
    if (!application.wait(pause)) continue;
    application.frame();
    ++frames;
  }
  return frames;
}

// Whether there comes a time at which the loop waits ten times and draws nothing.
bool comes_to_rest(Application& application) {
  constexpr int patience = 20'000;
  for (int i = 0; i < patience; ++i) {
    if (frames_in(application, 10) == 0) return true;
  }
  return false;
}

// Whether a window is drawn with room for its contents, as a user sees it without moving the mouse.
bool is_drawn(const std::string& name) {
  const ImGuiWindow* const window = ImGui::FindWindowByName(("###" + name).c_str());
  return window != nullptr && window->Active && !window->Hidden &&
         window->ContentSize.y + window->WindowPadding.y <= window->Size.y + 1;
}

// What appears without input is drawn without input.
std::string check_what_appears(Application& application) {
  Editor& editor = application.editor();
  const auto newest = [&] { return fmt::format("message{}", editor.messages().size() - 1); };
  editor.say(Severity::error, "a message that nothing announces");
  if (!comes_to_rest(application)) return "the window draws on after a message";
  if (!is_drawn(newest())) return "a message waits for input";
  for (const std::size_t step : {std::size_t{0}, std::size_t{1}}) { // another card has another height
    editor.emit(GoToTourStep{step});
    if (!comes_to_rest(application)) return "the window draws on beside the tour's card";
    if (!is_drawn("tour")) return fmt::format("card {} of the tour waits for input", step);
  }
  application.overlays().tour.reset();
  editor.emit(ShowOverlay{Overlay::save_layout});
  if (!comes_to_rest(application)) return "the window draws on beside a dialog";
  if (!is_drawn("save_layout")) return "a dialog waits for input";
  application.overlays()[Overlay::save_layout] = false;
  const auto file = scratch_file("idle.svg");
  editor.emit(ExportFigure{.panel = "focus", .file = file});
  if (!comes_to_rest(application)) return "the window draws on after an export";
  if (!std::filesystem::exists(file) || editor.messages().back().text != "Written: " + file.string())
    return "an export waits for input";
  if (!is_drawn(newest())) return "the message on a written file waits for input";
  const auto missing = scratch_file("missing");
  answer_dialog(missing);
  editor.emit(ShowDialog{Dialog::open_folder}); // whose answer cannot be opened
  while (!application.wait(pause)) continue;
  do application.frame();
  while (application.dialog() != Dialog::none);
  if (!comes_to_rest(application)) return "the window draws on after a file dialog";
  if (editor.messages().back().text.find(missing.string()) == std::string::npos)
    return "the last message is not on the chosen file: " + editor.messages().back().text;
  if (!is_drawn(newest())) return "what comes of a file dialog waits for input";
  return {};
}

} // namespace

std::string check_idle_gate(Application& application) {
  if (!comes_to_rest(application)) return "the window draws on though nothing changes";
  if (!application.settled()) return "the window rests before every panel has what it asked for";
  if (const int frames = frames_in(application, 20); frames != 0)
    return fmt::format("{} frames were drawn though nothing changed", frames);

  application.display().wake(); // as the worker does
  if (frames_in(application, 20) == 0) return "a wake-up draws no frame";

  // A change, as an event would bring it: frames while the model runs, and then rest.
  const std::uint64_t before = application.coordinator().results(Side::a).any()->generation;
  set_layer_kernel(application.editor(), 0, {.name = "elu", .parameters = {}});
  application.display().wake();
  if (!comes_to_rest(application)) return "the window draws on after a run";
  if (application.coordinator().results(Side::a).any()->generation == before)
    return "the window rests before the run is shown";

  // A message stands still until it is taken away: there is rest while it is shown.
  application.editor().say(Severity::error, "a message that is seen for some seconds");
  const double said = application.editor().messages().back().seconds;
  application.display().wake();
  constexpr double shown_seconds = 12;
  if (!comes_to_rest(application)) return "the window draws on while a message stands still";
  if (application.editor().clock() > said + shown_seconds)
    return "the window rests only once the message is gone";
  return check_what_appears(application);
}

} // namespace hydrascope::app::window_tests
