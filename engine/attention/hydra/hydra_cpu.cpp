#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include "engine/attention/hydra/hydra.h"
#include "engine/attention/interface/loop_input.h"
#include "engine/attention/interface/tokens.h"

namespace hydrascope {
namespace {

constexpr std::int64_t tokens_of_part = 256;
// The caches of a few cores. (In some virtual machines the system reports those of all cores.)
constexpr std::int64_t bytes_of_caches = std::int64_t{32} << 20;

// Merges the parts of a sequence: each part has `padded` floats of largest, total and weighted. The first
// part's `weighted` becomes the quotient weighted/total over all parts.
void merge_softmax(float* largest, float* total, float* weighted, const std::int64_t parts,
                   const std::int64_t padded) {
  for (std::int64_t f = 0; f < padded; ++f) {
    float top = -INFINITY;
    for (std::int64_t part = 0; part < parts; ++part) top = std::max(top, largest[part * padded + f]);
    float sum = 0, all = 0;
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::int64_t i = part * padded + f;
      if (total[i] == 0) continue; // no real token
      const float share = std::exp(largest[i] - top);
      sum += weighted[i] * share;
      all += total[i] * share;
    }
    weighted[f] = all == 0 ? 0 : sum / all;
  }
}

void merge(float* sums, const std::int64_t parts, const std::int64_t padded) {
  for (std::int64_t part = 1; part < parts; ++part)
    for (std::int64_t f = 0; f < padded; ++f) sums[f] += sums[part * padded + f];
}

at::Tensor query_of(const HydraMaps& maps, const AttentionInput& input) {
  const at::Tensor query = maps.query_is_layer_input ? to_heads(input.layer_input, input.q.size(1)) : input.q;
  return dense_features(query.scalar_type() == at::kBFloat16 ? query : query.to(at::kFloat));
}

at::Tensor new_output(const HydraMaps& maps, const AttentionInput& input) {
  // The input of a LayerNorm is not rounded.
  const auto type = maps.layer_norm ? at::kFloat : input.q.scalar_type();
  const std::int64_t heads = input.q.size(1);
  return to_heads(
      at::empty({input.q.size(0), input.q.size(2), heads * input.q.size(3)}, input.q.options().dtype(type)),
      heads);
}

// Starting a thread pays from about 64 Ki features on.
std::int64_t grain_of(const std::int64_t padded, const std::int64_t tokens) {
  return std::max<std::int64_t>(1, 65'536 / (padded * std::min(tokens, tokens_of_part)));
}

// Adds the sums of the tokens before.
void add_earlier(cpu::CausalHydraSums& own, const cpu::CausalHydraSums& before) {
  own.tokens += before.tokens;
  for (std::size_t f = 0; f < own.sum.size(); ++f) own.sum[f] += before.sum[f] + before.part[f];
  for (std::size_t f = 0; f < own.total.size(); ++f) {
    const float top = std::max(own.largest[f], before.largest[f]);
    const auto share = [&](const cpu::CausalHydraSums& of) { // 0 without a token
      return of.total[f] == 0 ? 0.0F : std::exp(of.largest[f] - top);
    };
    const float kept = share(own), gained = share(before);
    own.total[f] = own.total[f] * kept + before.total[f] * gained;
    own.weighted[f] = own.weighted[f] * kept + before.weighted[f] * gained;
    own.largest[f] = top;
  }
}

at::Tensor run(const HydraMaps& maps, const AttentionInput& input, const at::Tensor& mask) {
  const std::int64_t batch = input.q.size(0), heads = input.q.size(1), tokens = input.q.size(2);
  const at::Tensor query = query_of(maps, input), key = dense_features(input.k),
                   value = dense_features(input.v);
  const LoopMask masks(mask);
  const at::Tensor out = new_output(maps, input);

  const std::int64_t padded = cpu::padded_width(heads * input.q.size(3));
  const std::int64_t parts = std::max<std::int64_t>(1, (tokens + tokens_of_part - 1) / tokens_of_part);
  const auto part_of = [&](const std::int64_t part) {
    return cpu::TokenRange{part * tokens_of_part, std::min(tokens, (part + 1) * tokens_of_part)};
  };
  const auto scale_of = [&](const std::int64_t sequence) {
    if (maps.over_tokens != OverTokens::mean) return 1.0F;
    const std::int64_t real = std::max<std::int64_t>(1, masks.count(sequence, tokens));
    return 1 / std::sqrt(static_cast<float>(real));
  };
  const std::int64_t grain = grain_of(padded, tokens);
  const bool softmax = maps.over_tokens == OverTokens::softmax;
  const auto floats = [&](const bool used) {
    return std::vector<float>(used ? static_cast<std::size_t>(batch * parts * padded) : 0);
  };
  std::vector<float> sums = floats(true), largest = floats(softmax), total = floats(softmax);
  at::parallel_for(0, batch * parts, grain, [&](const std::int64_t begin, const std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t sequence = i / parts;
      const cpu::Rows k = rows_of(key, sequence), v = rows_of(value, sequence);
      const cpu::TokenRange range = part_of(i % parts);
      if (softmax)
        cpu::hydra_softmax_sums(
            k, v, masks.of(sequence), range, &largest[static_cast<std::size_t>(i * padded)],
            &total[static_cast<std::size_t>(i * padded)], &sums[static_cast<std::size_t>(i * padded)]);
      else
        cpu::hydra_sum(k, v, masks.of(sequence), range, *maps.key.fused, scale_of(sequence),
                       &sums[static_cast<std::size_t>(i * padded)]);
    }
  });
  for (std::int64_t sequence = 0; sequence < batch; ++sequence) {
    const auto at = static_cast<std::size_t>(sequence * parts * padded);
    if (softmax)
      merge_softmax(&largest[at], &total[at], &sums[at], parts, padded);
    else
      merge(&sums[at], parts, padded);
  }
  const auto bytes = static_cast<std::int64_t>(query.nbytes() + key.nbytes() + value.nbytes() + out.nbytes());
  const bool past_caches = bytes > bytes_of_caches;
  at::parallel_for(0, batch * parts, grain, [&](const std::int64_t begin, const std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t sequence = i / parts;
      cpu::hydra_gate(rows_of(query, sequence), masks.of(sequence), part_of(i % parts), *maps.query.fused,
                      scale_of(sequence), &sums[static_cast<std::size_t>(sequence * parts * padded)],
                      rows_of(out, sequence), past_caches);
    }
  });
  return out;
}

} // namespace

