// What a run reads off the attention of its layers while it passes them.
#pragma once

#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/runtime/facts.h"
#include "engine/runtime/pass.h"
#include "engine/runtime/run.h"

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

// Facts of one kernel in every layer; `keys` say what each layer's facts depend on.
struct FactReading {
  FactKinds kinds;
  std::vector<LayerKernel> kernels; // by layer
  std::vector<std::string> keys;    // by layer
  std::vector<LayerFacts> facts;    // by layer, filled
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
  std::vector<FactReading> facts;
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

  // Layers whose attention must be seen: facts that are known already ask for none.
  std::vector<bool> tapped(std::size_t layers, const FactCache& cache) const;
};

// Fills in the facts that are known; then visits a layer's tap, taking what is asked of it.
void take_known_facts(Readings& readings, const FactCache& cache);
void read_layer(Readings& readings, FactCache& cache, const Pass& pass, int layer, const AttentionTap& tap);

} // namespace hydrascope
