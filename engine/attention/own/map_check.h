// Tries a map source as a kernel of a model's layers, for the window's editor. Plain header.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/attention/own/map_source.h"

namespace hydrascope {

struct MapProblem {
  int line = 0; // from 1; 0: no single line
  std::string reason;
};

// What is known of a map in one layer.
struct MapFacts {
  MapSource::Form form = MapSource::Form::normalised;
  std::int64_t features = 0; // d′; D with `hydra`; 0 for a score
  std::int64_t parameters = 0,
               trained = 0; // numbers in the layer's parameters, and those that training changes
};

struct CheckedMap {
  std::optional<MapProblem> problem; // nullopt: the source runs
  KernelSpec kernel;                 // of a source that runs, as from kernel_of_source()
  MapFacts facts;                    // of a source that runs
};

// Compiles the source and tries it on a few tokens of the shape's heads, on the CPU: some 40 ms. For any
// thread.
CheckedMap check_map(const std::string& name, const std::string& text, const LayerShape& shape);

// Whether it is known if the kernel's source runs with the shape's heads: a kernel without a source of its
// own is. Returns at once; what asks the kernel itself tries a source that is not known, and a stranger's may
// take seconds.
bool is_tried(const KernelSpec& kernel, const LayerShape& shape);

} // namespace hydrascope
