// No frame is drawn while nothing changes: counted in the program's own loop.
#include <string>

#include <fmt/format.h>

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
  return {};
}

} // namespace hydrascope::app::window_tests
