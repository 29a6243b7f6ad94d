// The program's version, as --version prints it and every figure's metadata states it.
#pragma once

namespace hydrascope {

inline constexpr const char* version = "0.1.0";

} // namespace hydrascope
