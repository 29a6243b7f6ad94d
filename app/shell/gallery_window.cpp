// The gallery: a grid of cards, one for each lesson that comes with the program.
#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <utility>

#include <imgui.h>

#include "app/actions/tour.h"
#include "app/document/session_edits.h"
#include "app/shell/shell.h"
#include "app/ui/widgets.h"
#include "engine/base/error.h"
#include "engine/base/image.h"

namespace hydrascope::app {

namespace {

constexpr float card_gap = 12, card_padding = 10;
constexpr float least_card = 224; // width
constexpr int most_columns = 5;
constexpr float thumbnail_height = 0.6f; // of its width
constexpr float greatest_gallery = 1500; // width of the window

// Null if it cannot be read: the card then shows its words alone.
std::shared_ptr<const Image> thumbnail_of(const std::filesystem::path& file) {
  try {
    return std::make_shared<const Image>(load_image(file));
  } catch (const Error&) {
    return nullptr;
  }
}

ImVec2 wrapped_size(ImFont* font, float size, const std::string& text, float width) {
  return font->CalcTextSizeA(size, std::numeric_limits<float>::max(), width, text.c_str());
}

// The height of the highest card.
float card_height(const std::vector<GalleryEntry>& entries, const theme::Fonts& fonts, float width) {
  const float inner = width - 2 * card_padding;
  float most = 0;
  for (const GalleryEntry& entry : entries) {
    const float title = wrapped_size(fonts.strong, theme::size_text, entry.lesson.title, inner).y;
    const float text = wrapped_size(fonts.regular, theme::size_small, entry.lesson.text, inner).y;
    most = std::max(most, title + text);
  }
  return width * thumbnail_height + most + 2 * card_padding + 4;
}

struct Grid {
  int columns = 1;
  ImVec2 card;
  float height = 0; // of all rows
};

constexpr const char* introduction =
    "See what a vision transformer, BERT or a decoder attends to, and swap the attention kernel of any "
    "layer. Each card opens a lesson: what to look at, what to click, and what it shows.";

// Of title, introduction and buttons.
float header_height(float width) {
  const ImGuiStyle& style = ImGui::GetStyle();
  return ImGui::GetFrameHeight() + ImGui::CalcTextSize(introduction, nullptr, false, width).y +
         style.ItemSpacing.y + ImGui::GetFrameHeightWithSpacing() + 2 * style.WindowPadding.y;
}

Grid grid_of(const std::vector<GalleryEntry>& entries, const theme::Fonts& fonts, float width) {
  const int columns =
      std::clamp(static_cast<int>((width + card_gap) / (least_card + card_gap)), 1, most_columns);
  const float card = (width - static_cast<float>(columns - 1) * card_gap) / static_cast<float>(columns);
  const int rows = (static_cast<int>(entries.size()) + columns - 1) / columns;
  const float height = card_height(entries, fonts, card);
  return {columns, {card, height}, static_cast<float>(rows) * (height + card_gap) - card_gap};
}

} // namespace

void GalleryWindow::load_thumbnails(const std::vector<GalleryEntry>& entries) {
  if (thumbnails_.size() == entries.size()) return;
  thumbnails_.clear();
  for (const GalleryEntry& entry : entries) thumbnails_.push_back(thumbnail_of(entry.thumbnail));
}

bool GalleryWindow::choose_with_keys(std::size_t count, int columns) {
  if (!has_keys_ || count == 0) return false;
  const auto last = static_cast<int>(count) - 1;
  int chosen = static_cast<int>(chosen_);
  if (ImGui::IsKeyPressed(ImGuiKey_RightArrow)) ++chosen;
  if (ImGui::IsKeyPressed(ImGuiKey_LeftArrow)) --chosen;
  if (ImGui::IsKeyPressed(ImGuiKey_DownArrow) && chosen + columns <= last) chosen += columns;
  if (ImGui::IsKeyPressed(ImGuiKey_UpArrow) && chosen >= columns) chosen -= columns;
  chosen = std::clamp(chosen, 0, last);
  scroll_ = chosen != static_cast<int>(chosen_);
  chosen_ = static_cast<std::size_t>(chosen);
  return ImGui::IsKeyPressed(ImGuiKey_Enter, false) || ImGui::IsKeyPressed(ImGuiKey_KeypadEnter, false);
}

bool GalleryWindow::draw_card(const GalleryEntry& entry, std::size_t index, ImVec2 size, Graphics& graphics) {
  const ImVec2 from = ImGui::GetCursorScreenPos(), to{from.x + size.x, from.y + size.y};
  const bool clicked = ImGui::InvisibleButton(entry.id.c_str(), size);
  const bool hovered = ImGui::IsItemHovered(), chosen = index == chosen_;
  if (chosen && scroll_) ImGui::SetScrollHereY(0.5f);
  ImDrawList* const list = ImGui::GetWindowDrawList();
  list->AddRectFilled(from, to, theme::packed(hovered ? theme::raised_more : theme::raised), 4);
  const float bottom = from.y + size.x * thumbnail_height;
  graphics.draw_picture(list, thumbnails_[index], from, {to.x, bottom});
  list->AddRect(from, to, theme::packed(chosen ? theme::accent : theme::line), 4, 0, chosen ? 2.0f : 1.0f);
  const float inner = size.x - 2 * card_padding;
  ImVec2 at{from.x + card_padding, bottom + card_padding};
  const theme::Fonts& fonts = graphics.fonts();
  list->AddText(fonts.strong, theme::size_text, at, theme::packed(theme::text), entry.lesson.title.c_str(),
                nullptr, inner);
  at.y += wrapped_size(fonts.strong, theme::size_text, entry.lesson.title, inner).y + 4;
  list->AddText(fonts.regular, theme::size_small, at, theme::packed(theme::quiet), entry.lesson.text.c_str(),
                nullptr, inner);
  return clicked;
}

void GalleryWindow::draw_cards(const std::vector<GalleryEntry>& entries, Editor& editor, Graphics& graphics,
                               Overlays& overlays) {
  if (ImGui::BeginChild("cards")) {
    const Grid grid = grid_of(entries, graphics.fonts(), ImGui::GetContentRegionAvail().x);
    std::size_t opened = choose_with_keys(entries.size(), grid.columns) ? chosen_ : entries.size();
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(card_gap, card_gap));
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i % static_cast<std::size_t>(grid.columns) != 0) ImGui::SameLine();
      if (draw_card(entries[i], i, grid.card, graphics)) opened = i;
    }
    ImGui::PopStyleVar();
    if (opened < entries.size()) {
      chosen_ = opened;
      if (overlays.tour) end_tour(editor, overlays.tour);
      overlays[Overlay::gallery] = false;
      open_session(editor, entries[opened].session);
    }
  }
  ImGui::EndChild();
}

