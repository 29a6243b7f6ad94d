// What a run reads off the attention of its layers while it passes them.
#pragma once

#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/run/pass.h"
#include "engine/run/quantities/head_tables.h"
#include "engine/run/run.h"

namespace hydrascope {

// Weights asked for, by position in the request, so that two passes can fill them in any order.
struct WeightsReading {
  std::size_t position = 0;
  WeightsAsk ask;
  std::vector<LayerKernel> kernels;
};

struct VectorsReading {
  std::size_t position = 0;
  VectorsAsk ask;
  std::vector<LayerKernel> kernels;
};
struct TileReading {
  std::size_t position = 0;
  TileAsk ask;
  LayerKernel kernel;
};

// q, k, v of every layer, which the chosen head's weights are compared by once all layers are known.
struct SimilarHeadsReading {
  HeadIndex head;
  std::vector<AttentionInput> inputs; // by layer, filled
};

// The product of the layers' rollout factors so far.
struct RolloutReading {
  RolloutAsk ask;
  bool magnitudes = false; // filled: as RolloutResult
  at::Tensor product;      // (1,N,N), filled
};

// The same q, k, v as constants: nothing read off a layer belongs to the gradient's graph.
AttentionInput constant_input(const AttentionInput& input);

// Everything one pass is asked.
struct Readings {
  std::vector<WeightsReading> weights;
  std::vector<VectorsReading> vectors;
  std::vector<TileReading> tiles;
  std::vector<HeadTableReading> head_tables;
  std::vector<AttentionRowAsk> attention_rows;
  std::optional<RolloutReading> rollout;
  std::optional<SimilarHeadsReading> similar_heads;
  std::vector<int> focus_layers;
  std::map<int, AttentionTap> focus_taps;                      // filled, with their graphs
  std::map<std::size_t, std::vector<WeightsResult>> delivered; // filled, by position
  std::map<std::size_t, std::vector<VectorsResult>> delivered_vectors;
  std::map<std::size_t, std::vector<TileResult>> delivered_tiles;
  std::vector<AttentionRowResult> delivered_rows; // filled, by layer
  std::stop_token stop;                           // polled where reading takes long

  // Layers whose attention must be seen: numbers of heads that are known already need none.
  std::vector<bool> tapped(std::size_t layers, const HeadRowCache& cache) const;
};

void take_known_heads(Readings& readings, const HeadRowCache& cache);
// Visits a layer's tap, taking what is asked of it.
void read_layer(Readings& readings, HeadRowCache& cache, const Pass& pass, int layer,
                const AttentionTap& tap);

} // namespace hydrascope
