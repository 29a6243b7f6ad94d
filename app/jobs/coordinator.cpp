#include "app/jobs/coordinator.h"

#include <algorithm>
#include <utility>

namespace hydrascope::app {

namespace {
// A step through all layers of a large model with weights kept would otherwise grow without end; more are
// kept only of what is shown.
constexpr std::size_t most_parts = 6;
// What a result delivers.
Asks asks_of(const RunResult& part) {
  Asks asks;
  for (const FocusResult& focus : part.focus) add_focus(asks, focus.layer);
  for (const WeightsResult& weights : part.weights) {
    const bool all = weights.rows.size() == part.tokens.size();
    add_weights(asks, weights.layer, weights.kernel, weights.teacher_forced,
                all ? std::vector<std::int64_t>{} : weights.rows, weights.value_weighted);
  }
  for (const VectorsResult& vectors : part.vectors) {
    add_vectors(asks, {.layer = vectors.layer,
                       .kernels = {vectors.kernel},
                       .head = vectors.head,
                       .query = vectors.query,
                       .teacher_forced = vectors.teacher_forced,
                       .gradient = !vectors.gradient.empty()});
  }
  for (const AttentionRowResult& row : part.attention_rows) add_attention_row(asks, row.ask);
  if (part.rollout) asks.rollout = part.rollout->ask;
  if (part.similar_heads) asks.similar_heads = part.similar_heads->head;
  if (part.deletion) asks.deletion = part.deletion->ask;
  for (const TileResult& tile : part.tiles) add_tile(asks, tile.ask);
  for (const HeadTable& table : part.tables) add_head_table(asks, table.ask);
  return asks;
}

Asks all_of(const Wants& wants) {
  Asks all = wants.first;
  add_asks(all, wants.then);
  return all;
}

} // namespace

bool Coordinator::drain(std::vector<std::string>& errors) {
  bool changed = false;
  for (WorkerDelivery& delivery : worker_->drain()) {
    if (delivery.lane < 0 || delivery.lane > 1) continue;
    Lane& lane = sides_[static_cast<std::size_t>(delivery.lane)];
    if (delivery.generation != lane.in_flight) continue; // outranked since
    changed = true;
    lane.in_flight = 0;
    if (lane.in_flight_asks.timed_passes > 0) lane.timed_key.clear();
    if (!delivery.result) {
      lane.results.error = delivery.error;
      if (lane.in_flight_asks.timed_passes == 0) fail(lane);
      errors.push_back(delivery.error);
      continue;
    }
    times_.add(*delivery.result);
    if (lane.failed_key != lane.in_flight_key) forgive(lane);
    if (lane.in_flight_asks.timed_passes > 0) continue; // it holds nothing that is not there already
    if (lane.key != lane.in_flight_key) {
      lane.key = lane.in_flight_key;
      lane.choices = lane.in_flight_choices;
      lane.delivered = {};
      lane.results.parts.clear();
    }
    add_asks(lane.delivered, lane.in_flight_asks);
    lane.results.parts.push_back(std::move(delivery.result));
    lane.grown = true;
  }
  return changed;
}

void Coordinator::turn_to(Lane& lane, const std::string& subject) {
  if (lane.subject == subject) return;
  lane.subject = subject;
  lane.results.parts.clear();
  lane.key.clear();
  lane.choices.clear();
  lane.delivered = {};
}

// Of many parts the oldest that hold nothing of what is wanted now; what is wanted may lie in any of them.
void Coordinator::forget(Lane& lane, const Wants& wants) {
  auto& parts = lane.results.parts;
  if (!std::exchange(lane.grown, false) || parts.size() <= most_parts) return;
  const Asks wanted = all_of(wants);
  const Asks lacking = missing_asks(wanted, lane.delivered);
  std::vector<Asks> held; // by part
  for (const auto& part : parts) held.push_back(asks_of(*part));
  for (std::size_t i = 0; i < parts.size() && parts.size() > most_parts;) {
    Asks others;
    for (std::size_t other = 0; other < held.size(); ++other) {
      if (other != i) add_asks(others, held[other]);
    }
    if (any_ask(missing_asks(missing_asks(wanted, others), lacking))) {
      ++i;
      continue;
    }
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i));
    held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
    lane.delivered = std::move(others);
  }
}

