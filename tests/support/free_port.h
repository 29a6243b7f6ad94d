// A port for processes on this machine to meet at.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hydrascope::test {

// One that was free a moment ago; 0 if there is none.
inline int free_port() {
  const int handle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  const bool found = bind(handle, generic, length) == 0 && getsockname(handle, generic, &length) == 0;
  close(handle);
  return found ? ntohs(address.sin_port) : 0;
}

} // namespace hydrascope::test
