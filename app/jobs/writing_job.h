// Lets a decoder go on with the document's text in the background, under both schedules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/document/editor.h"
#include "app/jobs/background_job.h"
#include "engine/run/model_store.h"

namespace hydrascope::app {

// Of one side, in their order.
struct WritingStep {
  std::size_t side = 0;
  std::optional<std::int64_t> prompt_tokens = {}; // the text has been read, …
  double prefill_ms = 0;                          // … in this time
  std::vector<std::string> notes = {};
  std::optional<WrittenToken> token = {}; // the next one, and …
  std::string text = {};                  // … with it all that was written
  std::string ended = {};                 // it cannot go on: why
  std::string problem = {};               // it has failed
};

// Has threads of lower priority than the model's, one for each side. Waits between tokens during interactive
// runs.
class WritingJob {
public:
  // `wake` is called from the threads for each token that panels follow, and at the end.
  WritingJob(std::function<void()> wake, std::shared_ptr<ModelStore> models)
      : wake_(std::move(wake)), models_(std::move(models)) {}

  // Writes after the document's text, or goes on with what is there.
  void start(Editor& editor, bool anew);
  void stop(Editor& editor); // keeps what was written
  // Once per frame: takes the results into the editor. Returns whether anything changed.
  bool update(Editor& editor, bool interactive_run);
  bool running() const { return jobs_.job() != nullptr; }

private:
  std::function<void()> wake_;
  std::shared_ptr<ModelStore> models_;
  JobSlot<WritingStep> jobs_;
  std::uint64_t start_ = 0;            // counts the starts
  std::filesystem::path model_folder_; // of the last one
};

} // namespace hydrascope::app
