// The Focus panel and the small multiples beside it: A, B and A − B.
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "app/state/edits.h"
#include "app/window/screenshot.h"
#include "tests/support/checkout.h"
#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

namespace {

const KernelSpec elu{"elu", {}}, hydra{"hydra-cosine", {}};

// A: this kernel in the selected layer; B: softmax.
void compare_with_softmax(ImGuiTestContext* context, const KernelSpec& kernel, bool sentence) {
  start_over(context);
  if (sentence) open_text(editor(), "The cat sat on the mat because it was tired.");
  set_layer_kernel(editor(), document().scene().layer, kernel);
  change_view(editor(), "Show all", [](ViewOptions& view) { view.shown = Shown::all; });
  context->WindowFocus("//###focus");
  settle(context);
}

// The window as it is now, for the eye: in the build folder, where pictures can be read back.
void keep_picture(ImGuiTestContext* context, const std::string& name) {
  context->MouseMoveToPos(ImVec2(1, 1));
  settle(context);
  between_frames(context, [&] {
    if (!application().display().description().starts_with("off screen")) return;
    const auto folder = test::program().parent_path() / "window_screenshots" / "focus";
    std::filesystem::create_directories(folder);
    write_png(folder / (name + ".png"), application().read_frame());
  });
}

double largest(const Array& values) {
  double most = 0;
  for (const float value : values.values)
    if (!std::isnan(value)) most = std::max(most, std::abs(static_cast<double>(value)));
  return most;
}

// In every panel that exports, the values drawn of A, B and their difference.
void check_difference(const Figure& figure, std::size_t maps) {
  IM_CHECK_EQ(figure.panels.size(), maps * 3);
  double most = 0;
  for (std::size_t i = 0; i < maps; ++i) {
    const auto values = [&](std::size_t side) {
      const FigurePanel& panel = figure.panels[side * maps + i];
      if (const auto* overlay = std::get_if<OverlayPanel>(&panel)) return overlay->values;
      const auto& words = std::get<TokensPanel>(panel).values;
      return Array{{1, static_cast<std::int64_t>(words.size())}, {words.begin(), words.end()}};
    };
    const Array a = values(0), b = values(1), difference = values(2);
    most = std::max(most, largest(difference));
    for (std::size_t cell = 0; cell < difference.values.size(); ++cell) {
      const auto drawn = [&](const Array& side) { // nothing is drawn as zero
        return side.empty() || std::isnan(side.values[cell]) ? 0.0f : side.values[cell];
      };
      IM_CHECK_LT_NO_RET(std::abs(drawn(a) - drawn(b) - drawn(difference)), 1e-6f);
    }
  }
  IM_CHECK_GT(most, 0.05);
}

void register_side_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "focus", "three_maps_of_a_photograph")->TestFunc = [](ImGuiTestContext* context) {
    compare_with_softmax(context, elu, false);
    check_difference(*application().figure_of("focus"), 1);
    check_difference(*application().figure_of("layers"),
                     static_cast<std::size_t>(document().scene().model->layers));
    context->ItemClick("//###layers/$$3/thumbnail");
    settle(context);
    IM_CHECK_EQ(document().scene().layer, 3);
    start_over(context);
  };

  IM_REGISTER_TEST(engine, "focus", "three_maps_of_a_sentence")->TestFunc = [](ImGuiTestContext* context) {
    compare_with_softmax(context, elu, true);
    check_difference(*application().figure_of("focus"), 1);
    check_difference(*application().figure_of("layers"),
                     static_cast<std::size_t>(document().scene().model->layers));
    keep_picture(context, "sentence-sides");
    for (const char* map : {"rows", "$$1/rows", "$$2/rows"})
      IM_CHECK(context->ItemExists((std::string("//###layers/") + map).c_str()));
    start_over(context);
  };

  IM_REGISTER_TEST(engine, "focus", "all_three_edits_a")->TestFunc = [](ImGuiTestContext* context) {
    compare_with_softmax(context, elu, false);
    set_layer_kernel(editor(), 2, hydra);
    IM_CHECK(document().scene().schedules[0].layers[2] == hydra);
    IM_CHECK(document().scene().schedules[1].layers[2] == KernelSpec{});
    start_over(context);
  };
}

} // namespace

void register_focus_tests(ImGuiTestEngine* engine) { register_side_tests(engine); }

} // namespace hydrascope::app::window_tests
