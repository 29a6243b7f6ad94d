// What a panel is: a small object with its own state and two phases. No panel knows another; they share the
// document.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/document/editor.h"
#include "app/jobs/requests.h"
#include "app/jobs/results.h"
#include "app/ui/graphics.h"
#include "app/views/timing_view.h"
#include "engine/figures/figure.h"

namespace hydrascope::app {

// What panels see of one moment.
struct Snapshot {
  const Document* document = nullptr;
  // A, B: of the document's model and kind of input, or of none. Without any, a panel keeps nothing it
  // showed.
  std::array<const SideResults*, 2> results{};
  bool one_of_two = false; // this side is compared with the other: each by its own kernels
  std::uint64_t stamp = 0; // changes when document or results do
  bool computing = false;
  float progress = 0;
  double computing_seconds = 0; // for how long
  const TimingRecord* times = nullptr;
  double expected_bytes = 0; // what the open panels' runs take, from above
  std::string writing;       // name of the file that a figure is being written to; empty if none is
  double writing_seconds = 0;

  // The side whose numbers are shown (A for a difference).
  const SideResults& shown() const { return *results[static_cast<std::size_t>(edited_side(document->view))]; }
};

struct PanelServices {
  Editor* editor = nullptr;
  Graphics* graphics = nullptr;
};

class Panel {
public:
  Panel(std::string id, std::string title, PanelServices services)
      : id_(std::move(id)), title_(std::move(title)), services_(services) {}
  virtual ~Panel() = default;
  Panel(const Panel&) = delete;
  Panel& operator=(const Panel&) = delete;

  const std::string& id() const { return id_; }
  const std::string& title() const { return title_; }

  // What a run has to compute for this panel; called while it is open and in front.
  virtual void ask(const Document&, Requested&) const {}
  // Everything that is worked out from the snapshot; called when its stamp has changed. No Dear ImGui here.
  virtual void prepare(const Snapshot& snapshot) = 0;
  // Nothing but drawing and taking input, inside the panel's window.
  virtual void draw() = 0;

  // Entries of the menu of its right mouse button, above those that every panel has.
  virtual void draw_menu() {}

  virtual bool exports() const { return false; }
  // What is shown, as a figure to be written; nullopt if there is nothing to write.
  virtual std::optional<Figure> figure() const { return std::nullopt; }

  // How much of the picture's light is left: stale results are dimmed after a moment.
  void set_freshness(float brightness) { brightness_ = brightness; }
  // Panels that show a run's numbers carry the progress line and are dimmed; controls are not.
  virtual bool shows_results() const { return true; }

protected:
  Editor& editor() const { return *services_.editor; }
  Graphics& graphics() const { return *services_.graphics; }
  const Document& document() const { return services_.editor->document(); }
  float brightness() const { return brightness_; }

private:
  std::string id_, title_;
  PanelServices services_;
  float brightness_ = 1;
};

// All panels, in the order of the View menu.
std::vector<std::unique_ptr<Panel>> make_panels(PanelServices services);

} // namespace hydrascope::app
