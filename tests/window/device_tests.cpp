// Runs on an accelerator, the fake device of tests/support: its menu, results, messages and sessions.
#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "app/document/edits.h"
#include "app/document/session_edits.h"
#include "engine/run/quantities/focus_map.h"
#include "tests/support/checkout.h"
#include "tests/support/fake_device.h"
#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

namespace {

// With a small model, whose runs on the fake device are short.
void start_over_small(ImGuiTestContext* context) {
  start_over_at_once();
  open_model(editor(), (test::source_folder() / "tests/golden/models/deit").string());
  settle(context);
}

void choose(ImGuiTestContext* context, const char* device) {
  IM_CHECK(application().run(std::string("model.device.") + device));
  context->Yield(2);
  settle(context);
}

// The largest difference between two runs' contributions to the selected layer's focus map.
double difference(const RunResult& left, const RunResult& right, int layer) {
  const auto* const one = left.quantities.find(FocusKey{layer});
  const auto* const other = right.quantities.find(FocusKey{layer});
  if (one == nullptr || other == nullptr ||
      one->contributions.values.size() != other->contributions.values.size())
    return 1e9;
  double most = 0;
  for (std::size_t i = 0; i < one->contributions.values.size(); ++i) {
    const auto each =
        std::abs(static_cast<double>(one->contributions.values[i] - other->contributions.values[i]));
    if (std::isnan(each)) return 1e9;
    most = std::max(most, each);
  }
  return most;
}

std::shared_ptr<const RunResult> with_focus_map() {
  return find(results(), FocusKey{document().scene().layer}).run;
}

void menu_chooses(ImGuiTestContext* context) {
  start_over_small(context);
  const Document before = copy_of_document();
  const auto here = with_focus_map();
  IM_CHECK(here != nullptr);
  IM_CHECK_STR_EQ(here->device.c_str(), "cpu");
  context->MenuClick("//##MainMenuBar/Model/Device/###model.device.fake:0");
  context->Yield(2);
  settle(context);
  IM_CHECK_STR_EQ(last_error().c_str(), "");
  IM_CHECK_STR_EQ(document().execution.device.c_str(), "fake:0");
  const auto there = with_focus_map();
  IM_CHECK(there != nullptr);
  IM_CHECK_STR_EQ(there->device.c_str(), "fake:0");
  IM_CHECK_GT(there->device_bytes, 0);
  IM_CHECK_LT(difference(*here, *there, document().scene().layer), 1e-3);
  editor().undo();
  IM_CHECK(document() == before);
  settle(context);
  IM_CHECK_STR_EQ(results().any()->device.c_str(), "cpu");
  editor().redo();
  settle(context);
  IM_CHECK_STR_EQ(results().any()->device.c_str(), "fake:0");
  start_over(context);
}

void menu_says_why_not(ImGuiTestContext* context) {
  start_over_small(context);
  const auto devices = editor().status().devices;
  IM_CHECK(devices != nullptr);
  const Action* const none = find_action(application().actions(), "model.device.none");
  IM_CHECK_EQ(none != nullptr, !devices->no_cuda.empty());
  if (none == nullptr) return;
  const Availability availability = none->enabled(editor());
  IM_CHECK(!availability.ok);
  IM_CHECK_STR_EQ(availability.reason.c_str(), devices->no_cuda.c_str());

  // A session may name a device that this machine lacks. The results stay, and another can be chosen.
  const auto shown = results().any()->generation;
  choose_device(editor(), "cuda:1");
  context->Yield(2);
  settle(context);
  IM_CHECK(last_error().find(devices->no_cuda) != std::string::npos);
  IM_CHECK_EQ(results().any()->generation, shown);
  IM_CHECK(results().stale);
  choose(context, "cpu");
  IM_CHECK(!results().stale);
  start_over(context);
}

// The thread that draws asks nothing of the device while a run on it is under way, nor for its results.
void drawing_leaves_the_device_alone(ImGuiTestContext* context) {
  start_over_small(context);
  between_frames(context, [] { test::watch_this_thread(true); });
  const test::DeviceCounter counter;
  IM_CHECK(application().run("model.device.fake:0"));
  for (const char* panel : {"weights", "tokens", "vectors", "kl", "entropy", "timing", "predictions"})
    editor().emit(BringToFront{panel});
  context->Yield(2);
  settle(context);
  for (const int layer : {0, 1}) {
    select_layer(editor(), layer);
    settle(context);
  }
  between_frames(context, [] { test::watch_this_thread(false); });
  IM_CHECK_STR_EQ(last_error().c_str(), "");
  IM_CHECK_GT(counter.counts().operators, 100);
  IM_CHECK_EQ(counter.counts().of_watched_threads, 0);
  editor().emit(ResetLayout{});
  start_over(context);
}

// What does not fit is refused, whether before it runs or by the device, and the last result stays.
void out_of_memory_keeps_the_last_result(ImGuiTestContext* context) {
  start_over_small(context);
  choose(context, "fake:0");
  const auto shown = results().any()->generation;
  {
    const test::DeviceMemoryLimit limit(0);
    editor().change("A larger picture", [](Document& document) {
      document.execution.image_size = 8 * document.scene().model->image_size;
    });
    context->Yield(2);
    settle(context);
    IM_CHECK(last_error().find("on fake:0; use a smaller") != std::string::npos);
    IM_CHECK_STR_EQ(results().error.c_str(), last_error().c_str());
    IM_CHECK_EQ(results().any()->generation, shown);
    IM_CHECK(results().stale);
    IM_CHECK(!application().coordinator().computing());
  }
  editor().undo();
  context->Yield(2);
  settle(context);
  IM_CHECK(!results().stale);
  IM_CHECK_STR_EQ(results().any()->device.c_str(), "fake:0");
  start_over(context);
}

void sessions_keep_the_device(ImGuiTestContext* context) {
  start_over_small(context);
  choose(context, "fake:0");
  const auto file = scratch_file("on-device.json");
  editor().emit(SaveSession{file});
  context->Yield(2);
  while (application().saving()) context->Yield();
  start_over(context);
  IM_CHECK_STR_EQ(document().execution.device.c_str(), "auto");
  open_session(editor(), file);
  context->Yield(2);
  settle(context);
  IM_CHECK_STR_EQ(document().execution.device.c_str(), "fake:0");
  IM_CHECK_STR_EQ(results().any()->device.c_str(), "fake:0");
  start_over(context);
}

} // namespace

void register_device_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "devices", "menu_chooses")->TestFunc = menu_chooses;
  IM_REGISTER_TEST(engine, "devices", "menu_says_why_not")->TestFunc = menu_says_why_not;
  IM_REGISTER_TEST(engine, "devices", "drawing_leaves_them_alone")->TestFunc =
      drawing_leaves_the_device_alone;
  IM_REGISTER_TEST(engine, "devices", "out_of_memory_keeps_the_last_result")->TestFunc =
      out_of_memory_keeps_the_last_result;
  IM_REGISTER_TEST(engine, "devices", "sessions_keep_them")->TestFunc = sessions_keep_the_device;
}

} // namespace hydrascope::app::window_tests
