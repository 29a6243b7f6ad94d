// The guided tour is walked through as a new user would.
#include <string_view>

#include "app/actions/tour.h"
#include "app/document/edits.h"
#include "engine/run/quantities/focus_map.h"
#include "tests/support/hub_server.h"
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
  const test::ScopedEnvironment environment{{{"XDG_DATA_HOME", fresh_folder("tour").string()}}};
  IM_CHECK(application().run("help.tour"));
  context->Yield(2);
  IM_CHECK(application().overlays().tour.has_value());
  IM_CHECK_EQ(step(), 0U);
  IM_CHECK(!done());
  IM_CHECK(application().run("file.example.coffee"));
  next(context);
  settle(context);
  IM_CHECK_EQ(document().scene().layer, document().scene().model->layers - 2);
  context->ItemClick("//###focus/photograph");
  settle(context);
  IM_CHECK(find(results(), FocusKey{document().scene().layer}).result->zero_gradient == false);
  next(context);
  settle(context);
  context->ItemClick("//###kernels/**/$$11/hydra-cosine");
  settle(context);
  IM_CHECK(!done()); // alone it is untrained
  context->ItemClick("//###tour/Replace the kernels");
  settle(context);
  for (const LayerRun& layer : results().any()->layers) IM_CHECK(!layer.untrained);
  next(context);
  settle(context);
  context->KeyPress(ImGuiKey_D);
  next(context);
  context->ItemClick("//###weights/extent/all heads");
  next(context);
  context->ItemClick("//###input/kind/Sentence");
  settle(context);
  IM_CHECK(!done()); // nothing was typed
  context->ItemClick("//###input/##text");
  context->KeyCharsReplace("It slept well");
  const auto typed = [] {
    const auto* const text =
        document().scene().input ? std::get_if<TextInput>(&*document().scene().input) : nullptr;
    return text != nullptr && text->text == "It slept well";
  };
  while (!typed() && !context->IsError()) context->Yield();
  settle(context);
  next(context);
  settle(context);
  IM_CHECK(!done()); // nothing is written by a model of sentences
  const std::string sentences = document().scene().model_folder.string();
  open_decoder(context, "the cat");
  context->ItemClick("//###write/###write");
  while (editor().writing.sides[0].tokens.empty() && !context->IsError()) context->Yield();
  next(context);
  open_model(editor(), sentences);
  settle(context);
  context->ItemClick("//###training/###start");
  while (editor().training.progress.total_step == 0 && editor().training.active()) context->Yield();
  IM_CHECK(!done()); // it has begun
  context->ItemClick("//###training/###stop");
  while (editor().training.active()) context->Yield();
  IM_CHECK_EQ(static_cast<int>(editor().training.state), static_cast<int>(TrainingState::stopped));
  IM_CHECK_GT(editor().training.progress.total_step, 0);
  next(context);
  settle(context);
  IM_CHECK(application().run("file.export.focus")); // cancelled
  title_of_dialog(context);
  context->Yield(4);
  IM_CHECK(!done());
  answer_dialog(scratch_file("tour.pdf"));
  IM_CHECK(application().run("file.export.focus"));
  title_of_dialog(context);
  while (application().exporting()) context->Yield();
  next(context);
  IM_CHECK_EQ(step(), tour_steps().size() - 1);
  context->ItemClick("//###tour/Done");
  context->Yield(2);
  IM_CHECK(!application().overlays().tour);
  IM_CHECK(editor().settings().tour_seen);
  start_over(context);
}

// In the last layer no patch influences the prediction: its map is empty, and the step is not done by it.
void an_empty_map_is_not_done(ImGuiTestContext* context) {
  start_over(context);
  editor().emit(GoToTourStep{1});
  context->Yield(2);
  select_layer(editor(), document().scene().model->layers - 1);
  settle(context);
  context->ItemClick("//###focus/photograph");
  settle(context);
  IM_CHECK(!document().scene().default_query);
  IM_CHECK(!done());
  select_layer(editor(), document().scene().layer - 1);
  settle(context);
  IM_CHECK(done());
  start_over(context);
}

void goes_back_and_ends(ImGuiTestContext* context) {
  start_over(context);
  editor().emit(GoToTourStep{0});
  context->Yield(2);
  IM_CHECK(!editor().settings().tour_seen);
  context->ItemClick("//###tour/Next"); // nobody has to do what a step asks for
  context->Yield(2);
  IM_CHECK_EQ(step(), 1U);
  context->ItemClick("//###tour/Back");
  context->Yield(2);
  IM_CHECK(application().overlays().tour.has_value());
  IM_CHECK_EQ(step(), 0U);
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
      IM_CHECK(tour_text(each, InputKind::image, application().actions()).find(action->shortcut) !=
               std::string::npos);
    }
  }
}

} // namespace

void register_tour_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "tour", "steps_notice_what_was_done")->TestFunc = steps_notice_what_was_done;
  IM_REGISTER_TEST(engine, "tour", "an_empty_map_is_not_done")->TestFunc = an_empty_map_is_not_done;
  IM_REGISTER_TEST(engine, "tour", "goes_back_and_ends")->TestFunc = goes_back_and_ends;
  IM_REGISTER_TEST(engine, "tour", "names_shortcuts_that_exist")->TestFunc = names_shortcuts_that_exist;
}

} // namespace hydrascope::app::window_tests
