#include "app/ui/drawn_figure.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "app/ui/widgets.h"
#include "engine/figures/text.h"

namespace hydrascope::app {

namespace {

Colour as_colour(const ImVec4& colour) { return {colour.x, colour.y, colour.z, colour.w}; }

float scaled(double points) { return static_cast<float>(points) * figure_scale; }

// At least a pixel: thinner lines would be grey.
float stroke(double line_width) { return std::max(1.0f, scaled(line_width)); }

} // namespace

Ink theme_ink() {
  Ink ink;
  ink.text = as_colour(theme::text);
  ink.muted = as_colour(theme::quiet);
  ink.rule = as_colour(theme::faint);
  ink.grid = as_colour(theme::line);
  ink.accent = as_colour(theme::accent);
  ink.ground = as_colour(theme::surface);
  ink.shade = as_colour(theme::raised);
  ink.contrast = 3; // of graphical objects: WCAG 2.1, 1.4.11
  constexpr double smallest_text = 11 / static_cast<double>(line_of_em);
  ink.least = smallest_text / static_cast<double>(figure_scale);
  return ink;
}

ImVec2 ImGuiCanvas::at(Point point) const {
  return {origin_.x + scaled(point.x), origin_.y + scaled(point.y)};
}

void ImGuiCanvas::fill(const Box& box, const Colour& colour, double radius) {
  list_->AddRectFilled(at({box.x, box.y}), at({box.right(), box.bottom()}), packed(colour), scaled(radius));
}

void ImGuiCanvas::outline(const Box& box, const Colour& colour, double line_width, double radius) {
  list_->AddRect(at({box.x, box.y}), at({box.right(), box.bottom()}), packed(colour), scaled(radius),
                 stroke(line_width));
}

void ImGuiCanvas::line(std::span<const Point> points, const Colour& colour, double line_width) {
  std::vector<ImVec2> path;
  path.reserve(points.size());
  for (const Point& point : points) path.push_back(at(point));
  // Lines along an axis are aligned to pixels.
  const bool upright = path.size() == 2 && path[0].x == path[1].x;
  const bool level = path.size() == 2 && path[0].y == path[1].y;
  for (ImVec2& point : path) {
    if (upright) point.x = std::floor(point.x) + 0.5f;
    if (level) point.y = std::floor(point.y) + 0.5f;
  }
  list_->AddPolyline(path.data(), static_cast<int>(path.size()), packed(colour), ImDrawFlags_None,
                     stroke(line_width));
}

void ImGuiCanvas::polygon(std::span<const Point> points, const Colour& colour) {
  std::vector<ImVec2> path;
  path.reserve(points.size());
  for (const Point& point : points) path.push_back(at(point));
  list_->AddConvexPolyFilled(path.data(), static_cast<int>(path.size()), packed(colour));
}

void ImGuiCanvas::circle(Point centre, double radius, const Colour& colour, double line_width) {
  if (line_width >= 2 * radius) { // the stroke covers the centre
    list_->AddCircleFilled(at(centre), scaled(radius + line_width / 2), packed(colour));
  } else {
    list_->AddCircle(at(centre), scaled(radius), packed(colour), 0, stroke(line_width));
  }
}

void ImGuiCanvas::image(const Pixels& pixels, const Box& box, bool smooth) {
  if (pixels.width == 0 || pixels.height == 0) return;
  Texture& texture = cache_.textures[&pixels];
  if (!texture) texture = Graphics::texture_of(pixels);
  const ImVec2 from = at({box.x, box.y}), to = at({box.right(), box.bottom()});
  const float density = ImGui::GetIO().DisplayFramebufferScale.x;
  const bool magnified = (to.x - from.x) * density >= static_cast<float>(pixels.width) &&
                         (to.y - from.y) * density >= static_cast<float>(pixels.height);
  const ImGuiPlatformIO& platform = ImGui::GetPlatformIO();
  const bool crisp = magnified && !smooth;
  if (crisp) list_->AddCallback(platform.DrawCallback_SetSamplerNearest, nullptr);
  list_->AddImage(texture.reference(), from, to, {0, 0}, {1, 1}, theme::packed(ImVec4{1, 1, 1, 1}, opacity_));
  if (crisp) list_->AddCallback(platform.DrawCallback_SetSamplerLinear, nullptr);
}

void ImGuiCanvas::push_font(const TextStyle& style) {
  const theme::Fonts& fonts = graphics_.fonts();
  ImFont* const font = style.face == Face::mono ? fonts.mono : style.bold ? fonts.strong : fonts.regular;
  const auto [line, fresh] = cache_.line_heights.try_emplace(font, 1.0f);
  if (fresh) {
    constexpr float large = 32; // large enough that rounding of widths is negligible
    constexpr const char* letters = "Hamburgefonstiv 0123456789";
    TextStyle probe = style;
    probe.size = static_cast<double>(large);
    ImGui::PushFont(font, large);
    line->second = static_cast<float>(text_width(letters, probe)) / ImGui::CalcTextSize(letters).x;
    ImGui::PopFont();
  }
  ImGui::PushFont(font, scaled(style.size) * line->second);
}

void ImGuiCanvas::text(std::string_view text, Point baseline, const TextStyle& style, double angle) {
  push_font(style);
  const std::string known = with_known_glyphs(text);
  const ImVec2 on_line = at(baseline);
  const float ascent = ImGui::GetFontBaked()->Ascent;
  const ImVec2 from{std::round(on_line.x), std::round(on_line.y - ascent)};
  const int first = list_->VtxBuffer.Size;
  if (angle == 0) {
    list_->AddText(from, packed(style.colour), known.c_str());
  } else { // text outside of the clip rectangle may lie inside it after the rotation
    constexpr ImVec4 everywhere{-1e6f, -1e6f, 1e6f, 1e6f};
    ImGui::GetFont()->RenderText(list_, ImGui::GetFontSize(), from, packed(style.colour), everywhere,
                                 known.data(), known.data() + known.size());
  }
  // Spaces the letters so that the text is as wide as measured by the layout.
  auto [width, fresh] = cache_.text_widths.try_emplace(text.data(), 0);
  if (fresh) width->second = text_width(text, style);
  const float drawn = ImGui::CalcTextSize(known.c_str()).x;
  const float stretch = drawn > 0 && known == text ? scaled(width->second) / drawn : 1;
  const auto turn = static_cast<float>(-angle * std::numbers::pi / 180);
  const float cosine = std::cos(turn), sine = std::sin(turn);
  const ImVec2 about{from.x, std::round(on_line.y)};
  for (int letter = first; letter + 4 <= list_->VtxBuffer.Size; letter += 4) {
    const float shift = (list_->VtxBuffer[letter].pos.x - from.x) * (stretch - 1);
    for (int index = letter; index < letter + 4; ++index) {
      ImVec2& corner = list_->VtxBuffer[index].pos;
      const ImVec2 apart{corner.x + shift - about.x, corner.y - about.y};
      corner = {about.x + apart.x * cosine - apart.y * sine, about.y + apart.x * sine + apart.y * cosine};
    }
  }
  ImGui::PopFont();
}

namespace {

// Moves both ends by fractions of the axis' length.
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
  known_boxes_.clear();
  draw_figure(recording_, figure_, layout_);
  size_ = size;
  mode_ = theme::current_mode();
  laid_out_ = true;
}

DrawnFigure::Input DrawnFigure::draw(const char* id, const Graphics& graphics, ImVec2 size, float opacity) {
  Input input;
  constexpr float least = 32;
  if (empty()) return input;
  if (size.x < least || size.y < least) {
    ImGui::Dummy({std::max(size.x, 0.0f), std::max(size.y, 0.0f)}); // the cursor may lie at the window's end
    return input;
  }
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
  ImGui::SetItemKeyOwner(ImGuiKey_MouseWheelY); // keeps the panel from scrolling
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
    double left = 0, right = 0, below = 0, above = 0; // fractions of the body
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
  if (!laid_out_) return {};
  auto known = std::ranges::find(known_boxes_, item, &std::pair<FigureItem, std::optional<Box>>::first);
  if (known == known_boxes_.end())
    known = known_boxes_.insert(known_boxes_.end(), {item, box_of(figure_, layout_, item)});
  const std::optional<Box>& box = known->second;
  if (!box) return {};
  return Place{on_screen({box->x, box->y}), on_screen({box->right(), box->bottom()})};
}

DrawnFigure::Place DrawnFigure::body_of(std::size_t panel) const {
  const Box& box = layout_.panels.at(panel).body;
  return {on_screen({box.x, box.y}), on_screen({box.right(), box.bottom()})};
}

} // namespace hydrascope::app
