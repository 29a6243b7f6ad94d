// A, B and A − B side by side: every panel has its three columns, on a photograph and on a sentence, and a
// difference is one.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <imgui_internal.h>

#include "app/document/edits.h"
#include "app/panels/heads/head_table.h"
#include "app/panels/side_columns.h"
#include "app/panels/weights/weights_column.h"
#include "app/views/table_views.h"
#include "app/views/vectors_view.h"
#include "app/views/weights_view.h"
#include "engine/base/error.h"
#include "engine/run/quantities/head_quantity.h"
#include "engine/run/quantities/weights.h"
#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

namespace {

// The columns that are drawn within a panel.
int columns_of(std::string_view panel) {
  const std::string inside = "###" + std::string(panel) + "/side_";
  return static_cast<int>(
      std::ranges::count_if(ImGui::GetCurrentContext()->Windows, [&](ImGuiWindow* window) {
        const std::string_view name = window->Name;
        const auto at = name.find(inside);
        return window->WasActive && at != std::string_view::npos &&
               name.find('/', at + inside.size()) == name.npos;
      }));
}

const SideResults& of_b() { return application().coordinator().results(Side::b); }

void three_columns_everywhere(ImGuiTestContext* context) {
  for (const bool sentence : {false, true}) {
    start_over(context);
    if (sentence) open_text(editor(), "The cat sat on the mat.");
    set_layer_kernel(editor(), document().scene().layer, elu);
    change_view(editor(), "all", [](ViewOptions& view) { view.shown = Shown::all; });
    for (const char* panel : {"tokens", "vectors", "entropy", "kl", "monotonicity", "change"}) {
      if (!editor().status().panels_in_front.contains(panel))
        IM_CHECK(application().run(std::string("view.panel.") + panel));
      settle(context);
      IM_CHECK_EQ(columns_of(panel), 3);
    }
    change_view(editor(), "A", [](ViewOptions& view) { view.shown = Shown::a; });
    settle(context);
    IM_CHECK_EQ(columns_of("change"), 0);
  }
  start_over(context);
}

// In a comparison each side is shown by its own kernels, softmax too.
void each_side_by_its_own_kernels(ImGuiTestContext* context) {
  start_over(context);
  open_text(editor(), "The cat sat on the mat.");
  set_layer_kernel(editor(), document().scene().layer, elu);
  change_view(editor(), "all", [](ViewOptions& view) { view.shown = Shown::all; });
  IM_CHECK(application().run("view.panel.kl"));
  settle(context);
  const std::vector<ColumnSource> sources = column_sources(document());
  IM_CHECK_EQ(sources.size(), 2U);
  IM_CHECK(sources[0].side == Side::a && sources[0].kernel == elu);
  IM_CHECK(sources[1].side == Side::b && sources[1].kernel == KernelSpec{});
  const auto a = find(results(), HeadTableKey{"kl"}), b = find(of_b(), HeadTableKey{"kl"});
  IM_CHECK(a.result != nullptr);
  IM_CHECK(b.result != nullptr);
  IM_CHECK(std::ranges::all_of(b.result->values.values, [](float each) { return std::abs(each) < 1e-6f; }));
  const HeatMapPanel left = head_table_panel(*a.run, *a.result), right = head_table_panel(*b.run, *b.result);
  const HeatMapPanel difference = head_table_difference(left, right);
  float largest = 0;
  for (std::size_t i = 0; i < difference.values.values.size(); ++i) {
    IM_CHECK_EQ_NO_RET(difference.values.values[i], left.values.values[i] - right.values.values[i]);
    largest = std::max(largest, std::abs(difference.values.values[i]));
  }
  IM_CHECK_GT(largest, 0.0f);
  IM_CHECK_EQ(difference.scale.high, static_cast<double>(largest));
  IM_CHECK_EQ(difference.scale.low, -difference.scale.high);
  start_over(context);
}

void weights_are_subtracted(ImGuiTestContext* context) {
  start_over(context);
  open_text(editor(), "The cats unhesitatingly sat.");
  set_layer_kernel(editor(), document().scene().layer, elu);
  change_view(editor(), "all", [](ViewOptions& view) { view.shown = Shown::all; });
  context->WindowFocus("//###weights");
  settle(context);
  const int layer = document().scene().layer;
  const auto a = find(results(), WeightsKey{.layer = layer, .kernel = elu});
  const auto b = find(of_b(), WeightsKey{.layer = layer, .kernel = softmax});
  IM_CHECK(a.result != nullptr);
  IM_CHECK(b.result != nullptr);
  const WeightsResult difference = subtract_weights(*a.result, *b.result);
  double row = 0;
  const std::int64_t keys = difference.weights.extent(2);
  for (std::int64_t key = 0; key < keys; ++key)
    row += static_cast<double>(difference.weights.values[static_cast<std::size_t>(key)]);
  IM_CHECK_LT(std::abs(row), 1e-5); // both rows sum to 1
  // Whole words: fewer tokens, and rows that still sum to one.
  const auto run = results().parts.back();
  const ShownWeights words = shown_weights(run, *a.result, {.special = true, .whole_words = true});
  IM_CHECK_LT(words.tokens.size(), run->tokens.size());
  IM_CHECK_EQ(words.weights->rows.size(), words.tokens.size());
  double sum = 0;
  for (std::size_t key = 0; key < words.tokens.size(); ++key)
    sum += static_cast<double>(words.weights->weights.values[key]);
  IM_CHECK_LT(std::abs(sum - 1), 1e-4);
  WeightsResult fewer = *b.result;
  fewer.weights.shape[0] -= 1;
  bool refused = false;
  try {
    subtract_weights(*a.result, fewer);
  } catch (const UsageError&) {
    refused = true;
  }
  IM_CHECK(refused);
  start_over(context);
}

void spreads_are_by_kernel(ImGuiTestContext* context) {
  HeatMapPanel panel;
  const float none = std::nanf("");
  panel.values = {{3, 2}, {3, 1, none, none, 2, 5}};
  const std::vector<KernelSpread> spreads = kernel_spreads(panel, {"softmax", "hydra-cosine", "softmax"});
  IM_CHECK_EQ(spreads.size(), 1U); // Hydra's are undefined
  IM_CHECK(spreads[0].values == (std::vector<float>{1, 2, 3, 5}));
  IM_CHECK_EQ(spreads[0].median(), 3.0f);
  start_over(context);
  context->WindowFocus("//###entropy");
  settle(context);
  IM_CHECK(context->ItemExists("//###entropy/softmax/spread"));
}

void vectors_of_one_width_are_subtracted(ImGuiTestContext*) {
  VectorsView a, b;
  a.strips = {{"q", "", {3, 5}, ""}, {"φ(q)", "", {1, 2, 3}, ""}};
  b.strips = {{"q", "", {1, 7}, ""}, {"φ(q)", "", {1, 2}, ""}};
  const VectorsView difference = vectors_difference(a, b);
  IM_CHECK_EQ(difference.strips.size(), 1U);
  IM_CHECK(difference.strips[0].values == (std::vector<double>{2, -2}));
  IM_CHECK(difference.notes.back().find("φ(q)") != std::string::npos);
}

// The line of the Values panel that begins with this token, as its menu copies it.
std::string copied_line(ImGuiTestContext* context, const char* line) {
  context->SetRef("//###values");
  context->MouseMove(line);
  context->MouseClick(ImGuiMouseButton_Right);
  context->ItemClick("//$FOCUSED/Copy line");
  return ImGui::GetClipboardText();
}

void values_are_sorted_and_copied(ImGuiTestContext* context) {
  start_over(context);
  open_text(editor(), "The cat sat on the mat.");
  IM_CHECK(application().run("view.panel.values"));
  settle(context);
  const std::string line = copied_line(context, "**/$$3/   3");
  IM_CHECK(line.starts_with("3\tsat\t"));
  const auto found = find(results(), WeightsKey{.layer = document().scene().layer, .kernel = softmax});
  IM_CHECK(found.result != nullptr);
  const double weight = static_cast<double>(found.result->weights.values[3]);
  IM_CHECK_LT(std::abs(std::stod(line.substr(6)) - weight), 1e-7);
  start_over(context);
}

// Of more than 16 tokens, by a kernel in this layer. Shows A, B and A − B.
void let_fail(Side side, std::size_t layer) {
  editor().change("For few tokens", [&](Document& changed) {
    changed.scene().schedules[static_cast<std::size_t>(side)].layers.at(layer) = {
        .name = "cosformer", .parameters = {{"m", "16"}}};
  });
  change_view(editor(), "All", [](ViewOptions& view) { view.shown = Shown::all; });
}

const SideResults& results_of(Side side) { return application().coordinator().results(side); }

// One side cannot run on the longer text: its old results stand neither beside the other's new ones nor are
// they subtracted, and the other's keep their place.
void a_side_that_fails_leaves_nothing_old(ImGuiTestContext* context) {
  for (const Side failing : {Side::b, Side::a}) {
    const Side working = failing == Side::a ? Side::b : Side::a;
    start_over(context);
    open_text(editor(), "The cat sat on the mat.");
    let_fail(failing, document().scene().layer == 0 ? 1 : 0); // what is compared can run
    const auto has = [&](const char* panel, const char* item, int place) {
      const std::string in_place =
          place == 0 && item == std::string("rows") ? item : fmt::format("$${}/{}", place, item);
      return context->ItemExists(fmt::format("//###{}/{}", panel, in_place).c_str());
    };
    for (const std::string_view panel : {"focus", "layers", "values", "weights"}) {
      open_text(editor(), "The cat sat on the mat."); // 9 tokens
      editor().emit(BringToFront{std::string(panel)});
      settle(context);
      IM_CHECK(results_of(failing).error.empty() && !results_of(failing).stale);
      IM_CHECK_EQ(results_of(working).any()->tokens.size(), 9U);
      for (const int place : {0, 1}) {
        if (panel == "layers") IM_CHECK(has("layers", "rows", place));
        if (panel == "weights") IM_CHECK(has("weights", "map", place));
      }
      open_text(editor(), "The cat sat on the mat because it was tired and the dog was not there yet.");
      settle(context);
      dismiss_messages(editor()); // of the failure, which might lie over a panel
      context->Yield(2);
      IM_CHECK(!results_of(working).stale && results_of(failing).stale);
      IM_CHECK_GT(results_of(working).any()->tokens.size(), 16U);
      if (panel == "focus") { // the working side's alone
        IM_CHECK(context->ItemExists("//###focus/**/$$9/token"));
        const Figure figure = application().figure_of("focus").value();
        IM_CHECK_EQ(figure.panels.size(), 1U);
        IM_CHECK(!figure.provenance.empty());
      }
      if (panel == "values") {
        const auto found =
            find(results_of(working), WeightsKey{.layer = document().scene().layer, .kernel = softmax});
        IM_CHECK(found.result != nullptr);
        const std::string number =
            fmt::format("{:.9g}", static_cast<double>(found.result->weights.values[1]));
        const std::string cells = failing == Side::b ? number + "\t" : "\t" + number;
        IM_CHECK_STR_EQ(copied_line(context, "**/$$1/   1").c_str(), ("1\tthe\t" + cells + "\t").c_str());
      }
      for (const int place : {0, 1, 2}) { // A, B, A − B
        const bool there = place == static_cast<int>(working);
        if (panel == "layers") IM_CHECK_EQ(has("layers", "rows", place), there);
        if (panel == "weights") IM_CHECK_EQ(has("weights", "map", place), there);
      }
    }
  }
  start_over(context);
}

// A column that shows nothing but whether there are results.
struct AnyResults {
  bool there = false;
  void prepare(const Snapshot& snapshot) { there = snapshot.shown().any() != nullptr; }
  void subtract(const AnyResults& a, const AnyResults& b) { there = a.there && b.there; }
  bool empty() const { return !there; }
};

// B has failed without results.
void a_side_that_fails_says_why(ImGuiTestContext*) {
  Document shown_document = copy_of_document();
  SideResults a, b;
  b.error = "out of memory";
  Snapshot snapshot;
  snapshot.document = &shown_document;
  snapshot.results = {&a, &b};
  SideColumns<AnyResults> columns;
  const auto show = [&](Shown shown) {
    shown_document.view.shown = shown;
    columns.prepare(snapshot);
  };
  for (const Shown shown : {Shown::a, Shown::b, Shown::difference, Shown::all}) {
    show(shown);
    const bool both = shown == Shown::difference || shown == Shown::all;
    IM_CHECK_STR_EQ(why_none(snapshot, Side::a).c_str(), both ? "not there yet" : "");
    IM_CHECK_STR_EQ(why_none(snapshot, Side::b).c_str(), both ? "out of memory" : "");
    const std::string all = both ? "B: out of memory" : shown == Shown::b ? "out of memory" : "";
    IM_CHECK_STR_EQ(columns.failure().c_str(), all.c_str());
    IM_CHECK_EQ(columns.empty(), shown == Shown::a);
  }
  using Texts = std::array<std::string, 3>;
  IM_CHECK(failures_of(snapshot) == (Texts{"", "out of memory", "B: out of memory"}));
  IM_CHECK_STR_EQ(columns.why_empty(0).c_str(), "not there yet");
  IM_CHECK_STR_EQ(columns.why_empty(2).c_str(), "B: out of memory");
  a.cancelled = true;
  const std::string stopped = snapshot.failure(Side::a);
  IM_CHECK(failures_of(snapshot) == (Texts{stopped, "out of memory", "A: " + stopped}));

  // The failure of a comparison in another panel: what this one shows is still to come.
  b.parts = {std::make_shared<const RunResult>()};
  b.fresh = true;
  snapshot.computing = true;
  IM_CHECK_STR_EQ(why_none(snapshot, Side::b).c_str(), "");
  IM_CHECK(failures_of(snapshot)[1].empty());
  snapshot.computing = false;
  IM_CHECK_STR_EQ(why_none(snapshot, Side::b).c_str(), "out of memory");
  b.fresh = false; // its last results are of something else
  snapshot.computing = true;
  IM_CHECK_STR_EQ(why_none(snapshot, Side::b).c_str(), "out of memory");
}

// The rows are B's classes where A is the side that fails.
void predictions_stand_without_the_side_that_fails(ImGuiTestContext* context) {
  for (const Side failing : {Side::b, Side::a}) {
    start_over(context); // a photograph, which has more patches
    let_fail(failing, 5);
    editor().emit(BringToFront{"predictions"});
    settle(context);
    dismiss_messages(editor());
    context->Yield(2);
    const SideResults& working = results_of(failing == Side::a ? Side::b : Side::a);
    IM_CHECK(!results_of(failing).error.empty() && !working.stale);
    const std::string row =
        fmt::format("//###predictions/$${}/class", working.any()->predictions.front().index);
    IM_CHECK(context->ItemExists(row.c_str()));
    IM_CHECK_EQ(application().figure_of("predictions").value().panels.size(), 1U);
    editor().emit(BringToFront{"focus"});
    settle(context);
    const Figure focus = application().figure_of("focus").value();
    IM_CHECK_EQ(focus.panels.size(), 1U);
    IM_CHECK_EQ(focus.columns, 1); // with no blank place beside it
    IM_CHECK(!focus.provenance.empty());
    IM_CHECK(context->ItemExists("//###focus/##target")); // of the side that works
    editor().emit(BringToFront{"predictions"});
    settle(context);
    if (failing == Side::b) continue;
    change_view(editor(), "B", [](ViewOptions& view) { view.shown = Shown::b; });
    settle(context);
    IM_CHECK(context->ItemExists(row.c_str()));
  }
  start_over(context);
}

// The menu has a line to copy where it was opened on one, as long as that is there.
void no_line_is_copied_that_is_not_meant(ImGuiTestContext* context) {
  start_over(context);
  open_text(editor(), "The cat sat on the mat.");
  editor().emit(BringToFront{"values"});
  settle(context);
  context->SetRef("//###values");
  const auto open_menu = [&](const char* item) {
    context->MouseMove(item);
    context->MouseClick(ImGuiMouseButton_Right);
    context->Yield(2);
    IM_CHECK(context->ItemExists("//$FOCUSED/Copy table"));
  };
  const auto offers_line = [&] { return context->ItemExists("//$FOCUSED/Copy line"); };
  open_menu("**/$$3/   3");
  IM_CHECK(offers_line());
  context->PopupCloseAll();
  open_menu("##head");
  IM_CHECK(!offers_line());
  context->PopupCloseAll();
  open_menu("**/$$3/   3");
  open_text(editor(), "Owls."); // which has other lines
  settle(context);
  IM_CHECK(context->ItemExists("//$FOCUSED/Copy table"));
  IM_CHECK(!offers_line());
  context->PopupCloseAll();
  start_over(context);
}

} // namespace

