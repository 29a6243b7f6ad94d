#include "app/window/window.h"

#include <chrono>

#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb_image_write.h>

#include "app/window/application.h"
#include "engine/plain/error.h"
#include "engine/plain/paths.h"

namespace hydrascope::app {

namespace {

void write_png(const std::filesystem::path& file, const Image& image) {
  std::string bytes;
  stbi_write_png_to_func(
      [](void* context, void* data, int size) {
        static_cast<std::string*>(context)->append(static_cast<const char*>(data),
                                                   static_cast<std::size_t>(size));
      },
      &bytes, image.width, image.height, 3, image.rgb.data(), image.width * 3);
  write_file_atomically(file, bytes);
}

// Draws until every panel has what it asked for, then writes what is seen.
int write_screenshot(const WindowOptions& options) {
  WindowOptions hidden = options;
  hidden.hidden = true;
  Application application(hidden);
  const auto start = std::chrono::steady_clock::now();
  constexpr std::chrono::minutes patience{5};
  while (!application.settled()) {
    if (std::chrono::steady_clock::now() - start > patience) {
      throw Error("--screenshot", "the model did not finish within five minutes",
                  "choose a smaller model or input");
    }
    application.frame();
    application.wait(0.02);
  }
  for (int i = 0; i < 3; ++i) application.frame();
  const SideResults& results = application.coordinator().results(Side::a);
  if (!results.error.empty()) throw Error("--screenshot", results.error);
  if (results.any() == nullptr) {
    const auto& messages = application.editor().messages();
    throw Error("--screenshot", messages.empty() ? "there is nothing to show" : messages.back().text);
  }
  write_png(options.screenshot, application.read_frame());
  return 0;
}

} // namespace

void add_window_options(CLI::App& program, WindowOptions& options) {
  program.add_option("FILE", options.files, "pictures, text files or model folders to open");
  program.add_option("--text", options.text, "a sentence to start with");
  program.add_option("--screenshot", options.screenshot,
                     "write the window as it looks when the model has run to this PNG, and leave");
  add_common_options(program, options.common);
}

int run_window(const WindowOptions& options) {
  if (!options.screenshot.empty()) return write_screenshot(options);
  Application application(options);
  while (application.running()) {
    application.frame();
    // No frame is drawn while nothing changes: input and the worker end the wait.
    application.wait(60.0);
  }
  return 0;
}

} // namespace hydrascope::app
