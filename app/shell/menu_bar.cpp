#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <imgui_internal.h>

#include "app/panels/choices.h"
#include "app/shell/shell.h"
#include "app/ui/widgets.h"
#include "app/views/timing_view.h"
#include "engine/base/text.h"
#include "engine/run/devices.h"

namespace hydrascope::app {

namespace {

std::string shown_label(const Action& action, const Editor& editor) {
  if (action.id == "edit.undo" && editor.history().can_undo())
    return "Undo: " + editor.history().undo_label();
  if (action.id == "edit.redo" && editor.history().can_redo())
    return "Redo: " + editor.history().redo_label();
  return action.label;
}

void menu_item(const Action& action, Editor& editor) {
  const Availability availability = action.enabled(editor);
  const std::string whole = shown_label(action, editor);
  // A submenu that fits beside its menu on neither side would open under the pointer.
  const std::string shown = fitted(whole, ImGui::GetMainViewport()->Size.x * 0.45f);
  const std::string label = shown + "###" + action.id;
  const bool checked = action.checked && action.checked(editor);
  if (ImGui::MenuItem(label.c_str(), action.shortcut.c_str(), checked, availability.ok)) action.run(editor);
  std::string about = availability.ok ? action.tip : availability.reason;
  if (shown != whole) about = whole + (about.empty() ? "" : "\n") + about;
  if (!about.empty() && ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled)) text_tooltip(about);
}

// The items of a menu. A submenu has the place of its first action.
void menu_items(const std::vector<Action>& actions, const std::string& menu, Editor& editor) {
  std::vector<std::string> seen;
  bool first = true;
  const auto begin_group = [&](const Action& action) {
    if (!std::exchange(first, false) && action.begins_group) ImGui::Separator();
  };
  for (const Action& action : actions) {
    if (action.menu == menu) {
      begin_group(action);
      menu_item(action, editor);
    } else if (action.menu.starts_with(menu + "/")) {
      const std::string sub = action.menu.substr(menu.size() + 1);
      if (std::ranges::find(seen, sub) != seen.end()) continue;
      seen.push_back(sub);
      begin_group(action);
      if (ImGui::BeginMenu(sub.c_str())) {
        menu_items(actions, action.menu, editor);
        ImGui::EndMenu();
      }
    }
  }
}

} // namespace

void draw_menu_bar(const std::vector<Action>& actions, Editor& editor, const Graphics& graphics) {
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(8, 6));
  if (ImGui::BeginMainMenuBar()) {
    for (const char* menu : {"File", "Edit", "View", "Model", "Help"}) {
      if (!ImGui::BeginMenu(menu)) continue;
      menu_items(actions, menu, editor);
      ImGui::EndMenu();
    }
    const float width = 236;
    ImGui::SameLine(ImGui::GetWindowWidth() - width - 8);
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(8, 3));
    ImGui::SetCursorPosY(3);
    ImGui::PushStyleColor(ImGuiCol_Text, theme::quiet);
    ImGui::PushStyleColor(ImGuiCol_Button, theme::surface);
    ImGui::PushStyleVar(ImGuiStyleVar_ButtonTextAlign, ImVec2(0, 0.5f));
    ImGui::PushFont(graphics.fonts().regular, theme::size_small);
    const Action* search = find_action(actions, "view.palette");
    const ImVec2 at = ImGui::GetCursorScreenPos();
    if (ImGui::Button("Search actions…", {width, 22})) editor.emit(ShowOverlay{Overlay::palette});
    if (search != nullptr) {
      const float key_width = ImGui::CalcTextSize(search->shortcut.c_str()).x;
      ImGui::GetWindowDrawList()->AddText({at.x + width - key_width - 8, at.y + 4},
                                          theme::packed(theme::quiet), search->shortcut.c_str());
    }
    ImGui::PopFont();
    ImGui::PopStyleVar(2);
    ImGui::PopStyleColor(2);
    ImGui::EndMainMenuBar();
  }
  ImGui::PopStyleVar();
}

namespace {

// The estimate for runs that need much memory.
void draw_memory(const Snapshot& snapshot, const DeviceList* devices) {
  constexpr double much = 512e6;
  if (snapshot.expected_bytes < much) return;
  ImGui::SameLine(0, 18);
  ImGui::TextColored(theme::amber, "up to %s", bytes_text(snapshot.expected_bytes).c_str());
  if (ImGui::IsItemHovered())
    text_tooltip(fmt::format(
        "of {} for what the open panels ask of this input, worked out from its size;\n"
        "a smaller picture or fewer panels take less",
        listed_name(devices, snapshot.document->execution.device) == "cpu" ? "memory" : "the GPU's memory"));
}

std::string about_numbers(const RunResult& run) {
  return fmt::format(
      "Shows the device, the number type and the path of the selected layer; the time of the last run;\n"
      "the most memory that {}; the number of tokens",
      run.device_total_bytes > 0 ? "its tensors took on the device, with the model's"
                                 : "the program held during it, with what it keeps of freed memory");
}

// Running jobs, whether or not their panels are open.
void draw_jobs(const std::vector<JobState>& jobs) {
  for (const JobState& job : jobs) {
    ImGui::SameLine(0, 18);
    ImGui::TextColored(job.paused ? theme::amber : theme::text, "%s", job.text.c_str());
    if (ImGui::IsItemHovered()) text_tooltip(job.details);
  }
}

// The run or export that the user waits for, its progress, and a button that cancels it.
void draw_run(const Snapshot& snapshot, const std::vector<Action>& actions, Editor& editor) {
  const auto shortcut = [&](const char* id) {
    const Action* action = find_action(actions, id);
    return action == nullptr ? std::string() : action->shortcut;
  };
  const auto button = [&](const char* label, const char* id) {
    ImGui::SameLine(0, 10);
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(6, 0));
    const bool pressed = ImGui::Button(label);
    ImGui::PopStyleVar();
    if (ImGui::IsItemHovered()) text_tooltip(shortcut(id));
    return pressed;
  };
  constexpr double patience = 0.3;
  std::string busy;
  if (snapshot.computing && snapshot.computing_seconds >= patience)
    busy = fmt::format("running {:.0f} %", 100 * static_cast<double>(snapshot.progress));
  if (!snapshot.writing.empty() && snapshot.writing_seconds >= patience)
    busy += (busy.empty() ? "writing " : ", writing ") + snapshot.writing;
  if (!busy.empty()) {
    ImGui::SameLine(0, 18);
    ImGui::TextColored(theme::text, "%s", busy.c_str());
    if (button("Cancel", "model.cancel")) editor.emit(CancelRuns{});
  } else if (editor.status().stopped && snapshot.shown().cancelled) {
    ImGui::SameLine(0, 18);
    ImGui::TextColored(theme::amber, "cancelled");
    if (button("Run again", "model.run_again")) editor.emit(RunAgain{});
  }
}

