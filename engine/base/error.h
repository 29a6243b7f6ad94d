// The program's exceptions. A message names the file or option at fault, the reason and the remedy.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace hydrascope {

// An error that is reported to the user in one line: "subject: reason; remedy".
class Error : public std::runtime_error {
public:
  Error(std::string_view subject, std::string_view reason, std::string_view remedy = {})
      : std::runtime_error(message(subject, reason, remedy)) {}

private:
  static std::string message(std::string_view subject, std::string_view reason, std::string_view remedy) {
    std::string text(subject);
    text.append(": ").append(reason);
    if (!remedy.empty()) text.append("; ").append(remedy);
    return text;
  }
};

// The request is invalid (unknown kernel, bad flag): exit status 2 on the command line.
class UsageError : public Error {
  using Error::Error;
};

// The file has another format than the one that was tried.
class ForeignFile : public Error {
  using Error::Error;
};

// The file has the expected format, but is damaged or inconsistent.
class BrokenFile : public Error {
  using Error::Error;
};

// A stop was requested; never shown to the user.
class Cancelled : public std::runtime_error {
public:
  Cancelled() : std::runtime_error("cancelled") {}
};

} // namespace hydrascope
