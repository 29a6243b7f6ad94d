// Text on whole pixel rows where a point is no whole number of pixels.
#pragma once

struct ImDrawData;

namespace hydrascope::app {

// Dear ImGui places text on whole points. At a UI scale of 1.25 most of those lie between two rows of pixels,
// and every letter would be smeared over both: moves upright letters to the nearest row. Does nothing at
// whole scales.
void snap_text_rows(ImDrawData& data);

} // namespace hydrascope::app
