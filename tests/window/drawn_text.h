// Text as it was drawn, read back from Dear ImGui's draw data: the letters are the quads whose texels are a
// glyph's.
#pragma once

#include <string>
#include <vector>

#include <imgui.h>

namespace hydrascope::app::window_tests {

// What is wrong with the text of the last frame, one line each: letters cut at an edge that cannot be
// scrolled, texts drawn over each other, tabs too narrow for their names. Texts that a later opaque rectangle
// covers do not count. Empty if all can be read.
std::vector<std::string> illegible_text(const ImDrawData& data);

} // namespace hydrascope::app::window_tests
