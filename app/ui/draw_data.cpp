#include <glad/gl.h>

#include "app/ui/draw_data.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <imgui_impl_opengl3.h>

namespace hydrascope::app {

namespace {

constexpr std::size_t most_boxes = 12; // each costs a pass over the draw lists it touches

// A draw list of this frame or the previous one.
struct Mesh {
  std::span<const ImDrawCmd> commands;
  std::span<const ImDrawVert> vertices;
  std::span<const ImDrawIdx> indices;
};

template <typename Element>
std::span<const Element> view(const ImVector<Element>& elements) {
  return {elements.Data, static_cast<std::size_t>(elements.Size)};
}

template <typename Element>
bool same_bytes(std::span<const Element> left, std::span<const Element> right) {
  return left.size() == right.size() && std::memcmp(left.data(), right.data(), left.size_bytes()) == 0;
}

bool same_vertex(const ImDrawVert& left, const ImDrawVert& right) {
  return left.pos.x == right.pos.x && left.pos.y == right.pos.y && left.uv.x == right.uv.x &&
         left.uv.y == right.uv.y && left.col == right.col;
}

ScreenBox clip_of(const ImDrawCmd& command) {
  return {{command.ClipRect.x, command.ClipRect.y}, {command.ClipRect.z, command.ClipRect.w}};
}

// Whether two commands draw with the same state; their triangles may differ.
bool same_state(const ImDrawCmd& left, const ImDrawCmd& right) {
  return clip_of(left) == clip_of(right) && left.TexRef._TexData == right.TexRef._TexData &&
         left.TexRef._TexID == right.TexRef._TexID && left.UserCallback == right.UserCallback &&
         left.UserCallbackData == right.UserCallbackData && left.VtxOffset == right.VtxOffset;
}

// In pixels from the top left.
struct PixelBox {
  int left, top, right, bottom;
};

PixelBox intersected(const PixelBox& one, const PixelBox& other) {
  return {std::max(one.left, other.left), std::max(one.top, other.top), std::min(one.right, other.right),
          std::min(one.bottom, other.bottom)};
}

// Rounds a clipping rectangle to pixels exactly as Dear ImGui's OpenGL back end does.
PixelBox pixels_of(const ScreenBox& box, ImVec2 scale, int height) {
  const float left = box.from.x * scale.x, top = box.from.y * scale.y;
  const float right = box.to.x * scale.x, bottom = box.to.y * scale.y;
  const int from = static_cast<int>(left), below = static_cast<int>(static_cast<float>(height) - bottom);
  return {from, height - below - static_cast<int>(bottom - top), from + static_cast<int>(right - left),
          height - below};
}

// The inverse: a clipping rectangle that the back end rounds to these pixels. The fractions keep clear of the
// rounding boundaries.
ImVec4 clip_for(const PixelBox& box, ImVec2 scale) {
  if (box.left >= box.right || box.top >= box.bottom) return {0, 0, 0, 0};
  const auto point = [](int pixel, float fraction, float density) {
    return (static_cast<float>(pixel) + fraction) / density;
  };
  return {point(box.left, 0.25f, scale.x), point(box.top, -0.5f, scale.y), point(box.right, 0.5f, scale.x),
          point(box.bottom, -0.25f, scale.y)};
}

// Collects boxes and merges those that are close together.
class Boxes {
public:
  void add(ScreenBox box) {
    if (box.empty()) return;
    constexpr float near = 24; // points
    for (ScreenBox& existing : boxes_) {
      const ScreenBox grown{{existing.from.x - near, existing.from.y - near},
                            {existing.to.x + near, existing.to.y + near}};
      if (intersected(grown, box).empty()) continue;
      existing = united(existing, box);
      return;
    }
    boxes_.push_back(box);
    if (boxes_.size() > 8 * most_boxes) merge_until(4 * most_boxes);
  }

  std::vector<ScreenBox> take(const ScreenBox& screen) {
    merge_until(most_boxes);
    // One more pixel on each side, because edges are antialiased.
    for (ScreenBox& box : boxes_)
      box = intersected(screen, {{std::floor(box.from.x) - 1, std::floor(box.from.y) - 1},
                                 {std::ceil(box.to.x) + 1, std::ceil(box.to.y) + 1}});
    std::erase_if(boxes_, [](const ScreenBox& box) { return box.empty(); });
    float area = 0;
    for (const ScreenBox& box : boxes_) area += box.area();
    if (area > 0.8f * screen.area()) return {screen};
    return std::move(boxes_);
  }

private:
  // Repeatedly unites the two boxes whose union adds the least area.
  void merge_until(std::size_t count) {
    const auto waste = [](const ScreenBox& left, const ScreenBox& right) {
      return united(left, right).area() - left.area() - right.area();
    };
    while (boxes_.size() > 1) {
      std::size_t first = 0, second = 1;
      for (std::size_t i = 0; i < boxes_.size(); ++i)
        for (std::size_t j = i + 1; j < boxes_.size(); ++j)
          if (waste(boxes_[i], boxes_[j]) < waste(boxes_[first], boxes_[second])) first = i, second = j;
      // Overlapping boxes are merged even below the limit.
      if (boxes_.size() <= count && waste(boxes_[first], boxes_[second]) > 0) return;
      boxes_[first] = united(boxes_[first], boxes_[second]);
      boxes_.erase(boxes_.begin() + static_cast<std::ptrdiff_t>(second));
    }
  }

