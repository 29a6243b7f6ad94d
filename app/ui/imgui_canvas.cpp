#include "app/ui/imgui_canvas.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "app/ui/widgets.h"
#include "engine/figures/text.h"

namespace hydrascope::app {

namespace {

Colour as_colour(const ImVec4& colour) { return {colour.x, colour.y, colour.z, colour.w}; }

float scaled(double points) { return static_cast<float>(points) * figure_scale; }

// A line of less than a pixel would be grey.
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
  ink.contrast = 3; // of graphical objects: WCAG 2.1, 1.4.11
  constexpr double smallest_text = 11 / static_cast<double>(line_of_em);
  ink.least = smallest_text / static_cast<double>(figure_scale);
  return ink;
}

ImVec2 ImGuiCanvas::at(Point point) const {
  return {origin_.x + scaled(point.x), origin_.y + scaled(point.y)};
}

void ImGuiCanvas::fill(const hydrascope::Box& box, const Colour& colour, double radius) {
  list_->AddRectFilled(at({box.x, box.y}), at({box.right(), box.bottom()}), packed(colour), scaled(radius));
}

void ImGuiCanvas::outline(const hydrascope::Box& box, const Colour& colour, double line_width,
                          double radius) {
  list_->AddRect(at({box.x, box.y}), at({box.right(), box.bottom()}), packed(colour), scaled(radius),
                 stroke(line_width));
}

void ImGuiCanvas::line(std::span<const Point> points, const Colour& colour, double line_width) {
  std::vector<ImVec2> path;
  path.reserve(points.size());
  for (const Point& point : points) path.push_back(at(point));
  // Straight lines along an axis fall on whole pixels.
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
  if (line_width >= 2 * radius) { // the stroke covers the middle
    list_->AddCircleFilled(at(centre), scaled(radius + line_width / 2), packed(colour));
  } else {
    list_->AddCircle(at(centre), scaled(radius), packed(colour), 0, stroke(line_width));
  }
}

void ImGuiCanvas::image(const Pixels& pixels, const hydrascope::Box& box, bool smooth) {
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
    constexpr float large = 32; // enough for widths that are not rounded much
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
  } else { // what leaves the clip rectangle before it is turned may lie inside it afterwards
    constexpr ImVec4 everywhere{-1e6f, -1e6f, 1e6f, 1e6f};
    ImGui::GetFont()->RenderText(list_, ImGui::GetFontSize(), from, packed(style.colour), everywhere,
                                 known.data(), known.data() + known.size());
  }
  // Letters move apart or together to be as wide as the layout has measured them, so that they line up.
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

} // namespace hydrascope::app
