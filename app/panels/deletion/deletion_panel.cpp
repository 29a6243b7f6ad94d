// The deletion curve: the target while tokens are hidden in the order of the focus map. It takes many passes
// of the model and is therefore measured on request.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "app/panels/panel.h"
#include "app/ui/drawn_figure.h"
#include "app/ui/widgets.h"
#include "app/views/deletion_view.h"
#include "engine/figures/scale.h"

namespace hydrascope::app {

namespace {

constexpr std::array<int, 3> step_choices = {5, 10, 20};

bool both_sides(const Document& document) { return document.view.shown != Shown::a; }

// Identifies everything that the curves depend on.
std::string key_of(const Document& document, int steps) {
  std::string key =
      fmt::format("layer {} steps {}\n{}", document.scene().layer, steps, request_key(document, Side::a));
  if (both_sides(document)) key += "\n" + request_key(document, Side::b);
  return key;
}

class DeletionPanel final : public Panel {
public:
  explicit DeletionPanel(PanelServices services) : Panel("deletion", "Deletion", services) {}
  bool needs_model() const override { return true; }
  bool exports() const override { return true; }

  void request(const Document& document, Requested& requested) const override {
    if (measuring(document)) requested.then.add(*requested_);
  }

  void prepare(const Snapshot& snapshot) override {
    const Document& document = *snapshot.document;
    count_candidates(snapshot);
    if (!measuring(document)) return;
    std::vector<Found<DeletionKey>> found;
    for (std::size_t side = 0; side < (both_sides(document) ? 2U : 1U); ++side) {
      if (snapshot.results[side]->stale) return;
      found.push_back(find(*snapshot.results[side], *requested_));
      if (!found.back()) return;
    }
    shown_ = std::move(found);
    shown_key_ = requested_key_;
    requested_.reset(); // shown_ owns the result now
    gather();
  }

  void draw() override {
    draw_toolbar();
    if (shown_.empty()) {
      wrapped_small_text(graphics(), deletion_note);
      empty_notice(
          graphics(),
          "The target while more and more of the input is hidden: the most important of the focus map first, "
          "the least important first, and at random. “Measure” runs the model for it.");
      return;
    }
    const bool old = shown_key_ != key_of(document(), steps_);
    if (old) small_text(graphics(), "Out of date: measure again", theme::amber);
    if (old && ImGui::IsItemHovered())
      text_tooltip("The curves are of another input, schedule, layer or number of steps");
    draw_curves(old ? 0.45f : 1.0f);
  }

  std::optional<Figure> figure() const override {
    // Curves of another input would be exported beside the present one.
    if (view_.empty() || shown_key_ != key_of(document(), steps_)) return std::nullopt;
    return view_.figure();
  }

  bool shows_results() const override { return measuring(document()); }

private:
  bool measuring(const Document& document) const {
    return requested_ && requested_key_ == key_of(document, requested_->steps);
  }

  void count_candidates(const Snapshot& snapshot) {
    const RunResult* run = snapshot.shown().any();
    candidates_ = 0;
    if (run == nullptr || snapshot.shown().stale) return;
    for (std::size_t i = 0; i < run->tokens.size(); ++i)
      if (!run->tokens[i].special &&
          std::ranges::count(run->hidden_tokens, static_cast<std::int64_t>(i)) == 0)
        ++candidates_;
  }

  void gather() {
    std::vector<MeasuredDeletion> measured;
    for (const auto& found : shown_) measured.push_back({found.run.get(), found.result});
    view_.set(deletion_figure(measured, probability_));
  }

