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
    // What has come lies here, in a folder for each window, until the window closes: undo names it.
    std::filesystem::path folder;
    std::int64_t most_bytes = std::int64_t{4} << 30;
    std::int64_t kept_bytes = std::int64_t{8} << 30; // of all that was taken; the newest two stay in any case
    double patience = 10;                            // seconds that a silent sender is waited for
  };

  // Listens on a thread of its own and calls `wake` on it when a capture has come. Removes what windows that
  // have crashed left in the folder. Throws Error if the socket cannot be made, or if another program listens
  // there.
  Listener(Settings settings, std::function<void()> wake);
  ~Listener(); // removes the socket and what has come
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // The newest capture since the last call, a file that has been read as a capture without an error. The
  // oldest files beyond `kept_bytes` are removed; what has mapped them keeps them.
  std::optional<std::filesystem::path> take();

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace hydrascope::app
