#include "app/panels/focus/focus_canvas.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "app/panels/choices.h"
#include "app/ui/widgets.h"
#include "engine/figures/scale.h"
#include "engine/figures/token_text.h"

namespace hydrascope::app {

namespace {

struct Box {
  ImVec2 from, to;
};

Box cell_box(const Box& crop, int cell, int rows, int columns) {
  const float width = (crop.to.x - crop.from.x) / static_cast<float>(columns);
  const float height = (crop.to.y - crop.from.y) / static_cast<float>(rows);
  const int whole_rows = cell / columns;
  const auto row = static_cast<float>(whole_rows), column = static_cast<float>(cell % columns);
  return {{crop.from.x + column * width, crop.from.y + row * height},
          {crop.from.x + (column + 1) * width, crop.from.y + (row + 1) * height}};
}

void dim_outside(ImDrawList* list, const Box& whole, const Box& crop) {
  const ImU32 shade = theme::packed(theme::surface, 0.62f);
  list->AddRectFilled(whole.from, {whole.to.x, crop.from.y}, shade);
  list->AddRectFilled({whole.from.x, crop.to.y}, whole.to, shade);
  list->AddRectFilled({whole.from.x, crop.from.y}, {crop.from.x, crop.to.y}, shade);
  list->AddRectFilled({crop.to.x, crop.from.y}, {whole.to.x, crop.to.y}, shade);
}

void patch_grid(ImDrawList* list, const Box& crop, int rows, int columns) {
  const ImU32 colour = theme::packed(theme::over_picture, 0.15f);
  for (int row = 1; row < rows; ++row) {
    const float y =
        crop.from.y + (crop.to.y - crop.from.y) * static_cast<float>(row) / static_cast<float>(rows);
    list->AddLine({crop.from.x, y}, {crop.to.x, y}, colour);
  }
  for (int column = 1; column < columns; ++column) {
    const float x =
        crop.from.x + (crop.to.x - crop.from.x) * static_cast<float>(column) / static_cast<float>(columns);
    list->AddLine({x, crop.from.y}, {x, crop.to.y}, colour);
  }
}

void ring(ImDrawList* list, const Box& box, ImU32 colour) {
  list->AddRect({box.from.x - 1, box.from.y - 1}, {box.to.x + 1, box.to.y + 1},
                theme::packed(theme::under_picture_ring), 0, 4.0f);
  list->AddRect({box.from.x - 1, box.from.y - 1}, {box.to.x + 1, box.to.y + 1}, colour, 0, 2.0f);
}

// The ring of the largest cell.
void circle(ImDrawList* list, const Box& box) {
  const ImVec2 centre{(box.from.x + box.to.x) / 2, (box.from.y + box.to.y) / 2};
  const float radius = std::max({3.0f, (box.to.x - box.from.x) / 2, (box.to.y - box.from.y) / 2});
  list->AddCircle(centre, radius, theme::packed(theme::under_picture_ring), 0, 3.5f);
  list->AddCircle(centre, radius, theme::packed(theme::over_picture), 0, 1.5f);
}

} // namespace

PaintedPicture::PaintedPicture(const ImageInput& image, const RunResult& run)
    : original_(image.image),
      painted_(image),
      hidden_(run.hidden_tokens),
      rows_(run.rows),
      columns_(run.columns) {
  if (hidden_.empty() || !original_ || rows_ < 1 || columns_ < 1) return;
  Image copy = *original_;
  // The mean of ImageNet. The mean that a model is normalised by may differ slightly.
  constexpr std::array<std::uint8_t, 3> mean = {124, 116, 104};
  const auto pixel = [](double position, int limit) {
    return std::clamp(static_cast<int>(std::lround(position)), 0, limit);
  };
  for (const std::int64_t token : hidden_) {
    const auto patch = static_cast<int>(token) - run.prefix_tokens;
    const double height = run.crop_height / rows_, width = run.crop_width / columns_;
    const int row = patch / columns_, column = patch % columns_;
    const int top = pixel(run.crop_y + row * height, copy.height);
    const int bottom = pixel(run.crop_y + (row + 1) * height, copy.height);
    const int left = pixel(run.crop_x + column * width, copy.width);
    const int right = pixel(run.crop_x + (column + 1) * width, copy.width);
    for (int y = top; y < bottom; ++y) {
      for (int x = left; x < right; ++x) {
        const auto at = (static_cast<std::size_t>(y) * static_cast<std::size_t>(copy.width) +
                         static_cast<std::size_t>(x)) *
                        3;
        std::ranges::copy(mean, copy.rgb.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
  }
  painted_.image = std::make_shared<const Image>(std::move(copy));
}

bool PaintedPicture::shows(const ImageInput& image, const RunResult& run) const {
  return original_ != nullptr && image.image == original_ && image.name == painted_.name &&
         run.hidden_tokens == hidden_ && run.rows == rows_ && run.columns == columns_;
}

void PictureCanvas::set(const OverlayPanel& panel) {
  panel_ = panel;
  map_.set(panel.values, panel.scale,
           {.backdrop = backdrop_of(panel.mode), .interpolation = panel.interpolation});
  largest_ = largest_cell(panel.values);
}

ImVec2 PictureCanvas::size_within(ImVec2 room) const {
  if (!panel_.image || panel_.image->width <= 0 || panel_.image->height <= 0) return {};
  const auto width = static_cast<float>(panel_.image->width),
             height = static_cast<float>(panel_.image->height);
  const float scale = std::min(room.x / width, room.y / height);
  return {std::floor(width * scale), std::floor(height * scale)};
}

CanvasInput PictureCanvas::draw(Graphics& graphics, ImVec2 from, ImVec2 size, std::optional<int> query,
                                std::optional<int> hovered, float brightness) {
  CanvasInput input;
  if (map_.empty() || !panel_.image || size.x < 16 || size.y < 16) return input;
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 shown = size_within(size);
  const float scale = shown.x / static_cast<float>(panel_.image->width);
  const ImVec2 at{std::floor(from.x + (size.x - shown.x) / 2), std::floor(from.y + (size.y - shown.y) / 2)};
  const Box whole{at, {at.x + shown.x, at.y + shown.y}};
  const auto place = [&](double x, double y) {
    return ImVec2{at.x + static_cast<float>(x) * scale, at.y + static_cast<float>(y) * scale};
  };
  const Box crop{place(panel_.crop_x, panel_.crop_y),
                 place(panel_.crop_x + panel_.crop_width, panel_.crop_y + panel_.crop_height)};

  graphics.draw_picture(list, panel_.image, whole.from, whole.to, brightness);
  dim_outside(list, whole, crop);
  map_.draw(graphics, list, crop.from, crop.to, panel_.opacity * brightness);
  list->AddRect(crop.from, crop.to, theme::packed(theme::over_picture, 0.35f));

  ImGui::SetCursorScreenPos(crop.from);
  const bool clicked =
      ImGui::InvisibleButton("photograph", {crop.to.x - crop.from.x, crop.to.y - crop.from.y});
  if (ImGui::IsItemHovered()) {
    const ImVec2 mouse = ImGui::GetMousePos();
    const int row = std::clamp(static_cast<int>((mouse.y - crop.from.y) / (crop.to.y - crop.from.y) *
                                                static_cast<float>(map_.rows())),
                               0, map_.rows() - 1);
    const int column = std::clamp(static_cast<int>((mouse.x - crop.from.x) / (crop.to.x - crop.from.x) *
                                                   static_cast<float>(map_.columns())),
                                  0, map_.columns() - 1);
    input.hovered = row * map_.columns() + column;
    if (clicked) input.clicked = input.hovered;
    patch_grid(list, crop, map_.rows(), map_.columns());
    hovered = input.hovered;
  }
  const int cells = map_.rows() * map_.columns();
  if (largest_)
    circle(list,
           cell_box(crop,
                    static_cast<int>(largest_->index) * map_.columns() + static_cast<int>(largest_->within),
                    map_.rows(), map_.columns()));
  if (hovered && *hovered >= 0 && *hovered < cells) {
    ring(list, cell_box(crop, *hovered, map_.rows(), map_.columns()), theme::packed(theme::over_picture));
  }
  if (query && *query >= 0 && *query < cells) {
    ring(list, cell_box(crop, *query, map_.rows(), map_.columns()), theme::packed(theme::accent));
  }
  return input;
}

std::string SentenceCanvas::drawn(const std::size_t token) const {
  const std::string& text = panel_.tokens[token];
  return panel_.own_spaces ? drawn_token(text) : plain_piece(text);
}

CanvasInput SentenceCanvas::draw(Graphics& graphics, ImVec2 from, ImVec2 size, std::optional<int> query,
                                 std::optional<int> hovered, float brightness) {
  CanvasInput input;
  ImDrawList* list = ImGui::GetWindowDrawList();
  // As large as the area allows, within limits.
  std::size_t letters = 0;
  for (const std::string& token : panel_.tokens) letters += token.size() + 2;
  const float area = size.x * size.y / static_cast<float>(std::max<std::size_t>(letters, 1));
  const float most_size = std::clamp(size.x / 32, 26.0f, 40.0f);
  ImGui::PushFont(graphics.fonts().regular, std::clamp(std::sqrt(area * 0.55f), 13.0f, most_size));
  const float height = ImGui::GetTextLineHeight() + 10;
  const ColourTable& colours = graphics.colours(panel_.scale.map, Backdrop::words).table;
  ImVec2 at{from.x, from.y + 8};
  for (std::size_t i = 0; i < panel_.tokens.size(); ++i) {
    const std::string& token = panel_.tokens[i];
    const bool continues = panel_.own_spaces ? !begins_word(token) : token.starts_with("##");
    const std::string text = with_known_glyphs(drawn(i));
    if (i > 0 && panel_.own_spaces && ends_line(panel_.tokens[i - 1]) && at.x > from.x)
      at = {from.x, at.y + height + 8};
    const float width = ImGui::CalcTextSize(text.c_str()).x + 10;
    if (at.x > from.x) at.x += continues ? 1 : 7;
    if (at.x + width > from.x + size.x && at.x > from.x) at = {from.x, at.y + height + 8};
    const Box box{at, {at.x + width, at.y + height}};
    const double value = panel_.values[i];
    ImVec4 ink = theme::text;
    if (std::isnan(value)) {
      ink = theme::quiet;
    } else {
      const Colour colour = colour_at(colours, scale_position(panel_.scale, value));
      list->AddRectFilled(box.from, box.to, theme::packed(colour, brightness), 3.0f);
      list->AddRect(box.from, box.to, theme::packed(theme::line), 3.0f);
      ink = theme::ink_on(colour);
    }
    list->AddText({at.x + 5, at.y + 5}, theme::packed(ink), text.c_str());
    ImGui::SetCursorScreenPos(box.from);
    ImGui::PushID(static_cast<int>(i));
    if (ImGui::InvisibleButton("token", {width, height})) input.clicked = static_cast<int>(i);
    ImGui::PopID();
    if (ImGui::IsItemHovered()) input.hovered = static_cast<int>(i);
    const bool lit = input.hovered == static_cast<int>(i) || hovered == static_cast<int>(i);
    if (lit)
      list->AddRect({box.from.x - 1, box.from.y - 1}, {box.to.x + 1, box.to.y + 1},
                    theme::packed(theme::text), 3.0f);
    if (query == static_cast<int>(i)) {
      list->AddRect({box.from.x - 1, box.from.y - 1}, {box.to.x + 1, box.to.y + 1},
                    theme::packed(theme::accent), 3.0f, 2.0f);
    }
    at.x += width;
  }
  ImGui::PopFont();
  const float top = at.y + height + 16;
  const float room = std::min(from.y + size.y - top, std::max(260.0f, size.x * 0.6f));
  bars_axis_.reset();
  constexpr float least_room = 60;
  if (room > least_room)
    bars_axis_ = draw_bars(graphics, {from.x, top}, {size.x, room}, query, hovered, brightness, input);
  return input;
}

SentenceCanvas::Axis SentenceCanvas::draw_bars(Graphics& graphics, ImVec2 from, ImVec2 size,
                                               std::optional<int> query, std::optional<int> hovered,
                                               float brightness, CanvasInput& input) const {
  ImDrawList* list = ImGui::GetWindowDrawList();
  // A few tokens do not fill a wide panel with blocks.
  const float step = std::min(std::max(64.0f, size.x / 8), size.x / static_cast<float>(panel_.tokens.size()));
  ImGui::PushFont(graphics.fonts().mono, std::clamp(std::floor(step / 7), 11.0f, 15.0f));
  std::vector<std::string> names;
  float widest = 0;
  for (std::size_t i = 0; i < panel_.tokens.size(); ++i) {
    names.push_back(with_known_glyphs(drawn(i)));
    widest = std::max(widest, ImGui::CalcTextSize(names.back().c_str()).x);
  }
  const float line = ImGui::GetTextLineHeight();
  const bool turned = widest > step - 2; // by 90°
  // Without names where there is no room for them: the words stand above.
  constexpr float least_turned = 90;
  const bool named = step >= line && (!turned || size.y >= least_turned);
  constexpr float least_bars = 36; // then long names are cut
  const float most_label = std::max(size.y / 3, size.y - least_bars - 6);
  const float label_height = !named ? 0 : turned ? std::min(widest + 1, most_label) + 6 : line + 4;
  const bool with_sign = panel_.scale.low < 0;
  const float high = static_cast<float>(std::max(panel_.scale.high, 1e-12));
  const float length = (size.y - label_height) / (with_sign ? 2.0f : 1.0f);
  const float zero = from.y + length;
  const ColourTable& colours = graphics.colours(panel_.scale.map, Backdrop::words).table;
  list->AddLine({from.x, zero}, {from.x + step * static_cast<float>(panel_.tokens.size()), zero},
                theme::packed(theme::line));
  for (std::size_t i = 0; i < panel_.tokens.size(); ++i) {
    const float left = from.x + step * static_cast<float>(i);
    const double value = panel_.values[i];
    ImGui::SetCursorScreenPos({left, from.y});
    ImGui::PushID(static_cast<int>(i));
    if (ImGui::InvisibleButton("bar", {step, size.y})) input.clicked = static_cast<int>(i);
    ImGui::PopID();
    if (ImGui::IsItemHovered()) input.hovered = static_cast<int>(i);
    const bool lit = hovered == static_cast<int>(i) || input.hovered == static_cast<int>(i);
    if (lit)
      list->AddRectFilled({left, from.y}, {left + step, from.y + size.y}, theme::packed(theme::raised));
    if (!std::isnan(value)) {
      const float end = zero - length * std::clamp(static_cast<float>(value) / high, -1.0f, 1.0f);
      const float gap = step > 8 ? 2.0f : 0.0f;
      const Colour colour = colour_at(colours, scale_position(panel_.scale, value));
      list->AddRectFilled({left + gap, std::min(end, zero)}, {left + step - gap, std::max(end, zero) + 1},
                          theme::packed(colour, brightness));
    }
    if (!named) continue;
    const ImU32 ink =
        theme::packed(query == static_cast<int>(i) ? theme::accent : (lit ? theme::text : theme::quiet));
    const float top = from.y + size.y - label_height + 4;
    const std::string text = turned ? fitted(names[i], label_height - 6) : names[i];
    const float width = ImGui::CalcTextSize(text.c_str()).x;
    if (turned) {
      turned_text(list, {left + (step - line) / 2, top + width}, ink, text);
    } else {
      list->AddText({left + (step - width) / 2, top}, ink, text.c_str());
    }
  }
  ImGui::PopFont();
  return {from.y, with_sign ? zero + length : zero};
}

} // namespace hydrascope::app
