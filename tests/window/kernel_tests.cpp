// Switching kernels in the grid and by presets: the run that follows really ran them.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "app/document/edits.h"
#include "app/panels/kernels/grid_columns.h"
#include "app/views/adapter_view.h"
#include "engine/run/quantities/focus_map.h"
#include "engine/run/quantities/weights.h"
#include "tests/support/checkout.h"
#include "tests/window/harness.h"
#include "tests/window/screenshot.h"

namespace hydrascope::app::window_tests {

namespace {

// The grid's columns, by themselves.

using Families = std::vector<GridColumns::Family>;

constexpr std::array<float, kernel_families> labels = {36, 48, 40, 100, 46, 30};
constexpr float narrow = 194, wide = 1200;

const GridColumns::Family& family_of(const Families& families, KernelFamily family) {
  return *std::ranges::find(families, family, &GridColumns::Family::family);
}
std::size_t shown_kernels(const Families& families) {
  std::size_t count = 0;
  for (const GridColumns::Family& family : families) count += family.open ? family.kernels.size() : 0;
  return count;
}

void every_kernel_has_a_column(ImGuiTestContext*) {
  const Families families = GridColumns().place(wide, labels);
  IM_CHECK_EQ(shown_kernels(families), kernel_infos().size());
  IM_CHECK_LE(GridColumns::width_of(families), wide);
  for (const GridColumns::Family& family : families) {
    IM_CHECK_GE(family.width, labels[static_cast<std::size_t>(family.family)]);
    IM_CHECK_LE(family.column * static_cast<float>(family.kernels.size()), family.width + 0.01f);
  }
}

void what_does_not_fit_is_folded(ImGuiTestContext*) {
  const Families families = GridColumns().place(narrow, labels);
  IM_CHECK_LE(GridColumns::width_of(families), narrow);
  IM_CHECK(family_of(families, KernelFamily::exact).open);
  IM_CHECK(family_of(families, KernelFamily::hydra).open);
  IM_CHECK(!family_of(families, KernelFamily::trained).open);
  IM_CHECK_EQ(family_of(families, KernelFamily::trained).width, GridColumns::folded_width);
}

void an_opened_family_takes_room(ImGuiTestContext*) {
  GridColumns columns;
  columns.toggle(KernelFamily::normalised_linear, false);
  Families families = columns.place(narrow, labels);
  IM_CHECK(family_of(families, KernelFamily::normalised_linear).open);
  IM_CHECK(!family_of(families, KernelFamily::hydra).open);
  IM_CHECK_LE(GridColumns::width_of(families), narrow);
  columns.toggle(KernelFamily::normalised_linear, true);
  families = columns.place(wide, labels);
  IM_CHECK(!family_of(families, KernelFamily::normalised_linear).open);
  IM_CHECK(family_of(families, KernelFamily::hydra).open);
}

void a_preferred_family_opens_until_the_user_chooses(ImGuiTestContext*) {
  GridColumns columns;
  columns.prefer(KernelFamily::trained);
  IM_CHECK(family_of(columns.place(narrow, labels), KernelFamily::trained).open);
  IM_CHECK(!family_of(columns.place(narrow, labels), KernelFamily::hydra).open);
  columns.toggle(KernelFamily::hydra, false);
  columns.prefer(KernelFamily::trained);
  IM_CHECK(family_of(columns.place(narrow, labels), KernelFamily::hydra).open);
}

void a_search_shows_what_it_finds(ImGuiTestContext*) {
  GridColumns columns;
  columns.toggle(KernelFamily::trained, true);
  columns.search("HEDGE");
  Families families = columns.place(20, labels);
  for (const GridColumns::Family& family : families) {
    IM_CHECK(family.open);
    for (const std::size_t kernel : family.kernels)
      IM_CHECK_NE(kernel_infos()[kernel].name.find("hedgehog"), std::string::npos);
  }
  IM_CHECK_EQ(shown_kernels(families), 5U);
  columns.search("hydra");
  families = columns.place(wide, labels);
  IM_CHECK_EQ(families.size(), 1U); // a family is found by its name
  columns.search("no such kernel");
  IM_CHECK(columns.place(wide, labels).empty());
}

// Types into the grid's search; the panel is the reference window.
void find_kernel(ImGuiTestContext* context, const char* text) {
  context->ItemInput("##search");
  context->KeyCharsReplace(text);
  context->KeyPress(ImGuiKey_Tab, 0); // leaves the field as it is
  context->Yield(2);
}

void register_grid_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "kernels", "every_kernel_has_a_column")->TestFunc = every_kernel_has_a_column;
  IM_REGISTER_TEST(engine, "kernels", "what_does_not_fit_is_folded")->TestFunc = what_does_not_fit_is_folded;
  IM_REGISTER_TEST(engine, "kernels", "an_opened_family_takes_room")->TestFunc = an_opened_family_takes_room;
  IM_REGISTER_TEST(engine, "kernels", "a_preferred_family_opens_until_the_user_chooses")->TestFunc =
      a_preferred_family_opens_until_the_user_chooses;
  IM_REGISTER_TEST(engine, "kernels", "a_search_shows_what_it_finds")->TestFunc =
      a_search_shows_what_it_finds;
  IM_REGISTER_TEST(engine, "kernels", "families_fold_and_open")->TestFunc = [](ImGuiTestContext* context) {
    start_over(context);
    context->SetRef("//###kernels");
    find_kernel(context, "");
    IM_CHECK(context->ItemExists("**/$$3/softmax"));
    IM_CHECK(context->ItemExists("**/$$3/hydra-cosine"));
    IM_CHECK(!context->ItemExists("**/$$3/hedgehog")); // no room
    context->ItemClick("**/families/learned maps");
    context->Yield(2);
    IM_CHECK(context->ItemExists("**/$$3/hedgehog"));
    const Document before = copy_of_document();
    context->ItemClick("**/families/learned maps");
    context->Yield(2);
    IM_CHECK(!context->ItemExists("**/$$3/hedgehog"));
    IM_CHECK(document() == before);
    context->ItemClick("**/families/Hydra"); // the last opened, as at the start
    if (!context->ItemExists("**/$$3/hydra-cosine")) context->ItemClick("**/families/Hydra");
    context->Yield(2);
    IM_CHECK(context->ItemExists("**/$$3/hydra-cosine"));
  };

