// Times of layers over the last runs, and of attention against N.
#include <algorithm>
#include <cmath>
#include <string>

#include "app/document/edits.h"
#include "app/views/scaling_view.h"
#include "app/views/timing_view.h"
#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

namespace {

const TimingRecord& times() { return application().coordinator().times(); }

TimingView view_of(const RunResult& run) { return timing_view(run, times(), flops_of_run(run)); }

void register_layer_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "timing", "ten_passes_fill_the_statistics")->TestFunc =
      [](ImGuiTestContext* context) {
        start_over(context);
        set_layer_kernel(editor(), 0, {.name = "hydra-cosine", .parameters = {}});
        context->WindowFocus("//###timing");
        settle(context);
        const Document before = copy_of_document();
        const std::uint64_t shown = results().any()->generation;
        context->SetRef("//###timing");
        context->ItemClick("###time");
        settle(context);
        IM_CHECK(document() == before);
        IM_CHECK_EQ(results().any()->generation, shown); // the pictures that are shown stay
        const RunResult& run = *results().any();
        const TimingView view = view_of(run);
        IM_CHECK_EQ(view.rows.size(), run.layers.size());
        for (const TimingRow& row : view.rows) {
          IM_CHECK_GE(row.time.runs, 10);
          IM_CHECK_GT(row.time.median, 0.0);
          IM_CHECK_GE(row.time.p95, row.time.median);
        }
        IM_CHECK_EQ(view.kernels.size(), 2U);
        IM_CHECK_STR_EQ(view.kernels.front().kernel.name.c_str(), "hydra-cosine");
        int layers = 0;
        for (const KernelTiming& kernel : view.kernels) {
          IM_CHECK_EQ(kernel.layers, kernel.measured);
          IM_CHECK_GT(kernel.products, kernel.attention);
          layers += kernel.layers;
        }
        IM_CHECK_EQ(layers, run.model.layers);
        const Figure figure = timing_figure(view);
        const auto& bars = std::get<BarsPanel>(figure.panels.front());
        IM_CHECK_EQ(bars.marks.size(), bars.values.size());
        IM_CHECK_EQ(bars.values.size(), view.rows.size());
      };

  IM_REGISTER_TEST(engine, "timing", "no_more_than_the_last_runs_are_kept")->TestFunc =
      [](ImGuiTestContext* context) {
        start_over(context);
        RunResult run = *results().any();
        for (LayerRun& layer : run.layers) layer.cached = layer.differentiable = false;
        TimingRecord record;
        const auto at = [&](double seconds) {
          run.layers.front().seconds = seconds;
          record.add(run);
          return record.time(timing_subject(run), 0, run.layers.front().kernel);
        };
        IM_CHECK_EQ(at(100).runs, 1);
        const RepeatedTime second = at(1); // the first one packed weights
        IM_CHECK_EQ(second.runs, 1);
        IM_CHECK_EQ(second.median, 1.0);
        for (int i = 0; i < 40; ++i) at(2);
        const RepeatedTime last = at(3);
        IM_CHECK_EQ(last.runs, static_cast<int>(TimingRecord::most_runs));
        IM_CHECK_EQ(last.median, 2.0);
        run.layers.front().differentiable = true;
        IM_CHECK_EQ(at(50).p95, 2.0); // with gradients: another path
        run.threads += 1;
        IM_CHECK_EQ(record.time(timing_subject(run), 0, run.layers.front().kernel).runs, 0);
      };

  IM_REGISTER_TEST(engine, "timing", "muting_keeps_the_times")->TestFunc = [](ImGuiTestContext* context) {
    start_over(context);
    context->WindowFocus("//###timing");
    settle(context);
    IM_CHECK(application().run("model.time_passes"));
    settle(context);
    mute_head(editor(), {9, 1}, true);
    settle(context);
    const auto shown = application().figure_of("timing");
    IM_CHECK(shown.has_value());
    for (const double value : std::get<BarsPanel>(shown->panels.front()).values) IM_CHECK_GT(value, 0.0);
    const TimingView view = view_of(*results().any());
    IM_CHECK(view.rows.back().earlier); // its block takes gradients: no new time
    start_over(context);
  };

  IM_REGISTER_TEST(engine, "timing", "passes_are_cancelled")->TestFunc = [](ImGuiTestContext* context) {
    start_over(context);
    context->WindowFocus("//###timing");
    settle(context);
    IM_CHECK(application().run("model.time_passes"));
    while (!editor().status().timing) context->Yield();
    IM_CHECK(application().run("model.cancel"));
    settle(context);
    IM_CHECK(!application().coordinator().timing());
    IM_CHECK(!editor().status().stopped); // what is shown was not cancelled
  };

  IM_REGISTER_TEST(engine, "timing", "differences_of_a_and_b")->TestFunc = [](ImGuiTestContext* context) {
    start_over(context);
    set_all_kernels(editor(), {.name = "hydra-cosine", .parameters = {}});
    change_view(editor(), "Difference", [](ViewOptions& view) { view.shown = Shown::difference; });
    context->WindowFocus("//###timing");
    settle(context);
    IM_CHECK(application().run("model.time_passes"));
    settle(context);
    const RunResult* b = application().coordinator().results(Side::b).any();
    IM_CHECK(b != nullptr);
    const TimingView left = view_of(*results().any()), right = view_of(*b);
    const Figure figure = timing_difference_figure(left, right);
    const auto& bars = std::get<BarsPanel>(figure.panels.front());
    IM_CHECK_EQ(bars.values.size(), left.rows.size());
    for (std::size_t i = 0; i < bars.values.size(); ++i) {
      const double expected = (left.rows[i].time.median - right.rows[i].time.median) * 1e3;
      IM_CHECK_LT(std::abs(bars.values[i] - expected), 1e-9);
    }
    change_view(editor(), "A, B and A − B", [](ViewOptions& view) { view.shown = Shown::all; });
    settle(context);
    const auto shown = application().figure_of("timing");
    IM_CHECK(shown.has_value());
    IM_CHECK_EQ(shown->panels.size(), 3U);
    for (std::size_t side = 0; side < 2; ++side) {
      const auto& own = std::get<BarsPanel>(shown->panels[side]);
      const TimingView& expected = side == 0 ? left : right;
      IM_CHECK_EQ(own.values.size(), expected.rows.size());
      for (std::size_t i = 0; i < own.values.size(); ++i)
        IM_CHECK_LT(std::abs(own.values[i] - expected.rows[i].time.median * 1e3), 1e-9);
    }
  };
}

