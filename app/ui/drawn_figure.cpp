#include "app/ui/drawn_figure.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hydrascope::app {

namespace {

// Both ends moved by a share of the axis' length.
Axis moved(const Axis& axis, double low, double high) {
  if (!axis.logarithmic) {
    const double length = axis.high - axis.low;
    return {axis.low + low * length, axis.high + high * length, false};
  }
  const double ratio = axis.high / axis.low;
  return {axis.low * std::pow(ratio, low), axis.high * std::pow(ratio, high), true};
}

Axis shown_axis(const Scale& scale) { return {scale.low, scale.high, scale.logarithmic}; }

} // namespace

DrawnFigure& DrawnFigure::operator=(const DrawnFigure& other) {
  set(other.figure_);
  zooms_ = other.zooms_;
  return *this;
}

void DrawnFigure::set(Figure figure) {
  figure_ = std::move(figure);
  apply_ranges();
  laid_out_ = false;
}

void DrawnFigure::arrange(int columns) {
  if (figure_.columns == columns) return;
  figure_.columns = columns;
  laid_out_ = false;
}

void DrawnFigure::apply_ranges() {
  ranges_.resize(figure_.panels.size());
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    auto* const plot = std::get_if<LinesPanel>(&figure_.panels[i]);
    if (plot == nullptr) continue;
    if (ranges_[i].x) plot->x_axis = ranges_[i].x;
    if (ranges_[i].y) plot->y_axis = ranges_[i].y;
  }
}

void DrawnFigure::lay_out(ImVec2 size) {
  const PageSize room{static_cast<double>(size.x / figure_scale), static_cast<double>(size.y / figure_scale)};
  layout_ = lay_out_within(figure_, theme_ink(), room);
  recording_ = {};
  cache_ = {};
  draw_figure(recording_, figure_, layout_);
  size_ = size;
  mode_ = theme::current_mode();
  laid_out_ = true;
}

DrawnFigure::Input DrawnFigure::draw(const char* id, const Graphics& graphics, ImVec2 size, float opacity) {
  Input input;
  constexpr float least = 32;
  if (empty() || size.x < least || size.y < least) return input;
  if (!laid_out_ || size_.x != size.x || size_.y != size.y || mode_ != theme::current_mode()) lay_out(size);
  origin_ = ImGui::GetCursorScreenPos();
  const float height = std::max(size.y, static_cast<float>(layout_.page.height) * figure_scale);
  input.clicked = ImGui::InvisibleButton(id, {size.x, height});
  if (ImGui::IsItemHovered()) {
    const ImVec2 mouse = ImGui::GetMousePos();
    input.point = Point{static_cast<double>((mouse.x - origin_.x) / figure_scale),
                        static_cast<double>((mouse.y - origin_.y) / figure_scale)};
    if (zooms_) zoom(*input.point);
    if (!laid_out_) lay_out(size);
    input.item = item_at(figure_, layout_, *input.point);
    input.double_clicked = ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left);
  }
  ImDrawList* const list = ImGui::GetWindowDrawList();
  ImGuiCanvas canvas(graphics, list, origin_, cache_, opacity);
  recording_.replay(canvas);
  return input;
}

void DrawnFigure::zoom(Point pointer) {
  const ImGuiIO& io = ImGui::GetIO();
  ImGui::SetItemKeyOwner(ImGuiKey_MouseWheelY); // or the panel would scroll
  for (const PlacedPanel& placed : layout_.panels) {
    auto* const plot = std::get_if<LinesPanel>(&figure_.panels[placed.index]);
    if (plot == nullptr || !contains(placed.body, pointer)) continue;
    Range& range = ranges_[placed.index];
    if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) {
      range = {};
      plot->x_axis.reset();
      plot->y_axis.reset();
      laid_out_ = false;
      return;
    }
    const PlotAxes axes = plot_axes(*plot, placed.body);
    const double along = (pointer.x - placed.body.x) / placed.body.width;
    const double up = (placed.body.bottom() - pointer.y) / placed.body.height;
    double left = 0, right = 0, below = 0, above = 0; // shares of the body
    if (io.MouseWheel != 0) {
      const double by = 1 - std::pow(0.8, static_cast<double>(io.MouseWheel));
      left = by * along;
      right = -by * (1 - along);
      below = by * up;
      above = -by * (1 - up);
    }
    if (ImGui::IsItemActive() && ImGui::IsMouseDragging(ImGuiMouseButton_Left)) {
      const auto share = [](float pixels, double points) {
        return static_cast<double>(pixels / figure_scale) / points;
      };
      left -= share(io.MouseDelta.x, placed.body.width);
      right -= share(io.MouseDelta.x, placed.body.width);
      below += share(io.MouseDelta.y, placed.body.height);
      above += share(io.MouseDelta.y, placed.body.height);
    }
    if (left == 0 && right == 0 && below == 0 && above == 0) return;
    range.x = moved(shown_axis(axes.across), left, right);
    range.y = moved(shown_axis(axes.up), below, above);
    apply_ranges();
    laid_out_ = false;
  }
}

ImVec2 DrawnFigure::on_screen(Point point) const {
  return {origin_.x + static_cast<float>(point.x) * figure_scale,
          origin_.y + static_cast<float>(point.y) * figure_scale};
}

std::optional<DrawnFigure::Place> DrawnFigure::place_of(const FigureItem& item) const {
  const std::optional<hydrascope::Box> box = laid_out_ ? box_of(figure_, layout_, item) : std::nullopt;
  if (!box) return {};
  return Place{on_screen({box->x, box->y}), on_screen({box->right(), box->bottom()})};
}

DrawnFigure::Place DrawnFigure::body_of(std::size_t panel) const {
  const hydrascope::Box& box = layout_.panels.at(panel).body;
  return {on_screen({box.x, box.y}), on_screen({box.right(), box.bottom()})};
}

} // namespace hydrascope::app
