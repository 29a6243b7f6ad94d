// The program's version, for --version and the metadata of figures and adapters. CMakeLists.txt reads it.
#pragma once

namespace hydrascope {

inline constexpr const char* version = "0.1.0";

} // namespace hydrascope
