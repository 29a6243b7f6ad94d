// A map source compiled by LibTorch's TorchScript compiler, and run within limits.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "engine/attention/interface/kernel.h"
#include "engine/attention/linear/feature_map.h"
#include "engine/attention/own/map_source.h"

namespace hydrascope {

class MapScript {
public:
  // Compiles a source, or returns what it compiled to before. Only pure operators on tensors and numbers are
  // allowed, and loops of a fixed number of turns. Throws SourceError.
  static std::shared_ptr<const MapScript> of(const MapSource& source);
  // What of() has returned before, at once; null if it has not, or not for long. Throws the SourceError that
  // of() has thrown.
  static std::shared_ptr<const MapScript> compiled_before(const MapSource& source);

  MapScript(const MapScript&) = delete;
  MapScript& operator=(const MapScript&) = delete;
  ~MapScript();

  const MapSource& source() const { return source_; }

  // What tokens have besides their features: 1-based ranks i among the real tokens, (B or 1,1,R,1), and their
  // number n, (B or 1,1,1,1). Undefined unless positional().
  struct Positions {
    at::Tensor i, n;
  };

  // φ of x (B,H,R,d) → (B,H,R,d′), or log φ; of grouped heads' keys x has the key/value heads alone. Throws
  // SourceError, with the line, for what fails, for another shape and, on the CPU, for features that are not
  // finite although x is and negative ones that are not allowed. Memory that does not suffice and a broken
  // device are no fault of the source: throws std::bad_alloc, c10::OutOfMemoryError, BrokenDevice.
  at::Tensor map(Side side, const at::Tensor& x, const Positions& positions,
                 const KernelParameters& parameters, const HeadShape& heads) const;
  // Weights, not yet masked, of q (B,H,R,d), k (B,H,N,d): (B,H,R,N). Throws as map().
  at::Tensor score(const at::Tensor& q, const at::Tensor& k, const KernelParameters& parameters) const;

  // float32, CPU: query.NAME and key.NAME for maps, NAME for scores and with `shared`. Keys have a parameter
  // for each key/value head, and so has `shared`, whose queries' heads use that of their group. Missing ones
  // are as at the start above. Throws SourceError for more than 2²⁴ numbers together.
  KernelParameters initial_parameters(const HeadShape& shape, int layer) const;
  std::vector<std::string> fixed_parameters() const;

  // Why the source does not run for these heads, found by trying it on a few tokens; nullopt if it does.
  std::optional<SourceError> problem(std::int64_t heads, std::int64_t head_width) const;
  // Whether problem() is known, and returns at once. Finding it may take seconds.
  bool is_tried(std::int64_t heads, std::int64_t head_width) const;
  std::string refusal(std::int64_t heads, std::int64_t head_width) const; // the same in words, or empty
  // d′ for this head width, found in the same way; d where the source does not run.
  std::int64_t width(std::int64_t head_width) const;

private:
  struct Compiled;
  explicit MapScript(const MapSource& source);
  void try_out(std::int64_t heads, std::int64_t head_width) const; // throws what problem() gives
  std::vector<std::string> prefixes() const;                       // of the sides whose parameters differ
  std::int64_t heads_with(const std::string& prefix, const HeadShape& shape) const;
  // Throws SourceError for more numbers in all parameters together than a layer's map may have.
  void limit_parameters(const HeadShape& shape) const;
  // As large as for `heads` heads; parameters of fewer, key/value heads are repeated.
  at::Tensor parameter(const std::string& prefix, const std::string& name, std::int64_t heads,
                       const HeadShape& shape, const KernelParameters& parameters,
                       const at::Tensor& like) const;

  MapSource source_;
  std::unique_ptr<Compiled> compiled_;
};

} // namespace hydrascope
