// Between document and worker: submits what is missing, keeps what was delivered. One call per frame, main
// thread only.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "app/document/document.h"
#include "app/jobs/requests.h"
#include "app/jobs/results.h"
#include "app/views/timing_record.h"
#include "engine/run/worker.h"

namespace hydrascope::app {

class Coordinator {
public:
  explicit Coordinator(Worker& worker) : worker_(&worker) {}

  // Takes the worker's deliveries. Returns true if anything changed; new error texts are appended to
  // `errors`.
  bool drain(std::vector<std::string>& errors);
  // Submits what the document and the open panels want and nobody has delivered or is computing; stops what
  // nobody wants any more. Results of another model or kind of input are gone at once.
  void update(const Document& document, const Wants& wants, double now);

  // A file whose content changes while the document goes on naming it: with every new edition what was run
  // with the last one is run again. Until it is there, the old does not count as stale: it is the newest that
  // there is of a training.
  void follow(const std::filesystem::path& file, std::uint64_t edition);

  const SideResults& results(Side side) const { return sides_[static_cast<std::size_t>(side)].results; }
  // Stops what runs for the user, who does not want to wait. It is not asked for again until something
  // changes or run_again() is called.
  void cancel();
  void run_again();
  // Once everything that is wanted has been delivered, the sides that are shown run so many plain passes
  // more, for the times of their layers; forgotten when the document changes, or by cancel().
  void time_passes(const Document& document, int passes);
  bool timing() const; // such passes are wanted or under way
  const TimingRecord& times() const { return times_; }
  // What the document wants was cancelled or has failed.
  bool stopped() const { return stopped_; }

  bool computing() const;
  float progress() const; // 0…1 of the run in flight
  double computing_since() const { return computing_since_; }
  // Everything that is wanted has been delivered (or has failed).
  bool settled() const { return settled_; }
  // Something of this is still to come for a side that is shown.
  bool lacks(const Document& document, const Wants& wants) const;
  // Something of this will not come: it has failed or was cancelled.
  bool refused(const Document& document, const Wants& wants) const;

private:
  struct Lane {
    SideResults results;
    std::string subject;    // of results.parts
    std::string key;        // likewise
    std::string choices;    // the same but for the edition of the file that is followed
    Asks delivered;         // under `key`
    bool grown = false;     // a part has come since it was last looked for parts to forget
    std::string failed_key; // what failed is not asked for again under it, as long as all of it is wanted
    Asks failed_asks;
    bool failed_alone = false;   // what else is wanted may still be had
    std::uint64_t in_flight = 0; // generation; 0 = none
    std::string in_flight_key, in_flight_choices;
    Asks in_flight_asks, in_flight_compared; // the second: what of the first compares with another kernel
    bool in_flight_first = false;            // carries what the selection needs
    double stale_since = 0;
    std::string timed_key; // of the document whose layers are to be timed; empty: none
    int timed_passes = 0;
  };
  void stop(Lane& lane);
  std::string key_of(const Document& document, Side side) const;
  static void turn_to(Lane& lane, const std::string& subject);
  static void fail(Lane& lane);
  static void forgive(Lane& lane);
  static void hope_again(Lane& lane, const std::string& key, const Wants& wants);
  static void forget(Lane& lane, const Wants& wants);
  static bool undelivered(const Lane& lane, const Wants& wants);
  void submit(Lane& lane, Side side, const Document& document, const std::string& key, const Asks& asks,
              bool first);
  void submit_timing(Lane& lane, Side side, const Document& document, const std::string& key);

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
