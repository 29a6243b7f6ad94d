#include <glad/gl.h>

#include "app/ui/draw_data.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <unordered_map>

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

// What a box around both has besides them; negative where they overlap.
float waste(const ScreenBox& left, const ScreenBox& right) {
  return united(left, right).area() - left.area() - right.area();
}

// Collects the damage on a grid of tiles, since thousands of letters may change at once, and covers it by a few
// boxes.
class Damage {
public:
  explicit Damage(ImVec2 screen)
      : columns_(static_cast<int>(std::ceil(screen.x / tile))), rows_(static_cast<int>(std::ceil(screen.y / tile))),
        damaged_(static_cast<std::size_t>(columns_) * static_cast<std::size_t>(rows_)) {}

  void add(const ScreenBox& box) {
    if (box.empty()) return;
    // One more pixel on each side, because edges are antialiased.
    const int left = std::max(0, static_cast<int>((std::floor(box.from.x) - 1) / tile));
    const int top = std::max(0, static_cast<int>((std::floor(box.from.y) - 1) / tile));
    const int right = std::min(columns_, static_cast<int>(std::ceil((box.to.x + 1) / tile)));
    const int bottom = std::min(rows_, static_cast<int>(std::ceil((box.to.y + 1) / tile)));
    if (left >= right) return;
    for (int row = top; row < bottom; ++row) std::fill(at(left, row), at(right, row), true);
  }

  std::vector<ScreenBox> boxes(const ScreenBox& screen) {
    for (int row = 0; row < rows_; ++row) {
      for (int column = 0; column < columns_; ++column) {
        if (!*at(column, row)) continue;
        const int begin = column;
        while (column < columns_ && *at(column, row)) ++column;
        cover(intersected(screen, {{static_cast<float>(begin) * tile, static_cast<float>(row) * tile},
                                   {static_cast<float>(column) * tile, static_cast<float>(row + 1) * tile}}));
      }
    }
    merge();
    float area = 0;
    for (const ScreenBox& box : boxes_) area += box.area();
    if (area > 0.8f * screen.area()) return {screen};
    return std::move(boxes_);
  }

private:
  static constexpr float tile = 8; // points

  std::vector<char>::iterator at(int column, int row) {
    return damaged_.begin() + static_cast<std::ptrdiff_t>(row) * columns_ + column;
  }

  void cover(const ScreenBox& box) {
    constexpr float little = 32 * 32; // square points: the gaps of a line of text
    for (ScreenBox& existing : boxes_) {
      if (waste(existing, box) > little) continue;
      existing = united(existing, box);
      return;
    }
    boxes_.push_back(box);
  }

  // Repeatedly unites the two boxes whose union adds the least area; overlapping ones even below the limit.
  void merge() {
    while (boxes_.size() > 1) {
      std::size_t first = 0, second = 1;
      for (std::size_t i = 0; i < boxes_.size(); ++i)
        for (std::size_t j = i + 1; j < boxes_.size(); ++j)
          if (waste(boxes_[i], boxes_[j]) < waste(boxes_[first], boxes_[second])) first = i, second = j;
      if (boxes_.size() <= most_boxes && waste(boxes_[first], boxes_[second]) > 0) return;
      boxes_[first] = united(boxes_[first], boxes_[second]);
      boxes_.erase(boxes_.begin() + static_cast<std::ptrdiff_t>(second));
    }
  }

  int columns_, rows_;
  std::vector<char> damaged_; // by row and column: whether something changed in the tile
  std::vector<ScreenBox> boxes_;
};

// A triangle as it is drawn, state included.
struct Triangle {
  std::uint64_t hash = 0;
  ScreenBox box;
  bool operator==(const Triangle& other) const { return hash == other.hash; }
};

class Hash {
public:
  template <typename Value>
  void mix(const Value& value) {
    static_assert(sizeof(Value) <= sizeof(std::uint64_t));
    std::uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    value_ = (value_ ^ word) * 0x9e3779b97f4a7c15U;
    value_ ^= value_ >> 29U;
  }
  std::uint64_t value() const { return value_; }

private:
  std::uint64_t value_ = 0x2545f4914f6cdd1dU;
};

