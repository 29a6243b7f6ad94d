// Undo and redo over whole documents. A gesture (a slider drag, a stretch of typing) becomes one step.
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
  // Grows with every change, undo and redo included.
  std::uint64_t revision() const { return revision_; }

  // Makes `document` the present; what was the present can be had back by undo. A change with the same
  // non-empty `gesture` as the change before it, without end_gesture() in between, joins that step.
  void change(Document document, std::string label, const std::string& gesture = {});
  void end_gesture() { gesture_.clear(); }
  // What the program, not the user, changes wherever it stands: in the present and in everything that undo
  // and redo go back to. It is no step, and steps that it leaves without effect go.
  void amend(const std::function<void(Document&)>& edit);
  // A new beginning: for what the program, not the user, decides at start. Forgets all steps.
  void replace(Document document);

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
