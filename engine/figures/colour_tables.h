// The raw colour tables, 0xrrggbb; colour_map.h is their interface.
#pragma once

#include <array>
#include <cstdint>

namespace hydrascope {

extern const std::array<std::uint32_t, 256> viridis_table;
extern const std::array<std::uint32_t, 256> magma_table;
extern const std::array<std::uint32_t, 256> cividis_table;
extern const std::array<std::uint32_t, 256> blue_white_red_table;

} // namespace hydrascope
