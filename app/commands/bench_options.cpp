#include "app/commands/bench_options.h"

namespace hydrascope::app {

void add_head_options(CLI::App& command, ScalingSetting& setting) {
  command.add_option("--heads", setting.heads, "heads H")->check(CLI::PositiveNumber)->capture_default_str();
  command.add_option("--head-width", setting.head_width, "features d of a head")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

void add_run_options(CLI::App& command, ScalingSetting& setting, double& seconds, bool& json) {
  command.add_option("--threads", setting.threads, "threads (default: all)")->check(CLI::PositiveNumber);
  command.add_option("--seconds", seconds, "how long each case is repeated")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_flag("--json", json, "one JSON document on standard output");
}

} // namespace hydrascope::app
