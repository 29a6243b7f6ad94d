// The settings and their file, the training form, and folders of pictures.
#include "app/document/settings.h"

#include <cmath>
#include <fstream>

#include <fmt/format.h>

#include "app/document/training_form.h"
#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "tests/app/fixture.h"

namespace hydrascope::app::tests {
namespace {

namespace fs = std::filesystem;

Settings changed_settings() {
  Settings settings;
  settings.theme = ThemeChoice::light;
  settings.scale = 1.5;
  settings.fade = false;
  settings.reopen_last = false;
  settings.tour_seen = true;
  settings.hint_seen = true;
  settings.shortcuts = {{"view.sign", "Ctrl+Alt+G"}, {"file.quit", ""}};
  settings.layouts = {{.name = "mine “1”", .arrangement = "[Window][###focus]\nPos=1,2\n", .closed = {"kl"}}};
  settings.last = SavedLayout{.name = "compare", .arrangement = "x", .closed = {}};
  settings.recent = {{"/pictures/an owl.png", false}, {"One owl.\tTwo owls.", true}};
  settings.training = training_text(TrainingForm{});
  settings.other = R"({"from_a_later_version":["/a.png"]})";
  return settings;
}

TEST(Settings, SurviveTheirFile) {
  const ScratchFolder scratch;
  const fs::path file = scratch / "below" / "settings.json";
  EXPECT_EQ(load_settings(file).settings, Settings{}); // no file
  save_settings(changed_settings(), file);
  const LoadedSettings loaded = load_settings(file);
  EXPECT_EQ(loaded.problem, "");
  EXPECT_EQ(loaded.settings, changed_settings());
  EXPECT_EQ(std::distance(fs::directory_iterator(file.parent_path()), {}), 1); // no temporary file
}

TEST(Settings, KeepAnUnreadableFileUnderAnotherName) {
  const ScratchFolder scratch;
  const fs::path file = scratch / "settings.json";
  for (const char* text :
       {"{\"theme\": \"dark\"", "[1]", "{\"scale\": \"large\"}", "{\"theme\": \"pink\"}"}) {
    std::ofstream(file) << text;
    const LoadedSettings loaded = load_settings(file);
    EXPECT_EQ(loaded.settings, Settings{}) << text;
    EXPECT_NE(loaded.problem.find("settings.json"), std::string::npos) << loaded.problem;
    EXPECT_TRUE(loaded.writable);
    EXPECT_FALSE(fs::exists(file));
  }
  EXPECT_EQ(read_text_file(file.string() + ".unreadable"), "{\"theme\": \"dark\"");
  EXPECT_EQ(read_text_file(file.string() + ".unreadable-4"), "{\"theme\": \"pink\"}");
}

TEST(Settings, NameTheWrongEntry) {
  const auto refusal = [](const std::string& text) {
    try {
      parse_settings(text, "settings");
      return std::string();
    } catch (const BrokenFile& error) {
      return std::string(error.what());
    }
  };
  EXPECT_NE(refusal(R"({"fade": 1})").find("\"fade\""), std::string::npos);
  EXPECT_NE(refusal(R"({"layouts": [{"name": "x"}]})").find("\"layouts\""), std::string::npos);
  EXPECT_NE(refusal(R"({"theme": "pink"})").find("follow, dark, light"), std::string::npos);
  EXPECT_NE(refusal(R"({"scale": 1e999})").find("too large"), std::string::npos);
  constexpr std::size_t levels = 1'000'000; // keeping what is nested so deeply would overflow the stack
  const std::string deep = "{\"x\": " + std::string(levels, '[') + std::string(levels, ']') + "}";
  EXPECT_NE(refusal(deep).find("nested more than 100 levels deep"), std::string::npos);
  std::string many = "{\"x\": {\"name\": 0"; // each name is compared with all before it
  for (int i = 0; i < 200'000; ++i) many += fmt::format(", \"name {}\": {}", i, i);
  EXPECT_NE(refusal(many + "}}").find("more than 1000 names"), std::string::npos);
  EXPECT_EQ(parse_settings(R"({"scale": 99})", "").scale, greatest_scale);
}

TEST(Settings, StepTheScaleWithinItsLimits) {
  EXPECT_EQ(stepped_scale(1.0, 1), 1.1);
  EXPECT_EQ(stepped_scale(1.0, -1), 0.9);
  EXPECT_EQ(stepped_scale(1.2, 1), 1.25); // between two steps
  EXPECT_EQ(stepped_scale(1.2, -1), 1.1);
  EXPECT_EQ(stepped_scale(greatest_scale, 1), greatest_scale);
  EXPECT_EQ(stepped_scale(least_scale, -3), least_scale);
}

TEST(TrainingForm, StartsWithThePapersValuesButForTheExamplePictures) {
  const TrainingForm form;
  for (const TrainingKind kind : {TrainingKind::distill, TrainingKind::finetune})
    for (const InputKind input : {InputKind::image, InputKind::text})
      EXPECT_EQ(form.plan(kind, input) == papers_values(kind, input),
                kind == TrainingKind::finetune || input == InputKind::text);
  EXPECT_GT(form.plan(TrainingKind::distill, InputKind::image).get<int>("crops"), 1);
}

// What a command line does not give is what a new form has.
TEST(TrainingForm, StartsWithTheCommandLinesDefaults) {
  const TrainingForm form;
  for (const TrainingKind kind : {TrainingKind::distill, TrainingKind::finetune})
    for (const TrainingData data : {TrainingData{InputKind::image}, TrainingData{InputKind::text},
                                    TrainingData{InputKind::text, true}}) {
      const OptionValues defaults = default_values(kind, data);
      const bool examples = kind == TrainingKind::distill && data.input == InputKind::image;
      int numbers = 0;
      for (const TrainingOption* option : form_options()) {
        if (!option->applies(kind, data.input)) continue;
        const OptionValue& shown = form.plan(kind, data).value(option->key);
        if (std::holds_alternative<std::string>(shown)) continue;
        if (examples && (option->key == "epochs" || option->key == "batch" || option->key == "crops"))
          continue;
        EXPECT_EQ(shown, defaults.value(option->key)) << option->key;
        ++numbers;
      }
      EXPECT_GT(numbers, 3);
    }
  const auto number = [](const TrainingKind kind, const TrainingData data, const char* key) {
    return default_values(kind, data).get<double>(key);
  };
  EXPECT_EQ(number(TrainingKind::finetune, {InputKind::image}, "learning_rate"), 1e-3);
  EXPECT_EQ(number(TrainingKind::finetune, {InputKind::text}, "learning_rate"), 1e-5);
  EXPECT_EQ(number(TrainingKind::finetune, {InputKind::text, true}, "learning_rate"), 1e-4);
  EXPECT_EQ(number(TrainingKind::finetune, {InputKind::text, true}, "weight_decay"), 0.01);
  EXPECT_EQ(number(TrainingKind::finetune, {InputKind::image}, "weight_decay"), 0);
}

TEST(TrainingForm, ADecoderHasValuesOfItsOwn) {
  Document document = small_document(), decoder = decoder_document();
  TrainingForm form;
  form.kind = TrainingKind::finetune;
  form.plan(TrainingKind::finetune, TrainingData{InputKind::text, true}).set("data", std::string("text.txt"));
  EXPECT_EQ(why_not_trained(document, form), "no data has been chosen");
  EXPECT_EQ(why_not_trained(decoder, form), "");
  const auto request = std::get<FinetuneRequest>(training_request(decoder, form));
  EXPECT_EQ(request.settings.learning_rate, next_token_request().settings.learning_rate);
  EXPECT_EQ(request.weight_decay, next_token_request().weight_decay);
  EXPECT_EQ(parse_training(training_text(form)), form);
}

TEST(TrainingForm, SurvivesTheSettings) {
  TrainingForm form;
  form.kind = TrainingKind::finetune;
  form.kernel = {.name = "hedgehog-softmax", .parameters = {{"shared", "1"}}};
  form.show_live = false;
  form.live_seconds = 9;
  form.plan(TrainingKind::distill, InputKind::image).set("data", std::string("/pictures; /more pictures"));
  form.plan(TrainingKind::finetune, InputKind::text).set("learning_rate", 3e-5);
  form.plan(TrainingKind::finetune, InputKind::text).set("header", true);
  Settings settings;
  settings.training = training_text(form);
  EXPECT_EQ(parse_training(parse_settings(settings_text(settings), "").training), form);
  EXPECT_EQ(parse_training(""), TrainingForm{});
  EXPECT_EQ(parse_training("{\"kind\":3}"), TrainingForm{});
  EXPECT_EQ(parse_training("{\"kernel\":\"nonsense\"}"), TrainingForm{});
}

TEST(TrainingForm, SaysWhyItCannotBeTrained) {
  Document document = small_document();
  TrainingForm form;
  EXPECT_EQ(why_not_trained(Document{}, form), "no model is open");
  EXPECT_EQ(why_not_trained(document, form), ""); // there are the bundled sentences
  form.plan(TrainingKind::distill, InputKind::text).set("data", std::string("a.txt"));
  EXPECT_EQ(why_not_trained(document, form), "");
  form.kind = TrainingKind::finetune;
  EXPECT_EQ(why_not_trained(document, form), "no data has been chosen");
  form.plan(TrainingKind::finetune, InputKind::text).set("data", std::string(" ; "));
  EXPECT_EQ(why_not_trained(document, form), "no data has been chosen");
  form.plan(TrainingKind::finetune, InputKind::text).set("data", std::string("a.tsv"));
  EXPECT_EQ(why_not_trained(document, form), "");
  form.kind = TrainingKind::distill;
  form.kernel.name = "softmax";
  EXPECT_NE(why_not_trained(document, form).find("no feature maps"), std::string::npos);
}

TEST(TrainingForm, MakesARequestWithTheDocumentsModelAndKernel) {
  Document document = small_document();
  document.execution.seed = 5;
  TrainingForm form;
  TrainingPlan& plan = form.plan(TrainingKind::distill, InputKind::text);
  plan.set("data", std::string("a.txt; b c.txt ;"));
  plan.set("output", std::string("/tmp/maps")); // without an extension
  const auto request = std::get<DistillRequest>(training_request(document, form));
  EXPECT_EQ(request.data, (std::vector<fs::path>{"a.txt", "b c.txt"}));
  EXPECT_EQ(request.settings.output, "/tmp/maps.safetensors");
  EXPECT_EQ(request.settings.model_folder, golden_model("bert"));
  EXPECT_EQ(request.settings.execution.seed, 5U);
  EXPECT_EQ(request.kernel.name, "hedgehog");
  EXPECT_TRUE(request.settings.command.starts_with("hydrascope distill --model bert --seed 5 "))
      << request.settings.command;
}

TEST(TrainingForm, TrainsOnTheBundledDataWithoutOthers) {
  Document document = small_document();
  const TrainingForm form;
  EXPECT_EQ(bundled_data_text(InputKind::text), "300 bundled sentences");
  const auto texts = std::get<DistillRequest>(training_request(document, form));
  EXPECT_EQ(texts.data, std::vector<fs::path>{bundled_data(InputKind::text)});
  EXPECT_NE(texts.settings.command.find("sentences.txt"), std::string::npos) << texts.settings.command;
  EXPECT_EQ(training_output(document, form).filename(), "bert-hedgehog-sentences.safetensors");
  document.kind = InputKind::image;
  const auto pictures = std::get<DistillRequest>(training_request(document, form));
  EXPECT_EQ(pictures.data, std::vector<fs::path>{bundled_data(InputKind::image)});
  EXPECT_EQ(pictures.copies, form.plan(TrainingKind::distill, InputKind::image).get<int>("crops"));
  EXPECT_NE(pictures.settings.command.find(fmt::format("--copies {}", pictures.copies)), std::string::npos)
      << pictures.settings.command;
}

TEST(TrainingForm, ValuesForTheExamplePicturesGoWithThem) {
  constexpr auto kind = TrainingKind::distill;
  constexpr auto input = InputKind::image;
  TrainingPlan plan = bundled_plan(kind, input);
  plan.set("epochs", 7); // the user's own
  choose_data(plan, kind, input, "/pictures");
  TrainingPlan expected = papers_values(kind, input);
  expected.set("epochs", 7);
  expected.set("data", std::string("/pictures"));
  EXPECT_EQ(plan, expected);
  choose_data(plan, kind, input, "");
  expected = bundled_plan(kind, input);
  expected.set("epochs", 7);
  EXPECT_EQ(plan, expected);
}

// Kept before there were copies of pictures: what is missing suits the data.
TEST(TrainingForm, ReadsWhatAnEarlierVersionKept) {
  const auto crops = [](const std::string& kept) {
    return parse_training(kept).plan(TrainingKind::distill, InputKind::image).get<int>("crops");
  };
  EXPECT_EQ(crops(R"({"distill_images":{"data":"/pictures","copies":2,"epochs":4}})"), 1);
  EXPECT_EQ(crops(R"({"distill_images":{"data":"","copies":2}})"),
            bundled_plan(TrainingKind::distill, InputKind::image).get<int>("crops"));
}

TEST(TrainingForm, NamesTheOutputAfterModelKernelAndData) {
  Document document = small_document();
  TrainingForm form;
  form.kernel = {.name = "performer", .parameters = {{"seed", "1"}}};
  form.plan(TrainingKind::distill, InputKind::text).set("data", std::string("/data/my texts.txt"));
  EXPECT_EQ(training_output(document, form).filename(), "bert-performer-seed-1-my-texts.safetensors");
}

class PictureFolders : public ::testing::Test {
protected:
  void add(const std::string& name) {
    const fs::path file = scratch_ / name;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << "x";
  }
  fs::path folder() const { return scratch_ / "pictures"; }

  ScratchFolder scratch_;
};

TEST_F(PictureFolders, ListPicturesByClassThenName) {
  for (const char* name :
       {"pictures/dog/b.PNG", "pictures/dog/a.jpg", "pictures/cat/c.png", "pictures/dog/x.txt"})
    add(name);
  const PictureFolder found = list_pictures(folder());
  EXPECT_TRUE(found.labelled);
  ASSERT_EQ(found.pictures.size(), 3U);
  EXPECT_EQ(found.pictures[0].label, "cat");
  EXPECT_EQ(found.pictures[1].file.filename(), "a.jpg");
  EXPECT_EQ(find_picture(found, folder() / "dog/b.PNG"), 2U);
  EXPECT_FALSE(find_picture(found, folder() / "dog/x.txt").has_value());
  add("pictures/loose.png");
  EXPECT_FALSE(list_pictures(folder()).labelled);
  add("empty/notes.txt");
  EXPECT_THROW(list_pictures(scratch_ / "empty"), Error);
}

TEST_F(PictureFolders, OrderWrongPredictionsFirst) {
  using Verdict = PictureCheck::Verdict;
  for (const char* name : {"a", "b", "c", "d", "e"}) add("pictures/cat/" + std::string(name) + ".png");
  const PictureFolder found = list_pictures(folder());
  PictureChecks checks;
  const auto check = [&](std::size_t index, Verdict verdict, double probability) {
    checks.found[found.pictures[index].file] = {
        .verdict = verdict, .predicted = "", .probability = probability};
  };
  check(0, Verdict::right, 0.9);
  check(1, Verdict::wrong, 0.4);
  check(2, Verdict::wrong, 0.8);
  check(4, Verdict::right, 0.3);
  EXPECT_EQ(shown_order(found, true, checks), (std::vector<std::size_t>{2, 1, 3, 4, 0}));
  EXPECT_EQ(shown_order(found, false, checks), (std::vector<std::size_t>{0, 1, 2, 3, 4}));
}

Prediction prediction(int index, const std::string& label, double probability) {
  return {.index = index, .label = label, .probability = probability, .logit = 0};
}

TEST(Predictions, AreRightByLabelOrFirstSynonymIgnoringCase) {
  RunResult run;
  run.predictions = {prediction(1, "tiger cat, Felis", 0.75), prediction(0, "dog", 0.25)};
  EXPECT_EQ(is_right(run, "Tiger_Cat"), true);
  EXPECT_EQ(is_right(run, "DOG"), false);
  EXPECT_EQ(is_right(run, "felis"), std::nullopt); // not the first synonym
  EXPECT_EQ(is_right(RunResult{}, "dog"), std::nullopt);
}

TEST(PictureMeasures, OfAPredictedNumberHaveNoClasses) {
  RunResult run;
  run.model.has_classifier = true;
  run.model.labels = {"age"};
  run.predictions = {prediction(0, "age", 1)};
  const app::PictureMeasures measures = measures_of(run, run);
  EXPECT_EQ(measures.own_class, "");
  EXPECT_FALSE(measures.class_changed());
  EXPECT_TRUE(std::isnan(measures.own_probability));
  EXPECT_TRUE(std::isnan(measures.divergence));
}

TEST(PictureMeasures, OfIndependentLabelsAddEachOnesDivergence) {
  RunResult own, softmax;
  own.model.independent_labels = softmax.model.independent_labels = true;
  own.predictions = {prediction(1, "dog", 0.75), prediction(0, "cat", 0.5)};
  softmax.predictions = {prediction(0, "cat", 0.5), prediction(1, "dog", 0.25)};
  EXPECT_NEAR(measures_of(own, softmax).divergence,
              0.25 * std::log(0.25 / 0.75) + 0.75 * std::log(0.75 / 0.25), 1e-12);
}

TEST(PictureMeasures, CompareTwoRunsAndSortUndefinedValuesLast) {
  RunResult own, softmax;
  own.predictions = {prediction(1, "dog", 0.75), prediction(0, "cat", 0.25)};
  softmax.predictions = {prediction(0, "cat", 0.5), prediction(1, "dog", 0.5)};
  HeadTable table;
  table.key.quantity = "kl";
  table.values = {{2, 2}, {0.1f, 0.3f, std::nanf(""), std::nanf("")}};
  own.quantities.add(table.key, table);
  const app::PictureMeasures measures = measures_of(own, softmax);
  EXPECT_TRUE(measures.class_changed());
  EXPECT_NEAR(measures.divergence, 0.5 * std::log(0.5 / 0.25) + 0.5 * std::log(0.5 / 0.75), 1e-12);
  EXPECT_NEAR(measures.kl, 0.2, 1e-7);
  EXPECT_TRUE(std::isnan(measures.entropy));
  std::vector<app::PictureMeasures> all(3);
  all[0].divergence = 0.1;
  all[2].divergence = 0.4; // all[1]: undefined
  for (const bool descending : {false, true}) {
    sort_measures(all, FolderColumn::divergence, descending);
    EXPECT_EQ(all[descending ? 0 : 1].divergence, 0.4);
    EXPECT_TRUE(std::isnan(all[2].divergence));
  }
}

} // namespace
} // namespace hydrascope::app::tests
