#include "tests/window/drawn_text.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>

#include <fmt/format.h>
#include <imgui_internal.h>

#include "engine/base/text.h"

namespace hydrascope::app::window_tests {

namespace {

struct Letter {
  char32_t code = 0;
  ImRect box; // on the screen, as far as it was emitted
  ImRect clip;
  bool left_whole = true, right_whole = true, top_whole = true, bottom_whole = true;
  bool upright = true; // not turned
  const ImGuiWindow* window = nullptr;
  bool covered = false;
  std::size_t order = 0; // of drawing

  ImRect visible() const {
    ImRect part = box;
    part.ClipWithFull(clip);
    return part;
  }
};

bool empty(const ImRect& box) { return box.Min.x >= box.Max.x || box.Min.y >= box.Max.y; }
float area(const ImRect& box) { return empty(box) ? 0 : box.GetWidth() * box.GetHeight(); }
ImRect common(ImRect one, const ImRect& other) {
  one.Min = ImMax(one.Min, other.Min);
  one.Max = ImMin(one.Max, other.Max);
  return one;
}

// Finds glyphs by the texels that a quad shows.
class Glyphs {
public:
  Glyphs() : size_{static_cast<float>(atlas().TexData->Width), static_cast<float>(atlas().TexData->Height)} {
    auto& pool = atlas().Builder->BakedPool;
    for (int i = 0; i < pool.Size; ++i) {
      if (pool[i].WantDestroy) continue;
      for (const ImFontGlyph& glyph : pool[i].Glyphs)
        if (glyph.Visible)
          glyphs_.emplace(std::pair(pixel(glyph.U0, size_.x), pixel(glyph.V0, size_.y)), &glyph);
    }
  }

  // The glyph of which the quad shows a part; nullptr if it shows none.
  const ImFontGlyph* find(ImVec2 from, ImVec2 to) const {
    const auto exact = glyphs_.find({pixel(from.x, size_.x), pixel(from.y, size_.y)});
    if (exact != glyphs_.end()) return exact->second;
    for (const auto& [place, glyph] : glyphs_) {
      if (from.x >= glyph->U0 - margin && from.y >= glyph->V0 - margin && to.x <= glyph->U1 + margin &&
          to.y <= glyph->V1 + margin)
        return glyph;
    }
    return nullptr;
  }

  static constexpr float margin = 1e-4f; // of texture coordinates

private:
  static const ImFontAtlas& atlas() { return *ImGui::GetIO().Fonts; }
  static int pixel(float coordinate, float size) { return static_cast<int>(std::lround(coordinate * size)); }