void GalleryWindow::draw(const std::vector<GalleryEntry>& entries, Editor& editor, Graphics& graphics,
                         Overlays& overlays) {
  bool& open = overlays[Overlay::gallery];
  has_keys_ = false;
  if (!open) {
    was_open_ = false;
    return;
  }
  load_thumbnails(entries);
  if (!std::exchange(was_open_, true)) {
    revision_ = editor.revision();
    ImGui::SetNextWindowFocus();
  }
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  ImGui::SetNextWindowPos(viewport->GetWorkCenter(), ImGuiCond_Always, {0.5f, 0.5f});
  const float width = std::min(greatest_gallery, viewport->WorkSize.x - 32);
  const float inner = width - 2 * ImGui::GetStyle().WindowPadding.x;
  const float height = header_height(inner) + grid_of(entries, graphics.fonts(), inner).height;
  ImGui::SetNextWindowSize({width, std::min(height, viewport->WorkSize.y - 16)});
  const OverlayStyle style;
  const bool welcome = !editor.settings().tour_seen;
  const ImGuiWindowFlags flags = ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoSavedSettings |
                                 ImGuiWindowFlags_NoResize | ImGuiWindowFlags_NoCollapse |
                                 ImGuiWindowFlags_NoMove;
  if (ImGui::Begin(welcome ? "Welcome to Hydrascope###gallery" : "Gallery###gallery", &open, flags)) {
    has_keys_ = ImGui::IsWindowFocused(ImGuiFocusedFlags_ChildWindows);
    ImGui::PushTextWrapPos(0);
    ImGui::TextUnformatted(introduction);
    ImGui::PopTextWrapPos();
    if (ImGui::Button("Guided tour")) editor.emit(GoToTourStep{0});
    ImGui::SameLine();
    if (ImGui::Button(welcome ? "Start with the cat" : "Close")) open = false;
    ImGui::SameLine();
    ImGui::AlignTextToFramePadding();
    ImGui::PushFont(graphics.fonts().regular, theme::size_small);
    ellipsis_text(
        "Arrow keys and Enter, or a click. Ctrl+Z brings back what was open. Help › Gallery… shows this "
        "page again.",
        ImGui::GetContentRegionAvail().x, theme::quiet);
    ImGui::PopFont();
    draw_cards(entries, editor, graphics, overlays);
    if (has_keys_ && ImGui::IsKeyPressed(ImGuiKey_Escape, false)) open = false;
    if (editor.revision() != revision_) open = false; // something else was opened
  }
  ImGui::End();
  if (!open && welcome) editor.change_settings([](Settings& settings) { settings.tour_seen = true; });
}

} // namespace hydrascope::app
