// Runs requests one after another on the calling thread; owns the prefix cache. Plain header.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/run/model_source.h"
#include "engine/run/run.h"

namespace hydrascope {

// Progress of a run: blocks done of blocks to do.
using RunProgress = std::function<void(int done, int total)>;

inline constexpr std::size_t usual_cache_bytes = std::size_t{256} << 20;

class Runner {
public:
  // `cache_bytes`: memory for hidden states kept before each layer (least recently used goes first).
  explicit Runner(std::size_t cache_bytes = usual_cache_bytes,
                  std::shared_ptr<ModelStore> models = make_model_store());
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // One forward pass (and the gradient where a focus map is asked for). Starts at the first layer whose input
  // is not in the prefix cache. Throws Error and its kinds, Cancelled when `stop` is requested (polled
  // between blocks).
  std::shared_ptr<const RunResult> run(const RunRequest& request, std::stop_token stop = {},
                                       const RunProgress& progress = {});

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace hydrascope
