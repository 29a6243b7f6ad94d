// The guided tour: the text of each step, its panel, and the test for its completion.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "app/actions/actions.h"

namespace hydrascope::app {

struct TourState {
  std::size_t step = 0;
  Document start;                  // at the beginning of the step
  std::size_t written_figures = 0; // WindowStatus::written_figures at the beginning of the step
  double training_seconds =
      0; // TrainingReport::seconds at the beginning of the step, to tell trainings apart
  std::uint64_t writing_edition = 0; // Writing::edition at the beginning of the step
  bool done = false;                 // the step is completed
};

// A button on the step's card that does the step for the user.
struct TourShortcut {
  const char* label;
  void (*run)(Editor& editor);
};

struct TourStep {
  const char* title = "";
  const char* text = "";          // {id}: the shortcut of that action
  const char* sentence_text = ""; // in its place while a sentence is open; "" = the same
  const char* decoder_text = "";  // in its place while the sentence's model is a decoder; "" = the same
  const char* panel = "";         // id of its panel; "" = none
  const char* other_panel = "";   // of another that changes with it; "" = none
  // Whether the user completed the step, given the state at its begin; null: nothing to do.
  bool (*done)(const TourState& begin, const Editor& editor) = nullptr;
  void (*prepare)(Editor& editor) = nullptr;           // selects what the step explains; null: nothing
  std::optional<TourShortcut> shortcut = std::nullopt; // nullopt: none
};

std::span<const TourStep> tour_steps();

// The step's text for this kind of input with current shortcuts; an action without one appears with its menu.
std::string tour_text(const TourStep& step, InputKind kind, const std::vector<Action>& actions,
                      bool decoder = false);

// Starts a step from the current document and brings its panel to the front. After the last step, ends the
// tour.
void go_to_tour_step(Editor& editor, std::optional<TourState>& tour, std::size_t step);
// Ends the tour, which is not offered again.
void end_tour(Editor& editor, std::optional<TourState>& tour);

} // namespace hydrascope::app
