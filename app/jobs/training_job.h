// Trains in the background according to the form, and lets the panels show the adapter in training.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/document/editor.h"
#include "app/jobs/background_job.h"
#include "app/jobs/process_folder.h"

namespace hydrascope::app {

// Has a thread of lower priority than the model's. Waits between steps during interactive runs, so that only
// one of the two computes at a time.
class TrainingJob {
public:
  // `wake` is called from the thread on progress, a few times a second.
  TrainingJob(std::function<void()> wake, std::shared_ptr<ModelStore> models)
      : wake_(std::move(wake)), models_(std::move(models)) {}

  void begin(Editor& editor, TrainingStart how);
  void toggle_pause(Editor& editor);
  void stop(Editor& editor, std::string reason = {}); // keeps a checkpoint
  // Shows the trained adapter, or the previous adapters.
  void toggle_shown(Editor& editor);
  // Copies the adapter of the finished training to another file.
  void save_adapter(Editor& editor, const std::filesystem::path& file) const;
  // Once per frame: takes the results into the editor. Returns whether anything changed.
  bool update(Editor& editor, bool interactive_run);
  // Before the program ends: stops with a checkpoint and removes temporary files from the document.
  void shut_down(Editor& editor);

  // The temporary adapter of the training in progress (empty: none), and the number of its current version.
  const std::filesystem::path& live_file() const { return live_; }
  std::uint64_t edition() const { return edition_; }

private:
  struct Sample {
    std::int64_t step = 0;
    double loss = 0;
    std::vector<double> divergences; // by layer
  };
  struct Update {
    std::optional<TrainingProgress> progress; // the newest
    std::vector<Sample> samples;
    std::vector<HeldOut> held_out;
    std::vector<std::string> notes;
    std::vector<std::filesystem::path>
        live; // a new version of the adapter, with its base adapters; may be empty
    std::optional<TrainingOutcome> outcome;
  };
  using Job = BackgroundJob<Update>;
  class Reporter;

  // What was shown before the trained adapter.
  struct Former {
    AdapterChoice adapters;
    Schedule schedule;
    Side side = Side::a;
    bool other_patches = false; // perhaps: its pictures may have another size
  };

  void start(const Editor& editor, TrainingStart how);
  void take(Editor& editor, Update update);
  void end(Editor& editor, const std::string& problem);
  void show(Editor& editor);
  void show_former(Document& document, const TrainingReport& report) const;
  void remove_shown(Editor& editor);

  std::function<void()> wake_;
  std::shared_ptr<ModelStore> models_;
  // For copies of the adapter in training. Stays until the next training: after the end of the work, the
  // document and a run in progress may still name what lies there.
  std::optional<ProcessFolder> folder_;
  std::unique_ptr<Job> job_;
  std::filesystem::path model_folder_; // of the trained model
  AdapterChoice adapters_;             // that it is trained over
  std::filesystem::path live_;
  std::uint64_t edition_ = 0;
  bool offered_ =
      false; // the adapter was shown once; it is not shown again after the user showed something else
  std::optional<Former> former_;
  std::string why_stopped_;
  // When the training started and the user's pause began; the length of the pauses before.
  std::chrono::steady_clock::time_point started_, paused_;
  std::chrono::duration<double> pauses_{};
};

// Whether the document shows the adapter of the running or last training.
bool shows_training(const Editor& editor);

} // namespace hydrascope::app
