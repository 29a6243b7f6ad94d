#include "engine/run/memory_estimate.h"

#include <fmt/format.h>

#include "engine/run/reading.h"

namespace hydrascope {

double estimated_bytes(const QuantityKeys& quantities, const ModelInfo& model, std::int64_t tokens) {
  const auto n = static_cast<double>(tokens);
  double bytes = 3.0 * model.heads * n * n * sizeof(float); // scores, weights and a temporary of one layer
  for (const QuantityKey& key : quantities) bytes += key.quantity().bytes(key, model, tokens);
  return bytes;
}

std::string bytes_text(double bytes) {
  return bytes < 1e9 ? fmt::format("{:.0f} MB", bytes / 1e6) : fmt::format("{:.1f} GB", bytes / 1e9);
}

} // namespace hydrascope
