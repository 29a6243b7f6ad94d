#include "engine/attention/interface/device.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "engine/attention/interface/cuda_plugin.h"
#include "engine/base/error.h"

namespace hydrascope {

namespace {

UsageError unknown(const std::string& text) {
  return {"--device", fmt::format("there is no device \"{}\"", text), "write auto, cpu, cuda or cuda:i"};
}

} // namespace

c10::Device device_of(const std::string& text) {
  if (text == "auto" || text == "cpu") return c10::kCPU;
  if (text != "cuda" && !text.starts_with("cuda:")) throw unknown(text);
  const CudaStatus& cuda = cuda_status();
  if (!cuda.available)
    throw Error("--device " + text, "there is no CUDA here: " + cuda.reason, "use --device cpu");
  try {
    return c10::Device(text);
  } catch (const c10::Error&) {
    throw unknown(text);
  }
}

} // namespace hydrascope
