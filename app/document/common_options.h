// What the window and every command that runs a model are told of model, kernels and machine. Plain header.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/models/model_info.h"
#include "engine/run/run.h"

namespace hydrascope::app {

// The options every command that runs a model shares (commands.md's "Common options").
struct CommonOptions {
  std::string model; // catalogue name, folder or repository; empty: the default for the input
  std::vector<std::string> adapters;
  bool no_adapter = false;
  ScheduleText schedule;
  ExecutionOptions execution;
  int image_size = 0;
  bool json = false;
};

// The model folder for an input of this kind: --model, else the catalogue's default. Throws Error.
std::filesystem::path model_folder(const CommonOptions& options, InputKind input);

// A request with everything the common options say; input, quantities and target are the command's own.
RunRequest make_request(const CommonOptions& options, InputKind input);

} // namespace hydrascope::app
