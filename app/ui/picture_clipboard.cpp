#include "app/ui/picture_clipboard.h"

#include <cstdint>
#include <exception>
#include <span>
#include <utility>

#include "engine/base/error_message.h"
#include "engine/base/program.h"

namespace hydrascope::app {

std::string picture_clipboard_obstacle(WindowSystem system) {
  if (system == WindowSystem::none) return "there is no display, and so no clipboard";
  const auto missing = [](const char* program) { return find_program(program).empty(); };
  if (system == WindowSystem::wayland && (missing("wl-copy") || missing("wl-paste")))
    return "on Wayland pictures need the package wl-clipboard";
  return {};
}

std::unique_ptr<PictureClipboard> open_picture_clipboard(WindowSystem system, std::function<void()> wake) {
  switch (system) {
    case WindowSystem::none: break; // an obstacle
    case WindowSystem::x11: return open_x11_clipboard(std::move(wake));
    case WindowSystem::wayland: return open_wayland_clipboard(std::move(wake));
  }
  return nullptr;
}

Pasted pasted_picture(std::string_view bytes) {
  try {
    const std::span span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    return {
        .picture = std::make_shared<const Image>(decode_image(span, "clipboard")), .text = {}, .problem = {}};
  } catch (const std::exception& error) {
    return {.picture = nullptr, .text = {}, .problem = error_message(error)};
  }
}

} // namespace hydrascope::app