void register_scaling_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "timing", "scaling_starts_when_asked_and_stops")->TestFunc =
      [](ImGuiTestContext* context) {
        start_over(context);
        set_layer_kernel(editor(), 11, {.name = "hydra-cosine", .parameters = {}});
        context->WindowFocus("//###scaling");
        settle(context);
        IM_CHECK(editor().scaling.points.empty());
        IM_CHECK(!editor().scaling.running);
        const std::vector<KernelSpec> kernels = measured_kernels(document());
        IM_CHECK_EQ(kernels.size(), 4U); // softmax and hydra-cosine, then sdpa and flash
        context->SetRef("//###scaling");
        context->ItemClick("###measure");
        const auto enough = [&] {
          return std::ranges::all_of(kernels, [](const KernelSpec& kernel) {
            return points_of(editor().scaling, kernel).size() >= 2;
          });
        };
        while (!enough() && !context->IsError()) context->Yield();
        IM_CHECK(editor().scaling.running);
        context->ItemClick("###measure"); // cancel
        context->Yield(3);
        IM_CHECK(!editor().scaling.running);
        const auto lines = scaling_lines(editor().scaling, kernels);
        IM_CHECK_EQ(lines.size(), kernels.size());
        for (const ScalingLine& line : lines) {
          IM_CHECK_EQ(line.tokens.front(), 64.0);
          for (const ScalingPoint& point : line.points) {
            IM_CHECK_GE(point.time.runs, 3);
            IM_CHECK_GE(point.time.p95, point.time.median);
            IM_CHECK(!point.path.empty());
          }
        }
        const Figure figure = scaling_figure(editor().scaling, lines);
        const auto& plot = std::get<LinesPanel>(figure.panels.front());
        IM_CHECK_EQ(plot.lines.size(), kernels.size());
        IM_CHECK_EQ(plot.lines.front().upper.size(), plot.lines.front().y.size());
        const auto& memory = std::get<LinesPanel>(figure.panels.at(1));
        IM_CHECK_EQ(memory.lines.size(), kernels.size());
        for (const double megabytes : memory.lines.front().y) IM_CHECK_GT(megabytes, 0.0);
        // The Roofline panel draws the same points below the limits that were measured before them.
        IM_CHECK_GT(editor().scaling.limits.bandwidth, 1e8);
        IM_CHECK_GT(editor().scaling.limits.matrix_rate, 1e8);
        const auto points = roofline_lines(lines);
        IM_CHECK_EQ(points.size(), kernels.size());
        for (std::size_t i = 0; i < points.size(); ++i) {
          const ScalingPoint& first = lines[i].points.front();
          IM_CHECK_LT(std::abs(points[i].rate.front() * first.time.median * 1e9 / (2 * first.products) - 1),
                      1e-9);
          IM_CHECK_LT(std::abs(points[i].intensity.front() * first.bytes / (2 * first.products) - 1), 1e-9);
        }
        context->WindowFocus("//###roofline");
        settle(context);
        const Figure roofline = roofline_figure(editor().scaling, points);
        const auto& below = std::get<LinesPanel>(roofline.panels.front());
        IM_CHECK_EQ(below.lines.size(), kernels.size() + 1);
        IM_CHECK(below.lines.front().style == LinesPanel::Style::dashed);
        const std::size_t before = editor().scaling.points.size();
        context->Yield(20);
        IM_CHECK_EQ(editor().scaling.points.size(), before); // it has really stopped
      };
}

} // namespace

void register_timing_tests(ImGuiTestEngine* engine) {
  register_layer_tests(engine);
  register_scaling_tests(engine);
}

} // namespace hydrascope::app::window_tests
