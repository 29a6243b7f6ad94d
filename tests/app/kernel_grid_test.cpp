// Which kernels the grid shows in how much room, and where trained parameters exist.
#include <algorithm>

#include <gtest/gtest.h>

#include "app/panels/kernels/grid_columns.h"
#include "app/views/adapter_view.h"
#include "app/views/selection.h"
#include "app/views/token_map.h"

namespace hydrascope::app::tests {
namespace {

using Families = std::vector<GridColumns::Family>;

constexpr std::array<float, kernel_families> labels = {36, 48, 40, 100, 46, 30};
constexpr float narrow = 182, wide = 1200;

const GridColumns::Family& of(const Families& families, KernelFamily family) {
  return *std::ranges::find(families, family, &GridColumns::Family::family);
}
std::size_t shown(const Families& families) {
  std::size_t count = 0;
  for (const GridColumns::Family& family : families) count += family.open ? family.kernels.size() : 0;
  return count;
}

TEST(GridColumns, EveryKernelHasAColumnWhereThereIsRoom) {
  const Families families = GridColumns().place(wide, labels);
  EXPECT_EQ(shown(families), kernel_infos().size());
  EXPECT_LE(GridColumns::width_of(families), wide);
  for (const GridColumns::Family& family : families) {
    EXPECT_GE(family.width, labels[static_cast<std::size_t>(family.family)]) << "the name is cut";
    EXPECT_LE(family.column * static_cast<float>(family.kernels.size()), family.width + 0.01f);
  }
}

TEST(GridColumns, WhatDoesNotFitIsFolded) {
  const Families families = GridColumns().place(narrow, labels);
  EXPECT_LE(GridColumns::width_of(families), narrow);
  EXPECT_TRUE(of(families, KernelFamily::exact).open);
  EXPECT_TRUE(of(families, KernelFamily::hydra).open);
  EXPECT_FALSE(of(families, KernelFamily::trained).open);
  EXPECT_EQ(of(families, KernelFamily::trained).width, GridColumns::folded_width);
}

TEST(GridColumns, AnOpenedFamilyTakesTheRoomOfOthers) {
  GridColumns columns;
  columns.toggle(KernelFamily::normalised_linear, false);
  Families families = columns.place(narrow, labels);
  EXPECT_TRUE(of(families, KernelFamily::normalised_linear).open);
  EXPECT_FALSE(of(families, KernelFamily::hydra).open);
  EXPECT_LE(GridColumns::width_of(families), narrow);
  columns.toggle(KernelFamily::normalised_linear, true);
  families = columns.place(wide, labels);
  EXPECT_FALSE(of(families, KernelFamily::normalised_linear).open) << "the user folded it";
  EXPECT_TRUE(of(families, KernelFamily::hydra).open);
}

TEST(GridColumns, ASearchShowsWhatItFindsAndNothingElse) {
  GridColumns columns;
  columns.toggle(KernelFamily::trained, true);
  columns.search("HEDGE");
  Families families = columns.place(20, labels);
  for (const GridColumns::Family& family : families) {
    EXPECT_TRUE(family.open) << family_name(family.family);
    for (const std::size_t kernel : family.kernels)
      EXPECT_NE(kernel_infos()[kernel].name.find("hedgehog"), std::string::npos);
  }
  EXPECT_EQ(shown(families), 3U);
  columns.search("hydra");
  families = columns.place(wide, labels);
  EXPECT_EQ(families.size(), 1U) << "a family is found by its name";
  columns.search("no such kernel");
  EXPECT_TRUE(columns.place(wide, labels).empty());
}

TEST(Registry, FamiliesHoldWhatTheirNamesSay) {
  for (const KernelInfo& info : kernel_infos()) {
    EXPECT_EQ(info.exact_softmax, info.family == KernelFamily::exact) << info.name;
    EXPECT_EQ(info.family == KernelFamily::hydra, !info.normalised) << info.name;
    if (info.normalised && info.family != KernelFamily::exact && info.family != KernelFamily::window) {
      EXPECT_EQ(info.family == KernelFamily::trained, info.trainable) << info.name;
    }
  }
}

ParameterMark mark_of(const std::vector<std::vector<ParameterMark>>& marks, std::size_t layer,
                      const std::string& kernel) {
  const auto found = std::ranges::find(kernel_infos(), kernel, &KernelInfo::name);
  return marks.at(layer).at(static_cast<std::size_t>(found - kernel_infos().begin()));
}

TEST(ParameterMarks, SayWhereTrainedParametersExist) {
  RunResult run;
  run.layers.resize(2);
  AdapterInfo bundled;
  bundled.layers = {{.layer = 1, .kernel = {"hydra-cosine", {}}}};
  run.available_adapters = std::make_shared<const std::vector<AdapterInfo>>(std::vector{bundled});
  auto marks = parameter_marks(run, {});
  EXPECT_EQ(mark_of(marks, 1, "hydra-cosine"), ParameterMark::trained);
  EXPECT_EQ(mark_of(marks, 0, "hydra-cosine"), ParameterMark::untrained);
  EXPECT_EQ(mark_of(marks, 1, "softmax"), ParameterMark::none_needed);
  marks = parameter_marks(run, {.automatic = false, .files = {}});
  EXPECT_EQ(mark_of(marks, 1, "hydra-cosine"), ParameterMark::untrained) << "adapters are off";
  run.adapters = {bundled};
  marks = parameter_marks(run, {.automatic = false, .files = {}});
  EXPECT_EQ(mark_of(marks, 1, "hydra-cosine"), ParameterMark::trained) << "it is in use";
}

TokenMap map_of(std::vector<float> values) {
  TokenMap map;
  map.values = {{1, static_cast<std::int64_t>(values.size())}, std::move(values)};
  return map;
}

TEST(Difference, OfEqualMapsSaysSoAndHasNoValues) {
  const TokenMap same = map_difference(map_of({0.1f, 1, 0}), map_of({0.1f, 1 + 1e-6f, 0}));
  EXPECT_TRUE(same.same);
  EXPECT_TRUE(same.values.empty());
  EXPECT_EQ(same.note, same_note);
  const TokenMap other = map_difference(map_of({0.1f, 1, 0}), map_of({0.1f, 1, 0.01f}));
  EXPECT_FALSE(other.same);
  EXPECT_EQ(other.values.values.size(), 3U);
  EXPECT_NE(other.note, same_note);
}

} // namespace
} // namespace hydrascope::app::tests
