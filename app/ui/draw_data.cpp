#include <glad/gl.h>

#include "app/ui/draw_data.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

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

// Collects the damage on a grid of tiles, since thousands of letters may change at once, and covers it by a
// few boxes.
class Damage {
public:
  explicit Damage(ImVec2 screen)
      : columns_(static_cast<int>(std::ceil(screen.x / tile))),
        rows_(static_cast<int>(std::ceil(screen.y / tile))),
        damaged_(static_cast<std::size_t>(columns_) * static_cast<std::size_t>(rows_)) {}

  void add(const ScreenBox& box) {
    if (box.empty()) return;
    // One more pixel on each side, because edges are antialiased.
    const int left = std::max(0, static_cast<int>((std::floor(box.from.x) - 1) / tile));
    const int top = std::max(0, static_cast<int>((std::floor(box.from.y) - 1) / tile));
    const int right = std::min(columns_, static_cast<int>(std::ceil((box.to.x + 1) / tile)));
    const int bottom = std::min(rows_, static_cast<int>(std::ceil((box.to.y + 1) / tile)));
    if (left >= right) return;
    for (int row = top; row < bottom; ++row) std::fill(at(left, row), at(right, row), char{1});
    top_ = std::min(top_, top);
    bottom_ = std::max(bottom_, bottom);
  }

