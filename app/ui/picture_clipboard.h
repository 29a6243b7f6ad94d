// Pictures on the desktop's clipboard, which GLFW does not support: its clipboard holds text only.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "app/ui/display.h"
#include "engine/base/image.h"

namespace hydrascope::app {

// The result of a paste.
struct Pasted {
  std::shared_ptr<const Image> picture;
  std::optional<std::string> text; // if the clipboard has text and no picture
  std::string problem;             // why there is neither; empty otherwise
};

// For the window's thread.
class PictureClipboard {
public:
  PictureClipboard() = default;
  virtual ~PictureClipboard() = default;
  PictureClipboard(const PictureClipboard&) = delete;
  PictureClipboard& operator=(const PictureClipboard&) = delete;

  // Copy: offers a PNG to other programs until something else is copied.
  virtual void offer(std::string png) = 0;
  // Why an offer failed, once; empty if none did.
  virtual std::string take_failure() { return {}; }
  // Paste: requests the clipboard's content, which take() returns once it has arrived.
  virtual void request() = 0;
  virtual std::optional<Pasted> take() = 0;
};

// Why pictures cannot be copied or pasted; empty if they can.
std::string picture_clipboard_obstacle(WindowSystem system);

// Where there is no obstacle. Calls `wake`, from a thread, when take() or take_failure() has a result. Throws
// Error if the X server cannot be reached.
std::unique_ptr<PictureClipboard> open_picture_clipboard(WindowSystem system, std::function<void()> wake);

// The implementations that open_picture_clipboard chooses between.
std::unique_ptr<PictureClipboard> open_x11_clipboard(std::function<void()> wake);
std::unique_ptr<PictureClipboard> open_wayland_clipboard(std::function<void()> wake);

// The pictures that can be pasted, in order of preference.
inline constexpr std::array<std::string_view, 4> picture_types = {"image/png", "image/jpeg", "image/bmp",
                                                                  "image/gif"};
// Decodes a picture of one of these types.
Pasted pasted_picture(std::string_view bytes);

} // namespace hydrascope::app