// At the right, as many of the last of them as there is room for; all of them in the tooltip.
void draw_numbers(std::vector<std::string> parts, const std::string& about) {
  constexpr float gap = 18;
  const auto text = [&] { return fmt::format("{}", fmt::join(parts, "    ")); };
  const std::string whole = text();
  const float right = ImGui::GetContentRegionMax().x,
              taken = ImGui::GetItemRectMax().x - ImGui::GetWindowPos().x + gap;
  while (!parts.empty() && right - ImGui::CalcTextSize(text().c_str()).x < taken) parts.erase(parts.begin());
  if (parts.empty()) return;
  ImGui::SameLine(right - ImGui::CalcTextSize(text().c_str()).x);
  ImGui::TextColored(theme::quiet, "%s", text().c_str());
  if (ImGui::IsItemHovered()) text_tooltip(whole + "\n" + about);
}

} // namespace

std::string cut_note(const RunResult& run) {
  const auto found = std::ranges::find_if(
      run.notes, [](const std::string& note) { return note.starts_with("text cut at"); });
  return found == run.notes.end() ? std::string() : *found;
}

void draw_status_bar(const Snapshot& snapshot, const std::vector<Action>& actions, Editor& editor,
                     const Graphics& graphics) {
  const float height = 26;
  ImGui::PushStyleColor(ImGuiCol_WindowBg, theme::ground);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(10, 4));
  const ImGuiWindowFlags flags = ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoSavedSettings |
                                 ImGuiWindowFlags_NoNav | ImGuiWindowFlags_NoTitleBar |
                                 ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoResize |
                                 ImGuiWindowFlags_NoDocking;
  if (ImGui::BeginViewportSideBar("##status", ImGui::GetMainViewport(), ImGuiDir_Down, height, flags)) {
    const Document& document = editor.document();
    const Scene& scene = document.scene();
    const SideResults& results = snapshot.shown();
    const RunResult* run = results.any();
    ImGui::PushFont(graphics.fonts().regular, theme::size_small);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float middle = at.y + ImGui::GetTextLineHeight() / 2;
    const ImVec4 lamp =
        snapshot.computing ? theme::accent : (results.error.empty() ? theme::quiet : theme::red);
    ImGui::GetWindowDrawList()->AddCircleFilled({at.x + 4, middle}, 3.5f, theme::packed(lamp));
    ImGui::SetCursorScreenPos({at.x + 14, at.y});
    ImGui::TextColored(theme::text, "%s", scene.model ? scene.model->name.c_str() : "no model");
    ImGui::SameLine(0, 18);
    ellipsis_text(kernels_text(document), ImGui::GetWindowWidth() * 0.4f, theme::quiet);
    const bool untrained =
        run != nullptr && !results.stale &&
        std::ranges::any_of(run->layers, [](const LayerRun& layer) { return layer.untrained; });
    if (untrained) {
      ImGui::SameLine(0, 18);
      ImGui::TextColored(theme::amber, "untrained");
    }
    if (run != nullptr && !results.stale && !cut_note(*run).empty()) {
      ImGui::SameLine(0, 18);
      ImGui::TextColored(theme::amber, "%s", cut_note(*run).c_str());
    }
    draw_memory(snapshot, editor.status().devices.get());
    draw_jobs(running_jobs(editor));
    draw_run(snapshot, actions, editor);
    if (!results.error.empty()) {
      ImGui::SameLine(0, 18);
      const float room = ImGui::GetContentRegionAvail().x;
      ellipsis_text(results.error, std::max(room - 480, room * 0.7f), theme::red);
    }
    if (run != nullptr) {
      const double seconds =
          results.parts.front()->seconds; // of the first pass, without those of the overview panels
      const auto layer = static_cast<std::size_t>(
          std::clamp(scene.layer, 0, std::max(0, static_cast<int>(run->layers.size()) - 1)));
      const std::string path = layer < run->layers.size() ? run->layers[layer].path : "";
      ImGui::PushFont(graphics.fonts().mono, theme::size_small);
      draw_numbers({execution_text(*run, path_text(path)), fmt::format("last run {:.0f} ms", seconds * 1e3),
                    memory_text(*run), fmt::format("N = {}", run->tokens.size())},
                   about_numbers(*run));
      ImGui::PopFont();
    }
    ImGui::PopFont();
  }
  ImGui::End();
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
}

} // namespace hydrascope::app
