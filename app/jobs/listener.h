// Captures from other programs, such as a notebook (tools/capture.py, hydrascope_show), over a Unix socket.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace hydrascope::app {

// $XDG_RUNTIME_DIR/hydrascope.sock or, without that variable, /tmp/hydrascope-UID/hydrascope.sock.
std::filesystem::path usual_socket();

// A message is "HYDRASCOPE" and a line feed, the number of bytes that follow as a little-endian 64-bit
// number, and a capture as tools/capture.py writes it. The answer is a line, "ok" or "error: REASON". One
// message a connection.
class Listener {
public:
  struct Settings {
    std::filesystem::path socket; // made with access for the user alone
    std::filesystem::path folder; // what has come lies here, until something newer has
    std::int64_t most_bytes = std::int64_t{4} << 30;
    double patience = 10; // seconds that a silent sender is waited for
  };

  // Listens on a thread of its own and calls `wake` on it when a capture has come. Throws Error if the socket
  // cannot be made, or if another program listens there.
  Listener(Settings settings, std::function<void()> wake);
  ~Listener(); // removes the socket and what has come
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // The newest capture since the last call, a file that has been read as a capture without an error. The file
  // before it is removed; what has mapped it keeps it.
  std::optional<std::filesystem::path> take();

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace hydrascope::app