  IM_REGISTER_TEST(engine, "kernels", "a_kernel_is_found_and_set_in_a_small_window")->TestFunc =
      [](ImGuiTestContext* context) {
        start_over(context);
        bool off_screen = false;
        between_frames(context, [&] {
          off_screen = application().display().description().starts_with("off screen");
          if (off_screen) application().display().resize(1280, 720);
        });
        settle(context);
        context->SetRef("//###kernels");
        find_kernel(context, "performer");
        IM_CHECK(context->ItemExists("**/$$0/performer"));
        IM_CHECK(!context->ItemExists("**/$$0/softmax"));
        const ImRect first = context->ItemInfo("**/$$0/performer").RectFull;
        IM_CHECK_GE(first.GetHeight(), 14.0f);
        context->ItemClick("**/$$11/performer");
        settle(context);
        IM_CHECK_STR_EQ(results().any()->layers.back().kernel.name.c_str(), "performer");
        IM_CHECK(results().any()->layers.back().untrained); // and the grid had said so
        // Enter runs what is found in the selected layer.
        select_layer(editor(), 4);
        context->Yield(2);
        context->ItemInput("##search");
        context->KeyCharsReplaceEnter("taylor");
        settle(context);
        IM_CHECK_STR_EQ(results().any()->layers[4].kernel.name.c_str(), "taylor");
        find_kernel(context, "");
        if (off_screen) between_frames(context, [] { application().display().resize(1600, 1000); });
        start_over(context);
      };

  IM_REGISTER_TEST(engine, "kernels", "card_asks_for_weights_only_while_it_is_shown")
      ->TestFunc = [](ImGuiTestContext* context) {
    start_over(context);
    const int layer = document().scene().layer;
    const WeightsKey key{.layer = layer, .kernel = KernelSpec{"hydra-mean", {}}};
    const Document before = copy_of_document();
    IM_CHECK(!find(results(), key));
    context->SetRef("//###kernels");
    context->MouseMove("**/names/hydra-mean");
    const double rest = editor().clock() + 0.4;
    while (editor().clock() < rest) context->Yield(); // the pointer rests
    settle(context);
    IM_CHECK(find(results(), key).result != nullptr);
    IM_CHECK(find(results(), WeightsKey{.layer = layer, .kernel = KernelSpec{}}).result != nullptr);
    IM_CHECK(document() == before);
    between_frames(context, [] { // for the eye, in the build folder
      if (!application().display().description().starts_with("off screen")) return;
      const auto folder = test::program().parent_path() / "window_screenshots" / "kernels";
      std::filesystem::create_directories(folder);
      write_png(folder / "card.png", application().read_frame());
    });
    context->MouseMoveToPos(ImVec2(1, 1));
    const double begin = editor().clock();
    context->MouseMove("**/names/hydra-l1"); // passed by, not rested on
    context->Yield(1);
    context->MouseMoveToPos(ImVec2(1, 1));
    const bool rested = editor().clock() - begin > 0.2; // on a busy machine
    settle(context);
    IM_CHECK(rested || !find(results(), WeightsKey{.layer = layer, .kernel = KernelSpec{"hydra-l1", {}}}));
  };
}

} // namespace