  ImVec2 size_;
  std::map<std::pair<int, int>, const ImFontGlyph*> glyphs_;
};

// Six indices that draw four consecutive vertices as two triangles, as for letters, rectangles and pictures.
bool is_quad(const ImDrawIdx* index) {
  return index[1] == index[0] + 1 && index[2] == index[0] + 2 && index[3] == index[0] &&
         index[4] == index[2] && index[5] == index[0] + 3;
}

std::vector<Letter> letters_of(const ImDrawData& data) {
  const Glyphs glyphs;
  const ImTextureData* const atlas = ImGui::GetIO().Fonts->TexData;
  std::vector<Letter> letters;
  for (const ImDrawList* list : data.CmdLists) {
    const ImGuiWindow* const window =
        list->_OwnerName == nullptr ? nullptr : ImGui::FindWindowByName(list->_OwnerName);
    constexpr ImGuiWindowFlags clear = ImGuiWindowFlags_ChildWindow | ImGuiWindowFlags_NoBackground;
    if (window != nullptr && (window->Flags & clear) == 0) // its ground may be rounded: no rectangle
      for (Letter& letter : letters)
        letter.covered = letter.covered || window->Rect().Contains(letter.box.GetCenter());
    for (const ImDrawCmd& command : list->CmdBuffer) {
      if (command.UserCallback != nullptr) continue;
      const ImRect clip(command.ClipRect);
      const ImDrawVert* const vertices = list->VtxBuffer.Data + command.VtxOffset;
      const ImDrawIdx* const indices = list->IdxBuffer.Data + command.IdxOffset;
      for (unsigned int i = 0; i + 5 < command.ElemCount;) {
        if (!is_quad(indices + i)) {
          i += 3;
          continue;
        }
        const std::span<const ImDrawVert> corners(vertices + indices[i], 4);
        i += 6;
        ImRect box(corners[0].pos, corners[0].pos);
        ImVec2 from = corners[0].uv, to = corners[0].uv;
        for (const ImDrawVert& corner : corners) {
          box.Add(corner.pos);
          from = ImMin(from, corner.uv);
          to = ImMax(to, corner.uv);
        }
        const bool from_atlas = command.TexRef._TexData == atlas;
        const bool plain = from.x == to.x && from.y == to.y;
        if (!from_atlas || plain) {
          const bool opaque = (corners[0].col >> IM_COL32_A_SHIFT) == 0xFF;
          const ImRect seen = common(box, clip);
          if (!opaque || seen.GetWidth() < 6 || seen.GetHeight() < 6) continue;
          for (Letter& letter : letters)
            letter.covered = letter.covered || seen.Contains(letter.box.GetCenter());
          continue;
        }
        const ImFontGlyph* const glyph = glyphs.find(from, to);
        if (glyph == nullptr) continue;
        const bool upright = corners[0].pos.y == corners[1].pos.y && corners[0].pos.x < corners[1].pos.x;
        letters.push_back({.code = glyph->Codepoint,
                           .box = box,
                           .clip = clip,
                           .left_whole = from.x <= glyph->U0 + Glyphs::margin,
                           .right_whole = to.x >= glyph->U1 - Glyphs::margin,
                           .top_whole = from.y <= glyph->V0 + Glyphs::margin,
                           .bottom_whole = to.y >= glyph->V1 - Glyphs::margin,
                           .upright = upright,
                           .window = window});
      }
    }
  }
  std::erase_if(letters, [](const Letter& letter) { return letter.covered || empty(letter.visible()); });
  return letters;
}

// Letters that were drawn one after another in one line.
using Run = std::span<const Letter>;

std::vector<Run> runs_of(const std::vector<Letter>& letters) {
  std::vector<Run> runs;
  std::size_t begin = 0;
  for (std::size_t i = 1; i <= letters.size(); ++i) {
    const auto follows = [&] {
      const Letter &last = letters[i - 1], &next = letters[i];
      if (next.window != last.window || next.upright != last.upright) return false;
      const float gap = next.upright ? next.box.Min.x - last.box.Max.x : last.box.Min.y - next.box.Max.y;
      const float line = std::max(last.box.GetHeight(), last.box.GetWidth());
      const bool same_line = next.upright
                                 ? next.box.Min.y < last.box.Max.y + 4 && last.box.Min.y < next.box.Max.y + 4
                                 : next.box.Min.x < last.box.Max.x + 4 && last.box.Min.x < next.box.Max.x + 4;
      return same_line && gap > -0.6f * line && gap < std::max(8.0f, line);
    };
    if (i < letters.size() && follows()) continue;
    if (begin < i) runs.push_back(Run(letters).subspan(begin, i - begin));
    begin = i;
  }
  return runs;
}

std::string text_of(Run run) {
  std::string text;
  for (std::size_t i = 0; i < run.size(); ++i) {
    if (i > 0 && run[i].box.Min.x - run[i - 1].box.Max.x > 2.5f) text += ' ';
    append_code_point(text, run[i].code);
  }
  return text;
}

ImRect box_of(Run run) {
  ImRect box = run.front().visible();
  for (const Letter& letter : run) box.Add(letter.visible());
  return box;
}

std::string place_of(const ImGuiWindow* window) {
  if (window == nullptr) return "over all";
  const ImGuiWindow* const root = window->RootWindow != nullptr ? window->RootWindow : window;
  return root->Name;
}

// Whether what the window's edge hides can be scrolled into view.
bool scrolls(const ImGuiWindow* window, ImGuiAxis axis) {
  for (; window != nullptr; window = window->ParentWindow) {
    if (window->ScrollMax[static_cast<std::size_t>(axis)] > 0) return true;
    if ((window->Flags & ImGuiWindowFlags_ChildWindow) == 0) break;
  }
  return false;
}

// How a letter is cut: "left", "right", "top", "bottom" or nothing.
std::string cut_of(const Letter& letter) {
  constexpr float slack = 1.0f; // points: a glyph's box is wider than its ink
  const ImRect& box = letter.box;
  const ImRect& clip = letter.clip;
  if (!scrolls(letter.window, ImGuiAxis_X)) {
    if (box.Min.x < clip.Min.x - slack || (letter.upright && !letter.left_whole)) return "left";
    if (box.Max.x > clip.Max.x + slack || (letter.upright && !letter.right_whole)) return "right";
  }
  if (!scrolls(letter.window, ImGuiAxis_Y)) {
    if (box.Min.y < clip.Min.y - slack || (letter.upright && !letter.top_whole)) return "top";
    if (box.Max.y > clip.Max.y + slack || (letter.upright && !letter.bottom_whole)) return "bottom";
  }
  return {};
}

// Whether the two runs have letters on each other. The same letters a point apart are a shadow.
bool overlap(Run one, Run other) {
  if (area(common(box_of(one), box_of(other))) <= 0) return false;
  const ImVec2 offset{one.front().box.Min.x - other.front().box.Min.x,
                      one.front().box.Min.y - other.front().box.Min.y};
  if (one.size() == other.size() && std::abs(offset.x) <= 2 && std::abs(offset.y) <= 2 &&
      std::ranges::equal(one, other, {}, &Letter::code, &Letter::code))
    return false;
  for (const Letter& left : one)
    for (const Letter& right : other) {
      const float least = std::min(area(left.visible()), area(right.visible()));
      if (area(common(left.visible(), right.visible())) > 0.12f * least) return true;
    }
  return false;
}

} // namespace

std::vector<std::string> illegible_text(const ImDrawData& data) {
  std::set<std::string> found;
  const std::vector<Letter> letters = letters_of(data);
  const std::vector<Run> runs = runs_of(letters);
  for (const Run run : runs) {
    for (const Letter& letter : run) {
      const std::string side = cut_of(letter);
      if (side.empty()) continue;
      found.insert(fmt::format("{}: \"{}\" is cut at the {}", place_of(letter.window), text_of(run), side));
      break;
    }
  }
  for (std::size_t i = 0; i < runs.size(); ++i)
    for (std::size_t j = i + 1; j < runs.size(); ++j)
      if (overlap(runs[i], runs[j]))
        found.insert(fmt::format("{}: \"{}\" and \"{}\" overlap", place_of(runs[i].front().window),
                                 text_of(runs[i]), text_of(runs[j])));
  ImGuiContext& context = *ImGui::GetCurrentContext();
  std::set<const ImGuiTabBar*> bars;
  for (int i = 0; i < context.TabBars.GetMapSize(); ++i) bars.insert(context.TabBars.TryGetMapData(i));
  for (const ImGuiWindow* window : context.Windows)
    if (window->DockNode != nullptr) bars.insert(window->DockNode->TabBar);
  for (const ImGuiTabBar* bar : bars) {
    if (bar == nullptr || bar->CurrFrameVisible < context.FrameCount - 1) continue;
    for (const ImGuiTabItem& tab : bar->Tabs)
      if (tab.Width < tab.ContentWidth - 1 && tab.Window != nullptr)
        found.insert(fmt::format("{}: its tab is {:.0f} points wide, its name {:.0f}", tab.Window->Name,
                                 tab.Width, tab.ContentWidth));
    if (bar->WidthAllTabs > bar->BarRect.GetWidth() + 1)
      found.insert(fmt::format(
          "{}: the tabs are {:.0f} points wide, their bar {:.0f}",
          bar->Tabs.empty() || bar->Tabs[0].Window == nullptr ? "tabs" : bar->Tabs[0].Window->Name,
          bar->WidthAllTabs, bar->BarRect.GetWidth()));
  }
  return {found.begin(), found.end()};
}

} // namespace hydrascope::app::window_tests
