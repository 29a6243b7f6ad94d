#include "app/jobs/results.h"

#include <algorithm>
#include <ranges>

namespace hydrascope::app {

FoundFocus find_focus(const SideResults& results, int layer) {
  for (const auto& part : results.parts | std::views::reverse) {
    for (const FocusResult& focus : part->focus) {
      if (focus.layer == layer) return {part.get(), &focus};
    }
  }
  return {};
}

FoundWeights find_weights(const SideResults& results, int layer, const KernelSpec& kernel,
                          bool teacher_forced, std::optional<std::int64_t> row, bool value_weighted) {
  for (const auto& part : results.parts | std::views::reverse) {
    for (const WeightsResult& weights : part->weights) {
      const bool rows =
          weights.rows.size() == part->tokens.size() || (row && std::ranges::count(weights.rows, *row) > 0);
      if (rows && weights.layer == layer && weights.kernel == kernel &&
          weights.teacher_forced == teacher_forced && weights.value_weighted == value_weighted) {
        return {part, &weights};
      }
    }
  }
  return {};
}

FoundVectors find_vectors(const SideResults& results, const VectorsAsk& ask) {
  for (const auto& part : results.parts | std::views::reverse) {
    for (const VectorsResult& vectors : part->vectors) {
      const bool kernel = ask.kernels.empty()
                              ? vectors.kernel == part->layers.at(static_cast<std::size_t>(ask.layer)).kernel
                              : vectors.kernel == ask.kernels.front();
      if (kernel && vectors.layer == ask.layer && vectors.head == ask.head && vectors.query == ask.query &&
          vectors.teacher_forced == ask.teacher_forced) {
        return {part, &vectors};
      }
    }
  }
  return {};
}

const AttentionRowResult* find_attention_row(const SideResults& results, const AttentionRowAsk& ask) {
  for (const auto& part : results.parts | std::views::reverse) {
    for (const AttentionRowResult& row : part->attention_rows) {
      if (row.ask == ask) return &row;
    }
  }
  return nullptr;
}

const RolloutResult* find_rollout(const SideResults& results, const RolloutAsk& ask) {
  for (const auto& part : results.parts | std::views::reverse) {
    if (part->rollout && part->rollout->ask == ask) return &*part->rollout;
  }
  return nullptr;
}

const TileResult* find_tile(const SideResults& results, const TileAsk& ask) {
  for (const auto& part : results.parts | std::views::reverse) {
    for (const TileResult& tile : part->tiles) {
      if (tile.ask == ask) return &tile;
    }
  }
  return nullptr;
}

std::shared_ptr<const RunResult> find_similar_heads(const SideResults& results, HeadIndex head) {
  for (const auto& part : results.parts | std::views::reverse) {
    if (part->similar_heads && part->similar_heads->head == head) return part;
  }
  return nullptr;
}

std::shared_ptr<const RunResult> find_deletion(const SideResults& results, const DeletionAsk& ask) {
  for (const auto& part : results.parts | std::views::reverse) {
    if (part->deletion && part->deletion->ask == ask) return part;
  }
  return nullptr;
}

FoundTable find_table(const SideResults& results, const HeadTableAsk& ask) {
  for (const auto& part : results.parts | std::views::reverse) {
    for (const HeadTable& table : part->tables)
      if (table.ask == ask) return {part.get(), &table};
  }
  return {};
}

} // namespace hydrascope::app
