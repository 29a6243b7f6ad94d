// Trains in the background what the form says, and lets the panels look at the model in training.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/document/editor.h"
#include "app/jobs/background_job.h"

namespace hydrascope::app {

// A thread of its own, of lower priority than the model's. Between two steps it waits while the model runs
// for what is shown, so that there is one thread of work at a time.
class TrainingJob {
public:
  // `wake` is called from the thread when there is news, a few times a second.
  TrainingJob(std::function<void()> wake, std::shared_ptr<ModelStore> models)
      : wake_(std::move(wake)), models_(std::move(models)) {}

  void begin(Editor& editor, TrainingStart how);
  void toggle_pause(Editor& editor);
  void stop(Editor& editor, std::string reason = {}); // keeps a checkpoint
  // Shows the trained adapter, or what was shown before it.
  void toggle_shown(Editor& editor);
  // Once per frame: puts what has come of it into the editor. Returns whether anything has changed.
  bool update(Editor& editor, bool interactive_run);
  // Before the program ends: stops it with a checkpoint, and the document no longer names what goes with it.
  void leave(Editor& editor);

  // The adapter that is written anew while it trains, and how often it has been; empty: there is none.
  const std::filesystem::path& live_file() const { return live_; }
  std::uint64_t edition() const { return edition_; }

private:
  struct Sample {
    std::int64_t step = 0;
    double loss = 0;
    std::vector<double> divergences; // of each layer
  };
  struct News {
    std::optional<TrainingProgress> progress; // the newest
    std::vector<Sample> samples;
    std::vector<HeldOut> held_out;
    std::vector<std::string> notes;
    std::vector<std::filesystem::path> live; // a new state of the adapter; empty: there is none
    std::optional<TrainingOutcome> outcome;
  };
  using Job = BackgroundJob<News>;
  class Reporter;

  // What was shown before the adapter in training was.
  struct Former {
    AdapterChoice adapters;
    Schedule schedule;
    Side side = Side::a;
  };

  void start(const Editor& editor, TrainingStart how);
  void take(Editor& editor, News news);
  void end(Editor& editor, const std::string& problem);
  void show(Editor& editor);
  void show_former(Document& document, const TrainingReport& report) const;
  void forget_shown(Editor& editor);
  void drop_live();

  std::function<void()> wake_;
  std::shared_ptr<ModelStore> models_;
  std::unique_ptr<Job> job_;
  std::filesystem::path model_folder_; // of what is trained
  std::filesystem::path live_;
  std::uint64_t edition_ = 0;
  bool offered_ = false; // it has been shown once; whoever then shows something else is left in peace
  std::optional<Former> former_;
  std::string why_stopped_;
};

// Whether the document shows what the training has written so far, or in the end.
bool shows_training(const Editor& editor);

} // namespace hydrascope::app
