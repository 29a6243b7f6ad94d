// Reads what the first run needs while the display opens and the first frame is drawn.
#pragma once

#include <memory>
#include <thread>

#include "app/document/document.h"
#include "engine/run/model_store.h"

namespace hydrascope::app {

// Errors are left to the run, which meets them again. The destructor waits for what is being read.
class Preload {
public:
  // Begins with the bundled adapters, which any model may use.
  explicit Preload(std::shared_ptr<ModelStore> models);
  // Then the document's model with the adapters of its first run, if it has a model and an input. To be
  // called once.
  void load_model(const Document& document);

private:
  std::shared_ptr<ModelStore> models_;
  std::jthread adapters_, model_;
};

} // namespace hydrascope::app
