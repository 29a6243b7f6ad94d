// Linked into the program with the fake device: when it ends, it writes how many operators have run on the
// device to the file that the environment variable FAKE_DEVICE_REPORT names.
#include <cstdlib>
#include <fstream>

#include "tests/support/fake_device.h"

namespace hydrascope::test {
namespace {

class Report {
public:
  Report() = default;
  ~Report() {
    if (const char* const file = std::getenv("FAKE_DEVICE_REPORT"))
      std::ofstream(file) << counter_.counts().operators << '\n';
  }
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

private:
  DeviceCounter counter_;
};

const Report report;

} // namespace
} // namespace hydrascope::test
