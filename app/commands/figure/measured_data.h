// Files of numbers that other commands wrote, for figures of measurements. Plain header.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/figures/figure.h"

namespace hydrascope::app {

// A loss curve as --curve writes it: "step,loss", then a line for each step. Throws Error, ForeignFile,
// BrokenFile.
LinesPanel::Line read_curve(const std::filesystem::path& file);

// An entry of `bench kernels --json`.
struct RooflineRecord {
  std::string kernel, device, dtype; // device and dtype are empty where the entry has none
  double flops_per_second = 0, bytes_per_second = 0;
  double share_of_bandwidth = 0, share_of_flops = 0; // of the machine's limits, 1 = all
  double size = 0;                                   // H·N·d
  std::optional<std::int64_t> tokens;                // N
};

// The entries in order, without those marked "skipped". Throws Error, ForeignFile,
// BrokenFile.
std::vector<RooflineRecord> read_roofline_records(const std::filesystem::path& file);

// An entry of `recall --json`.
struct RecallRecord {
  std::string kernel;
  double accuracy = 0;           // 0…1
  std::optional<double> entropy; // in nats; none for signed weights
};

// The entries in order, without those marked "skipped". Throws Error, ForeignFile, BrokenFile.
std::vector<RecallRecord> read_recall_records(const std::filesystem::path& file);

} // namespace hydrascope::app