void Coordinator::stop(Lane& lane) {
  if (lane.in_flight == 0) return;
  lane.in_flight = 0;
  worker_->cancel(static_cast<int>(&lane - sides_.data()));
}

void Coordinator::cancel() {
  for (Lane& lane : sides_) {
    lane.timed_key.clear();
    if (lane.in_flight == 0) continue;
    if (lane.in_flight_asks.timed_passes == 0) {
      lane.failed_key = lane.in_flight_key;
      lane.failed_asks = lane.in_flight_asks;
      lane.failed_alone = false;
      lane.results.cancelled = true;
      lane.results.error.clear();
    }
    stop(lane);
  }
}

void Coordinator::time_passes(const Document& document, int passes) {
  for (const Side side : {Side::a, Side::b}) {
    if ((side == Side::b && document.view.shown == Shown::a) || !can_run(document)) continue;
    Lane& lane = sides_[static_cast<std::size_t>(side)];
    lane.timed_key = key_of(document, side);
    lane.timed_passes = passes;
  }
}

bool Coordinator::timing() const {
  return std::ranges::any_of(sides_, [](const Lane& lane) { return !lane.timed_key.empty(); });
}

void Coordinator::follow(const std::filesystem::path& file, std::uint64_t edition) {
  followed_ = file;
  edition_ = edition;
}

std::string Coordinator::key_of(const Document& document, Side side) const {
  std::string key = request_key(document, side);
  const AdapterChoice& adapters = document.scene().adapters;
  if (!adapters.automatic && std::ranges::count(adapters.files, followed_) > 0)
    key += "\nedition " + std::to_string(edition_);
  return key;
}

void Coordinator::forgive(Lane& lane) {
  lane.failed_key.clear();
  lane.results.error.clear();
  lane.results.cancelled = false;
}

void Coordinator::run_again() {
  for (Lane& lane : sides_) forgive(lane);
}

// A comparison with a kernel that cannot run here is no reason to show nothing of a model that can.
void Coordinator::fail(Lane& lane) {
  const bool alone = any_ask(lane.in_flight_compared);
  Asks failed = alone ? lane.in_flight_compared : lane.in_flight_asks;
  if (alone && lane.failed_alone && lane.failed_key == lane.in_flight_key) add_asks(failed, lane.failed_asks);
  lane.failed_key = lane.in_flight_key;
  lane.failed_asks = std::move(failed);
  lane.failed_alone = alone;
}

// Another comparison, or other panels, may want only what can be had.
void Coordinator::hope_again(Lane& lane, const std::string& key, const Wants& wants) {
  if (lane.failed_key.empty()) return;
  if (key != lane.failed_key || any_ask(missing_asks(lane.failed_asks, all_of(wants)))) forgive(lane);
}

void Coordinator::submit(Lane& lane, Side side, const Document& document, const std::string& key,
                         const Asks& asks, bool first) {
  lane.in_flight = ++generation_;
  lane.in_flight_key = key;
  lane.in_flight_choices = request_key(document, side);
  lane.in_flight_asks = asks;
  lane.in_flight_compared = compared_asks(asks, document.scene().schedules[static_cast<std::size_t>(side)]);
  lane.in_flight_first = first;
  worker_->submit(make_run_request(document, side, asks, lane.in_flight), static_cast<int>(side));
}

void Coordinator::submit_timing(Lane& lane, Side side, const Document& document, const std::string& key) {
  const bool flying =
      lane.in_flight != 0 && lane.in_flight_key == key && lane.in_flight_asks.timed_passes > 0;
  if (flying) return;
  Asks asks;
  asks.timed_passes = lane.timed_passes;
  submit(lane, side, document, key, asks, false);
}

