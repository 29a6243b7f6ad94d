#include "app/jobs/coordinator.h"

#include <algorithm>
#include <utility>

#include "engine/run/quantities/layer_times.h"

namespace hydrascope::app {

namespace {

QuantityKeys all_of(const Requested& requested) {
  QuantityKeys all = requested.first;
  all.add(requested.then);
  return all;
}

} // namespace

bool Coordinator::drain(std::vector<std::string>& errors) {
  bool changed = false;
  for (WorkerDelivery& delivery : worker_->drain()) {
    if (delivery.lane < 0 || delivery.lane > 1) continue;
    Lane& lane = sides_[static_cast<std::size_t>(delivery.lane)];
    const auto& pending = lane.store.pending();
    if (!pending || delivery.generation != pending->generation) continue; // outranked since
    changed = true;
    if (pending->timing) lane.timed_request.clear();
    if (delivery.result) {
      times_.add(*delivery.result);
      lane.store.deliver(std::move(delivery.result));
      lane.delivered = true;
    } else {
      lane.store.fail(delivery.error);
      errors.push_back(std::move(delivery.error));
    }
  }
  return changed;
}

void Coordinator::stop(Lane& lane) {
  if (!lane.store.pending()) return;
  lane.store.drop_pending();
  worker_->cancel(static_cast<int>(&lane - sides_.data()));
}

void Coordinator::cancel() {
  for (Lane& lane : sides_) {
    lane.timed_request.clear();
    if (!lane.store.pending()) continue;
    lane.store.cancel();
    worker_->cancel(static_cast<int>(&lane - sides_.data()));
  }
}

void Coordinator::run_again() {
  for (Lane& lane : sides_) lane.store.clear_failure();
}

void Coordinator::drop_results() {
  for (Lane& lane : sides_) lane.store.set_subject({});
}

void Coordinator::time_passes(const Document& document, int passes) {
  for (const Side side : {Side::a, Side::b}) {
    if ((side == Side::b && document.view.shown == Shown::a) || !can_run(document)) continue;
    Lane& lane = sides_[static_cast<std::size_t>(side)];
    lane.timed_request = request_of(document, side).request;
    lane.timed_passes = passes;
  }
}

bool Coordinator::timing() const {
  return std::ranges::any_of(sides_, [](const Lane& lane) { return !lane.timed_request.empty(); });
}

void Coordinator::follow(const std::filesystem::path& file, std::uint64_t edition) {
  followed_ = file;
  edition_ = edition;
}

RequestKey Coordinator::request_of(const Document& document, Side side, const Document* typed) const {
  RequestKey key{.request = request_key(document, side), .settings = {}};
  key.settings = typed == nullptr ? key.request : request_key(*typed, side);
  const AdapterChoice& adapters = document.scene().adapters;
  if (!adapters.automatic && std::ranges::count(adapters.files, followed_) > 0)
    key.request += "\nedition " + std::to_string(edition_);
  return key;
}

void Coordinator::submit(Lane& lane, Side side, const Document& document, ResultStore::Pending run) {
  run.generation = ++generation_;
  run.comparisons = comparisons_in(run.keys, document.scene().schedules[static_cast<std::size_t>(side)]);
  RunRequest request = make_run_request(document, side, run.keys, run.generation);
  lane.store.submit(std::move(run));
  worker_->submit(std::move(request), static_cast<int>(side));
}

void Coordinator::update(const Document& document, const Requested& requested, double now,
                         const Document* typed) {
  const bool was_computing = computing();
  const bool both = document.view.shown != Shown::a;
  settled_ = true;
  stopped_ = false;
  const std::string subject = subject_key(document);
  for (const Side side : {Side::a, Side::b}) {
    Lane& lane = sides_[static_cast<std::size_t>(side)];
    ResultStore& store = lane.store;
    const bool delivered = std::exchange(lane.delivered, false);
    store.set_subject(subject);
    if ((side == Side::b && !both) || !can_run(document)) {
      stop(lane); // it is not shown
      lane.timed_request.clear();
      continue;
    }
    const RequestKey request = request_of(document, side, typed);
    if (lane.timed_request != request.request) lane.timed_request.clear();
    store.update(request, all_of(requested), now);
    if (store.blocked()) {
      stop(lane);
      lane.timed_request.clear();
      stopped_ = true;
      continue;
    }
    const bool fresh = store.fresh();
    const QuantityKeys first = store.missing(requested.first);
    const QuantityKeys then = store.missing(requested.then);
    const auto& pending = store.pending();
    const bool running = pending && pending->of.request == request.request;
    if (fresh && first.empty() && then.empty()) {
      stopped_ |= store.failed();
      if (lane.timed_request.empty()) {
        stop(lane); // what still runs was for a document that undo has left, or for a panel that was closed
        continue;
      }
      settled_ = false;
      if (running && pending->timing) continue;
      submit(lane, side, document,
             {.of = request, .keys = {LayerTimesKey{.passes = lane.timed_passes}}, .timing = true});
      continue;
    }
    settled_ = false;
    const bool need_first = !fresh || !first.empty();
    // What was waited for is drawn before the rest runs, which would take the cores of that frame.
    if (delivered && !need_first) continue;
    // Another state of a training comes at once: what the overviews show is not to go for a moment each time.
    const bool renewed = !fresh && !store.results().stale;
    if (running && !pending->timing && (!need_first || first.missing_in(pending->keys).empty())) continue;
    QuantityKeys keys = need_first ? first : then;
    if (renewed) keys.add(then);
    submit(lane, side, document, {.of = request, .keys = std::move(keys)});
  }
  if (computing() && !was_computing) computing_since_ = now;
}

bool Coordinator::lacks(const Document& document, const Requested& requested) const {
  const ResultStore& shown = store(edited_side(document.view));
  if (!shown.pending()) return false;
  return shown.results().stale || shown.results().parts.empty() || !shown.holds_all(all_of(requested));
}

bool Coordinator::refused(const Document& document, const Requested& requested) const {
  const Shown shown = document.view.shown;
  return std::ranges::any_of(sides_, [&](const Lane& lane) {
    const Shown other = &lane == sides_.data() ? Shown::b : Shown::a;
    return shown != other && lane.store.failed() && !lane.store.holds_all(all_of(requested));
  });
}

bool Coordinator::computing() const {
  return std::ranges::any_of(sides_, [](const Lane& lane) { return lane.store.pending().has_value(); });
}

float Coordinator::progress() const {
  float least = 1;
  for (std::size_t lane = 0; lane < sides_.size(); ++lane)
    if (sides_[lane].store.pending()) least = std::min(least, worker_->progress(static_cast<int>(lane)));
  return least;
}

} // namespace hydrascope::app
