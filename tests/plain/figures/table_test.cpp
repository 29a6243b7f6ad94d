#include "engine/figures/numbers.h"

#include <cmath>

#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace hydrascope {
namespace {

TablePanel kernels() {
  TablePanel table;
  table.title = "CoLA_dev";
  table.row_name = "kernel";
  table.rows = {"hedgehog", "t2r-hh", "elu", "hydra-cosine"};
  table.columns = {
      {"KL (nats)", TablePanel::Better::lower, 2}, {"ρ", TablePanel::Better::higher, 3}, {"N", {}, 0}};
  table.values = {{0.0321, 0.9, 16}, {0.0349, -0.0001, 16}, {0.31, -0.25, 16}, {std::nan(""), std::nan("")}};
  return table;
}

TEST(Tables, CellsAreRoundedAndTheBestMarked) {
  const auto cells = table_cells(kernels());
  EXPECT_EQ(cells[0][0].text, "0.03");
  EXPECT_TRUE(cells[0][0].best);
  EXPECT_TRUE(cells[1][0].best) << "it prints alike, so a reader could not tell why it is not the best";
  EXPECT_FALSE(cells[2][0].best);
  EXPECT_EQ(cells[3][0].text, "—");
  EXPECT_EQ(cells[1][1].text, "0.000") << "no minus before zero";
  EXPECT_EQ(cells[2][1].text, "−0.250");
  EXPECT_FALSE(cells[0][2].best) << "nothing is better about a number of tokens";
  EXPECT_EQ(cells[3][2].text, "—") << "a row may be short";
}

TEST(Tables, OneRowHasNoBest) {
  TablePanel table = kernels();
  table.rows.resize(1);
  table.values.resize(1);
  EXPECT_FALSE(table_cells(table)[0][0].best);
}

TEST(Tables, LatexIsEscapedAndWhole) {
  Figure figure;
  figure.title = "T";
  figure.panels = {kernels()};
  figure.provenance = R"({"program":"hydrascope"})";
  EXPECT_EQ(latex_text(figure), R"(% T
% {"program":"hydrascope"}
% CoLA_dev
\begin{tabular}{lrrr}
\toprule
kernel & KL (nats) & $\rho$ & N \\
\midrule
hedgehog & \textbf{0.03} & \textbf{0.900} & 16 \\
t2r-hh & \textbf{0.03} & 0.000 & 16 \\
elu & 0.31 & $-$0.250 & 16 \\
hydra-cosine & --- & --- & --- \\
\bottomrule
\end{tabular}
)");
}

TEST(Tables, MarkdownIsAPipeTable) {
  Figure figure;
  figure.panels = {kernels()};
  EXPECT_EQ(markdown_text(figure), R"(**CoLA\_dev**

| kernel | KL (nats) | ρ | N |
|---|---:|---:|---:|
| hedgehog | **0.03** | **0.900** | 16 |
| t2r-hh | **0.03** | 0.000 | 16 |
| elu | 0.31 | −0.250 | 16 |
| hydra-cosine | — | — | — |

)");
}

TEST(Tables, AFigureWithoutOneIsRefused) {
  EXPECT_THROW(latex_text(Figure()), UsageError);
  EXPECT_THROW(markdown_text(Figure()), UsageError);
}

} // namespace
} // namespace hydrascope