std::vector<Triangle> triangles_of(const Mesh& mesh) {
  std::vector<Triangle> triangles;
  triangles.reserve(mesh.indices.size() / 3);
  for (const ImDrawCmd& command : mesh.commands) {
    if (command.UserCallback != nullptr) continue;
    const ScreenBox clip = clip_of(command);
    Hash state;
    for (const float edge : {clip.from.x, clip.from.y, clip.to.x, clip.to.y}) state.mix(edge);
    state.mix(command.TexRef._TexData);
    state.mix(command.TexRef._TexID);
    for (unsigned int i = 0; i + 2 < command.ElemCount; i += 3) {
      Hash hash = state;
      ScreenBox box{{1e9f, 1e9f}, {-1e9f, -1e9f}};
      for (unsigned int corner = 0; corner < 3; ++corner) {
        const ImDrawVert& vertex =
            mesh.vertices[command.VtxOffset + mesh.indices[command.IdxOffset + i + corner]];
        hash.mix(vertex.pos);
        hash.mix(vertex.uv);
        hash.mix(vertex.col);
        box = united(box, {vertex.pos, vertex.pos});
      }
      triangles.push_back({hash.value(), intersected(clip, box)});
    }
  }
  return triangles;
}

void add_all(const Mesh& mesh, Damage& damage) {
  for (const Triangle& triangle : triangles_of(mesh)) damage.add(triangle.box);
}

// Adds the triangles that only one of two versions of a draw list has. What both have is the same picture as
// long as it is drawn in the same order; else everything is added.
void add_difference(const Mesh& before, const Mesh& now, Damage& damage) {
  const std::vector<Triangle> old_triangles = triangles_of(before), new_triangles = triangles_of(now);
  std::span<const Triangle> old_rest = old_triangles, new_rest = new_triangles;
  const auto head = std::ranges::mismatch(old_rest, new_rest);
  old_rest = {head.in1, old_rest.end()};
  new_rest = {head.in2, new_rest.end()};
  while (!old_rest.empty() && !new_rest.empty() && old_rest.back() == new_rest.back()) {
    old_rest = old_rest.first(old_rest.size() - 1);
    new_rest = new_rest.first(new_rest.size() - 1);
  }
  const auto counts_of = [](std::span<const Triangle> triangles) {
    std::unordered_map<std::uint64_t, int> counts;
    counts.reserve(triangles.size());
    for (const Triangle& triangle : triangles) ++counts[triangle.hash];
    return counts;
  };
  // Returns the hashes of what the other has, too, in the order of drawing.
  const auto add_others = [&](std::span<const Triangle> triangles, std::unordered_map<std::uint64_t, int> counts) {
    std::vector<std::uint64_t> common;
    for (const Triangle& triangle : triangles) {
      const auto found = counts.find(triangle.hash);
      if (found != counts.end() && found->second-- > 0)
        common.push_back(triangle.hash);
      else
        damage.add(triangle.box);
    }
    return common;
  };
  if (add_others(old_rest, counts_of(new_rest)) == add_others(new_rest, counts_of(old_rest))) return;
  for (const std::span<const Triangle> rest : {old_rest, new_rest})
    for (const Triangle& triangle : rest) damage.add(triangle.box);
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

  Damage damage(data.DisplaySize);
  const auto count = static_cast<std::size_t>(data.CmdLists.Size);
  const auto mesh_of = [](const List& list) { return Mesh{list.commands, list.vertices, list.indices}; };
  for (std::size_t i = count; i < lists_.size(); ++i) add_all(mesh_of(lists_[i]), damage);
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
      add_difference(before, now, damage);
    } else { // another window has this position in the list
      add_all(before, damage);
      add_all(now, damage);
    }
    existing = {std::string(owner),
                {now.commands.begin(), now.commands.end()},
                {now.vertices.begin(), now.vertices.end()},
                {now.indices.begin(), now.indices.end()}};
  }
  if (everything_new) return {screen};
  return damage.boxes(screen);
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
