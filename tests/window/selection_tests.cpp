// The selection that all panels share: query token, layer, head, class.
#include "app/document/edits.h"
#include "engine/run/quantities/focus_map.h"
#include "engine/run/quantities/head_quantity.h"
#include "engine/run/quantities/weights.h"
#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

void register_selection_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "selection", "patch_becomes_query")->TestFunc = [](ImGuiTestContext* context) {
    start_over(context);
    context->SetRef("//###focus");
    context->MouseMove("photograph");
    context->Yield(2);
    IM_CHECK(editor().hovered_token().has_value());
    const std::int64_t under = *editor().hovered_token();
    IM_CHECK_GE(under, results().any()->prefix_tokens);
    context->MouseClick();
    settle(context);
    IM_CHECK(!document().scene().default_query);
    IM_CHECK(document().scene().query == under);
    IM_CHECK(results().any()->query == under);
    context->MouseClick(); // again: back to what the target reads
    settle(context);
    IM_CHECK(document().scene().default_query);
  };

  IM_REGISTER_TEST(engine, "selection", "thumbnail_selects_layer")->TestFunc = [](ImGuiTestContext* context) {
    start_over(context);
    context->SetRef("//###layers");
    context->ItemClick("$$3/thumbnail");
    settle(context);
    IM_CHECK_EQ(document().scene().layer, 3);
    IM_CHECK(find(results(), FocusKey{3}).result != nullptr);
    context->KeyPress(ImGuiKey_DownArrow);
    context->Yield(2);
    IM_CHECK_EQ(document().scene().layer, 4);
  };

  IM_REGISTER_TEST(engine, "selection", "entropy_cell_selects_head")->TestFunc =
      [](ImGuiTestContext* context) {
        start_over(context);
        context->SetRef("//###entropy");
        context->WindowFocus("//###entropy");
        settle(context);
        IM_CHECK(find(results(), HeadTableKey{"entropy"}).result != nullptr);
        point_at_head(context, {5, 2});
        context->MouseClick();
        context->Yield(2);
        IM_CHECK_EQ(document().scene().layer, 5);
        IM_CHECK(document().scene().head.head == 2);
        settle(context);
        IM_CHECK(find(results(), WeightsKey{.layer = 5, .kernel = softmax}).result != nullptr);
      };
}

} // namespace hydrascope::app::window_tests
