// What the window and the command line show of an exception.
#pragma once

#include <exception>
#include <string>

namespace hydrascope {

// An Error's message as it is; of lack of memory and of errors of the file system one with a remedy; what()
// of any other.
std::string error_message(const std::exception& error);

} // namespace hydrascope
