// What a session lacks, and where it has gone.
#include <algorithm>

#include <fmt/format.h>
#include <imgui.h>

#include "app/document/session_edits.h"
#include "app/shell/shell.h"
#include "app/ui/widgets.h"

namespace hydrascope::app {

namespace {

void draw_missing(Editor& editor, WaitingSession& waiting, const Graphics& graphics) {
  if (!ImGui::BeginTable("missing", 3, ImGuiTableFlags_SizingFixedFit)) return;
  ImGui::TableSetupColumn("Kind", ImGuiTableColumnFlags_WidthFixed, 130);
  ImGui::TableSetupColumn("Was at", ImGuiTableColumnFlags_WidthStretch);
  ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthFixed, 80);
  for (std::size_t i = 0; i < waiting.read.missing.size(); ++i) {
    const MissingFile& file = waiting.read.missing[i];
    ImGui::PushID(static_cast<int>(i));
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    ImGui::AlignTextToFramePadding();
    ImGui::TextColored(theme::quiet, "%s", kind_name(file.kind));
    ImGui::TableNextColumn();
    ImGui::AlignTextToFramePadding();
    ellipsis_text(file.path.filename().string(), ImGui::GetContentRegionAvail().x);
    small_text(graphics, fitted(fmt::format("{} – {}", file.path.parent_path().string(), file.reason),
                                ImGui::GetContentRegionAvail().x));
    if (ImGui::IsItemHovered()) text_tooltip(file.path.string() + "\n" + file.reason);
    ImGui::TableNextColumn();
    if (ImGui::Button("Locate…")) {
      waiting.to_locate = i;
      editor.emit(ShowDialog{Dialog::locate});
    }
    ImGui::PopID();
  }
  ImGui::EndTable();
}

} // namespace

void draw_session_dialog(Editor& editor, const Graphics& graphics) {
  if (!editor.waiting_session) return;
  WaitingSession& waiting = *editor.waiting_session;
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  ImGui::SetNextWindowPos({viewport->WorkPos.x + viewport->WorkSize.x / 2, viewport->WorkPos.y + 96},
                          ImGuiCond_Appearing, {0.5f, 0});
  ImGui::SetNextWindowSize({620, 0});
  const OverlayStyle style;
  bool stays = true;
  if (ImGui::Begin("Open session###missing_files", &stays,
                   ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoSavedSettings |
                       ImGuiWindowFlags_NoCollapse | ImGuiWindowFlags_NoResize)) {
    ImGui::PushTextWrapPos(0);
    const std::size_t count = waiting.read.missing.size();
    ImGui::TextUnformatted(fmt::format("{} lacks {}:", waiting.file.filename().string(),
                                       count == 1 ? "a file" : fmt::format("{} files", count))
                               .c_str());
    ImGui::PopTextWrapPos();
    draw_missing(editor, waiting, graphics);
    wrapped_small_text(graphics,
                       "Once one of them is located, the others are looked for beside it. Without them a "
                       "picture stays empty, and a bundled model or adapter stands in.");
    for (const std::string& note : waiting.read.notes) wrapped_small_text(graphics, note, theme::amber);
    if (ImGui::Button("Open without them")) open_without_missing(editor);
    ImGui::SameLine();
    stays &= !ImGui::Button("Cancel") && !ImGui::IsKeyPressed(ImGuiKey_Escape);
  }
  ImGui::End();
  if (!stays) editor.waiting_session.reset();
}

} // namespace hydrascope::app
