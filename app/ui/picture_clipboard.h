// Pictures on the desktop's clipboard. GLFW's clipboard supports text only, so this is a separate client of
// the X server: a second connection, with a thread that serves other programs independently of the frame
// loop. Implements the Inter-Client Communication Conventions Manual, section 2 (large pictures: 2.7.2,
// INCR).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/image.h"

namespace hydrascope::app {

// The result of a paste.
struct Pasted {
  std::shared_ptr<const Image> picture;
  bool text = false;   // the clipboard has text and no picture; read it through Dear ImGui
  std::string problem; // why there is neither; empty otherwise
};

class PictureClipboard {
public:
  // `obstacle`: why this display does not support it; empty for an X display, named by DISPLAY. `wake` is
  // called from the thread when take() has a result.
  PictureClipboard(std::string obstacle, std::function<void()> wake);
  ~PictureClipboard();
  PictureClipboard(const PictureClipboard&) = delete;
  PictureClipboard& operator=(const PictureClipboard&) = delete;

  // Why pictures cannot be copied or pasted; empty if they can.
  const std::string& obstacle() const { return obstacle_; }

  // Copy: offers a PNG to other programs until something else is copied or this object is destroyed.
  void offer(std::string png);
  // Paste: requests the clipboard's content, which take() returns once it has arrived.
  void request();
  std::optional<Pasted> take();

private:
  class Client;
  std::string obstacle_;
  std::unique_ptr<Client> client_; // null where there is an obstacle
};

} // namespace hydrascope::app
