#include "engine/attention/linear/linear_cpu.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "engine/attention/interface/loop_input.h"
#include "engine/attention/interface/tokens.h"

namespace hydrascope {
namespace {

// How many parts of the tokens have sums of their own, which take less memory than the part's keys.
std::int64_t count_of_parts(const std::int64_t tokens, const std::int64_t features) {
  constexpr std::int64_t least = 2048;
  const std::int64_t tokens_of_part = std::max(least, 4 * features);
  return std::max<std::int64_t>(1, (tokens + tokens_of_part - 1) / tokens_of_part);
}

// The tokens of all heads of all sequences, cut into parts of equal numbers of blocks; the last ones may be
// shorter or empty.
struct Parts {
  struct Unit {
    std::int64_t sequence = 0, head = 0, part = 0;
    cpu::TokenRange range;
  };
  std::int64_t heads = 1, tokens = 1, count = 1;

  std::int64_t tokens_of_part() const {
    const std::int64_t blocks = (tokens + cpu::tokens_of_block - 1) / cpu::tokens_of_block;
    return (blocks + count - 1) / count * cpu::tokens_of_block;
  }

  Unit unit(const std::int64_t i) const {
    const std::int64_t part = i % count;
    return {i / count / heads, i / count % heads, part, range_of(part)};
  }

