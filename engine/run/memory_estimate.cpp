#include "engine/run/memory_estimate.h"

#include <algorithm>

#include <fmt/format.h>

namespace hydrascope {

double estimated_bytes(const Asks& asks, const ModelInfo& model, std::int64_t tokens) {
  constexpr double number = sizeof(float);
  const auto n = static_cast<double>(tokens);
  const double matrix = n * n * number;
  double bytes = 3.0 * model.heads * matrix; // scores, weights and a temporary of one layer
  if (asks.rollout) bytes += 4.0 * matrix;
  // q, k, v and the input of every layer.
  if (asks.similar_heads) bytes += 4.0 * model.layers * n * model.width * number;
  if (asks.hidden) bytes += 2.0 * (model.layers + 1) * n * model.width * number;
  for (const WeightsAsk& ask : asks.weights) {
    const double rows = ask.rows.empty() ? n : static_cast<double>(ask.rows.size());
    const double kernels = ask.kernels.empty() ? 1.0 : static_cast<double>(ask.kernels.size());
    bytes += 2.0 * kernels * model.heads * rows * n * number;
  }
  for (const TileAsk& ask : asks.tiles) {
    const double rows = ask.rows > 0 ? static_cast<double>(ask.rows) : 1;
    const double columns = ask.columns > 0 ? static_cast<double>(ask.columns) : 1;
    const double heads = ask.fusion          ? 1.0
                         : ask.heads.empty() ? static_cast<double>(model.heads)
                                             : static_cast<double>(ask.heads.size());
    bytes += 2.0 * heads * std::min(rows, n) * std::min(columns, n) * number;
  }
  for (const VectorsAsk& ask : asks.vectors) {
    double widest = 0; // features of a token: the models' own widths unless a kernel says otherwise
    for (const KernelSpec& spec : ask.kernels) {
      const double head_width = static_cast<double>(model.width) / model.heads;
      widest =
          std::max(widest, spec.name == "taylor" ? 1 + head_width + head_width * head_width : 4 * head_width);
    }
    bytes += n * (6.0 * model.width + 2.0 * widest) * number;
  }
  return bytes;
}

std::string bytes_text(double bytes) {
  return bytes < 1e9 ? fmt::format("{:.0f} MB", bytes / 1e6) : fmt::format("{:.1f} GB", bytes / 1e9);
}

} // namespace hydrascope
