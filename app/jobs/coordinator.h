// Between document and worker: submits what is missing, stores what was delivered. One call per frame, main
// thread only.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "app/document/document.h"
#include "app/jobs/requests.h"
#include "app/jobs/result_store.h"
#include "app/views/timing_view.h"
#include "engine/run/worker.h"

namespace hydrascope::app {

class Coordinator {
public:
  explicit Coordinator(Worker& worker) : worker_(&worker) {}

  // Takes the worker's deliveries. Returns true if anything changed; new error texts are appended to
  // `errors`.
  bool drain(std::vector<std::string>& errors);
  // Submits what the document and the open panels want and what is neither delivered nor pending; stops what
  // is no longer requested. Results of another model or kind of input are dropped at once.
  // `typed`: the document with the text as it was typed, which `document` goes on with while a decoder
  // writes; null: it is that itself. Results of a shorter text under the same settings do not count as stale.
  void update(const Document& document, const Requested& requested, double now,
              const Document* typed = nullptr);

  // A file whose content changes while the document goes on naming it: with every new edition what was run
  // with the last one is run again. Until then the old results do not count as stale.
  void follow(const std::filesystem::path& file, std::uint64_t edition);

  const SideResults& results(Side side) const { return store(side).results(); }
  const ResultStore& store(Side side) const { return sides_[static_cast<std::size_t>(side)].store; }
  // Stops what runs for the user. It is not asked for again until something changes or run_again() is called.
  void cancel();
  void run_again();
  // Models and hidden states are dropped once nothing runs; what is shown stays.
  void free_memory() { worker_->release(); }
  bool freeing_memory() const { return worker_->releasing(); }
  // What was delivered is requested again at the next update().
  void drop_results();
  // Once everything that is requested has been delivered, the sides that are shown run so many plain passes
  // more, for the times of their layers; dropped when the document changes, or by cancel().
  void time_passes(const Document& document, int passes);
  bool timing() const; // such passes are requested or under way
  const TimingRecord& times() const { return times_; }
  // What the document wants was cancelled or has failed.
  bool stopped() const { return stopped_; }

  bool computing() const;
  float progress() const; // 0…1 of the run in flight
  double computing_since() const { return computing_since_; }
  // Everything that is requested has been delivered (or has failed).
  bool settled() const { return settled_; }
  // Something of this is still to come for a side that is shown.
  bool lacks(const Document& document, const Requested& requested) const;
  // Something of this will not come: it has failed or was cancelled.
  bool refused(const Document& document, const Requested& requested) const;

private:
  struct Lane {
    ResultStore store;
    std::string timed_request; // of the document whose layers are to be timed; empty: none
    int timed_passes = 0;
    bool delivered = false; // since the last update()
  };
  void stop(Lane& lane);
  RequestKey request_of(const Document& document, Side side, const Document* typed = nullptr) const;
  void submit(Lane& lane, Side side, const Document& document, ResultStore::Pending run);

  Worker* worker_;
  std::array<Lane, 2> sides_;
  TimingRecord times_;
  std::filesystem::path followed_;
  std::uint64_t edition_ = 0;
  std::uint64_t generation_ = 0;
  double computing_since_ = 0;
  bool settled_ = false;
  bool stopped_ = false;
};

} // namespace hydrascope::app
