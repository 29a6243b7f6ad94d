// The panels that look into the weights: vectors, tokens, weights of many kernels, monotonicity, output
// change.
#include <cmath>
#include <string>

#include "app/document/edits.h"
#include "app/views/scatter_view.h"
#include "app/views/selection.h"
#include "app/views/vectors_view.h"
#include "engine/run/quantities/head_quantity.h"
#include "engine/run/quantities/vectors.h"
#include "engine/run/quantities/weight_tile.h"
#include "engine/run/quantities/weights.h"
#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

namespace {

const KernelSpec two_heads{.name = "linear-cosine", .parameters = {{"heads", "2"}}};

// On a sentence or the photograph, with this panel in front and everything it asked for.
void show(ImGuiTestContext* context, const char* panel, bool sentence) {
  start_over(context);
  if (sentence) open_text(editor(), "The cat sat on the mat because it was tired.");
  context->WindowFocus(panel);
  context->SetRef(panel);
  settle(context);
}

VectorsKey vectors_of(const KernelSpec& kernel, int head, std::int64_t query) {
  return {.layer = document().scene().layer, .kernel = kernel, .head = head, .query = query};
}

WeightsKey weights_of(const KernelSpec& kernel) {
  return {.layer = document().scene().layer, .kernel = kernel};
}

double sum(const std::vector<double>& values) {
  double total = 0;
  for (const double value : values) total += value;
  return total;
}

void register_vectors_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "vectors", "products_sum_to_the_weight")->TestFunc =
      [](ImGuiTestContext* context) {
        show(context, "//###vectors", true);
        select_query(editor(), 2);
        select_key(editor(), 6);
        select_detail_kernel(editor(), hedgehog);
        settle(context);
        const auto found = find(results(), vectors_of(hedgehog, 0, 2));
        IM_CHECK(found.result != nullptr);
        const VectorsView view = vectors_view(*found.run, *found.result, 6);
        IM_CHECK_EQ(view.strips.size(), 6U);
        double all = 0;
        for (std::int64_t key = 0; key < found.result->k.extent(1); ++key)
          all += sum(vectors_view(*found.run, *found.result, key).strips.back().values);
        context->WindowFocus("//###weights");
        compare_kernel(editor(), 1, hedgehog);
        settle(context);
        const auto weights = find(results(), weights_of(hedgehog));
        IM_CHECK(weights.result != nullptr);
        const auto tokens = static_cast<std::size_t>(weights.result->weights.extent(2));
        const double weight = static_cast<double>(weights.result->weights.slice(0)[2 * tokens + 6]);
        IM_CHECK_LT(std::abs(sum(view.strips.back().values) / all - weight), 1e-5);
      };

  IM_REGISTER_TEST(engine, "vectors", "hovered_token_is_the_key")->TestFunc = [](ImGuiTestContext* context) {
    show(context, "//###vectors", true);
    context->MouseMove("//###focus/**/$$4/token");
    context->Yield(3);
    IM_CHECK(editor().hovered_token() == 4);
    context->SetRef("//###vectors");
    IM_CHECK(context->ItemExists("$$2/strip"));
    IM_CHECK(!context->ItemExists("$$3/strip")); // softmax has no feature map
  };

  IM_REGISTER_TEST(engine, "vectors", "feature_of_a_hydra_layer_opens")->TestFunc =
      [](ImGuiTestContext* context) {
        show(context, "//###vectors", false);
        select_detail_kernel(editor(), hydra);
        settle(context);
        VectorsKey key = vectors_of(hydra, 0, 0);
        key.gradient = true;
        const auto found = find(results(), key);
        IM_CHECK(found.result != nullptr);
        IM_CHECK_EQ(found.result->gradient.values.size(), found.result->global.values.size());
        const HeatMapPanel filling = filling_panel(*found.run, *found.result, 7);
        IM_CHECK_EQ(filling.values.shape[0], found.run->rows);
        IM_CHECK(!context->ItemExists("filling"));
        context->ItemClick("$$0/strip");
        context->Yield(2);
        IM_CHECK(context->ItemExists("filling"));
        IM_CHECK(context->ItemExists("rank_one"));
        context->ItemClick("$$0/strip"); // the same feature again
        context->Yield(2);
        IM_CHECK(!context->ItemExists("filling"));
      };
}

