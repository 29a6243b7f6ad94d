// Compiles the sources of maps in the background, as they are typed.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "app/document/editor.h"
#include "app/jobs/background_job.h"
#include "engine/attention/own/map_check.h"

namespace hydrascope::app {

class MapChecks {
public:
  explicit MapChecks(std::function<void()> wake) : wake_(std::move(wake)) {}

  // Replaces the check under way.
  void start(const Editor& editor, const CheckMap& command);
  // Once per frame: writes what was found into the editor and, where it was asked for, sets the kernel.
  // Returns whether a check has ended.
  bool update(Editor& editor);
  bool running() const { return jobs_.job() != nullptr; }

private:
  std::function<void()> wake_;
  JobSlot<CheckedMap> jobs_;
  CheckMap command_; // of the job
  std::string place_;
  KernelSpec before_; // the layer's kernel at the start
};

} // namespace hydrascope::app
