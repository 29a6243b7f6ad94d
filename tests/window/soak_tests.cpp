// Hours at the window: actions in random order, with pictures, sentences, captures, models, trainings,
// writing and files among them. HYDRASCOPE_SOAK=20000 makes it long: then memory must stop growing. It is
// measured after every thousand actions in a session that has just begun, without models, hidden states and
// steps that could be undone: what it was full of before differs each time. So do blocks that threads keep
// for reuse, and oneDNN's products of up to 1,024 shapes: with MALLOC_CONF=tcache:false and
// ONEDNN_PRIMITIVE_CACHE_CAPACITY=8 they are none, and few.
#include <array>
#include <cfloat>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <random>

#include <fmt/format.h>

#include "app/document/edits.h"
#include "app/jobs/background_job.h"
#include "engine/base/text.h"
#include "engine/figures/figure.h"
#include "tests/support/bytes_in_use.h"
#include "tests/support/checkout.h"
#include "tests/window/training_toy.h"

namespace hydrascope::app::window_tests {

namespace {

namespace fs = std::filesystem;

int number_of_actions() {
  const char* const wanted = std::getenv("HYDRASCOPE_SOAK");
  return wanted == nullptr ? 300 : whole_number(wanted).value_or(0);
}

double megabytes_in_use() { return static_cast<double>(test::bytes_in_use()) / 1e6; }

// Everything that a user can do without a dialog, a clipboard or minutes of computing.
bool takes_part(const std::string& id) {
  for (const char* const left_out : {"file.quit", "file.open", "file.save_session", "file.reopen_last",
                                     "file.export", "file.copy", "file.paste", "model.adapters.open",
                                     "training.start", "training.resume", "model.device", "file.get_model"})
    if (id.starts_with(left_out)) return false;
  return true;
}

// A message that a user would get, too: a capture has no inputs of layers, which some kernels need.
bool is_expected(const std::string& error) {
  return error.find("it needs the layer's own input x") != std::string::npos;
}

class RandomActions {
  template <typename Values>
  const auto& one_of(const Values& values) {
    return values[random_() % values.size()];
  }

public:
  explicit RandomActions(ImGuiTestContext* context) : context_(context), toy_(context) {
    for (const Action& action : application().actions())
      if (takes_part(action.id)) actions_.push_back(action.id);
    for (const char* const name : {"vit", "bert"})
      files_.push_back(test::source_folder() / "tests/golden/captures" /
                       (std::string(name) + ".safetensors"));
    for (const fs::path& picture : example_pictures()) files_.push_back(picture);
    models_ = {toy_.folder / "toy-bert", make_toy_model(toy_.folder / "toy-deit", "deit"), golden_decoder()};
  }

  // Any action mostly, else something that takes longer.
  void step() {
    switch (random_() % 24) {
      case 0: return open_input();
      case 1: return open_text(editor(), one_of(texts_));
      case 2: return open_a_model();
      case 3: return train();
      case 4: return editor().emit(StartWriting{});
      case 5: return write_a_figure();
      case 6: return save_and_open();
      default: break;
    }
    const Action* const action = find_action(application().actions(), one_of(actions_));
    if (action != nullptr && action->enabled(editor()).ok) action->run(editor());
  }

private:
  void open_input() { IM_CHECK(open_path(editor(), one_of(files_))); }
  void open_a_model() {
    const fs::path& model = one_of(models_);
    if (model.filename() == "toy-deit") {
      if (!example("chelsea").empty()) open_path(editor(), example("chelsea"));
    } else {
      open_text(editor(), "a b c d e");
    }
    open_model(editor(), model.string());
  }
  // Begins one, or lets the one that runs stop.
  void train() {
    if (editor().training.active()) return editor().emit(StopTraining{});
    open_text(editor(), "a b c d e");
    open_model(editor(), (toy_.folder / "toy-bert").string());
    settle(context_);
    if (document().kind != InputKind::text) return; // a picture that was being read has arrived
    editor().training_form.kind = TrainingKind::distill;
    TrainingPlan& plan = training_plan();
    plan.set("data", toy_.text.string());
    plan.set("output", toy_.output.string());
    plan.set("epochs", 2);
    editor().emit(StartTraining{TrainingStart::replace});
  }
  void write_a_figure() {
    const auto& panel = one_of(application().panels());
    between_frames(context_, [&] {
      const auto figure = application().figure_of(panel.id);
      if (figure) write_figure(*figure, toy_.folder / ("figure." + std::string(one_of(endings_))));
    });
  }
  // Every state can be saved, and opened again.
  void save_and_open() {
    const fs::path file = toy_.folder / "session.json";
    std::ofstream(file) << written_session(file);
    if (random_() % 2 == 0) IM_CHECK(open_path(editor(), file));
  }

