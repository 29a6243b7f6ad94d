#include "app/jobs/result_store.h"

#include <utility>
#include <vector>

namespace hydrascope::app {

void ResultStore::set_subject(const std::string& subject) {
  if (subject_ == subject) return;
  subject_ = subject;
  results_.parts.clear();
  held_.reset();
  delivered_ = {};
  clear_failure();
}

void ResultStore::update(const RequestKey& request, const QuantityKeys& requested, double now) {
  request_ = request;
  // Another edition of the same file does not make the results stale: they are the newest of a training.
  if (fresh() || (held_ && held_->settings == request.settings)) {
    results_.stale = false;
  } else if (!results_.stale) {
    results_.stale = true;
    stale_since_ = now;
  }
  results_.stale_seconds = results_.stale ? now - stale_since_ : 0;
  results_.fresh = fresh();
  if (failure_ && (failure_->request != request.request || !failure_->keys.missing_in(requested).empty()))
    clear_failure();
  if (fresh()) drop_unwanted(requested);
}

ResultStore::State ResultStore::state(const QuantityKey& key) const {
  if (fresh() && delivered_.covers(key)) return State::delivered;
  if (failure_ && (blocked() || failure_->keys.covers(key))) return State::failed;
  const bool running = pending_ && request_ && pending_->of == *request_ && pending_->keys.covers(key);
  return running ? State::pending : State::absent;
}

QuantityKeys ResultStore::missing(const QuantityKeys& requested) const {
  QuantityKeys decided;
  if (fresh()) decided = delivered_;
  if (failure_) decided.add(failure_->keys);
  return requested.missing_in(decided);
}

void ResultStore::deliver(std::shared_ptr<const RunResult> result) {
  const Pending run = std::move(*std::exchange(pending_, std::nullopt));
  if (!failure_ || failure_->request != run.of.request) clear_failure();
  if (run.timing) return; // it holds nothing that is not there already
  if (held_ != run.of) {
    held_ = run.of;
    delivered_ = {};
    results_.parts.clear();
  }
  delivered_.add(run.keys);
  results_.parts.push_back(std::move(result));
  grown_ = true;
}

// A comparison with a kernel that cannot run here is no reason to show nothing of a model that can.
void ResultStore::fail(const std::string& error) {
  const Pending run = std::move(*std::exchange(pending_, std::nullopt));
  results_.error = error;
  if (run.timing) return;
  const bool comparisons_alone = !run.comparisons.empty();
  Failure failure{run.of.request, comparisons_alone ? run.comparisons : run.keys, comparisons_alone};
  if (comparisons_alone && failure_ && failure_->comparisons_alone && failure_->request == failure.request)
    failure.keys.add(failure_->keys);
  failure_ = std::move(failure);
}

void ResultStore::cancel() {
  if (!pending_) return;
  const Pending run = std::move(*std::exchange(pending_, std::nullopt));
  if (run.timing) return;
  failure_ = Failure{run.of.request, run.keys, false};
  results_.cancelled = true;
  results_.error.clear();
}

void ResultStore::clear_failure() {
  failure_.reset();
  results_.error.clear();
  results_.cancelled = false;
}

// A step through all layers of a large model with weights kept would otherwise grow without end.
void ResultStore::drop_unwanted(const QuantityKeys& requested) {
  auto& parts = results_.parts;
  if (!std::exchange(grown_, false) || parts.size() <= most_parts) return;
  std::vector<QuantityKeys> held; // by part
  QuantityKeys all;
  for (const auto& part : parts) {
    held.push_back(part->quantities.keys());
    all.add(held.back());
  }
  const QuantityKeys without_result = delivered_.missing_in(all); // asked for, and there is no such thing
  QuantityKeys needed;
  for (const QuantityKey& key : requested)
    if (all.covers(key)) needed.add(key);
  for (std::size_t i = 0; i < parts.size() && parts.size() > most_parts;) {
    QuantityKeys others;
    for (std::size_t other = 0; other < held.size(); ++other)
      if (other != i) others.add(held[other]);
    if (!needed.missing_in(others).empty()) {
      ++i;
      continue;
    }
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i));
    held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
    delivered_ = std::move(others);
    delivered_.add(without_result);
  }
}

} // namespace hydrascope::app