  // The same in another order, the parts before the heads: some neighbouring heads of one part.
  struct Run {
    std::int64_t sequence = 0, part = 0, head = 0, heads = 0;
    cpu::TokenRange range;
  };
  // The longest that begins with i and ends at `end` or before, of at most `most_heads`.
  Run run(const std::int64_t i, const std::int64_t end, const std::int64_t most_heads) const {
    const std::int64_t part = i / heads % count, head = i % heads;
    return {i / heads / count, part, head, std::min({heads - head, end - i, most_heads}), range_of(part)};
  }

private:
  cpu::TokenRange range_of(const std::int64_t part) const {
    return {std::min(tokens, part * tokens_of_part()), std::min(tokens, (part + 1) * tokens_of_part())};
  }
};

// How many heads fit half of the second-level cache with their sums, projections and two blocks of rows: the
// loops reread them for every block.
std::int64_t heads_at_once(const cpu::LinearMap& map, const std::int64_t value_width) {
  const std::int64_t sums = map.features() * cpu::padded_to_lanes(value_width);
  const std::int64_t weight =
      map.weight != nullptr ? cpu::padded_to_lanes(map.head_width) * cpu::padded_to_lanes(map.outputs) : 0;
  const std::int64_t rows = 2 * cpu::tokens_of_block * (map.head_width + value_width); // these and the next
  const auto bytes = static_cast<std::int64_t>(sizeof(float)) * (sums + weight + rows);
  return std::max<std::int64_t>(1, cpu::second_cache_bytes() / 2 / bytes);
}

// Starting a thread pays from about a million products on.
std::int64_t units_of_thread(const std::int64_t products) {
  return std::max<std::int64_t>(1, (1 << 20) / std::max<std::int64_t>(1, products));
}

} // namespace

HeadMaps::HeadMaps(const cpu::PointMap map, const LoopProjection& projection, const std::int64_t head_width,
                   const bool normalised)
    : weight_(padded(projection.weight)), bias_(padded(projection.bias)) {
  // A scaled product needs no further pass over its numbers.
  const bool scaled_weight = weight_.defined() && projection.scale != 1;
  if (scaled_weight) weight_.mul_(projection.scale);
  if (scaled_weight && bias_.defined()) bias_.mul_(projection.scale);
  if (projection.token_weights.defined())
    token_weights_ = projection.token_weights.to(at::kFloat).contiguous();
  common_.map = map;
  common_.head_width = head_width;
  common_.outputs = projection.weight.defined() ? projection.weight.size(2) : head_width;
  common_.scale = scaled_weight ? 1 : static_cast<float>(projection.scale);
  common_.normalised = normalised;
  common_.half_square = static_cast<float>(projection.half_square);
}

cpu::LinearMap HeadMaps::of(const std::int64_t sequence, const std::int64_t head) const {
  cpu::LinearMap map = common_;
  if (weight_.defined())
    map.weight = weight_.const_data_ptr<float>() + (weight_.size(0) > 1 ? head * weight_.stride(0) : 0);
  if (bias_.defined()) map.bias = bias_.const_data_ptr<float>() + head * bias_.stride(0);
  if (token_weights_.defined())
    map.token_weights = token_weights_.const_data_ptr<float>() +
                        (token_weights_.size(0) > 1 ? sequence * token_weights_.stride(0) : 0);
  return map;
}

at::Tensor HeadMaps::padded(const at::Tensor& parameter) {
  if (!parameter.defined()) return {};
  std::vector<std::int64_t> sizes = parameter.sizes().vec();
  for (std::size_t i = 1; i < sizes.size(); ++i) sizes[i] = cpu::padded_to_lanes(sizes[i]);
  at::Tensor result = at::zeros(sizes, parameter.options().dtype(at::kFloat));
  at::Tensor own = result;
  for (std::int64_t i = 1; i < parameter.dim(); ++i) own = own.narrow(i, 0, parameter.size(i));
  own.copy_(parameter);
  return result;
}

AttentionOutput linear_on_cpu(const AttentionInput& input, const at::Tensor& mask, const cpu::PointMap map,
                              const LoopProjection& query_projection, const LoopProjection& key_projection,
                              const bool normalised) {
  const std::int64_t batch = input.q.size(0), heads = input.q.size(1), tokens = input.q.size(2),
                     width = input.q.size(3), key_heads = input.k.size(1), group = heads / key_heads;
  const cpu::Processor processor = cpu::best_processor(input.q.scalar_type() == at::kBFloat16);
  const at::Tensor query = dense_features(input.q), key = dense_features(input.k),
                   value = dense_features(input.v);
  const HeadMaps query_maps(map, query_projection, width, normalised),
      key_maps(map, key_projection, width, normalised);
  const LoopMask masks(mask);
  AttentionOutput output{.out =
                             to_heads(at::empty({batch, tokens, heads * width}, input.q.options()), heads)};

  const cpu::LinearMap any = key_maps.of(0, 0);
  const std::int64_t parts = count_of_parts(tokens, any.features());
  const Parts of_keys{.heads = key_heads, .tokens = tokens, .count = parts},
      of_queries{.heads = heads, .tokens = tokens, .count = parts};
  const std::int64_t most_heads = heads_at_once(any, width);
  const std::int64_t grain =
      units_of_thread(std::min(tokens, of_keys.tokens_of_part()) * any.features() * width);

  std::vector<cpu::KeySums> sums(static_cast<std::size_t>(batch * key_heads * parts),
                                 cpu::KeySums(any, width));
  at::parallel_for(0, batch * key_heads * parts, grain, [&](std::int64_t i, const std::int64_t end) {
    while (i < end) {
      const Parts::Run run = of_keys.run(i, end, most_heads);
      std::vector<cpu::KeyHead> run_heads;
      for (std::int64_t head = run.head; head < run.head + run.heads; ++head)
        run_heads.push_back(
            {rows_of(key, run.sequence, head), rows_of(value, run.sequence, head),
             key_maps.of(run.sequence, head),
             &sums[static_cast<std::size_t>((run.sequence * key_heads + head) * parts + run.part)]});
      cpu::add_keys(run_heads, masks.of(run.sequence), run.range, processor);
      i += run.heads;
    }
  });
  for (auto first = sums.begin(); first != sums.end(); first += parts) cpu::merge({first, first + parts});
  std::atomic<std::int64_t> zeros = 0;
  at::parallel_for(0, batch * heads * parts, grain, [&](std::int64_t i, const std::int64_t end) {
    while (i < end) {
      const Parts::Run run = of_queries.run(i, end, most_heads);
      std::vector<cpu::QueryHead> run_heads;
      for (std::int64_t head = run.head; head < run.head + run.heads; ++head) {
        const std::int64_t of_key = (run.sequence * key_heads + head / group) * parts;
        run_heads.push_back({rows_of(query, run.sequence, head), query_maps.of(run.sequence, head),
                             &sums[static_cast<std::size_t>(of_key)],
                             rows_of(output.out, run.sequence, head)});
      }
      zeros += cpu::linear_outputs(run_heads, masks.of(run.sequence), run.range, processor);
      i += run.heads;
    }
  });
  output.zero_denominators = zeros.load();
  return output;
}

namespace {

// The tokens of a range before `end`, and those from there on.
cpu::TokenRange part_before(const std::int64_t end, const cpu::TokenRange& range) {
  return {range.first, std::clamp(end, range.first, range.last)};
}
cpu::TokenRange part_from(const std::int64_t end, const cpu::TokenRange& range) {
  return {std::clamp(end, range.first, range.last), range.last};
}

// Into `out` (B,H,N,d); of_tokens (B,H,N,2) float32 as LinearMap::sums, or undefined; key_ends
// as of causal_linear_sums_on_cpu(). Returns the number of denominators that are 0.
std::int64_t run_causally(const AttentionInput& input, const at::Tensor& mask,
                          const std::span<const std::int64_t> key_ends, const HeadMaps& query_maps,
                          const HeadMaps& key_maps, std::vector<cpu::KeySums>& sums, const at::Tensor& out,
                          const at::Tensor& of_tokens) {
  const std::int64_t batch = input.q.size(0), heads = input.q.size(1), tokens = input.q.size(2),
                     width = input.q.size(3), key_heads = input.k.size(1), group = heads / key_heads;
  const at::Tensor query = dense_features(input.q), key = dense_features(input.k),
                   value = dense_features(input.v);
  const LoopMask masks(mask);
  const auto key_end = [&](const std::int64_t sequence) {
    return key_ends[key_ends.size() > 1 ? static_cast<std::size_t>(sequence) : 0];
  };
  const cpu::LinearMap any = key_maps.of(0, 0);
  const auto all_heads = static_cast<std::size_t>(batch * key_heads);
  if (sums.empty()) sums.assign(all_heads, cpu::KeySums(any, width));

  // A head's tokens follow one another; where there are few heads, they are cut into parts whose sums are
  // computed first. That costs the keys of all parts but the last once more.
  constexpr std::int64_t enough_units = 8, fewest_tokens = 256;
  const std::int64_t wanted = (enough_units + batch * key_heads - 1) / (batch * key_heads);
  const std::int64_t parts = std::max<std::int64_t>(1, std::min(wanted, tokens / fewest_tokens));
  const Parts cut{.heads = key_heads, .tokens = tokens, .count = parts};
  const std::int64_t part_tokens = cut.tokens_of_part();
  const std::int64_t products = std::min(tokens, part_tokens) * any.features() * width;
  std::vector<cpu::KeySums> of_parts(all_heads * static_cast<std::size_t>(parts - 1),
                                     cpu::KeySums(any, width));
  // All but the last.
  const Parts earlier{.heads = key_heads,
                      .tokens = std::min(tokens, (parts - 1) * part_tokens),
                      .count = std::max<std::int64_t>(1, parts - 1)};
  at::parallel_for(0, static_cast<std::int64_t>(of_parts.size()), units_of_thread(products),
                   [&](const std::int64_t begin, const std::int64_t end) {
                     for (std::int64_t i = begin; i < end; ++i) {
                       const auto [sequence, head, part, range] = earlier.unit(i);
                       const cpu::KeyHead one{rows_of(key, sequence, head), rows_of(value, sequence, head),
                                              key_maps.of(sequence, head),
                                              &of_parts[static_cast<std::size_t>(i)]};
                       cpu::add_keys({&one, 1}, masks.of(sequence), part_before(key_end(sequence), range),
                                     cpu::best_processor(false));
                     }
                   });

  std::vector<cpu::KeySums> after; // of the last parts
  if (parts > 1) after.assign(all_heads, cpu::KeySums(any, width));
  std::vector<std::int64_t> zeros(all_heads * static_cast<std::size_t>(parts));
  at::parallel_for(
      0, batch * key_heads * parts, units_of_thread(products * (group + 1)),
      [&](const std::int64_t begin, const std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const auto [sequence, head, part, range] = cut.unit(i);
          const std::int64_t at = sequence * key_heads + head;
          std::optional<cpu::KeySums> copy;
          if (parts > 1) copy = sums[static_cast<std::size_t>(at)];
          cpu::KeySums& own = copy ? *copy : sums[static_cast<std::size_t>(at)];
          for (std::int64_t other = 0; other < part; ++other)
            cpu::add_sums(own, of_parts[static_cast<std::size_t>(at * (parts - 1) + other)]);
          std::vector<cpu::CausalQueries> queries;
          for (std::int64_t one = head * group; one < (head + 1) * group; ++one) {
            queries.push_back(
                {rows_of(query, sequence, one), query_maps.of(sequence, one), rows_of(out, sequence, one)});
            if (of_tokens.defined())
              queries.back().map.sums =
                  of_tokens.data_ptr<float>() + (sequence * heads + one) * of_tokens.stride(1);
          }
          const cpu::TokenRange both = part_before(key_end(sequence), range),
                                queries_alone = part_from(key_end(sequence), range);
          std::int64_t& zero = zeros[static_cast<std::size_t>(i)];
          if (both.first < both.last)
            zero = cpu::causal_outputs(rows_of(key, sequence, head), rows_of(value, sequence, head), queries,
                                       masks.of(sequence), both, key_maps.of(sequence, head), own);
          if (queries_alone.first < queries_alone.last) {
            std::vector<cpu::QueryHead> readers;
            for (const auto& [q, map, to] : queries) readers.push_back({q, map, &own, to});
            zero +=
                cpu::linear_outputs(readers, masks.of(sequence), queries_alone, cpu::best_processor(false));
          }
          if (copy && part == parts - 1) after[static_cast<std::size_t>(at)] = std::move(*copy);
        }
      });
  if (parts > 1) sums = std::move(after);
  return std::reduce(zeros.begin(), zeros.end());
}

constexpr std::pair<const char*, std::vector<float> cpu::KeySums::*> sum_names[] = {
    {"values", &cpu::KeySums::values},
    {"totals", &cpu::KeySums::totals},
    {"largest", &cpu::KeySums::largest}};

} // namespace