  void draw_toolbar() {
    std::array<std::string, step_choices.size()> texts;
    std::array<const char*, step_choices.size()> labels{};
    int chosen = 0;
    for (std::size_t i = 0; i < step_choices.size(); ++i) {
      texts[i] = fmt::format("{} steps", step_choices[i]);
      labels[i] = texts[i].c_str();
      if (step_choices[i] == steps_) chosen = static_cast<int>(i);
    }
    const int picked = segmented("steps", labels, chosen);
    if (picked >= 0) steps_ = step_choices[static_cast<std::size_t>(picked)];
    const bool has_class = !shown_.empty() && !shown_.front().result->most_first.probabilities.empty();
    if (has_class) {
      same_line_if_fits(170);
      static constexpr std::array<const char*, 2> quantities = {"probability", "logit"};
      const int quantity = segmented("quantity", quantities, probability_ ? 0 : 1);
      if (quantity >= 0) {
        probability_ = quantity == 0;
        gather();
      }
    }
    same_line_if_fits(80);
    const int passes = deletion_passes(steps_, candidates_) * (both_sides(document()) ? 2 : 1);
    const bool running = measuring(document()) && !editor().status().stopped;
    ImGui::BeginDisabled(running || passes == 0);
    if (ImGui::Button(running ? "Measuring…###measure" : "Measure###measure")) measure();
    ImGui::EndDisabled();
    same_line_if_fits(150, 10);
    ImGui::AlignTextToFramePadding();
    ellipsis_text(passes == 0 ? std::string("nothing to hide")
                              : fmt::format("{} runs, ranked by layer {}", passes, document().scene().layer),
                  ImGui::GetContentRegionAvail().x, theme::quiet);
  }

  void measure() {
    requested_ =
        DeletionKey{.layer = document().scene().layer, .steps = steps_, .seed = document().execution.seed};
    requested_key_ = key_of(document(), steps_);
    if (editor().status().stopped) editor().emit(RunAgain{}); // after a cancelled run
  }

  void draw_curves(float opacity) {
    const std::string& facts = view_.figure().subtitle;
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    // One line: lines that wrap would change the room of the figure, whose scroll bar changes where they
    // wrap.
    ellipsis_text(facts, ImGui::GetContentRegionAvail().x, theme::quiet);
    ImGui::PopFont();
    if (ImGui::IsItemHovered()) text_tooltip(facts);
    const DrawnFigure::Input input =
        view_.draw("##curves", graphics(), ImGui::GetContentRegionAvail(), opacity);
    if (input.point) values_tooltip(*input.point);
  }

  // The values of all curves at the share nearest to the pointer.
  void values_tooltip(Point pointer) const {
    for (const PlacedPanel& placed : view_.layout().panels) {
      const auto& plot = std::get<LinesPanel>(view_.figure().panels.at(placed.index));
      if (!contains(placed.body, pointer)) continue;
      const PlotAxes axes = plot_axes(plot, placed.body);
      const std::vector<double>& shares = plot.lines.front().x;
      const double pointed = axes.value(pointer).x;
      const auto nearest =
          std::ranges::min_element(shares, {}, [&](double share) { return std::abs(share - pointed); });
      const auto index = static_cast<std::size_t>(nearest - shares.begin());
      const float x = view_.on_screen(axes.at(*nearest, 0)).x;
      const DrawnFigure::Place body = view_.body_of(placed.index);
      ImGui::GetWindowDrawList()->AddLine({x, body.from.y}, {x, body.to.y}, theme::packed(theme::quiet));
      std::string text = fmt::format("{} {}", plot.x_label, number_text(*nearest));
      for (const LinesPanel::Line& line : plot.lines)
        text += fmt::format("\n{}: {}", line.name, number_text(line.y.at(index)));
      text_tooltip(text);
    }
  }

  int steps_ = 10;
  bool probability_ = true;
  std::int64_t candidates_ = 0;          // tokens that can be hidden
  std::optional<DeletionKey> requested_; // until the results arrive
  std::string requested_key_, shown_key_;
  std::vector<Found<DeletionKey>> shown_; // A, or A and B
  DrawnFigure view_;
};

} // namespace

std::unique_ptr<Panel> make_deletion_panel(PanelServices services) {
  return std::make_unique<DeletionPanel>(services);
}

} // namespace hydrascope::app