at::Tensor causal_hydra_on_cpu(const HydraMaps& maps, const AttentionInput& input, const at::Tensor& mask,
                               std::vector<cpu::CausalHydraSums>& sums) {
  const std::int64_t batch = input.q.size(0), heads = input.q.size(1), tokens = input.q.size(2),
                     width = heads * input.q.size(3);
  const at::Tensor query = query_of(maps, input), key = dense_features(input.k),
                   value = dense_features(input.v);
  const LoopMask masks(mask);
  const at::Tensor out = new_output(maps, input);
  const bool softmax = maps.over_tokens == OverTokens::softmax;
  const cpu::CausalHydraMaps own{*maps.query.fused, *maps.key.fused, maps.over_tokens == OverTokens::mean,
                                 softmax};
  if (sums.empty()) sums.assign(static_cast<std::size_t>(batch), cpu::CausalHydraSums(width, softmax));

  // The sums of all parts but the last first, then each part from what is before it.
  const std::int64_t parts = std::max<std::int64_t>(1, (tokens + tokens_of_part - 1) / tokens_of_part);
  const std::int64_t padded = cpu::padded_width(width);
  const std::int64_t grain = grain_of(padded, tokens);
  const auto part_of = [&](const std::int64_t part) {
    return cpu::TokenRange{part * tokens_of_part, std::min(tokens, (part + 1) * tokens_of_part)};
  };
  std::vector<cpu::CausalHydraSums> starts; // of all parts of all sequences
  for (std::int64_t i = 0; i < batch * parts; ++i)
    starts.push_back(i % parts == 0 ? sums[static_cast<std::size_t>(i / parts)]
                                    : cpu::CausalHydraSums(width, softmax));
  at::parallel_for(0, batch * (parts - 1), grain, [&](const std::int64_t begin, const std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t sequence = i / (parts - 1), part = i % (parts - 1);
      cpu::CausalHydraSums& to = starts[static_cast<std::size_t>(sequence * parts + part + 1)];
      const cpu::Rows k = rows_of(key, sequence), v = rows_of(value, sequence);
      const cpu::TokenRange range = part_of(part);
      to.tokens = masks.count(sequence, range);
      if (softmax)
        cpu::hydra_softmax_sums(k, v, masks.of(sequence), range, to.largest.data(), to.total.data(),
                                to.weighted.data());
      else
        cpu::hydra_sum(k, v, masks.of(sequence), range, own.key, 1, to.sum.data());
    }
  });
  for (std::int64_t i = 0; i < batch * parts; ++i)
    if (i % parts > 0)
      add_earlier(starts[static_cast<std::size_t>(i)], starts[static_cast<std::size_t>(i - 1)]);
  at::parallel_for(0, batch * parts, grain, [&](const std::int64_t begin, const std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t sequence = i / parts;
      cpu::causal_hydra(rows_of(query, sequence), rows_of(key, sequence), rows_of(value, sequence),
                        masks.of(sequence), part_of(i % parts), own, rows_of(out, sequence),
                        starts[static_cast<std::size_t>(i)]);
    }
  });
  for (std::int64_t sequence = 0; sequence < batch; ++sequence)
    sums[static_cast<std::size_t>(sequence)] =
        std::move(starts[static_cast<std::size_t>((sequence + 1) * parts - 1)]);
  return out;
}

HydraFusedPath hydra_on_cpu() {
  return {Path::fused_cpu, loops_take,
          [](const HydraMaps& maps, const AttentionInput& input, const at::Tensor& mask) {
            if (!input.causal) return run(maps, input, mask);
            std::vector<cpu::CausalHydraSums> sums;
            return causal_hydra_on_cpu(maps, input, mask, sums);
          }};
}

} // namespace hydrascope