AttentionOutput causal_linear_on_cpu(const AttentionInput& input, const at::Tensor& mask,
                                     const HeadMaps& query, const HeadMaps& key,
                                     std::vector<cpu::KeySums>& sums) {
  const std::int64_t heads = input.q.size(1), width = heads * input.q.size(3);
  AttentionOutput output{
      .out = to_heads(at::empty({input.q.size(0), input.q.size(2), width}, input.q.options()), heads)};
  const std::int64_t tokens = input.q.size(2);
  output.zero_denominators = run_causally(input, mask, {&tokens, 1}, query, key, sums, output.out, {});
  return output;
}

LinearSums causal_linear_sums_on_cpu(const AttentionInput& input, const at::Tensor& mask,
                                     const std::span<const std::int64_t> key_ends, const HeadMaps& query,
                                     const HeadMaps& key, std::vector<cpu::KeySums>& sums) {
  const auto options = input.q.options().dtype(at::kFloat);
  const at::Tensor numerator = at::empty(input.q.sizes(), options);
  const at::Tensor of_tokens = at::empty({input.q.size(0), input.q.size(1), input.q.size(2), 2}, options);
  run_causally(input, mask, key_ends, query, key, sums, numerator, of_tokens);
  return {numerator, of_tokens.slice(3, 0, 1), of_tokens.slice(3, 1)};
}

