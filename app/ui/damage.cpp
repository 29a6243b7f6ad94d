#include <glad/gl.h>

#include "app/ui/damage.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <imgui_impl_opengl3.h>

namespace hydrascope::app {

namespace {

constexpr std::size_t most_boxes = 12; // each is a pass over the draw lists it touches

// A mesh to be compared: a draw list of this frame or the last.
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

Box clip_of(const ImDrawCmd& command) {
  return {{command.ClipRect.x, command.ClipRect.y}, {command.ClipRect.z, command.ClipRect.w}};
}

// The same state: only what is drawn with it may differ.
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

// The pixels that Dear ImGui's OpenGL back end makes of a clipping rectangle, by the same roundings.
PixelBox pixels_of(const Box& box, ImVec2 scale, int height) {
  const float left = box.from.x * scale.x, top = box.from.y * scale.y;
  const float right = box.to.x * scale.x, bottom = box.to.y * scale.y;
  const int from = static_cast<int>(left), below = static_cast<int>(static_cast<float>(height) - bottom);
  return {from, height - below - static_cast<int>(bottom - top), from + static_cast<int>(right - left),
          height - below};
}

// A clipping rectangle of which the back end makes these pixels; fractions keep its roundings from slipping.
ImVec4 clip_for(const PixelBox& box, ImVec2 scale) {
  if (box.left >= box.right || box.top >= box.bottom) return {0, 0, 0, 0};
  const auto point = [](int pixel, float fraction, float density) {
    return (static_cast<float>(pixel) + fraction) / density;
  };
  return {point(box.left, 0.25f, scale.x), point(box.top, -0.5f, scale.y), point(box.right, 0.5f, scale.x),
          point(box.bottom, -0.25f, scale.y)};
}

// Gathers boxes; what lies close together becomes one.
class Boxes {
public:
  void add(Box box) {
    if (box.empty()) return;
    constexpr float near = 24; // points
    for (Box& known : boxes_) {
      const Box grown{{known.from.x - near, known.from.y - near}, {known.to.x + near, known.to.y + near}};
      if (intersected(grown, box).empty()) continue;
      known = united(known, box);
      return;
    }
    boxes_.push_back(box);
    if (boxes_.size() > 8 * most_boxes) merge_until(4 * most_boxes);
  }

  std::vector<Box> take(const Box& screen) {
    merge_until(most_boxes);
    // A pixel more on each side: triangles are smoothed at their edges.
    for (Box& box : boxes_)
      box = intersected(screen, {{std::floor(box.from.x) - 1, std::floor(box.from.y) - 1},
                                 {std::ceil(box.to.x) + 1, std::ceil(box.to.y) + 1}});
    std::erase_if(boxes_, [](const Box& box) { return box.empty(); });
    float area = 0;
    for (const Box& box : boxes_) area += box.area();
    if (area > 0.8f * screen.area()) return {screen};
    return std::move(boxes_);
  }

private:
  // Unites the two boxes that waste least, again and again.
  void merge_until(std::size_t count) {
    const auto waste = [](const Box& left, const Box& right) {
      return united(left, right).area() - left.area() - right.area();
    };
    while (boxes_.size() > 1) {
      std::size_t first = 0, second = 1;
      for (std::size_t i = 0; i < boxes_.size(); ++i)
        for (std::size_t j = i + 1; j < boxes_.size(); ++j)
          if (waste(boxes_[i], boxes_[j]) < waste(boxes_[first], boxes_[second])) first = i, second = j;
      // Boxes that overlap are better one even where there is room for both.
      if (boxes_.size() <= count && waste(boxes_[first], boxes_[second]) > 0) return;
      boxes_[first] = united(boxes_[first], boxes_[second]);
      boxes_.erase(boxes_.begin() + static_cast<std::ptrdiff_t>(second));
    }
  }

  std::vector<Box> boxes_;
};

// Adds the boxes of the triangles with a vertex that `counts`.
template <typename Counts>
void add_triangles(const Mesh& mesh, const Counts& counts, Boxes& boxes) {
  for (const ImDrawCmd& command : mesh.commands) {
    if (command.UserCallback != nullptr) continue;
    const Box clip = clip_of(command);
    for (unsigned int i = 0; i + 2 < command.ElemCount; i += 3) {
      Box box{{1e9f, 1e9f}, {-1e9f, -1e9f}};
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

// What differs between two states of one draw list.
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
  // Something was added, removed or grew: what comes before and after it in the list is as it was.
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

Box united(const Box& left, const Box& right) {
  return {{std::min(left.from.x, right.from.x), std::min(left.from.y, right.from.y)},
          {std::max(left.to.x, right.to.x), std::max(left.to.y, right.to.y)}};
}

Box intersected(const Box& left, const Box& right) {
  return {{std::max(left.from.x, right.from.x), std::max(left.from.y, right.from.y)},
          {std::min(left.to.x, right.to.x), std::min(left.to.y, right.to.y)}};
}

std::vector<Box> Damage::update(const ImDrawData& data) {
  const Box screen{{0, 0}, data.DisplaySize};
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
    List& known = lists_[i];
    const Mesh before = mesh_of(known);
    const std::string_view owner = list._OwnerName == nullptr ? "" : list._OwnerName;
    const bool same_commands =
        before.commands.size() == now.commands.size() &&
        std::ranges::equal(before.commands, now.commands, [](const ImDrawCmd& left, const ImDrawCmd& right) {
          return same_state(left, right) && left.ElemCount == right.ElemCount;
        });
    if (known.owner == owner && same_commands && same_bytes(before.vertices, now.vertices) &&
        same_bytes(before.indices, now.indices))
      continue;
    if (known.owner == owner) {
      add_difference(before, now, boxes);
    } else { // another window lies here: all of both
      add_all(before, boxes);
      add_all(now, boxes);
    }
    known = {std::string(owner),
             {now.commands.begin(), now.commands.end()},
             {now.vertices.begin(), now.vertices.end()},
             {now.indices.begin(), now.indices.end()}};
  }
  if (everything_new) return {screen};
  return boxes.take(screen);
}

void draw_boxes(const ImDrawData& data, std::span<const Box> boxes, int height, const ImVec4& ground) {
  const ImVec2 scale = data.FramebufferScale;
  ImDrawData part = data;
  part.CmdLists.resize(0);
  if (boxes.empty()) ImGui_ImplOpenGL3_RenderDrawData(&part); // takes up what fonts have drawn anew
  for (const Box& box : boxes) {
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

} // namespace hydrascope::app
