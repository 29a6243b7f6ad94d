// A port for processes on this machine to meet at.
#pragma once

#include <random>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hydrascope::test {

// One that was free a moment ago; 0 if there is none. It lies below those that the system hands out by
// itself, of which another test's connection could take it before its listener does.
inline int free_port() {
  constexpr int first = 10000, last = 32000, attempts = 100;
  std::random_device random; // not seeded: tests in other processes must not draw the same
  std::uniform_int_distribution<int> ports(first, last);
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const int port = ports(random);
    const int handle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    const bool free = bind(handle, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    close(handle);
    if (free) return port;
  }
  return 0;
}

} // namespace hydrascope::test