void register_tokens_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "tokens", "heads_come_and_go")->TestFunc = [](ImGuiTestContext* context) {
    show(context, "//###tokens", true);
    const int heads = document().scene().model->heads;
    IM_CHECK(document().scene().head.head == 0);
    context->ItemClick("$$3/head");
    context->Yield(2);
    IM_CHECK(!document().scene().head.head);
    IM_CHECK(document().scene().head.subset == (std::vector<int>{0, 3}));
    context->ItemDoubleClick("$$5/head");
    context->Yield(2);
    IM_CHECK(document().scene().head.head == 5);
    context->ItemDoubleClick("$$5/head");
    context->Yield(2);
    IM_CHECK_EQ(shown_heads(document().scene().head, heads).size(), static_cast<std::size_t>(heads));
  };

  IM_REGISTER_TEST(engine, "tokens", "words_are_queries_and_keys")->TestFunc = [](ImGuiTestContext* context) {
    show(context, "//###tokens", true);
    context->MouseMove("**/$$3/query");
    context->Yield(2);
    IM_CHECK(editor().hovered_token() == 3);
    context->MouseClick();
    settle(context);
    IM_CHECK(!document().scene().default_query);
    IM_CHECK(document().scene().query == 3);
    context->ItemClick("**/$$5/key");
    context->Yield(2);
    IM_CHECK(document().scene().key == 5);
    context->ItemClick("**/$$3/query");
    settle(context);
    IM_CHECK(document().scene().default_query);
  };

  IM_REGISTER_TEST(engine, "tokens", "pairs_are_filtered")->TestFunc = [](ImGuiTestContext* context) {
    start_over(context);
    open_text(editor(), "The cat sleeps.", "The dog barks.");
    context->WindowFocus("//###tokens");
    context->SetRef("//###tokens");
    settle(context);
    context->ItemClick("pairs/1→2");
    context->Yield(2);
    IM_CHECK(document().view.pairs == TokenPairs::a_to_b);
    const auto found = find(results(), weights_of(softmax));
    IM_CHECK(found.result != nullptr);
    const auto second = second_sentence(*found.run);
    IM_CHECK(second.has_value());
    const std::vector<int> heads = {0, 1, 2};
    const TokenLines lines = strongest_lines(*found.result, heads, TokenPairs::a_to_b, second, 1000);
    IM_CHECK(!lines.lines.empty());
    for (const TokenLine& line : lines.lines) {
      IM_CHECK_LT_NO_RET(line.query, *second);
      IM_CHECK_GE_NO_RET(line.key, *second);
    }
  };

  IM_REGISTER_TEST(engine, "tokens", "a_head_that_the_kernel_lacks_is_not_exported")->TestFunc =
      [](ImGuiTestContext* context) {
        show(context, "//###tokens", true);
        select_detail_kernel(editor(), two_heads);
        select_head(editor(), {.head = 1});
        settle(context);
        IM_CHECK(application().figure_of("tokens").has_value());
        select_head(editor(), {.head = 5});
        settle(context);
        IM_CHECK(!application().figure_of("tokens").has_value());
        start_over(context);
      };

  IM_REGISTER_TEST(engine, "tokens", "512_tokens_have_lines")->TestFunc = [](ImGuiTestContext* context) {
    start_over(context);
    std::string text;
    for (int i = 0; i < 140; ++i) text += "cats chase mice . ";
    open_text(editor(), text);
    context->WindowFocus("//###tokens");
    context->SetRef("//###tokens");
    settle(context);
    const auto found = find(results(), weights_of(softmax));
    IM_CHECK(found.result != nullptr);
    IM_CHECK_EQ(found.result->weights.extent(2), 512);
    std::vector<int> heads;
    for (int head = 0; head < document().scene().model->heads; ++head) heads.push_back(head);
    const TokenLines lines = strongest_lines(*found.result, heads, TokenPairs::all, {}, 6000);
    IM_CHECK_LE(lines.lines.size(), 6000U);
    IM_CHECK_EQ(static_cast<std::int64_t>(lines.lines.size()) + lines.left_out,
                std::int64_t{512} * 512 * static_cast<std::int64_t>(heads.size()));
  };
}

