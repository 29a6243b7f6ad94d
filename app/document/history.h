// Undo and redo over whole documents. A gesture (dragging a slider, typing) is one step.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "app/document/document.h"

namespace hydrascope::app {

class History {
public:
  const Document& present() const { return present_; }
  // Increases with every change, including undo and redo.
  std::uint64_t revision() const { return revision_; }

  // Makes `document` the present one and adds an undo step. Joins the previous step if both have the same
  // non-empty `gesture`, without end_gesture() in between.
  void change(Document document, std::string label, const std::string& gesture = {});
  void end_gesture() { gesture_.clear(); }
  // Applies a change of the program's own to the present and to all steps of undo and redo. Adds no step, and
  // removes the steps that lose their effect.
  void amend(const std::function<void(Document&)>& edit);
  // Sets the document and removes all steps.
  void replace(Document document);

  // Calls use(document) for the present document and those of all steps.
  template <typename Use>
  void each(const Use& use) const {
    use(present_);
    for (const Step& step : past_) use(step.document);
    for (const Step& step : future_) use(step.document);
  }

  bool can_undo() const { return !past_.empty(); }
  bool can_redo() const { return !future_.empty(); }
  std::string undo_label() const { return can_undo() ? past_.back().label : std::string(); }
  std::string redo_label() const { return can_redo() ? future_.back().label : std::string(); }
  void undo();
  void redo();

private:
  struct Step {
    Document document;
    std::string label; // of the change between this document and the one after it
  };
  Document present_;
  std::vector<Step> past_, future_;
  std::string gesture_;
  std::uint64_t revision_ = 1;
};

} // namespace hydrascope::app
