// Functions of libraries that are loaded at run time.
#pragma once

#include <dlfcn.h>

namespace hydrascope {

// Sets `function` to the symbol of a library that dlopen() gave; null without the library or the symbol.
// Returns whether it was found. The type is the caller's promise.
template <typename Function>
bool find_function(void* const library, const char* const symbol, Function& function) {
  function = library == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library, symbol));
  return function != nullptr;
}

} // namespace hydrascope
