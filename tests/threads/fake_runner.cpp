// A Runner without models, linked in place of the engine's: four steps, each of which polls the stop.
#include "engine/run/runner.h"

#include <thread>

#include "engine/base/error.h"
#include "engine/run/devices.h"

namespace hydrascope {

struct Runner::State {};

DeviceList list_devices() {
  std::this_thread::yield();
  return {.accelerators = {{.name = "cuda:0"}}};
}

ModelSource installed_models() { return {}; }
std::shared_ptr<ModelStore> make_model_store(ModelSource) { return nullptr; }

Runner::Runner(std::size_t, std::shared_ptr<ModelStore>) {}
Runner::~Runner() = default;

std::shared_ptr<const RunResult> Runner::run(const RunRequest& request, std::stop_token stop,
                                             const RunProgress& progress) {
  constexpr int steps = 4;
  for (int step = 0; step < steps; ++step) {
    if (stop.stop_requested()) throw Cancelled();
    if (progress) progress(step + 1, steps);
    std::this_thread::yield();
  }
  if (request.generation % 7 == 0) throw Error("generation", "is a multiple of seven", "use another");
  auto result = std::make_shared<RunResult>();
  result->generation = request.generation;
  return result;
}

void Runner::release() { std::this_thread::yield(); }

} // namespace hydrascope
