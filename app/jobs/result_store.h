// What one side (A or B) has of what is requested: each key is delivered, pending, failed or absent. Pure
// state: it runs nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "app/jobs/results.h"

namespace hydrascope::app {

// What results depend on.
struct RequestKey {
  std::string request;
  // The same but for the edition of a file that is rewritten while the document names it, and for the text
  // that a decoder writes after the document's.
  std::string settings;

  bool operator==(const RequestKey&) const = default;
};

class ResultStore {
public:
  enum class State { absent, pending, delivered, failed };

  // A run under way.
  struct Pending {
    std::uint64_t generation = 0;
    RequestKey of = {};
    QuantityKeys keys = {};
    QuantityKeys comparisons = {}; // those of `keys` for which another kernel runs beside the schedule's own
    bool timing = false;           // run for the times of its layers alone
  };

  // Results of another model or kind of input are dropped.
  void set_subject(const std::string& subject);
  // What the document asks for now. Clears a failure that no longer concerns it: of another request, or of
  // keys of which some are no longer requested. Of more than most_parts parts the oldest that hold nothing
  // requested are dropped.
  void update(const RequestKey& request, const QuantityKeys& requested, double now);

  const SideResults& results() const { return results_; }
  State state(const QuantityKey& key) const;
  // The results are of the request of the last update().
  bool fresh() const { return request_ == held_; }
  // Neither delivered for that request nor failed.
  QuantityKeys missing(const QuantityKeys& requested) const;
  bool holds_all(const QuantityKeys& requested) const { return requested.missing_in(delivered_).empty(); }
  bool failed() const { return failure_.has_value(); }
  // The schedule itself failed or was cancelled: nothing of the request can be had.
  bool blocked() const { return failure_ && !failure_->comparisons_alone; }

  const std::optional<Pending>& pending() const { return pending_; }
  void submit(Pending run) { pending_ = std::move(run); }
  void drop_pending() { pending_.reset(); }

  // The outcomes of the pending run.
  void deliver(std::shared_ptr<const RunResult> result);
  void fail(const std::string& error);
  void cancel();
  // What has failed may be asked for again.
  void clear_failure();

  static constexpr std::size_t most_parts = 6;

private:
  struct Failure {
    std::string request;
    QuantityKeys keys;
    bool comparisons_alone = false; // what else is requested can still be had
  };
  void drop_unwanted(const QuantityKeys& requested);

  SideResults results_;
  std::string subject_;
  std::optional<RequestKey> held_;    // of results_.parts
  std::optional<RequestKey> request_; // of the last update()
  QuantityKeys delivered_;            // under held_
  bool grown_ = false;                // a part has come since parts were last dropped
  std::optional<Failure> failure_;
  std::optional<Pending> pending_;
  double stale_since_ = 0;
};

} // namespace hydrascope::app
