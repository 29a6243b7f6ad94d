// Sources of maps are tried in the background, and become kernels if they run.
#include "app/jobs/map_checks.h"

#include <chrono>
#include <thread>

#include <gmock/gmock.h>

#include "app/document/edits.h"
#include "engine/attention/own/map_source.h"
#include "tests/app/fixture.h"

namespace hydrascope::app::tests {
namespace {

class MapChecksTest : public ::testing::Test {
protected:
  MapChecksTest() { editor_.set_initial(small_document()); }

  const MapReport& report_on(const CheckMap& command) {
    checks_.start(editor_, command);
    return finish();
  }
  const MapReport& finish() {
    while (!checks_.update(editor_)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return editor_.map_report;
  }
  static CheckMap typed(const std::string& body) {
    return {.name = "mine", .text = "def phi(x):\n    " + body + "\n", .apply = true};
  }
  std::vector<KernelSpec> layers() const { return edited_schedule(editor_.document()).layers; }

  Editor editor_;
  MapChecks checks_{{}};
};

TEST_F(MapChecksTest, SetTheSelectedLayersKernel) {
  const MapReport& report = report_on(typed("return torch.cat([x, -x], -1).exp()"));
  EXPECT_FALSE(report.result.problem.has_value());
  const auto layer = static_cast<std::size_t>(editor_.document().scene().layer);
  EXPECT_EQ(layers()[layer], report.result.kernel);
  EXPECT_EQ(layers()[1 - layer], KernelSpec{});
  const ModelInfo& model = *editor_.document().scene().model;
  EXPECT_EQ(report.result.facts.features, 2 * model.width / model.heads);
  EXPECT_EQ(report.result.facts.parameters, 0);
}

TEST_F(MapChecksTest, AreOneStepOfUndoWithinAGesture) {
  CheckMap command = typed("return x * x");
  command.gesture = "typing";
  report_on(command);
  command.text += "# and more\n";
  report_on(command);
  EXPECT_NE(layers(), std::vector<KernelSpec>(2));
  editor_.undo();
  EXPECT_EQ(layers(), std::vector<KernelSpec>(2));
}

TEST_F(MapChecksTest, NameTheLineAndChangeNothing) {
  report_on(typed("return x * x"));
  const Document before = editor_.document();
  const std::vector<std::pair<const char*, int>> bodies = {
      {"return torch.rellu(x)", 2},
      {"return x *", 2},
      {"return x.sum(-1)", 0}}; // 0: what is returned is wrong
  for (const auto& [body, line] : bodies) {
    const MapReport& report = report_on(typed(body));
    ASSERT_TRUE(report.result.problem.has_value()) << body;
    EXPECT_EQ(report.result.problem->line, line) << body;
    EXPECT_FALSE(report.result.problem->reason.empty());
    EXPECT_EQ(editor_.document(), before);
  }
}

TEST_F(MapChecksTest, ChangeNothingWhereTheLayerIsNoLongerSelected) {
  checks_.start(editor_, typed("return x * x"));
  select_layer(editor_, 1 - editor_.document().scene().layer);
  finish();
  EXPECT_EQ(layers(), std::vector<KernelSpec>(2));
}

TEST_F(MapChecksTest, ChangeAllLayersWithTheMap) {
  report_on(typed("return x * x"));
  set_all_kernels(editor_, selected_kernel(editor_.document()));
  CheckMap command = typed("return x * x + 1");
  command.everywhere = true;
  const KernelSpec kernel = report_on(command).result.kernel;
  EXPECT_THAT(layers(), ::testing::Each(kernel));
}

TEST_F(MapChecksTest, OnlyLookWhereNothingIsToBeApplied) {
  CheckMap command = typed("return x * x");
  command.apply = false;
  EXPECT_FALSE(report_on(command).result.problem.has_value());
  EXPECT_EQ(layers(), std::vector<KernelSpec>(2));
}

TEST(FirstMap, IsTheSourceOfTheLayersKernel) {
  Editor editor;
  editor.set_initial(small_document());
  set_layer_kernel(editor, 0, {.name = "taylor", .parameters = {}});
  EXPECT_EQ(first_map(editor.document()).text, bundled_map("taylor"));
  set_layer_kernel(editor, 0, {.name = "poly-nl", .parameters = {}}); // no feature map of one token
  EXPECT_EQ(first_map(editor.document()).name, "my-map");
  EXPECT_NE(first_map(editor.document()).text.find("def phi(x)"), std::string::npos);
}

} // namespace
} // namespace hydrascope::app::tests
