// Schedules: a line with the kernel of all layers, lines STRATEGY:COUNT=KERNEL, and lines LAYERS=KERNEL;….
#include <utility>

#include "engine/attention/interface/schedule.h"
#include "engine/base/text.h"
#include "tests/fuzz/fuzz.h"

using namespace hydrascope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, const std::size_t size) {
  return fuzz::accepts_or_refuses([&] {
    ScheduleText text;
    for (bool first = true; const std::string_view line : split(fuzz::text_of(data, size), '\n')) {
      if (std::exchange(first, false))
        text.kernel = line;
      else
        (!line.empty() && line.front() >= 'a' ? text.replace : text.layers).emplace_back(line);
    }
    constexpr int layers = 12;
    const Schedule schedule = parse_schedule(text, layers);
    static_cast<void>(schedule.summary());
    fuzz::must_accept([&] {
      if (resolved(written_text(schedule), layers) != schedule) std::abort();
    });
  });
}
