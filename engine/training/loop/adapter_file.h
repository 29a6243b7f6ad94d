// Writes what a training changed as an adapter: safetensors in float16 with the metadata that
// read_adapter_info reads.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/models/model_info.h"
#include "engine/training/loop/optimizer.h"

namespace hydrascope::training {

struct AdapterRecord {
  std::string role; // "tail", "schedule", "maps"
  std::string base; // sha256 of the base model's weights or of the base adapter's file
  std::vector<AdapterInfo::Layer> layers;
  int image_size = 0;
  std::int64_t tokens = 0;
  std::vector<AdapterInfo::Class> classes;
  std::string data; // file names, no paths
  std::int64_t steps = 0;
  double loss = 0;
  std::string accuracy; // in words: "held-out top-1 0.771 of 2850"; or the held-out KL
  std::string command;
};

// Throws Error (disk full, no permission).
AdapterInfo write_adapter(const std::filesystem::path& file, const NamedTensors& parameters,
                          const AdapterRecord& record);

// The command line that makes the whole adapter anew: every path cut to its last part, so that no folder of
// the machine ends up in a shared file, and without --resume.
std::string shared_command(const std::string& whole);

} // namespace hydrascope::training
