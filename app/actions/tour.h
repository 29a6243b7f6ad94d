// The guided tour: what each step says, where it points, and how it is known to have been done.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "app/actions/actions.h"

namespace hydrascope::app {

// Where it is.
struct TourState {
  std::size_t step = 0;
  Document start;    // as it was when the step began
  bool done = false; // the user has done what the step asks for
};

struct TourStep {
  const char* title;
  const char* text;  // {id}: the shortcut of that action
  const char* panel; // id of the panel that it is about; "" = none
  // Whether the user has done it, given the document as it was when the step began; null: nothing to be done.
  bool (*done)(const Document& start, const Editor& editor);
};

// The first is the welcome that a new user is offered.
std::span<const TourStep> tour_steps();

// The step's text with the shortcuts as they are now; an action without one is named by its menu.
std::string tour_text(const TourStep& step, const std::vector<Action>& actions);

// Begins at a step, brings its panel to the front and takes the document as where it starts from; from the
// step after the last the tour is over.
void go_to_tour_step(Editor& editor, std::optional<TourState>& tour, std::size_t step);
// The tour is over and not offered again.
void end_tour(Editor& editor, std::optional<TourState>& tour);

} // namespace hydrascope::app
