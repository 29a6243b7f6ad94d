// Help › About.
#include <fmt/format.h>
#include <imgui.h>

#include "app/shell/shell.h"
#include "app/shell/window.h"
#include "app/ui/widgets.h"
#include "app/views/timing_view.h"
#include "engine/base/version.h"
#include "engine/measure/machine.h"

namespace hydrascope::app {

namespace {

std::string program_and_processor() {
  return fmt::format("hydrascope {}\nLibTorch {}\n{}", version, torch_version(), processor_text());
}

std::string gpu_text(const DeviceList* devices) {
  if (devices == nullptr) return "being looked for";
  std::string text;
  for (const DeviceFacts& device : devices->accelerators)
    text += (text.empty() ? "" : "; ") + text_of(device) +
            (device.unusable.empty() ? "" : ", cannot be used: " + device.unusable);
  return text.empty() ? "none: " + devices->no_cuda : text;
}

} // namespace

std::string version_text() { return program_and_processor() + "\nGPU: " + cuda_state().text; }

void AboutWindow::draw(const RunResult* run, const DeviceList* devices, const Graphics& graphics,
                       bool& open) {
  if (!open) return facts_.clear();
  if (facts_.empty()) {
    facts_ = program_and_processor();
    ImGui::SetNextWindowFocus();
  }
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  ImGui::SetNextWindowPos(viewport->GetWorkCenter(), ImGuiCond_Always, {0.5f, 0.5f});
  constexpr float width = 460;
  ImGui::SetNextWindowSize({width, 0});
  const OverlayStyle style;
  if (ImGui::Begin("About Hydrascope###about", &open,
                   ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoSavedSettings |
                       ImGuiWindowFlags_NoCollapse | ImGuiWindowFlags_NoResize)) {
    if (ImGui::IsKeyPressed(ImGuiKey_Escape)) open = false;
    std::string text = facts_ + "\nGPU: " + gpu_text(devices);
    if (run != nullptr && !run->layers.empty())
      text += "\nthis run: " + execution_text(*run, path_text(run->layers.back().path));
    ImGui::PushTextWrapPos(0);
    ImGui::TextUnformatted(
        "Shows what a vision transformer, BERT or a decoder attends to, under softmax and the kernels that "
        "replace it.");
    ImGui::Dummy({0, 4});
    ImGui::TextUnformatted(text.c_str());
    ImGui::PopTextWrapPos();
    ImGui::Dummy({0, 4});
    wrapped_small_text(
        graphics,
        "Hydrascope is under the MIT licence. It holds or uses LibTorch (BSD-3-Clause), oneDNN (Apache-2.0), "
        "Intel MKL (Intel Simplified Software License), Dear ImGui (MIT), GLFW (zlib), cairo (LGPL-2.1 or "
        "MPL-1.1), Inter and JetBrains Mono (SIL Open Font License 1.1) and others. THIRD_PARTY.md lists all "
        "of "
        "them, the models and the pictures, with their licences.");
    ImGui::Dummy({0, 4});
    if (ImGui::Button("Copy")) ImGui::SetClipboardText(text.c_str());
    if (ImGui::IsItemHovered()) text_tooltip("Copy the versions, for a report; hydrascope doctor says more");
    ImGui::SameLine();
    if (ImGui::Button("Close")) open = false;
  }
  ImGui::End();
}

} // namespace hydrascope::app
