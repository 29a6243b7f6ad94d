// What the window and the command line show of an exception.
#pragma once

#include <exception>
#include <string>

namespace hydrascope {

// The message of an Error as it is; that memory ran out or which file failed, with a remedy, of the standard
// library's exceptions, which do not say so; what() of any other.
std::string error_message(const std::exception& error);

} // namespace hydrascope
