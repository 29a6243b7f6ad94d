#include "engine/base/error.h"

namespace hydrascope {
namespace {

std::string one_line(std::string_view subject, std::string_view reason, std::string_view remedy) {
  std::string text(subject);
  text.append(": ").append(reason);
  if (!remedy.empty()) text.append("; ").append(remedy);
  return text;
}

} // namespace

Error::Error(std::string_view subject, std::string_view reason, std::string_view remedy)
    : std::runtime_error(one_line(subject, reason, remedy)) {}

} // namespace hydrascope
