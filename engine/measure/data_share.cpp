#include "engine/measure/data_share.h"

#include <algorithm>

namespace hydrascope {

ItemRange share_of(std::int64_t count, int rank, int size) {
  const std::int64_t least = count / size, more = count % size;
  return {rank * least + std::min<std::int64_t>(rank, more), least + (rank < more ? 1 : 0)};
}

} // namespace hydrascope