void register_kernel_tests(ImGuiTestEngine* engine) {
  register_grid_tests(engine);
  IM_REGISTER_TEST(engine, "kernels", "click_switches_layer")->TestFunc = [](ImGuiTestContext* context) {
    start_over(context);
    const int last = document().scene().model->layers - 1;
    const std::uint64_t before = results().any()->generation;
    const auto old_focus = find(results(), FocusKey{last});
    IM_CHECK(old_focus.result != nullptr);
    const std::vector<float> old_map = old_focus.result->contributions.values;
    context->SetRef("//###kernels");
    context->ItemClick("**/$$11/hydra-cosine");
    settle(context);
    IM_CHECK_STR_EQ(document().scene().schedules[0].layers[static_cast<std::size_t>(last)].name.c_str(),
                    "hydra-cosine");
    const RunResult* run = results().any();
    IM_CHECK_GT(run->generation, before);
    IM_CHECK_STR_EQ(run->layers[static_cast<std::size_t>(last)].kernel.name.c_str(), "hydra-cosine");
    IM_CHECK_STR_EQ(run->layers.front().kernel.name.c_str(), "softmax");
    const auto new_focus = find(results(), FocusKey{last});
    IM_CHECK(new_focus.result != nullptr);
    IM_CHECK(new_focus.result->contributions.values != old_map);

    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Z);
    settle(context);
    IM_CHECK_STR_EQ(document().scene().schedules[0].layers[static_cast<std::size_t>(last)].name.c_str(),
                    "softmax");
    IM_CHECK_STR_EQ(results().any()->layers[static_cast<std::size_t>(last)].kernel.name.c_str(), "softmax");
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Y);
    settle(context);
    IM_CHECK_STR_EQ(results().any()->layers[static_cast<std::size_t>(last)].kernel.name.c_str(),
                    "hydra-cosine");
  };

  IM_REGISTER_TEST(engine, "kernels", "presets_are_applied_by_their_button")->TestFunc =
      [](ImGuiTestContext* context) {
        start_over(context);
        set_layer_kernel(editor(), 3, {.name = "elu", .parameters = {}});
        set_layer_kernel(editor(), 7, {.name = "relu", .parameters = {}});
        settle(context);
        const Document before = copy_of_document(); // with a schedule made by hand
        context->SetRef("//###kernels");
        context->ItemDragWithDelta("##k", ImVec2(20, 0)); // not to its end: some layers stay softmax
        context->ItemClick("strategy/last");
        settle(context);
        IM_CHECK(document() == before);
        context->ItemClick("###apply_preset");
        settle(context);
        IM_CHECK(!(document() == before));
        const auto& layers = document().scene().schedules[0].layers;
        IM_CHECK_STR_EQ(layers.back().name.c_str(), "hydra-cosine");
        IM_CHECK_STR_EQ(layers.front().name.c_str(), "softmax");
        editor().undo();
        IM_CHECK(document() == before);
      };

  IM_REGISTER_TEST(engine, "kernels", "what_cannot_run_says_why")->TestFunc = [](ImGuiTestContext* context) {
    start_over(context);
    set_layer_kernel(editor(), 5, {.name = "cosformer", .parameters = {{"m", "16"}}});
    settle(context);
    const Document before = copy_of_document();
    IM_CHECK(!results().error.empty()); // the run says so, too
    context->SetRef("//###kernels");
    find_kernel(context, "cosformer");
    context->MouseMove("**/$$5/cosformer");
    context->Yield(2);
    // What a click puts in can run: cosformer as it is by default.
    context->ItemClick("**/$$5/cosformer");
    settle(context);
    IM_CHECK(!(document() == before));
    IM_CHECK(results().error.empty());

    // On a device that is not there nothing can, and a click says so instead of doing anything.
    editor().change("Device of a test", [](Document& document) { document.execution.device = "cuda"; });
    settle(context);
    const Document on_cuda = copy_of_document();
    const std::size_t messages = editor().messages().size();
    find_kernel(context, "elu");
    context->ItemClick("**/$$3/elu");
    context->Yield(2);
    IM_CHECK(document() == on_cuda);
    IM_CHECK_GT(editor().messages().size(), messages);
    const std::string& said = editor().messages().back().text;
    IM_CHECK(said.find("elu cannot run in layer 3") != std::string::npos);
    find_kernel(context, "");
  };

  IM_REGISTER_TEST(engine, "kernels", "heads_slider_takes_divisors_and_is_one_step")->TestFunc =
      [](ImGuiTestContext* context) {
        start_over(context);
        set_layer_kernel(editor(), 11, {.name = "linear-cosine", .parameters = {}});
        settle(context);
        const Document before = copy_of_document();
        context->SetRef("//###kernels");
        context->ItemDragWithDelta("heads/##value", ImVec2(40, 0));
        settle(context);
        const KernelSpec& kernel = document().scene().schedules[0].layers[11];
        IM_CHECK(kernel.parameters.contains("heads"));
        const int heads = std::stoi(kernel.parameters.at("heads"));
        IM_CHECK_EQ(document().scene().model->width % heads, 0);
        IM_CHECK_NE(heads, document().scene().model->heads);
        IM_CHECK_STR_EQ(results().any()->layers[11].kernel.text().c_str(), kernel.text().c_str());
        editor().undo();
        IM_CHECK(document() == before);
        editor().redo();
        context->ItemClick("norm/value/row");
        IM_CHECK_STR_EQ(document().scene().schedules[0].layers[11].parameters.at("norm").c_str(), "row");
        context->ItemClick("heads/reset");
        context->ItemClick("norm/reset");
        IM_CHECK(document().scene().schedules[0].layers[11].parameters.empty());
      };

  IM_REGISTER_TEST(engine, "kernels", "parameters_of_all_layers_with_the_kernel")->TestFunc =
      [](ImGuiTestContext* context) {
        start_over(context);
        set_layer_kernel(editor(), 4, hedgehog);
        set_layer_kernel(editor(), 7, hedgehog);
        context->Yield(2);
        context->SetRef("//###kernels");
        context->ItemClick("shared/##value");
        const auto& layers = document().scene().schedules[0].layers;
        IM_CHECK_STR_EQ(layers[7].text().c_str(), "hedgehog:shared=1");
        IM_CHECK_STR_EQ(layers[4].text().c_str(), "hedgehog");
        context->ItemClick("##everywhere");
        context->ItemClick("bias/##value");
        IM_CHECK_STR_EQ(layers[7].text().c_str(), "hedgehog:bias=0,shared=1");
        IM_CHECK_STR_EQ(layers[4].text().c_str(), "hedgehog:bias=0");
        context->ItemClick("##everywhere"); // as it was, for the tests that follow
      };

  IM_REGISTER_TEST(engine, "kernels", "adapters_are_found_and_chosen")->TestFunc =
      [](ImGuiTestContext* context) {
        start_over(context);
        set_layer_kernel(editor(), 10, {.name = "hydra-cosine", .parameters = {}});
        set_layer_kernel(editor(), 11, {.name = "hydra-cosine", .parameters = {}});
        settle(context);
        const RunResult* run = results().any();
        IM_CHECK(run->available_adapters != nullptr);
        IM_CHECK_GE(run->available_adapters->size(), 2U);
        const auto found = found_adapters(*run, 11, run->layers[11].kernel);
        IM_CHECK(std::ranges::any_of(
            found, [](const FoundAdapter& each) { return each.bundled && each.applied && each.holds; }));
        IM_CHECK(!adapter_state(*run, 11, found).warning);

        context->SetRef("//###kernels");
        context->ItemClick("##adapter");
        context->ItemClick("//$FOCUSED/none");
        settle(context);
        IM_CHECK(!document().scene().adapters.automatic);
        IM_CHECK(document().scene().adapters.files.empty());
        run = results().any();
        IM_CHECK(run->layers[11].untrained);
        const auto unused = found_adapters(*run, 11, run->layers[11].kernel);
        const AdapterState state = adapter_state(*run, 11, unused);
        IM_CHECK(state.warning);
        IM_CHECK(state.text.find("not in use") != std::string::npos);

        // By its file, with what it was trained over.
        const auto holds = std::ranges::find_if(unused, &FoundAdapter::holds);
        IM_CHECK(holds != unused.end());
        IM_CHECK(open_adapter(editor(), holds->info.path));
        settle(context);
        IM_CHECK_STR_EQ(document().scene().adapters.files.back().c_str(), holds->info.path.c_str());
        IM_CHECK(!results().any()->layers[11].untrained);
        editor().undo();
        IM_CHECK(document().scene().adapters.files.empty());
      };

  IM_REGISTER_TEST(engine, "kernels", "side_b_runs_beside_a")->TestFunc = [](ImGuiTestContext* context) {
    start_over(context);
    set_all_kernels(editor(), {.name = "elu", .parameters = {}});
    context->SetRef("//###focus");
    context->ItemClick("side/A − B");
    settle(context);
    const SideResults& b = application().coordinator().results(Side::b);
    IM_CHECK(b.any() != nullptr);
    IM_CHECK_STR_EQ(b.any()->layers.front().kernel.name.c_str(), "softmax");
    IM_CHECK_STR_EQ(results().any()->layers.front().kernel.name.c_str(), "elu");
  };
}

} // namespace hydrascope::app::window_tests