DecodingTensors tensors_of(const std::vector<cpu::KeySums>& sums) {
  DecodingTensors all;
  for (const auto& [name, part] : sum_names) {
    at::Tensor joined = at::empty(
        {static_cast<std::int64_t>(sums.size()), static_cast<std::int64_t>((sums.front().*part).size())});
    float* to = joined.data_ptr<float>();
    for (const cpu::KeySums& one : sums) to = std::ranges::copy(one.*part, to).out;
    all[name] = joined;
  }
  return all;
}

void restore_sums(const DecodingTensors& saved, std::vector<cpu::KeySums>& sums) {
  for (const auto& [name, part] : sum_names) {
    const auto length = static_cast<std::int64_t>((sums.front().*part).size());
    const at::Tensor joined =
        saved_tensor(saved, name, {static_cast<std::int64_t>(sums.size()), length}, at::kFloat).contiguous();
    const float* from = joined.const_data_ptr<float>();
    for (cpu::KeySums& one : sums) {
      std::copy(from, from + length, (one.*part).begin());
      from += length;
    }
  }
}

std::int64_t bytes_of(const std::vector<cpu::KeySums>& sums) {
  std::size_t floats = 0;
  for (const auto& [name, part] : sum_names) floats += (sums.front().*part).size();
  return static_cast<std::int64_t>(sums.size() * floats * sizeof(float));
}

} // namespace hydrascope
