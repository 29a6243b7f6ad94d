// Training in the window: from the form to the adapter, with the panels showing the model in training.
#include <algorithm>
#include <fstream>

#include <fmt/format.h>

#include "app/actions/actions.h"
#include "app/document/edits.h"
#include "app/jobs/training_job.h"
#include "app/views/training_view.h"
#include "engine/base/paths.h"
#include "engine/figures/scale.h"
#include "engine/run/quantities/weights.h"
#include "tests/window/harness.h"
#include "tests/window/training_toy.h"

namespace hydrascope::app::window_tests {

namespace {

namespace fs = std::filesystem;

const TrainingReport& report() { return editor().training; }

template <typename Condition>
void wait_until(ImGuiTestContext* context, Condition condition) {
  while (!condition() && !context->IsError()) context->Yield();
}

void wait_for_end(ImGuiTestContext* context) {
  wait_until(context, [] { return !report().active(); });
  settle(context);
}

bool all_hedgehog() {
  return std::ranges::all_of(document().scene().schedules[0].layers,
                             [](const KernelSpec& kernel) { return kernel.name == "hedgehog"; });
}

// What the Weights panel shows of the kernel in training.
std::vector<float> shown_weights() {
  for (const auto& part : results().parts)
    for (const auto& [key, weights] : part->quantities.all<WeightsKey>())
      if (weights->kernel.name == "hedgehog") return weights->weights.values;
  return {};
}

void pause(ImGuiTestContext* context) {
  context->ItemClick("###pause");
  wait_until(context, [] { return report().paused && report().waiting; });
}

void from_form_to_adapter(ImGuiTestContext* context) {
  start_over(context);
  ToyTraining toy(context);
  const Document before = copy_of_document();
  context->ItemClick("###start");
  wait_until(context, [] { return report().progress.total_step > 0; });
  pause(context);
  const std::int64_t step = report().progress.total_step;
  context->Yield(60);
  IM_CHECK_EQ(report().progress.total_step, step); // none passes
  context->ItemClick("###pause");
  wait_until(context, [] { return shows_training(editor()); });
  IM_CHECK(all_hedgehog());
  IM_CHECK_STR_EQ(editor().history().undo_label().c_str(), "Show the trained adapter");
  pause(context);
  context->WindowFocus("//###weights"); // other panels share its place
  settle(context);
  const std::int64_t shown_step = report().adapter_step;
  const std::vector<float> shown = shown_weights();
  IM_CHECK(!shown.empty());
  const std::uint64_t revision = editor().revision();
  context->ItemClick("###pause");
  wait_until(context, [&] { return report().adapter_step > shown_step; });
  pause(context);
  settle(context);
  IM_CHECK(report().state == TrainingState::running);
  IM_CHECK_EQ(editor().revision(), revision); // nothing to be undone, however often it is written anew
  IM_CHECK_EQ(shown_weights().size(), shown.size());
  IM_CHECK(shown_weights() != shown);
  context->ItemClick("###pause");
  wait_for_end(context);

  IM_CHECK_STR_EQ(last_error().c_str(), "");
  IM_CHECK(report().state == TrainingState::finished);
  IM_CHECK(fs::exists(toy.output) && !fs::exists(checkpoint_path(toy.output)));
  IM_CHECK(document().scene().adapters.files.back() == toy.output);
  IM_CHECK(results().any()->adapters.back().path == toy.output);
  IM_CHECK_EQ(report().curves.layers().size(), static_cast<std::size_t>(before.scene().model->layers));
  IM_CHECK_EQ(report().held_out.size(), // before it, and after each epoch
              static_cast<std::size_t>(training_plan().get<int>("epochs")) + 1);
  IM_CHECK_LT(report().outcome.held_out.divergence, report().outcome.before.divergence);
  IM_CHECK_EQ(application().figure_of("training")->panels.size(), 2U);
  editor().undo();
  IM_CHECK(document() == before);
  editor().redo();
  IM_CHECK(document().scene().adapters.files.back() == toy.output);

  // What is there is not replaced without a question.
  context->ItemClick("###start");
  context->Yield(2);
  IM_CHECK(!report().active());
  IM_CHECK(report().question == TrainingQuestion::replace_output);
  context->ItemClick("###question_cancel");
  context->Yield(2);
  IM_CHECK(report().question == TrainingQuestion::none);
  settle(context);
  start_over(context);
}

// Nothing is filled in: a model is open, and Start is pressed in another layout.
void one_click(ImGuiTestContext* context, const InputKind kind) {
  start_over(context);
  const fs::path folder = fresh_folder("one-click");
  const test::ScopedEnvironment environment{
      {{"XDG_CACHE_HOME", (folder / "cache").string()}, {"XDG_DATA_HOME", (folder / "data").string()}}};
  if (kind == InputKind::text) open_text(editor(), "a b c d e");
  const std::string name = kind == InputKind::text ? "bert" : "deit";
  open_model(editor(), make_toy_model(folder / name, name).string());
  hide_tokens(editor(), 2, 1, true);
  application().run("view.layout.explore");
  context->Yield(20); // the panels that were in front come there one by one
  editor().emit(BringToFront{"training"});
  settle(context);
  context->SetRef("//###training");
  context->ItemClick("###start");
  wait_for_end(context);
  IM_CHECK_STR_EQ(last_error().c_str(), "");
  IM_CHECK(report().state == TrainingState::finished);
  IM_CHECK_STR_EQ(document().layout.c_str(), "train");
  const fs::path written = report().outcome.adapter.path;
  IM_CHECK(written.parent_path() == folder / "data/hydrascope/adapters");
  IM_CHECK(fs::exists(written));

  // What was gained stands in the panel and in a message.
  const HeldOut &before = report().outcome.before, &after = report().outcome.held_out;
  IM_CHECK_LT(after.divergence, before.divergence);
  IM_CHECK_GT(report().seconds, 0.0);
  const std::string gain = training_gain_text(report());
  IM_CHECK(gain.starts_with("hedgehog's weights are "));
  IM_CHECK(gain.find(fmt::format(" times closer to softmax's: KL {} → {} nats in ",
                                 number_text(before.divergence), number_text(after.divergence))) !=
           std::string::npos);
  IM_CHECK(training_result_text(report()).starts_with(gain));
  IM_CHECK(training_result_text(report()).ends_with(written.string()));
  IM_CHECK_STR_EQ(
      editor().messages().back().text.c_str(),
      fmt::format("Training finished. {}; kept as {}", gain, written.filename().string()).c_str());

  // It is in use, and hides what was hidden; what the user took back can be had again.
  IM_CHECK(all_hedgehog() && document().scene().adapters.files.back() == written);
  IM_CHECK(is_hidden(document(), 2));
  context->Yield(2);
  IM_CHECK(!context->ItemExists("###use"));
  editor().undo();
  IM_CHECK(!all_hedgehog());
  context->Yield(2);
  context->ItemClick("###use");
  context->Yield(2);
  IM_CHECK(all_hedgehog() && document().scene().adapters.files.back() == written);
  IM_CHECK(is_hidden(document(), 2));
  // Adapters that were chosen since may have been trained on pictures of another size.
  choose_adapters(editor(), {.automatic = false, .files = {}});
  hide_tokens(editor(), 3, 1, true);
  context->Yield(2);
  context->ItemClick("###use");
  context->Yield(2);
  IM_CHECK(document().scene().adapters.files.back() == written);
  IM_CHECK_EQ(is_hidden(document(), 3), kind == InputKind::text);

  const fs::path copy = folder / "copy.safetensors";
  answer_dialog(folder / "copy"); // without an ending
  context->ItemClick("###save_adapter");
  IM_CHECK_STR_EQ(title_of_dialog(context).c_str(), "Save the trained adapter");
  context->Yield(2);
  IM_CHECK(read_text_file(copy) == read_text_file(written));
  settle(context);
  start_over(context);
}

void one_click_on_sentences(ImGuiTestContext* context) { one_click(context, InputKind::text); }
void one_click_on_pictures(ImGuiTestContext* context) { one_click(context, InputKind::image); }

void examples_fill_the_form(ImGuiTestContext* context) {
  start_over(context);
  ToyTraining toy(context);
  editor().training_form.kind = TrainingKind::finetune;
  IM_CHECK(application().run("training.examples"));
  context->Yield(3);
  IM_CHECK(editor().training_form.kind == TrainingKind::distill);
  TrainingPlan expected = bundled_plan(TrainingKind::distill, InputKind::text);
  expected.set("output", toy.output.string());
  IM_CHECK(training_plan() == expected);
  IM_CHECK(!context->ItemExists("**/###bundled")); // there is nothing to return from
  context->ItemInputValue("**/##Train on", toy.text.string().c_str());
  context->Yield(2);
  IM_CHECK(training_plan().get<std::string>("data") == toy.text.string());
  context->ItemClick("**/###bundled");
  context->Yield(2);
  IM_CHECK(training_plan() == expected);
  start_over(context);
}

void stopped_and_resumed(ImGuiTestContext* context) {
  start_over(context);
  ToyTraining toy(context);
  const Document before = copy_of_document();
  context->ItemClick("###start");
  wait_until(context, [] { return shows_training(editor()); });
  context->ItemClick("###stop");
  wait_for_end(context);
  IM_CHECK(report().state == TrainingState::stopped);
  IM_CHECK(fs::exists(checkpoint_path(toy.output)) && !fs::exists(toy.output));
  IM_CHECK(document() == before); // what was shown before comes back …
  IM_CHECK(editor().history().undo_label() != "Show the trained adapter"); // … and leaves no step behind
  const std::int64_t done = report().outcome.steps;
  context->ItemClick("###start");
  context->Yield(2);
  IM_CHECK(report().question == TrainingQuestion::found_checkpoint);
  context->ItemClick("###question_resume");
  wait_until(context, [] { return report().progress.total_step > 0; });
  IM_CHECK_GE(report().progress.total_step, done); // a validation that the stop cut short comes first
  wait_for_end(context);
  IM_CHECK(report().state == TrainingState::finished);
  IM_CHECK(fs::exists(toy.output));
  IM_CHECK_STR_EQ(last_error().c_str(), "");
  start_over(context);
}

void another_model_stops_it(ImGuiTestContext* context) {
  start_over(context);
  ToyTraining toy(context);
  const fs::path other = make_toy_model(toy.folder / "other-bert");
  context->ItemClick("###start");
  wait_until(context, [] { return report().progress.total_step > 0; });
  open_model(editor(), other.string());
  wait_for_end(context);
  IM_CHECK(report().state == TrainingState::stopped);
  IM_CHECK(fs::exists(checkpoint_path(toy.output)));
  IM_CHECK(editor().messages().back().text.find("another model was opened") != std::string::npos);
  IM_CHECK(document().scene().model_folder == other);
  start_over(context);
}

void fine_tunes_on_a_table(ImGuiTestContext* context) {
  start_over(context);
  ToyTraining toy(context);
  const fs::path table = toy.folder / "table.tsv";
  {
    std::ofstream lines(table);
    for (int line = 0; line < 60; ++line)
      lines << (line % 2 == 0 ? "a b c d" : "w x y z") << '\t' << (line % 2 == 0 ? "yes" : "no") << '\n';
  }
  const Schedule before = document().scene().schedules[0];
  editor().training_form.kind = TrainingKind::finetune;
  training_plan().set("data", table.string());
  training_plan().set("output", toy.output.string());
  training_plan().set("learning_rate", 1e-3);
  training_plan().set("epochs", 2);
  context->Yield(2);
  context->ItemClick("###start");
  wait_for_end(context);
  IM_CHECK_STR_EQ(last_error().c_str(), "");
  IM_CHECK(report().state == TrainingState::finished);
  IM_CHECK_GT(report().outcome.held_out.accuracy, 0.0);
  IM_CHECK(document().scene().adapters.files.back() == toy.output); // shown, as the form says …
  IM_CHECK(document().scene().schedules[0] == before); // … by the kernels it was trained through
  const auto figure = application().figure_of("training");
  IM_CHECK(std::get<LinesPanel>(figure->panels.back()).title == "Accuracy");
  start_over(context);
}

void problems_are_told(ImGuiTestContext* context) {
  start_over(context);
  ToyTraining toy(context);
  const Document before = copy_of_document();
  training_plan().set("data", (toy.folder / "absent.txt").string());
  context->ItemClick("###start");
  wait_for_end(context);
  IM_CHECK(report().state == TrainingState::failed);
  IM_CHECK(training_result_text(report()).find("absent.txt") != std::string::npos); // in the panel …
  IM_CHECK(last_error().find("absent.txt") != std::string::npos);                   // … and as a notice
  IM_CHECK(document() == before);
  editor().training_form.kind = TrainingKind::finetune; // no labelled data are bundled
  context->Yield(2);
  IM_CHECK_STR_EQ(why_not_started(editor()).c_str(), "no data has been chosen");
  IM_CHECK(!application().run("training.start"));
  start_over(context);
}

// The document names the adapter in training until the window has taken the end of the work.
void its_adapter_outlives_the_work(ImGuiTestContext* context) {
  start_over(context);
  ToyTraining toy(context);
  TrainingJob training({}, make_model_store());
  training.begin(editor(), TrainingStart::replace);
  wait_until(context, [&] {
    training.update(editor(), /*interactive_run=*/false);
    return shows_training(editor());
  });
  wait_until(context, [] { return background_jobs_at_work() == 0; });
  const fs::path shown = document().scene().adapters.files.back();
  const bool stays = fs::exists(shown), in_training = shown == training.live_file();
  training.update(editor(), /*interactive_run=*/false); // before any check: no test rests while one is active
  IM_CHECK(in_training && stays);
  IM_CHECK(document().scene().adapters.files.back() == toy.output);
  settle(context);
  IM_CHECK_STR_EQ(last_error().c_str(), "");
  start_over(context);
}

void curves_are_thinned(ImGuiTestContext*) {
  TrainingCurves curves;
  constexpr std::int64_t steps = 100'000;
  for (std::int64_t step = 1; step <= steps; ++step) {
    const std::vector<double> layers = {1.0, static_cast<double>(step)};
    curves.add(step, static_cast<double>(step), layers);
  }
  IM_CHECK_LT(curves.steps().size(), TrainingCurves::most_points);
  IM_CHECK_GT(curves.steps().size(), TrainingCurves::most_points / 4);
  IM_CHECK_EQ(curves.layers().size(), 2U);
  for (std::size_t i = 0; i < curves.steps().size(); ++i) {
    const double first = i == 0 ? 1 : curves.steps()[i - 1] + 1; // of the steps that the point stands for
    IM_CHECK_EQ(curves.loss()[i], (first + curves.steps()[i]) / 2);
    IM_CHECK_EQ(curves.layers()[0][i], 1.0);
    IM_CHECK_EQ(curves.layers()[1][i], curves.loss()[i]);
  }
}

void command_says_it_all(ImGuiTestContext*) {
  FinetuneRequest tuning;
  tuning.settings.adapters = {.automatic = false, .files = {"tail.safetensors"}};
  tuning.settings.execution.image_size = 168;
  tuning.settings.execution.seed = 3;
  tuning.settings.output = "out.safetensors";
  tuning.schedule = ScheduleText{.layers = {"0-9=softmax;10,11=hydra-cosine"}};
  tuning.data = {"table.tsv"};
  tuning.columns = {.text = 4, .pair = 5, .label = 1};
  tuning.header = true;
  tuning.trained = {.layers = {8}, .attention = {10, 11}};
  tuning.low_rank = {.rank = 4, .alpha = 8};
  IM_CHECK_STR_EQ(
      training_command(tuning, "vit-small").c_str(),
      "hydrascope finetune --model vit-small --adapter tail.safetensors --image-size 168 --seed 3 "
      "--epochs 5 --batch 64 --learning-rate 0.0003 --validation-share 0.1 --patience 0 --output "
      "out.safetensors --kernel softmax --layers '0-9=softmax;10,11=hydra-cosine' --data table.tsv "
      "--train-layers 8,10.attention,11.attention,head --lora rank=4,alpha=8 --warmup 0.05 "
      "--weight-decay 0.05 --label-smoothing 0.1 --column 4 --pair-column 5 --label-column 1 --header");
  DistillRequest distilling;
  distilling.settings.output = "maps.safetensors";
  distilling.kernel.name = "hedgehog";
  distilling.data = {"a.txt", "b.tsv"};
  distilling.column = 2;
  distilling.chunk = {.least = 16, .most = 256};
  distilling.cosine = true;
  IM_CHECK_STR_EQ(training_command(distilling, "minilm").c_str(),
                  "hydrascope distill --model minilm --seed 0 --epochs 2 --batch 8 --learning-rate 0.01 "
                  "--validation-share 0.05 --patience 1 --output maps.safetensors --kernel hedgehog --data "
                  "a.txt,b.tsv --column 2 --chunk 16-256 --cosine");
}

} // namespace

void register_training_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "training", "from_form_to_adapter")->TestFunc = from_form_to_adapter;
  IM_REGISTER_TEST(engine, "training", "one_click_on_sentences")->TestFunc = one_click_on_sentences;
  IM_REGISTER_TEST(engine, "training", "one_click_on_pictures")->TestFunc = one_click_on_pictures;
  IM_REGISTER_TEST(engine, "training", "examples_fill_the_form")->TestFunc = examples_fill_the_form;
  IM_REGISTER_TEST(engine, "training", "stopped_and_resumed")->TestFunc = stopped_and_resumed;
  IM_REGISTER_TEST(engine, "training", "another_model_stops_it")->TestFunc = another_model_stops_it;
  IM_REGISTER_TEST(engine, "training", "fine_tunes_on_a_table")->TestFunc = fine_tunes_on_a_table;
  IM_REGISTER_TEST(engine, "training", "problems_are_told")->TestFunc = problems_are_told;
  IM_REGISTER_TEST(engine, "training", "its_adapter_outlives_the_work")->TestFunc =
      its_adapter_outlives_the_work;
  IM_REGISTER_TEST(engine, "training", "curves_are_thinned")->TestFunc = curves_are_thinned;
  IM_REGISTER_TEST(engine, "training", "command_says_it_all")->TestFunc = command_says_it_all;
}

} // namespace hydrascope::app::window_tests