  std::vector<ScreenBox> boxes_;
};

// Adds the boxes of the triangles that have a vertex for which `counts` is true.
template <typename Counts>
void add_triangles(const Mesh& mesh, const Counts& counts, Boxes& boxes) {
  for (const ImDrawCmd& command : mesh.commands) {
    if (command.UserCallback != nullptr) continue;
    const ScreenBox clip = clip_of(command);
    for (unsigned int i = 0; i + 2 < command.ElemCount; i += 3) {
      ScreenBox box{{1e9f, 1e9f}, {-1e9f, -1e9f}};
      bool counted = false;
      for (unsigned int corner = 0; corner < 3; ++corner) {
        const std::size_t vertex = command.VtxOffset + mesh.indices[command.IdxOffset + i + corner];
        counted = counted || counts(vertex);
        const ImVec2 place = mesh.vertices[vertex].pos;
        box = united(box, {place, place});
      }
      if (counted) boxes.add(intersected(clip, box));
    }
  }
}

void add_all(const Mesh& mesh, Boxes& boxes) {
  add_triangles(
      mesh, [](std::size_t) { return true; }, boxes);
}

// Adds what differs between two versions of one draw list.
void add_difference(const Mesh& before, const Mesh& now, Boxes& boxes) {
  const bool same_states = before.commands.size() == now.commands.size() &&
                           std::ranges::equal(before.commands, now.commands, same_state);
  if (!same_states) {
    add_all(before, boxes);
    add_all(now, boxes);
    return;
  }
  if (same_bytes(before.indices, now.indices) && before.vertices.size() == now.vertices.size()) {
    const auto differs = [&](std::size_t vertex) {
      return !same_vertex(before.vertices[vertex], now.vertices[vertex]);
    };
    add_triangles(before, differs, boxes);
    add_triangles(now, differs, boxes);
    return;
  }
  // Vertices were added or removed; those before and after the change are equal.
  const std::size_t common = std::min(before.vertices.size(), now.vertices.size());
  std::size_t head = 0, tail = 0;
  while (head < common && same_vertex(before.vertices[head], now.vertices[head])) ++head;
  while (tail < common - head && same_vertex(before.vertices[before.vertices.size() - 1 - tail],
                                             now.vertices[now.vertices.size() - 1 - tail]))
    ++tail;
  const auto within = [&](const Mesh& mesh) {
    return [head, end = mesh.vertices.size() - tail](std::size_t vertex) {
      return vertex >= head && vertex < end;
    };
  };
  add_triangles(before, within(before), boxes);
  add_triangles(now, within(now), boxes);
}

} // namespace

ScreenBox united(const ScreenBox& left, const ScreenBox& right) {
  return {{std::min(left.from.x, right.from.x), std::min(left.from.y, right.from.y)},
          {std::max(left.to.x, right.to.x), std::max(left.to.y, right.to.y)}};
}

ScreenBox intersected(const ScreenBox& left, const ScreenBox& right) {
  return {{std::max(left.from.x, right.from.x), std::max(left.from.y, right.from.y)},
          {std::min(left.to.x, right.to.x), std::min(left.to.y, right.to.y)}};
}

std::vector<ScreenBox> DamageTracker::update(const ImDrawData& data) {
  const ScreenBox screen{{0, 0}, data.DisplaySize};
  const bool everything_new = lists_.empty() || size_.x != data.DisplaySize.x ||
                              size_.y != data.DisplaySize.y || scale_.x != data.FramebufferScale.x;
  size_ = data.DisplaySize;
  scale_ = data.FramebufferScale;

  Boxes boxes;
  const auto count = static_cast<std::size_t>(data.CmdLists.Size);
  const auto mesh_of = [](const List& list) { return Mesh{list.commands, list.vertices, list.indices}; };
  for (std::size_t i = count; i < lists_.size(); ++i) add_all(mesh_of(lists_[i]), boxes);
  lists_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const ImDrawList& list = *data.CmdLists[static_cast<int>(i)];
    const Mesh now{view(list.CmdBuffer), view(list.VtxBuffer), view(list.IdxBuffer)};
    List& existing = lists_[i];
    const Mesh before = mesh_of(existing);
    const std::string_view owner = list._OwnerName == nullptr ? "" : list._OwnerName;
    const bool same_commands =
        before.commands.size() == now.commands.size() &&
        std::ranges::equal(before.commands, now.commands, [](const ImDrawCmd& left, const ImDrawCmd& right) {
          return same_state(left, right) && left.ElemCount == right.ElemCount;
        });
    if (existing.owner == owner && same_commands && same_bytes(before.vertices, now.vertices) &&
        same_bytes(before.indices, now.indices))
      continue;
    if (existing.owner == owner) {
      add_difference(before, now, boxes);
    } else { // another window has this position in the list
      add_all(before, boxes);
      add_all(now, boxes);
    }
    existing = {std::string(owner),
                {now.commands.begin(), now.commands.end()},
                {now.vertices.begin(), now.vertices.end()},
                {now.indices.begin(), now.indices.end()}};
  }
  if (everything_new) return {screen};
  return boxes.take(screen);
}

