#include "engine/run/finite_check.h"

#include <string>

#include <ATen/TensorOperators.h>
#include <ATen/ops/all.h>
#include <ATen/ops/isfinite.h>
#include <fmt/format.h>

#include "engine/base/error.h"

namespace hydrascope {

void check_finite(const at::Tensor& hidden, const Model& model) {
  if (at::isfinite(hidden).all().item<bool>()) return;
  const std::string folder = model.info().folder.string();
  // Looked for only once something is wrong: to read all weights before every run would take as long as one.
  for (const std::string& name : model.parameter_names())
    if (!at::isfinite(model.parameter(name)).all().item<bool>())
      throw BrokenFile(folder, fmt::format("\"{}\" holds NaN or infinity", name),
                       "get the model (or the adapter over it) again");
  throw Error(folder, "the hidden states are no longer finite although all weights are",
              "try --dtype float32 or other kernels");
}

} // namespace hydrascope
