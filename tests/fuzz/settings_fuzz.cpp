// The window's settings, which are written as they were read.
#include "app/document/settings.h"
#include "tests/fuzz/fuzz.h"

using namespace hydrascope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, const std::size_t size) {
  return fuzz::accepts_or_refuses([&] {
    const std::string written = app::settings_text(app::parse_settings(fuzz::text_of(data, size), "x"));
    fuzz::must_accept([&] {
      if (app::settings_text(app::parse_settings(written, "x")) != written) std::abort();
    });
  });
}
