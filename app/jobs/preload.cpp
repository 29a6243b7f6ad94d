#include "app/jobs/preload.h"

#include <utility>

#include "app/jobs/requests.h"
#include "engine/run/runner.h"

namespace hydrascope::app {

namespace {

template <typename Work>
std::jthread in_background(Work work) {
  return std::jthread([work = std::move(work)] {
    try {
      work();
    } catch (...) { // NOLINT(bugprone-empty-catch): the run meets it again, and reports it
    }
  });
}

} // namespace

Preload::Preload(std::shared_ptr<ModelStore> models)
    : models_(std::move(models)),
      adapters_(in_background([store = models_] { store->read_bundled_adapters(); })) {}

void Preload::load_model(const Document& document) {
  if (!can_run(document)) return;
  model_ = in_background(
      [store = models_, request = make_run_request(document, Side::a, {}, 0)] { preload(request, *store); });
}

} // namespace hydrascope::app
