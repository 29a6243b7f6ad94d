// φ(x) = x/‖x‖₂ per head, or of the whole D-wide row (Bolya et al. 2022, Eq. 7 and Fig. 2).
#include <ATen/TensorOperators.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <fmt/format.h>

#include "engine/attention/interface/parameters.h"
#include "engine/attention/linear/feature_map.h"
#include "engine/base/error.h"

namespace hydrascope {
namespace {

class Cosine final : public FeatureMap {
public:
  explicit Cosine(bool whole_row) : whole_row_(whole_row) {}

  at::Tensor features(const at::Tensor& x, Side, const FeatureContext&) const override {
    // A token's features over all heads are its D-wide row.
    const std::vector<std::int64_t> dimensions =
        whole_row_ ? std::vector<std::int64_t>{1, 3} : std::vector<std::int64_t>{3};
    return x / at::linalg_vector_norm(x, 2, dimensions, true).clamp_min(1e-12);
  }
  bool mixes_heads() const override { return whole_row_; }
  std::optional<cpu::PointMap> point_map() const override {
    if (whole_row_) return std::nullopt; // the loops process each head by itself
    return cpu::PointMap::unit;
  }

private:
  bool whole_row_;
};

bool normalises_rows(const KernelSpec& spec) {
  const auto found = spec.parameters.find("norm");
  if (found == spec.parameters.end() || found->second == "head") return false;
  if (found->second == "row") return true;
  throw UsageError(spec.text(), fmt::format("there is no norm \"{}\"", found->second),
                   "write linear-cosine:norm=head or linear-cosine:norm=row");
}

} // namespace

RegistryEntry linear_cosine_kernel() {
  KernelInfo info;
  info.name = "linear-cosine";
  info.definition = "φ(x) = x/‖x‖₂, out = φ(q)(φ(k)ᵀ v), any number of heads";
  info.feature_width = "d";
  info.source = "Bolya et al. (2022), Eq. 7";
  info.query_map =
      info.key_map = {.bounded = true, .takes_negatives = true, .linear = true, .up_to_length = true};
  info.parameters = {choice_info(
      "norm", "what is brought to length 1: each head's features, or the whole D-wide row", {"head", "row"})};
  return unnormalised_linear(
      info, [](const KernelSpec& spec) { return std::make_unique<Cosine>(normalises_rows(spec)); });
}

} // namespace hydrascope