  std::vector<ScreenBox> boxes(const ScreenBox& screen) {
    for (int row = top_; row < bottom_; ++row) {
      for (int column = 0; column < columns_; ++column) {
        if (*at(column, row) == 0) continue;
        const int begin = column;
        while (column < columns_ && *at(column, row) != 0) ++column;
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
    constexpr float little = 96 * 96; // square points: the gaps of a line of text
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
  std::vector<char> damaged_; // by row and column: 1 where something changed in the tile
  int top_ = std::numeric_limits<int>::max(), bottom_ = 0; // the rows outside of which nothing did
  std::vector<ScreenBox> boxes_;
};

// Mixes a word into a hash.
std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15U;
  return hash ^ (hash >> 29U);
}

// The bytes of a value as a word.
template <typename Value>
std::uint64_t word_of(const Value& value) {
  static_assert(sizeof(Value) <= sizeof(std::uint64_t));
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  return word;
}

std::uint64_t word_of(const ImDrawVert& vertex) {
  return word_of(vertex.pos) * 0xd6e8feb86659fd93U ^ std::rotl(word_of(vertex.uv) * 0xa0761d6478bd642fU, 21) ^
         vertex.col * 0xe7037ed1a0b428dbU;
}

// Whether six indices draw four consecutive vertices, as for letters and rectangles.
bool is_quad(const ImDrawIdx* index) {
  return index[1] == index[0] + 1 && index[2] == index[0] + 2 && index[3] == index[0] &&
         index[4] == index[2] && index[5] == index[0] + 3;
}

// Sets `pieces` to those of the mesh in the order of drawing.
void set_pieces(std::vector<DrawnPiece>& pieces, const Mesh& mesh) {
  pieces.clear();
  pieces.reserve(mesh.indices.size() / 3);
  for (const ImDrawCmd& command : mesh.commands) {
    if (command.UserCallback != nullptr) continue;
    const ScreenBox clip = clip_of(command);
    std::uint64_t state = mixed(word_of(clip.from), word_of(clip.to));
    state =
        mixed(mixed(state, reinterpret_cast<std::uintptr_t>(command.TexRef._TexData)), command.TexRef._TexID);
    const ImDrawIdx* const indices = mesh.indices.data() + command.IdxOffset;
    for (unsigned int i = 0; i + 2 < command.ElemCount;) {
      const bool quad = i + 5 < command.ElemCount && is_quad(indices + i);
      std::uint64_t hash = state;
      ScreenBox box{{1e9f, 1e9f}, {-1e9f, -1e9f}};
      const auto take = [&](ImDrawIdx index) {
        const ImDrawVert& vertex = mesh.vertices[command.VtxOffset + index];
        hash = mixed(hash, word_of(vertex));
        box = united(box, {vertex.pos, vertex.pos});
      };
      for (unsigned int corner = 0; corner < 3; ++corner) take(indices[i + corner]);
      if (quad) take(indices[i + 5]);
      i += quad ? 6 : 3;
      pieces.push_back({hash, intersected(clip, box)});
    }
  }
}

// How often each hash occurs. A flat table with linear probing: thousands of pieces are compared in a frame.
class HashCounts {
public:
  explicit HashCounts(std::span<const DrawnPiece> pieces) : entries_(std::bit_ceil(2 * pieces.size() + 1)) {
    for (const DrawnPiece& piece : pieces) {
      Entry& entry = entry_of(piece.hash);
      entry.hash = piece.hash;
      ++entry.count;
      entry.used = true;
    }
  }
  // Counts one off. Returns whether there was one left.
  bool take(std::uint64_t hash) {
    Entry& entry = entry_of(hash);
    if (entry.count == 0) return false;
    --entry.count;
    return true;
  }

private:
  struct Entry {
    std::uint64_t hash = 0;
    std::uint32_t count = 0;
    bool used = false;
  };
  // The hash's entry, or the free one where it belongs.
  Entry& entry_of(std::uint64_t hash) {
    std::size_t at = hash & (entries_.size() - 1);
    while (entries_[at].used && entries_[at].hash != hash) at = (at + 1) & (entries_.size() - 1);
    return entries_[at];
  }

  std::vector<Entry> entries_; // a power of two, at most half in use
};

void add_all(std::span<const DrawnPiece> pieces, Damage& damage) {
  for (const DrawnPiece& piece : pieces) damage.add(piece.box);
}

// Adds the pieces that only one of two versions of a draw list has. What both have is the same picture as
// long as it is drawn in the same order; else everything is added.
void add_difference(std::span<const DrawnPiece> old_rest, std::span<const DrawnPiece> new_rest,
                    Damage& damage) {
  const auto head = std::ranges::mismatch(old_rest, new_rest);
  old_rest = {head.in1, old_rest.end()};
  new_rest = {head.in2, new_rest.end()};
  while (!old_rest.empty() && !new_rest.empty() && old_rest.back() == new_rest.back()) {
    old_rest = old_rest.first(old_rest.size() - 1);
    new_rest = new_rest.first(new_rest.size() - 1);
  }
  // Adds the pieces that are not among the others. Returns the hashes of the rest in the order of drawing.
  const auto add_own = [&](std::span<const DrawnPiece> pieces, std::span<const DrawnPiece> others) {
    HashCounts left(others);
    std::vector<std::uint64_t> order;
    order.reserve(pieces.size());
    for (const DrawnPiece& piece : pieces) {
      if (left.take(piece.hash))
        order.push_back(piece.hash);
      else
        damage.add(piece.box);
    }
    return order;
  };
  if (add_own(old_rest, new_rest) == add_own(new_rest, old_rest)) return;
  add_all(old_rest, damage);
  add_all(new_rest, damage);
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
  for (std::size_t i = count; i < lists_.size(); ++i) add_all(lists_[i].pieces, damage);
  lists_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const ImDrawList& list = *data.CmdLists[static_cast<int>(i)];
    const Mesh now{view(list.CmdBuffer), view(list.VtxBuffer), view(list.IdxBuffer)};
    List& existing = lists_[i];
    const Mesh before{existing.commands, existing.vertices, existing.indices};
    const std::string_view owner = list._OwnerName == nullptr ? "" : list._OwnerName;
    const bool same_commands =
        before.commands.size() == now.commands.size() &&
        std::ranges::equal(before.commands, now.commands, [](const ImDrawCmd& left, const ImDrawCmd& right) {
          return same_state(left, right) && left.ElemCount == right.ElemCount;
        });
    if (existing.owner == owner && same_commands && same_bytes(before.vertices, now.vertices) &&
        same_bytes(before.indices, now.indices))
      continue;
    set_pieces(pieces_, now);
    if (existing.owner == owner) {
      add_difference(existing.pieces, pieces_, damage);
    } else { // another window has this position in the list
      add_all(existing.pieces, damage);
      add_all(pieces_, damage);
    }
    existing.owner = owner; // the vectors keep their memory
    existing.commands.assign(now.commands.begin(), now.commands.end());
    existing.vertices.assign(now.vertices.begin(), now.vertices.end());
    existing.indices.assign(now.indices.begin(), now.indices.end());
    existing.pieces.swap(pieces_);
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
