// Runs requests on the calling thread and owns the prefix cache. Plain header.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/run/model_store.h"
#include "engine/run/run.h"

namespace hydrascope {

struct Placement;

// Progress of a run in blocks.
using RunProgress = std::function<void(int done, int total)>;

inline constexpr std::size_t default_cache_bytes = std::size_t{256} << 20;

// Loads the model of a request and its adapters into the store, where the run then finds them. Throws as
// ModelStore::base() and apply(), and UsageError for a device that is not there. Does not
// heed execution.threads.
void preload(const RunRequest& request, ModelStore& store);

class Runner {
public:
  // `cache_bytes`: limit of the prefix cache, which keeps the hidden states before each layer. Each device
  // has one of its own.
  explicit Runner(std::size_t cache_bytes = default_cache_bytes,
                  std::shared_ptr<ModelStore> models = make_model_store());
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // One forward pass, and a backward pass if a quantity needs the gradient. Starts at the first layer whose
  // input is not in the prefix cache. Throws Error and its kinds, Cancelled when `stop` is requested (polled
  // between blocks). When an accelerator's memory runs out, empties its caches and tries once more.
  std::shared_ptr<const RunResult> run(const RunRequest& request, std::stop_token stop = {},
                                       const RunProgress& progress = {});
  // The same in a given placement, whatever the request's device and dtype.
  std::shared_ptr<const RunResult> run_in(const Placement& placement, const RunRequest& request,
                                          std::stop_token stop = {}, const RunProgress& progress = {});

  // Drops the hidden states and inputs that it keeps, and the store's models that nothing else holds, and
  // returns what was freed to the system. The next run loads and computes what it needs again.
  void release();

private:
  std::shared_ptr<const RunResult> attempt(const Placement& placement, const RunRequest& request,
                                           std::stop_token stop, const RunProgress& progress);

  struct State;
  std::unique_ptr<State> state_;
};

} // namespace hydrascope
