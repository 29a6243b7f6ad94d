#include "engine/base/error_message.h"

#include <filesystem>
#include <new>

#include "engine/base/error.h"

namespace hydrascope {

std::string error_message(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    return Error("memory", "not enough for this request", "use a smaller input or close other programs")
        .what();
  if (const auto* const of_file = dynamic_cast<const std::filesystem::filesystem_error*>(&error))
    return Error(of_file->path1().empty() ? "a file" : of_file->path1().string(), of_file->code().message(),
                 "check the path and its permissions")
        .what();
  return error.what();
}

} // namespace hydrascope
