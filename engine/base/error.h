// The program's typed exceptions. A message always names what was wrong (a file or an option), why, and what
// to do.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace hydrascope {

// Anything that went wrong and can be told to the user in one line: "subject: reason; remedy".
class Error : public std::runtime_error {
public:
  Error(std::string_view subject, std::string_view reason, std::string_view remedy = {});
};

// The request itself makes no sense (unknown kernel, bad flag): exit status 2 on the command line.
class UsageError : public Error {
  using Error::Error;
};

// The file is not of the format that was tried; another reader may know it.
class ForeignFile : public Error {
  using Error::Error;
};

// The file is of the format that was tried, but damaged or inconsistent.
class BrokenFile : public Error {
  using Error::Error;
};

// A run was stopped because a newer request made it pointless; never shown to the user.
class Cancelled : public std::runtime_error {
public:
  Cancelled() : std::runtime_error("cancelled") {}
};

} // namespace hydrascope
