#include "app/document/history.h"

#include <utility>

namespace hydrascope::app {

namespace {
// Documents share their pictures, so a step is small.
constexpr std::size_t most_steps = 500;
} // namespace

void History::change(Document document, std::string label, const std::string& gesture) {
  if (document == present_) return;
  const bool joins = !gesture.empty() && gesture == gesture_ && !past_.empty();
  if (!joins) {
    past_.push_back({present_, std::move(label)});
    if (past_.size() > most_steps) past_.erase(past_.begin());
  }
  future_.clear();
  gesture_ = gesture;
  present_ = std::move(document);
  ++revision_;
}

void History::amend(const std::function<void(Document&)>& edit) {
  edit(present_);
  const auto amend_steps = [&](std::vector<Step>& steps) {
    const Document* next =
        &present_; // the neighbour nearer to the present, which is nearest to the last step
    for (std::size_t i = steps.size(); i-- > 0;) {
      edit(steps[i].document);
      if (steps[i].document == *next) {
        steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(i));
        next = i < steps.size() ? &steps[i].document : &present_;
      } else {
        next = &steps[i].document;
      }
    }
  };
  amend_steps(past_);
  amend_steps(future_);
  ++revision_;
}

void History::replace(Document document) {
  present_ = std::move(document);
  past_.clear();
  future_.clear();
  gesture_.clear();
  ++revision_;
}

void History::undo() {
  if (past_.empty()) return;
  Step step = std::move(past_.back());
  past_.pop_back();
  future_.push_back({std::exchange(present_, std::move(step.document)), std::move(step.label)});
  gesture_.clear();
  ++revision_;
}

void History::redo() {
  if (future_.empty()) return;
  Step step = std::move(future_.back());
  future_.pop_back();
  past_.push_back({std::exchange(present_, std::move(step.document)), std::move(step.label)});
  gesture_.clear();
  ++revision_;
}

} // namespace hydrascope::app
