// Switching kernels in the grid and by presets: the run that follows really ran them.
#include "app/state/edits.h"
#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

void register_kernel_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "kernels", "click_switches_layer")->TestFunc = [](ImGuiTestContext* context) {
    start_over(context);
    const int last = document().scene().model->layers - 1;
    const std::uint64_t before = results().any()->generation;
    const FoundFocus old_focus = find_focus(results(), last);
    IM_CHECK(old_focus.focus != nullptr);
    const std::vector<float> old_map = old_focus.focus->contributions.values;
    context->SetRef("//###kernels");
    context->ItemClick("**/$$11/hydra-cosine");
    settle(context);
    IM_CHECK_STR_EQ(document().scene().schedules[0].layers[static_cast<std::size_t>(last)].name.c_str(),
                    "hydra-cosine");
    const RunResult* run = results().any();
    IM_CHECK_GT(run->generation, before);
    IM_CHECK_STR_EQ(run->layers[static_cast<std::size_t>(last)].kernel.name.c_str(), "hydra-cosine");
    IM_CHECK_STR_EQ(run->layers.front().kernel.name.c_str(), "softmax");
    const FoundFocus new_focus = find_focus(results(), last);
    IM_CHECK(new_focus.focus != nullptr);
    IM_CHECK(new_focus.focus->contributions.values != old_map);

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

  IM_REGISTER_TEST(engine, "kernels", "preset_slider_is_one_step")->TestFunc = [](ImGuiTestContext* context) {
    start_over(context);
    const Document before = copy_of_document();
    context->SetRef("//###kernels");
    context->ItemDragWithDelta("##k", ImVec2(60, 0));
    settle(context);
    IM_CHECK(!(document() == before));
    const auto& layers = document().scene().schedules[0].layers;
    IM_CHECK_STR_EQ(layers.back().name.c_str(), "hydra-cosine");
    IM_CHECK_STR_EQ(layers.front().name.c_str(), "softmax");
    editor().undo();
    IM_CHECK(document() == before);
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
