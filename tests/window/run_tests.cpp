// Runs that are no longer wanted: stopped by the user, or by what the document has become.
#include "app/state/edits.h"
#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

namespace {

// Long enough that it cannot be over before it is cancelled: all layers anew, with all overviews.
void start_a_long_run(ImGuiTestContext* context) {
  set_all_kernels(editor(), {.name = "hedgehog", .parameters = {}});
  while (!application().coordinator().computing() && !context->IsError()) context->Yield();
}

void cancelled_by_the_user(ImGuiTestContext* context) {
  start_over(context);
  const std::uint64_t before = results().any()->generation;
  start_a_long_run(context);
  IM_CHECK(editor().shell.computing);
  IM_CHECK(application().run("model.cancel"));
  settle(context);
  IM_CHECK(!application().coordinator().computing());
  IM_CHECK_EQ(results().any()->generation, before); // the last good picture stays …
  IM_CHECK(results().stale);                        // … and is not taken for fresh
  IM_CHECK(results().cancelled);
  IM_CHECK(editor().shell.stopped);
  IM_CHECK_STR_EQ(last_error().c_str(), "");

  IM_CHECK(application().run("model.run_again"));
  context->Yield();
  settle(context);
  IM_CHECK(!results().stale);
  IM_CHECK(!results().cancelled);
  IM_CHECK(!editor().shell.stopped);
  IM_CHECK_STR_EQ(results().any()->layers.front().kernel.name.c_str(), "hedgehog");
  start_over(context);
}

void made_pointless_by_undo(ImGuiTestContext* context) {
  start_over(context);
  const std::uint64_t before = results().any()->generation;
  start_a_long_run(context);
  editor().undo();
  settle(context);
  IM_CHECK(!application().coordinator().computing());
  IM_CHECK_EQ(results().any()->generation, before);
  IM_CHECK(!results().stale);
  IM_CHECK(!editor().shell.stopped);
}

} // namespace

void register_run_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "runs", "cancelled_by_the_user")->TestFunc = cancelled_by_the_user;
  IM_REGISTER_TEST(engine, "runs", "made_pointless_by_undo")->TestFunc = made_pointless_by_undo;
}

} // namespace hydrascope::app::window_tests