void draw_boxes(const ImDrawData& data, std::span<const ScreenBox> boxes, int height, const ImVec4& ground) {
  const ImVec2 scale = data.FramebufferScale;
  ImDrawData part = data;
  part.CmdLists.resize(0);
  if (boxes.empty()) ImGui_ImplOpenGL3_RenderDrawData(&part); // uploads new glyphs
  for (const ScreenBox& box : boxes) {
    const PixelBox inside = pixels_of(box, scale, height);
    glEnable(GL_SCISSOR_TEST);
    glScissor(inside.left, height - inside.bottom, inside.right - inside.left, inside.bottom - inside.top);
    glClearColor(ground.x, ground.y, ground.z, 1);
    glClear(GL_COLOR_BUFFER_BIT);
    glDisable(GL_SCISSOR_TEST);
    part.CmdLists.resize(0);
    std::vector<ImVec4> clips;
    for (ImDrawList* list : data.CmdLists) {
      const bool touched = std::ranges::any_of(view(list->CmdBuffer), [&](const ImDrawCmd& command) {
        return command.ElemCount > 0 && !intersected(clip_of(command), box).empty();
      });
      if (!touched) continue;
      part.CmdLists.push_back(list);
      for (ImDrawCmd& command : list->CmdBuffer) {
        clips.push_back(command.ClipRect);
        command.ClipRect = clip_for(intersected(pixels_of(clip_of(command), scale, height), inside), scale);
      }
    }
    ImGui_ImplOpenGL3_RenderDrawData(&part);
    std::size_t next = 0;
    for (ImDrawList* list : part.CmdLists)
      for (ImDrawCmd& command : list->CmdBuffer) command.ClipRect = clips[next++];
  }
}

namespace {

bool is_letter(const ImDrawVert* corner) {
  const bool upright = corner[0].pos.y == corner[1].pos.y && corner[2].pos.y == corner[3].pos.y &&
                       corner[0].pos.x == corner[3].pos.x && corner[1].pos.x == corner[2].pos.x;
  // All corners of a filled rectangle have the same white texel.
  return upright && corner[0].uv.x != corner[1].uv.x && corner[0].uv.y != corner[3].uv.y;
}

// Whether six indices draw four consecutive vertices, as for letters and rectangles.
bool is_quad(const ImDrawIdx* index) {
  return index[1] == index[0] + 1 && index[2] == index[0] + 2 && index[3] == index[0] &&
         index[4] == index[2] && index[5] == index[0] + 3;
}

} // namespace

void snap_text_rows(ImDrawData& data) {
  const float density = data.FramebufferScale.y;
  if (density <= 0 || density == std::floor(density)) return;
  const ImTextureData* atlas = ImGui::GetIO().Fonts->TexData;
  for (ImDrawList* list : data.CmdLists) {
    for (const ImDrawCmd& command : list->CmdBuffer) {
      if (command.UserCallback != nullptr || command.TexRef._TexData != atlas) continue;
      ImDrawVert* const vertices = list->VtxBuffer.Data + command.VtxOffset;
      const ImDrawIdx* const indices = list->IdxBuffer.Data + command.IdxOffset;
      for (unsigned int i = 0; i + 6 <= command.ElemCount;) {
        ImDrawVert* const corners = vertices + indices[i];
        if (!is_quad(indices + i)) {
          i += 3;
          continue;
        }
        if (is_letter(corners)) {
          const float row = (corners->pos.y - data.DisplayPos.y) * density;
          const float shift = (std::round(row) - row) / density;
          for (int corner = 0; corner < 4; ++corner) corners[corner].pos.y += shift;
        }
        i += 6;
      }
    }
  }
}

} // namespace hydrascope::app