void register_column_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "columns", "three_columns_everywhere")->TestFunc = three_columns_everywhere;
  IM_REGISTER_TEST(engine, "columns", "each_side_by_its_own_kernels")->TestFunc =
      each_side_by_its_own_kernels;
  IM_REGISTER_TEST(engine, "columns", "weights_are_subtracted")->TestFunc = weights_are_subtracted;
  IM_REGISTER_TEST(engine, "columns", "spreads_are_by_kernel")->TestFunc = spreads_are_by_kernel;
  IM_REGISTER_TEST(engine, "columns", "vectors_of_one_width")->TestFunc = vectors_of_one_width_are_subtracted;
  IM_REGISTER_TEST(engine, "columns", "values_are_sorted_and_copied")->TestFunc =
      values_are_sorted_and_copied;
  IM_REGISTER_TEST(engine, "columns", "a_side_that_fails_leaves_nothing_old")->TestFunc =
      a_side_that_fails_leaves_nothing_old;
  IM_REGISTER_TEST(engine, "columns", "a_side_that_fails_says_why")->TestFunc = a_side_that_fails_says_why;
  IM_REGISTER_TEST(engine, "columns", "predictions_stand_without_the_side_that_fails")->TestFunc =
      predictions_stand_without_the_side_that_fails;
  IM_REGISTER_TEST(engine, "columns", "no_line_is_copied_that_is_not_meant")->TestFunc =
      no_line_is_copied_that_is_not_meant;
}

} // namespace hydrascope::app::window_tests
