// The options of the window and of every command that runs a model.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/base/capture.h"
#include "engine/base/error.h"
#include "engine/models/model_info.h"
#include "engine/run/run.h"

namespace hydrascope::app {

struct CommonOptions {
  std::string model;   // catalogue name, folder or repository; empty: the default for the input
  std::string capture; // in place of a model and its input; may be empty
  std::vector<std::string> adapters;
  bool no_adapter = false;
  ScheduleText schedule;
  ExecutionOptions execution;
  int image_size = 0;
  bool json = false;
};

// The model's folder for inputs of this kind: --capture, --model, else the catalogue's default. Throws Error.
inline std::filesystem::path model_folder(const CommonOptions& options, InputKind input) {
  if (!options.capture.empty()) {
    if (!options.model.empty())
      throw UsageError("--capture", "takes the place of --model", "leave one of them out");
    if (!capture_address(options.capture))
      throw Error(options.capture,
                  std::filesystem::exists(options.capture.substr(0, options.capture.find(':')))
                      ? "is no capture"
                      : "does not exist",
                  "name a file that tools/capture.py has written");
    return options.capture;
  }
  if (!options.model.empty()) return resolve_model(options.model);
  return resolve_model(bundled_model(input));
}

// The options with --capture where the data are captures: files, or a folder of them.
inline CommonOptions with_capture_of(CommonOptions options, const std::vector<std::string>& data) {
  if (data.empty() || !options.capture.empty() || !options.model.empty()) return options;
  const std::filesystem::path first = data.front();
  if (capture_address(first))
    options.capture = data.front();
  else if (std::filesystem::is_directory(first))
    for (const std::filesystem::path& capture : captures_in(first)) {
      options.capture = capture.string();
      break;
    }
  return options;
}

// A request with these options; the command adds input, quantities and target. Throws UsageError.
inline RunRequest make_request(const CommonOptions& options, InputKind input) {
  if (options.no_adapter && !options.adapters.empty())
    throw UsageError("--no-adapter", "cannot be combined with --adapter", "leave one of them out");
  RunRequest request;
  request.model_folder = model_folder(options, input);
  request.adapters.automatic = !options.no_adapter && options.adapters.empty();
  request.adapters.files.assign(options.adapters.begin(), options.adapters.end());
  request.schedule = options.schedule;
  request.execution = options.execution;
  if (options.image_size > 0) request.execution.image_size = options.image_size;
  return request;
}

} // namespace hydrascope::app