void Coordinator::update(const Document& document, const Wants& wants, double now) {
  const bool was_computing = computing();
  const bool both = document.view.shown != Shown::a;
  settled_ = true;
  stopped_ = false;
  const std::string subject = subject_key(document);
  for (const Side side : {Side::a, Side::b}) {
    Lane& lane = sides_[static_cast<std::size_t>(side)];
    turn_to(lane, subject);
    if ((side == Side::b && !both) || !can_run(document)) {
      stop(lane); // nobody looks at it
      lane.timed_key.clear();
      continue;
    }
    const std::string key = key_of(document, side);
    const bool fresh = key == lane.key;
    if (lane.timed_key != key) lane.timed_key.clear();
    if (fresh || request_key(document, side) == lane.choices) {
      lane.results.stale = false;
    } else if (!lane.results.stale) {
      lane.results.stale = true;
      lane.stale_since = now;
    }
    lane.results.stale_seconds = lane.results.stale ? now - lane.stale_since : 0;
    hope_again(lane, key, wants);
    const bool failed = !lane.failed_key.empty();
    if (failed && !lane.failed_alone) {
      stop(lane);
      stopped_ = true;
      continue;
    }

    if (fresh) forget(lane, wants);
    Asks delivered = fresh ? lane.delivered : Asks{};
    if (failed) add_asks(delivered, lane.failed_asks); // there is nothing to come of it
    const Asks first = missing_asks(wants.first, delivered);
    const Asks then = missing_asks(wants.then, delivered);
    if (fresh && !any_ask(first) && !any_ask(then)) {
      stopped_ |= failed;
      if (!lane.timed_key.empty()) {
        settled_ = false;
        submit_timing(lane, side, document, key);
        continue;
      }
      stop(lane); // what still runs was for a document that undo has left, or for a panel that was closed
      continue;
    }
    settled_ = false;
    const bool flying = lane.in_flight != 0 && lane.in_flight_key == key && !lane.in_flight_asks.timed_passes;
    const bool need_first = !fresh || any_ask(first);
    // Another state of a training comes at once: what the overviews show is not to go for a moment each time.
    const bool renewed = !fresh && !lane.results.stale;
    if (flying && (!need_first || !any_ask(missing_asks(first, lane.in_flight_asks)))) continue;
    Asks asks = need_first ? first : then;
    if (renewed) add_asks(asks, then);
    submit(lane, side, document, key, asks, need_first);
  }
  if (computing() && !was_computing) computing_since_ = now;
}

bool Coordinator::undelivered(const Lane& lane, const Wants& wants) {
  return any_ask(missing_asks(wants.first, lane.delivered)) ||
         any_ask(missing_asks(wants.then, lane.delivered));
}

bool Coordinator::lacks(const Document& document, const Wants& wants) const {
  const Lane& lane = sides_[static_cast<std::size_t>(edited_side(document.view))];
  if (lane.in_flight == 0) return false;
  return lane.results.stale || lane.results.parts.empty() || undelivered(lane, wants);
}

bool Coordinator::refused(const Document& document, const Wants& wants) const {
  const Shown shown = document.view.shown;
  return std::ranges::any_of(sides_, [&](const Lane& lane) {
    const Shown other = &lane == sides_.data() ? Shown::b : Shown::a;
    return shown != other && !lane.failed_key.empty() && undelivered(lane, wants);
  });
}

bool Coordinator::computing() const {
  return std::ranges::any_of(sides_, [](const Lane& lane) { return lane.in_flight != 0; });
}

float Coordinator::progress() const {
  float least = 1;
  for (std::size_t lane = 0; lane < sides_.size(); ++lane) {
    if (sides_[lane].in_flight != 0) least = std::min(least, worker_->progress(static_cast<int>(lane)));
  }
  return least;
}

} // namespace hydrascope::app
