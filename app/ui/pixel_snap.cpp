#include "app/ui/pixel_snap.h"

#include <cmath>

#include <imgui.h>

namespace hydrascope::app {

namespace {

bool is_letter(const ImDrawVert* corner) {
  const bool upright = corner[0].pos.y == corner[1].pos.y && corner[2].pos.y == corner[3].pos.y &&
                       corner[0].pos.x == corner[3].pos.x && corner[1].pos.x == corner[2].pos.x;
  // Filled rectangles have one white texel at all their corners.
  return upright && corner[0].uv.x != corner[1].uv.x && corner[0].uv.y != corner[3].uv.y;
}

// Six indices that draw four vertices in a row, as text and rectangles do.
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