void register_weights_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "weights", "kernels_are_added_and_dropped")->TestFunc =
      [](ImGuiTestContext* context) {
        show(context, "//###weights", false);
        IM_CHECK_EQ(document().scene().comparison.size(), 2U);
        context->ItemClick("###add_kernel");
        context->ItemClick("//$FOCUSED/performer");
        settle(context);
        IM_CHECK_EQ(document().scene().comparison.size(), 3U);
        const KernelSpec third = compared_kernel(document(), 2);
        IM_CHECK_STR_EQ(third.name.c_str(), "performer");
        context->ItemClick("###add_kernel");
        IM_CHECK(context->ItemInfo("//$FOCUSED/performer").ItemFlags & ImGuiItemFlags_Disabled);
        context->PopupCloseAll();
        IM_CHECK(find(results(), weights_of(third)).result != nullptr);
        IM_CHECK(context->ItemExists("$$2/map"));
        context->ItemClick("$$1/×##drop");
        settle(context);
        IM_CHECK_EQ(document().scene().comparison.size(), 2U);
        IM_CHECK(compared_kernel(document(), 1) == third);
        editor().undo();
        editor().undo();
        IM_CHECK_EQ(document().scene().comparison.size(), 2U);
      };

  IM_REGISTER_TEST(engine, "weights", "wheel_zooms_and_click_chooses_a_pair")->TestFunc =
      [](ImGuiTestContext* context) {
        show(context, "//###weights", false);
        IM_CHECK(!context->ItemExists("whole"));
        context->MouseMove("$$0/map");
        context->MouseWheelY(4);
        context->Yield(2);
        IM_CHECK(context->ItemExists("whole"));
        context->MouseClick();
        settle(context);
        IM_CHECK(document().scene().query.has_value());
        IM_CHECK(document().scene().key.has_value());
        context->ItemClick("whole");
        context->Yield(2);
        IM_CHECK(!context->ItemExists("whole"));
      };

  IM_REGISTER_TEST(engine, "weights", "thumbnail_opens_a_head")->TestFunc = [](ImGuiTestContext* context) {
    show(context, "//###weights", false);
    context->ItemClick("extent/all heads");
    settle(context);
    IM_CHECK(document().view.all_heads);
    context->ItemClick("$$3002/thumbnail");
    settle(context);
    IM_CHECK(!document().view.all_heads);
    IM_CHECK_EQ(document().scene().layer, 3);
    IM_CHECK(document().scene().head.head == 2);
    IM_CHECK(find(results(), WeightsKey{.layer = 3, .kernel = softmax}).result != nullptr);
  };

  IM_REGISTER_TEST(engine, "weights", "long_inputs_come_in_tiles")->TestFunc = [](ImGuiTestContext* context) {
    show(context, "//###weights", false);
    editor().change("Image size", [](Document& changed) { changed.execution.image_size = 448; });
    settle(context);
    const auto count = [] {
      std::size_t tiles = 0;
      for (const auto& part : results().parts) tiles += part->quantities.all<TileKey>().size();
      return tiles;
    };
    const auto tokens = static_cast<std::int64_t>(results().any()->tokens.size());
    IM_CHECK_GT(tokens, 600);
    IM_CHECK(find(results(), weights_of(softmax)).result == nullptr);
    IM_CHECK_GE(count(), 2U); // the whole of both kernels
    const std::size_t before = count();
    context->MouseMove("$$0/map");
    context->MouseWheelY(6);
    const double moved = editor().clock(); // the view has to stand still for a moment of the program's time
    while (editor().clock() < moved + 0.2 && !context->IsError()) context->Yield();
    settle(context);
    IM_CHECK_GT(count(), before);
    bool fine = false;
    for (const auto& part : results().parts) {
      for (const auto& [key, tile] : part->quantities.all<TileKey>()) {
        fine = fine || key.rows == key.row_count;
        IM_CHECK_LE_NO_RET(tile->values.values.size(), std::size_t{512} * 512);
      }
    }
    IM_CHECK(fine);
  };

  IM_REGISTER_TEST(engine, "weights", "tiles_of_a_kernel_with_heads_of_its_own")->TestFunc =
      [](ImGuiTestContext* context) {
        show(context, "//###weights", false);
        set_layer_kernel(editor(), document().scene().layer, two_heads);
        select_head(editor(), {});
        editor().change("Image size", [](Document& changed) { changed.execution.image_size = 448; });
        settle(context);
        bool mean_of_all = false;
        for (const auto& part : results().parts)
          for (const auto& [key, tile] : part->quantities.all<TileKey>())
            mean_of_all = mean_of_all || (key.kernel == two_heads && key.heads.empty());
        IM_CHECK(mean_of_all);
        IM_CHECK(context->ItemExists("$$1/map"));
        select_head(editor(), {.head = 5});
        settle(context);
        IM_CHECK_STR_EQ(results().error.c_str(), "");
        IM_CHECK(context->ItemExists("$$0/map"));
        IM_CHECK(!context->ItemExists("$$1/map")); // a message is in its place
        start_over(context);
      };
}

