// Pictures on the desktop's clipboard. GLFW's clipboard holds text alone, so this one is a client of the X
// server of its own: a second connection with a thread that serves other programs while frames are drawn, or
// are not. The protocol is the Inter-Client Communication Conventions Manual's, section 2 (large
// pictures: 2.7.2, INCR).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/image.h"

namespace hydrascope::app {

// What a paste found.
struct Pasted {
  std::shared_ptr<const Image> picture;
  bool text = false;   // there is no picture, but text, for Dear ImGui's clipboard to deliver
  std::string problem; // why there is neither
};

class PictureClipboard {
public:
  // `obstacle`: why this display cannot have one; empty = it is an X display, named by DISPLAY. `wake` is
  // called from the thread when there is something to take.
  PictureClipboard(std::string obstacle, std::function<void()> wake);
  ~PictureClipboard();
  PictureClipboard(const PictureClipboard&) = delete;
  PictureClipboard& operator=(const PictureClipboard&) = delete;

  // Why pictures can be neither copied nor pasted here; empty if they can.
  const std::string& obstacle() const { return obstacle_; }

  // Copies: the picture is there for other programs, as PNG, until something else is copied or this object is
  // gone.
  void offer(std::string png);
  // Pastes: what the clipboard holds is fetched, and comes by take().
  void ask();
  std::optional<Pasted> take();

private:
  class Client;
  std::string obstacle_;
  std::unique_ptr<Client> client_; // null where there is an obstacle
};

} // namespace hydrascope::app
