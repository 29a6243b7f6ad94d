// The guided tour is walked through as a new user would.
#include <string_view>

#include "app/actions/tour.h"
#include "app/document/edits.h"
#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

namespace {

std::size_t step() { return application().overlays().tour ? application().overlays().tour->step : 0; }
bool done() { return application().overlays().tour && application().overlays().tour->done; }

// Goes on by the button; before that the step must have seen that it was done.
void next(ImGuiTestContext* context) {
  context->Yield(2);
  IM_CHECK(done());
  context->ItemClick("//###tour/Next");
  context->Yield(2);
  IM_CHECK(!done());
}

void steps_notice_what_was_done(ImGuiTestContext* context) {
  start_over(context);
  IM_CHECK(application().run("help.tour"));
  context->Yield(2);
  IM_CHECK_EQ(step(), 1U);
  IM_CHECK(!done());
  IM_CHECK(application().run("file.example.coffee"));
  next(context);
  settle(context);
  context->ItemClick("//###focus/photograph");
  next(context);
  settle(context);
  context->ItemClick("//###kernels/**/$$11/hydra-cosine");
  next(context);
  settle(context);
  context->KeyPress(ImGuiKey_D);
  next(context);
  context->ItemClick("//###weights/extent/all heads");
  next(context);
  context->ItemClick("//###input/kind/Sentence");
  next(context);
  settle(context);
  IM_CHECK(application().run("file.export.focus"));
  next(context);
  IM_CHECK_EQ(step(), tour_steps().size() - 1);
  context->ItemClick("//###tour/Done");
  context->Yield(2);
  IM_CHECK(!application().overlays().tour);
  IM_CHECK(editor().settings().tour_seen);
  start_over(context);
}

void goes_back_and_ends(ImGuiTestContext* context) {
  start_over(context);
  editor().emit(GoToTourStep{0});
  context->Yield(2);
  IM_CHECK(!editor().settings().tour_seen);
  context->ItemClick("//###tour/Show me around");
  context->Yield(2);
  context->ItemClick("//###tour/Next"); // nobody has to do what a step asks for
  context->Yield(2);
  IM_CHECK_EQ(step(), 2U);
  context->ItemClick("//###tour/Back");
  context->Yield(2);
  IM_CHECK_EQ(step(), 1U);
  context->ItemClick("//###tour/End");
  context->Yield(2);
  IM_CHECK(!application().overlays().tour);
  IM_CHECK(editor().settings().tour_seen);
  start_over(context);
}

void names_shortcuts_that_exist(ImGuiTestContext*) {
  for (const TourStep& each : tour_steps()) {
    const std::string_view text = each.text;
    for (std::size_t open = text.find('{'); open != std::string_view::npos; open = text.find('{', open + 1)) {
      const auto id = text.substr(open + 1, text.find('}', open) - open - 1);
      const Action* action = find_action(application().actions(), id);
      IM_CHECK(action != nullptr);
      IM_CHECK(tour_text(each, application().actions()).find(action->shortcut) != std::string::npos);
    }
  }
}

} // namespace

void register_tour_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "tour", "steps_notice_what_was_done")->TestFunc = steps_notice_what_was_done;
  IM_REGISTER_TEST(engine, "tour", "goes_back_and_ends")->TestFunc = goes_back_and_ends;
  IM_REGISTER_TEST(engine, "tour", "names_shortcuts_that_exist")->TestFunc = names_shortcuts_that_exist;
}

} // namespace hydrascope::app::window_tests
