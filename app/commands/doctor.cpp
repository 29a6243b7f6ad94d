// hydrascope doctor: what this machine can do, and what is missing, to be pasted into a report.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <imgui.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/commands.h"
#include "app/commands/output.h"
#include "app/ui/display.h"
#include "app/ui/picture_clipboard.h"
#include "app/ui/theme.h"
#include "engine/base/error.h"
#include "engine/base/json_text.h"
#include "engine/base/paths.h"
#include "engine/base/process.h"
#include "engine/base/program.h"
#include "engine/base/version.h"
#include "engine/measure/machine.h"
#include "engine/models/hub/hub_cache.h"
#include "engine/models/model_info.h"
#include "engine/run/devices.h"

namespace hydrascope::app {
namespace {

namespace fs = std::filesystem;

// `remedy` is empty where nothing is missing. Without something required the program does not do its work;
// other things are only absent.
struct Check {
  std::string name, found = {}, remedy = {};
  bool required = false;
};

Check check_assets() {
  try {
    return {.name = "program's files", .found = resource_root().string(), .required = true};
  } catch (const Error& error) {
    return {.name = "program's files",
            .found = "missing",
            .remedy = "set HYDRASCOPE_HOME to the folder that holds assets/",
            .required = true};
  }
}

Check check_models() {
  std::string found;
  for (const CatalogueEntry& entry : model_catalogue()) found += (found.empty() ? "" : ", ") + entry.name;
  Check check{.name = "bundled models", .found = found, .required = true};
  if (model_catalogue().size() < 2) {
    check.found = found.empty() ? "none" : found + " only";
    check.remedy = "run tools/setup, which fetches vit-small and minilm";
  }
  return check;
}

Check check_hub_cache() {
  std::error_code failure;
  const fs::path folder = hub_cache_folder();
  int repositories = 0;
  for (fs::directory_iterator each(folder, failure), end; !failure && each != end; each.increment(failure))
    if (each->path().filename().string().starts_with("models--")) ++repositories;
  return {.name = "Hugging Face cache", .found = fmt::format("{}: {} models", folder.string(), repositories)};
}

Check check_display(WindowSystem system) {
  std::string x11 = environment("DISPLAY"), wayland = environment("WAYLAND_DISPLAY");
  if (!x11.empty()) x11 = "X11 " + x11;
  if (!wayland.empty()) wayland = "Wayland " + wayland;
  if (system == WindowSystem::none) {
    const std::string both = x11 + (x11.empty() || wayland.empty() ? "" : ", ") + wayland;
    return {.name = "display",
            .found = both.empty() ? "none" : "no window opens on " + both,
            .remedy = "the window needs one; commands and --screenshot work without"};
  }
  const std::string& used = system == WindowSystem::x11 ? x11 : wayland;
  const std::string& other = system == WindowSystem::x11 ? wayland : x11;
  return {.name = "display", .found = used + (other.empty() ? "" : ", rather than " + other)};
}

Check check_clipboard(WindowSystem system) {
  Check check{.name = "clipboard", .found = "text and pictures"};
  const std::string obstacle = picture_clipboard_obstacle(system);
  if (obstacle.empty()) return check;
  check.found = system == WindowSystem::none ? "none" : "text";
  check.remedy = obstacle;
  return check;
}

// `note`: of theme::Fonts.
Check check_fonts(const std::string& note) {
  if (note.empty()) return {.name = "fonts", .found = "Inter, JetBrains Mono"};
  return {.name = "fonts",
          .found = note,
          .remedy = "install fonts-inter and fonts-jetbrains-mono; figures look otherwise without"};
}

// What a window would use: the window system, and with it the clipboard and OpenGL; without a display, the
// OpenGL off screen; fonts.
std::vector<Check> check_window() {
  Check drawing{.name = "OpenGL"};
  WindowSystem system = WindowSystem::none;
  ImGui::CreateContext();
  try {
    std::unique_ptr<Display> display;
    try {
      display = open_window_display(64, 64, false);
    } catch (const Error&) {
      display = open_offscreen_display(64, 64);
    }
    drawing.found = display->description();
    system = display->window_system();
  } catch (const Error& error) {
    drawing.found = std::string("missing: ") + error.what();
    drawing.remedy = "install an OpenGL 3.3 driver (Debian: libgl1-mesa-dri, libegl1); commands work without";
  }
  const theme::Fonts fonts = theme::load_fonts();
  ImGui::DestroyContext();
  return {check_display(system), check_clipboard(system), drawing, check_fonts(fonts.note)};
}

Check check_dialogs() {
  for (const char* const program : {"zenity", "kdialog"})
    if (!find_program(program).empty()) return {.name = "file dialogs", .found = program};
  return {.name = "file dialogs",
          .found = "none",
          .remedy = "the window shows its own; zenity or kdialog bring the desktop's"};
}

Check check_folder(const char* name, fs::path folder) {
  Check check{.name = name, .found = folder.string()};
  std::error_code failure;
  while (!fs::exists(folder, failure) && folder.has_relative_path()) folder = folder.parent_path();
  if (access(folder.c_str(), W_OK) == 0) return check;
  check.found += " (not writable)";
  check.remedy = "make it writable, or set XDG_CONFIG_HOME, XDG_DATA_HOME and XDG_CACHE_HOME";
  return check;
}

Check check_cuda() {
  const CudaState cuda = cuda_state();
  return {
      .name = "GPU", .found = cuda.text, .remedy = cuda.available ? "" : "not needed: models run on the CPU"};
}

Check check_automatic_device() {
  const DeviceList devices = list_devices();
  const std::string why = devices.why_cpu.empty() ? "" : ": " + devices.why_cpu;
  return {.name = "--device auto", .found = devices.automatic + why};
}

std::string memory_text() {
  const auto pages = static_cast<double>(sysconf(_SC_PHYS_PAGES)),
             size = static_cast<double>(sysconf(_SC_PAGESIZE));
  return fmt::format("{:.1f} GiB", pages * size / (1 << 30));
}

std::vector<Check> all_checks() {
  std::vector<Check> checks = {{.name = "version", .found = version},
                               {.name = "LibTorch", .found = torch_version()},
                               {.name = "processor", .found = processor_text()},
                               {.name = "threads", .found = threads_text()},
                               {.name = "memory", .found = memory_text()},
                               check_cuda(),
                               check_automatic_device()};
  std::ranges::move(check_window(), std::back_inserter(checks));
  checks.push_back(check_dialogs());
  checks.push_back(check_assets());
  checks.push_back(check_models());
  checks.push_back(check_hub_cache());
  checks.push_back(check_folder("settings", config_folder()));
  checks.push_back(check_folder("trained adapters", data_folder() / "adapters"));
  checks.push_back(check_folder("cache", cache_folder()));
  return checks;
}

const char* state_of(const Check& check) {
  if (check.remedy.empty()) return "ok";
  return check.required ? "missing" : "absent";
}

void run_doctor(bool json) {
  const std::vector<Check> checks = all_checks();
  if (json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Check& check : checks) {
      list.push_back({{"name", check.name}, {"found", check.found}, {"state", state_of(check)}});
      if (!check.remedy.empty()) list.back()["remedy"] = check.remedy;
    }
    fmt::print("{}\n", text_of_json(list, 1));
  } else {
    std::vector<std::vector<std::string>> rows;
    for (const Check& check : checks) {
      rows.push_back({state_of(check), check.name, check.found});
      if (!check.remedy.empty()) rows.push_back({"", "", "→ " + check.remedy});
    }
    print_table(rows);
  }
  for (const Check& check : checks)
    if (check.required && !check.remedy.empty()) throw Error(check.name, check.found, check.remedy);
}

} // namespace

void add_doctor_command(CLI::App& program) {
  CLI::App* const command =
      program.add_subcommand("doctor", "say what this machine can do and what is missing");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "one JSON document on standard output");
  command->callback([json] { run_doctor(*json); });
}

} // namespace hydrascope::app