  ImGuiTestContext* context_;
  ToyTraining toy_;
  std::mt19937 random_{20};
  std::vector<std::string> actions_;
  std::vector<fs::path> files_, models_;
  std::array<std::string, 4> texts_{"The cat sat on the mat.", "a b c d e f g", "שלום עולם 😀 e\u0301",
                                    std::string(4000, 'w') + " end"};
  std::array<const char*, 5> endings_{"svg", "pdf", "png", "csv", "json"};
};

// Of a session that has just begun, with nothing in memory that is not shown. Measurements that were stopped
// hold their tensors until their kernel returns; a renderer in software holds what its last frames needed.
double megabytes_at_rest(ImGuiTestContext* context) {
  if (editor().training.active()) editor().emit(StopTraining{});
  settle(context);
  start_over(context);
  while (background_jobs_at_work() > 0) context->Yield();
  IM_CHECK_RETV(application().run("model.free_memory"), 0);
  settle(context);
  for (int frame = 0; frame < 20; ++frame) {
    editor().draw_now();
    context->Yield();
  }
  return megabytes_in_use();
}

double mean(const std::vector<double>& values, const std::size_t begin, const std::size_t end) {
  return std::accumulate(values.begin() + static_cast<std::ptrdiff_t>(begin),
                         values.begin() + static_cast<std::ptrdiff_t>(end), 0.0) /
         static_cast<double>(end - begin);
}

void random_actions_for_long(ImGuiTestContext* context) {
  start_over(context);
  const int actions = number_of_actions();
  constexpr int measured_every = 1000;
  const bool for_long = actions >= 5 * measured_every;
  // Beyond the ten minutes that other tests are given.
  if (for_long) ImGuiTestEngine_GetIO(context->Engine).ConfigWatchdogKillTest = FLT_MAX;
  std::vector<double> megabytes;
  {
    RandomActions random(context);
    for (int i = 0; i < actions; ++i) {
      random.step();
      context->Yield();
      if (is_expected(last_error())) dismiss_messages(editor());
      if (!last_error().empty()) IM_CHECK_STR_EQ(last_error().c_str(), ""); // each check adds to a log
      if ((i + 1) % measured_every != 0) continue;
      const double used = megabytes_in_use();
      megabytes.push_back(megabytes_at_rest(context));
      fmt::print("[soak] {} actions, {:.1f} MB in use, {:.1f} MB at rest\n", i + 1, used, megabytes.back());
      std::fflush(stdout); // also where it is a file
    }
    if (editor().training.active()) editor().emit(StopTraining{});
    settle(context);
  }
  // The first fifth fills what stays for good, as oneDNN's compiled products of matrices.
  if (for_long) {
    const std::size_t fifth = megabytes.size() / 5;
    const double before = mean(megabytes, fifth, 2 * fifth), after = mean(megabytes, 4 * fifth, 5 * fifth);
    fmt::print("[soak] at rest {:.1f} MB after the first fifth, {:.1f} MB at the end\n", before, after);
    IM_CHECK_LT(after, 1.02 * before);
  }
  start_over(context);
}

} // namespace

void register_soak_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "soak", "random_actions")->TestFunc = random_actions_for_long;
}

} // namespace hydrascope::app::window_tests
