// What a run needs beside its model, from shapes alone. Plain header.
#pragma once

#include <cstdint>
#include <string>

#include "engine/run/run.h"

namespace hydrascope {

// Bytes, from above: the explicit scores of one layer and the large results asked for, at this many tokens.
double estimated_bytes(const QuantityKeys& quantities, const ModelInfo& model, std::int64_t tokens);

// "640 MB", "1.3 GB": powers of 1000.
std::string bytes_text(double bytes);

} // namespace hydrascope