void register_measure_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "monotonicity", "softmax_is_monotone")->TestFunc = [](ImGuiTestContext* context) {
    show(context, "//###monotonicity", true);
    IM_CHECK(context->ItemExists("scatter"));
    select_detail_kernel(editor(), softmax);
    settle(context);
    const auto vectors = find(results(), vectors_of(softmax, 0, 0));
    const auto weights = find(results(), weights_of(softmax));
    IM_CHECK(vectors.result != nullptr);
    IM_CHECK(weights.result != nullptr);
    const ScatterView view = scatter_view(*weights.run, *weights.result, *vectors.result, 1, false);
    IM_CHECK_GT(view.correlation, 0.999);
    select_detail_kernel(editor(), hedgehog);
    settle(context);
    const auto other = find(results(), weights_of(hedgehog));
    IM_CHECK(other.result != nullptr);
    const auto table = find(results(), HeadTableKey{"monotonicity", hedgehog});
    IM_CHECK(table.result != nullptr);
    const ScatterView second = scatter_view(*other.run, *other.result, *vectors.result, 1, false);
    IM_CHECK_LT(second.correlation, 0.999);
    // The last layer's q and k are the softmax run's own: the engine's ρ of the same head is the same number.
    const auto row = table.result->values.slice(document().scene().layer);
    IM_CHECK_LT(std::abs(second.correlation - static_cast<double>(row[1])), 1e-4);
    IM_CHECK_EQ(second.pairs,
                static_cast<std::int64_t>(vectors.run->tokens.size() * vectors.run->tokens.size()));
  };

  IM_REGISTER_TEST(engine, "change", "measures_and_cells")->TestFunc = [](ImGuiTestContext* context) {
    show(context, "//###change", true);
    const KernelSpec kernel = compared_kernel(document(), 1);
    IM_CHECK(find(results(), HeadTableKey{"change", kernel}).result != nullptr);
    context->ItemClick("measure/cosine");
    point_at_head(context, {2, 4});
    context->MouseClick();
    context->Yield(2);
    IM_CHECK_EQ(document().scene().layer, 2);
    IM_CHECK(document().scene().head.head == 4);
    set_all_kernels(editor(), hydra);
    settle(context);
    IM_CHECK(find(results(), HeadTableKey{"change"}).result != nullptr); // in place now
  };
}

} // namespace

void register_view_tests(ImGuiTestEngine* engine) {
  register_vectors_tests(engine);
  register_tokens_tests(engine);
  register_weights_tests(engine);
  register_measure_tests(engine);
}

} // namespace hydrascope::app::window_tests
