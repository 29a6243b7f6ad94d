// How the heads of a layer become one map. Plain type.
#pragma once

namespace hydrascope {

enum class HeadFusion { mean, min, max };

} // namespace hydrascope
