// Which syntax a map source may have: what the compiler must not see.
#pragma once

#include "engine/attention/own/map_source.h"

namespace hydrascope {

// Why a text is refused.
inline constexpr const char* texts_are_literals =
    "a text may only be written as an argument, as in torch.einsum(\"bhnd,hdf->bhnf\", x, W)";

// Throws SourceError, with the line, for texts anywhere but in arguments of a few functions, messages of
// errors and comments, for methods that are not allowed, for defaults of arguments, and for syntax that
// crashes the compiler or keeps it busy for ever. Call it before the compiler, which computes with the
// constants it sees. Throws LibTorch's ErrorReport for another syntax.
void check_syntax(const MapSource& source);

} // namespace hydrascope
