// A panel: a small object with its own state, prepared and then drawn. Panels share the document and are
// otherwise independent of each other.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/document/editor.h"
#include "app/jobs/requests.h"
#include "app/jobs/results.h"
#include "app/ui/graphics.h"
#include "app/views/timing_view.h"
#include "engine/figures/figure.h"

namespace hydrascope::app {

// The state that panels show, at one moment.
struct Snapshot {
  const Document* document = nullptr;
  // A, B: results for the document's model and kind of input, or no results, in which case panels become
  // empty.
  std::array<const SideResults*, 2> results{};
  bool one_of_two = false; // both sides are shown, each with its own kernels
  std::uint64_t stamp = 0; // changes with the document and the results
  bool computing = false;
  float progress = 0;
  double computing_seconds = 0; // since the run began
  const TimingRecord* times = nullptr;
  double expected_bytes = 0; // upper bound of the memory that the open panels' runs take
  std::string writing;       // name of the figure file being written; empty if there is none
  double writing_seconds = 0;

  const SideResults& of(Side side) const { return *results[static_cast<std::size_t>(side)]; }
  // The side whose numbers are shown (A for a difference).
  const SideResults& shown() const { return of(edited_side(document->view)); }
  // The same, or B's where both are shown and A has no results.
  const SideResults& present() const {
    return shown().any() == nullptr && shows(Side::b) ? of(Side::b) : shown();
  }
  // Whether the side is shown, alone or beside the other.
  bool shows(Side side) const { return document->view.shown != (side == Side::a ? Shown::b : Shown::a); }
  // Whether results of an earlier input, model or schedule are on the screen, until others come.
  bool stale() const {
    return (shows(Side::a) && results[0]->stale) || (shows(Side::b) && results[1]->stale);
  }
  // Why results of a side that are not there will not come; empty if they may.
  std::string failure(Side side) const {
    return of(side).cancelled ? "Stopped before there were results." : of(side).error;
  }
  // The same after the side's name: "B: out of memory".
  std::string named_failure(Side side) const {
    const std::string text = failure(side);
    return text.empty() ? text : side_name(side) + (": " + text);
  }
  // For how long there have been any; nullopt: there are none.
  std::optional<double> stale_seconds() const {
    std::optional<double> longest;
    for (const Side side : {Side::a, Side::b}) {
      const SideResults& old = of(side);
      if (shows(side) && old.stale && old.any() != nullptr)
        longest = std::max(longest.value_or(0), old.stale_seconds);
    }
    return longest;
  }
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

  // Adds the quantities that the panel shows. Called while it is open and in front.
  virtual void request(const Document&, Requested&) const {}
  // Computes everything that draw() needs. Called when the snapshot's stamp has changed, and after
  // prepare_again(); uses no Dear ImGui.
  virtual void prepare(const Snapshot& snapshot) = 0;
  // Draws and takes input, inside the panel's window.
  virtual void draw() = 0;

  // Entries of the context menu, above those that every panel has.
  virtual void draw_menu() {}

  virtual bool exports() const { return false; }
  // The panel as a figure; nullopt if there is nothing to export.
  virtual std::optional<Figure> figure() const { return std::nullopt; }

  // Whether draw() has asked for another prepare(); once.
  bool take_outdated() { return std::exchange(outdated_, false); }

  // 1, or less after stale results have been dimmed.
  void set_freshness(float brightness) { brightness_ = brightness; }
  // Whether the panel shows numbers of a run: it then has the progress line and is dimmed while they are
  // stale.
  virtual bool shows_results() const { return true; }
  // Whether it shows what only a model can compute: of a capture nothing.
  virtual bool needs_model() const { return false; }

protected:
  Editor& editor() const { return *services_.editor; }
  Graphics& graphics() const { return *services_.graphics; }
  const Document& document() const { return services_.editor->document(); }
  float brightness() const { return brightness_; }
  // From draw(), where the pointer brings something into view that was not prepared: shown in the next frame.
  void prepare_again() {
    outdated_ = true;
    editor().draw_now();
  }

private:
  std::string id_, title_;
  PanelServices services_;
  float brightness_ = 1;
  bool outdated_ = false;
};

// All panels, in the order of the View menu.
std::vector<std::unique_ptr<Panel>> make_panels(PanelServices services);

} // namespace hydrascope::app
