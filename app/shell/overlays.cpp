// Windows over the panels: the palette, the help sheet, small dialogs, messages.
#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <imgui_internal.h>
#include <imgui_stdlib.h>

#include "app/document/session_edits.h"
#include "app/shell/layout.h"
#include "app/shell/shell.h"
#include "app/ui/widgets.h"

namespace hydrascope::app {

bool WindowSizes::changed() {
  std::size_t hash = 0;
  const auto mix = [&](auto value) {
    hash ^= std::hash<decltype(value)>()(value) + 0x9e3779b97f4a7c15U + (hash << 6U) + (hash >> 2U);
  };
  for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) {
    if (!window->Active) continue;
    mix(window->ID);
    mix(window->Hidden);
    // What the next frame computes the window's size from.
    const ImVec2 &from = window->DC.CursorStartPos, &to = window->DC.CursorMaxPos;
    const ImVec2 contents{to.x - from.x, to.y - from.y};
    for (const ImVec2 size : {window->Size, contents}) {
      mix(size.x);
      mix(size.y);
    }
  }
  return std::exchange(last_, hash) != hash;
}

OverlayStyle::OverlayStyle(const ImVec4& border) {
  ImGui::PushStyleColor(ImGuiCol_WindowBg, ImGui::GetStyleColorVec4(ImGuiCol_PopupBg));
  ImGui::PushStyleColor(ImGuiCol_Border, border);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1.0f);
}

OverlayStyle::~OverlayStyle() {
  ImGui::PopStyleVar();
  ImGui::PopStyleColor(2);
}

void Palette::draw(const std::vector<Action>& actions, Editor& editor, const Graphics& graphics, bool& open) {
  if (!open) {
    was_open_ = false;
    return;
  }
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  ImGui::SetNextWindowPos({viewport->WorkPos.x + viewport->WorkSize.x / 2, viewport->WorkPos.y + 48},
                          ImGuiCond_Always, {0.5f, 0});
  ImGui::SetNextWindowSize(
      {std::min(640.0f, viewport->WorkSize.x - 16), std::min(420.0f, viewport->WorkSize.y - 56)});
  const OverlayStyle style;
  const bool appearing = !was_open_;
  if (appearing) {
    query_.clear();
    chosen_ = 0;
    ImGui::SetNextWindowFocus();
  }
  was_open_ = true;
  const ImGuiWindowFlags flags = ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize |
                                 ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoDocking |
                                 ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoScrollbar;
  if (ImGui::Begin("Search actions###palette", nullptr, flags)) {
    if (appearing) ImGui::SetKeyboardFocusHere();
    ImGui::SetNextItemWidth(-1);
    if (ImGui::InputTextWithHint("##query", "What do you want to do?", &query_)) chosen_ = 0;
    std::vector<const Action*> found;
    for (const Action& action : actions) {
      if (matches(action, query_)) found.push_back(&action);
    }
    const int count = static_cast<int>(found.size());
    if (ImGui::IsKeyPressed(ImGuiKey_DownArrow)) ++chosen_;
    if (ImGui::IsKeyPressed(ImGuiKey_UpArrow)) --chosen_;
    chosen_ = std::clamp(chosen_, 0, std::max(0, count - 1));
    const bool enter = ImGui::IsKeyPressed(ImGuiKey_Enter) || ImGui::IsKeyPressed(ImGuiKey_KeypadEnter);
    const Action* run = nullptr;
    if (ImGui::BeginChild("list")) {
      for (int i = 0; i < count; ++i) {
        const Action& action = *found[static_cast<std::size_t>(i)];
        const Availability availability = action.enabled(editor);
        ImGui::PushID(action.id.c_str());
        ImGui::PushStyleColor(ImGuiCol_Text, availability.ok ? theme::text : theme::faint);
        if (ImGui::Selectable(action.label.c_str(), i == chosen_)) run = &action;
        ImGui::PopStyleColor();
        if (i == chosen_ && !ImGui::IsItemVisible()) ImGui::SetScrollHereY(0.5f);
        const std::string right =
            availability.ok ? (action.shortcut.empty() ? action.menu : action.menu + "   " + action.shortcut)
                            : availability.reason;
        ImGui::PushFont(graphics.fonts().regular, theme::size_small);
        ImGui::SameLine(
            std::max(240.0f, ImGui::GetContentRegionMax().x - ImGui::CalcTextSize(right.c_str()).x - 4));
        ImGui::TextColored(theme::quiet, "%s", right.c_str());
        ImGui::PopFont();
        ImGui::PopID();
        if (i == chosen_ && enter) run = &action;
      }
    }
    ImGui::EndChild();
    const bool left = !appearing && !ImGui::IsWindowFocused(ImGuiFocusedFlags_RootAndChildWindows);
    if (run != nullptr || ImGui::IsKeyPressed(ImGuiKey_Escape) || left) open = false;
    if (run != nullptr) run_action(actions, run->id, editor);
  }
  ImGui::End();
}

namespace {

// A line of the help sheet; without keys it is a heading.
struct HelpLine {
  std::string keys, text;
};

std::vector<HelpLine> shortcut_lines(const std::vector<Action>& actions) {
  std::vector<HelpLine> lines;
  std::string last;
  for (const Action& action : actions) {
    if (action.shortcut.empty()) continue;
    const std::string menu = action.menu.substr(0, action.menu.find('/'));
    if (menu != std::exchange(last, menu)) lines.push_back({"", menu});
    lines.push_back({action.shortcut, action.label});
  }
  return lines;
}

// The heading of the section that this line belongs to.
const std::string& section_of(std::span<const HelpLine> lines, std::size_t line) {
  while (line > 0 && !lines[line].keys.empty()) --line;
  return lines[line].text;
}

void draw_help_lines(std::span<const HelpLine> lines, float keys_width, const theme::Fonts& fonts,
                     const ImVec4& colour) {
  for (const HelpLine& line : lines) {
    const float left = ImGui::GetCursorPosX();
    ImGui::PushFont(line.keys.empty() ? fonts.strong : fonts.mono, theme::size_small);
    ImGui::TextColored(line.keys.empty() ? ImVec4(theme::text) : colour, "%s",
                       line.keys.empty() ? line.text.c_str() : line.keys.c_str());
    ImGui::PopFont();
    if (line.keys.empty()) continue;
    ImGui::SameLine();
    ImGui::SetCursorPosX(left + keys_width); // SameLine(x) counts from the table's column
    ImGui::PushFont(fonts.regular, theme::size_small);
    ellipsis_text(line.text, ImGui::GetContentRegionAvail().x);
    ImGui::PopFont();
  }
}

} // namespace

void draw_help_sheet(const std::vector<Action>& actions, const Graphics& graphics, bool& open) {
  if (!open) return;
  constexpr float widest = 1120, keys_width = 104;
  constexpr float narrow = 900;
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const int columns = viewport->WorkSize.x < narrow ? 2 : 3;
  ImGui::SetNextWindowPos(viewport->GetWorkCenter(), ImGuiCond_Always, {0.5f, 0.5f});
  const float width = std::min(widest, viewport->WorkSize.x - 32);
  ImGui::SetNextWindowSizeConstraints({width, 0}, {width, viewport->WorkSize.y - 16});
  const OverlayStyle style;
  if (ImGui::Begin("Shortcuts and gestures###help", &open,
                   ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoSavedSettings |
                       ImGuiWindowFlags_NoCollapse | ImGuiWindowFlags_AlwaysAutoResize)) {
    if (ImGui::IsKeyPressed(ImGuiKey_Escape)) open = false;
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(ImGui::GetStyle().ItemSpacing.x, 3));
    const std::vector<HelpLine> lines = shortcut_lines(actions);
    const std::size_t each =
        (lines.size() + static_cast<std::size_t>(columns) - 1) / static_cast<std::size_t>(columns);
    if (ImGui::BeginTable("shortcuts", columns, ImGuiTableFlags_SizingStretchSame)) {
      for (std::size_t first = 0; first < lines.size(); first += each) {
        ImGui::TableNextColumn();
        if (!lines[first].keys.empty()) { // the section goes on from the column before
          const HelpLine heading{"", section_of(lines, first) + ", continued"};
          draw_help_lines({&heading, 1}, keys_width, graphics.fonts(), theme::accent);
        }
        draw_help_lines(std::span(lines).subspan(first, std::min(each, lines.size() - first)), keys_width,
                        graphics.fonts(), theme::accent);
      }
      ImGui::EndTable();
    }
    ImGui::Separator();
    static const std::array<HelpLine, 7> gestures = {{
        {"", "Gestures"},
        {"hover", "the numbers under the pointer; the same token lights up everywhere"},
        {"click",
         "a patch or word: make it the query, again: reset the query; a layer, a head's cell, a class: "
         "select it everywhere"},
        {"Alt+click", "a patch: hide it; a word: mask it; again: show it"},
        {"wheel, drag", "zoom at the pointer, pan with the middle button or Space; double click: all again"},
        {"right-click", "a panel: export or copy its figure"},
        {"drop", "a picture, a text file, a folder of pictures or a model's folder: open it"},
    }};
    draw_help_lines(gestures, keys_width, graphics.fonts(), theme::quiet);
    ImGui::PopStyleVar();
  }
  ImGui::End();
}

void draw_dim() {
  constexpr std::array dialogs = {"###help",        "###shortcuts", "###save_layout", "###missing_files",
                                  "###file_dialog", "###get_model", "###gallery",     "###about"};
  ImGuiWindow* lowest = nullptr;
  for (ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) { // from the back to the front
    const bool is_dialog = std::ranges::any_of(
        dialogs, [&](const char* name) { return window == ImGui::FindWindowByName(name); });
    if (!is_dialog || !window->Active) continue;
    lowest = window;
    break;
  }
  if (lowest == nullptr) return;
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  ImGui::SetNextWindowPos(viewport->Pos);
  ImGui::SetNextWindowSize(viewport->Size);
  ImGui::PushStyleColor(ImGuiCol_WindowBg, ImGui::GetStyleColorVec4(ImGuiCol_ModalWindowDimBg));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, 0);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 0);
  ImGui::Begin("###dim", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoDocking |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoFocusOnAppearing |
                   ImGuiWindowFlags_NoBringToFrontOnFocus | ImGuiWindowFlags_NoNav);
  ImGui::BringWindowToDisplayBehind(ImGui::GetCurrentWindow(), lowest);
  ImGui::End();
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor();
}

void LayoutDialog::draw(Editor& editor, const Graphics& graphics, bool& open) {
  if (!open) {
    was_open_ = false;
    return;
  }
  const bool appearing = !was_open_;
  was_open_ = true;
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  ImGui::SetNextWindowPos(viewport->GetWorkCenter(), ImGuiCond_Appearing, {0.5f, 0.5f});
  ImGui::SetNextWindowSize({360, 0});
  if (appearing) ImGui::SetNextWindowFocus();
  const OverlayStyle style;
  if (ImGui::Begin("Save layout###save_layout", &open,
                   ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoSavedSettings |
                       ImGuiWindowFlags_NoCollapse | ImGuiWindowFlags_NoResize)) {
    if (appearing) ImGui::SetKeyboardFocusHere();
    ImGui::SetNextItemWidth(-1);
    const bool entered = ImGui::InputTextWithHint("##name", "Name of the layout", &name_,
                                                  ImGuiInputTextFlags_EnterReturnsTrue);
    const bool known = find_layout(editor.settings(), name_) != nullptr;
    small_text(graphics, known ? "Replaces the layout of this name." : "Will be listed under View › Layout.");
    ImGui::BeginDisabled(name_.empty());
    if ((ImGui::Button("Save") || entered) && !name_.empty()) {
      save_layout(editor, name_);
      open = false;
      name_.clear();
    }
    ImGui::EndDisabled();
    ImGui::SameLine();
    if (ImGui::Button("Cancel") || ImGui::IsKeyPressed(ImGuiKey_Escape)) open = false;
  }
  ImGui::End();
}

namespace {

void draw_missing(Editor& editor, const IncompleteSession& incomplete, const Graphics& graphics) {
  if (!ImGui::BeginTable("missing", 3, ImGuiTableFlags_SizingFixedFit)) return;
  ImGui::TableSetupColumn("Kind", ImGuiTableColumnFlags_WidthFixed, 130);
  ImGui::TableSetupColumn("Was at", ImGuiTableColumnFlags_WidthStretch);
  ImGui::TableSetupColumn("", ImGuiTableColumnFlags_WidthFixed, 80);
  for (std::size_t i = 0; i < incomplete.read.missing.size(); ++i) {
    const MissingFile& file = incomplete.read.missing[i];
    ImGui::PushID(static_cast<int>(i));
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    ImGui::AlignTextToFramePadding();
    ImGui::TextColored(theme::quiet, "%s", kind_name(file.kind));
    ImGui::TableNextColumn();
    ImGui::AlignTextToFramePadding();
    ellipsis_text(file.path.filename().string(), ImGui::GetContentRegionAvail().x);
    small_text(graphics, fitted(fmt::format("{} – {}", file.path.parent_path().string(), file.reason),
                                ImGui::GetContentRegionAvail().x, Cut::middle));
    if (ImGui::IsItemHovered()) text_tooltip(file.path.string() + "\n" + file.reason);
    ImGui::TableNextColumn();
    if (ImGui::Button("Locate…")) editor.emit(ShowDialog{Dialog::locate, file.path});
    ImGui::PopID();
  }
  ImGui::EndTable();
}

} // namespace

void draw_session_dialog(Editor& editor, const Graphics& graphics) {
  if (!editor.incomplete_session) return;
  IncompleteSession& incomplete = *editor.incomplete_session;
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  ImGui::SetNextWindowPos(viewport->GetWorkCenter(), ImGuiCond_Always, {0.5f, 0.5f});
  ImGui::SetNextWindowSize({std::min(620.0f, viewport->WorkSize.x - 16), 0});
  const OverlayStyle style;
  bool stays = true;
  if (ImGui::Begin("Open session###missing_files", &stays,
                   ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoSavedSettings |
                       ImGuiWindowFlags_NoCollapse | ImGuiWindowFlags_NoResize | ImGuiWindowFlags_NoMove)) {
    ImGui::PushTextWrapPos(0);
    const std::size_t count = incomplete.read.missing.size();
    ImGui::TextUnformatted(fmt::format("{} lacks {}:", incomplete.file.filename().string(),
                                       count == 1 ? "a file" : fmt::format("{} files", count))
                               .c_str());
    ImGui::PopTextWrapPos();
    draw_missing(editor, incomplete, graphics);
    wrapped_small_text(graphics,
                       "Once one of them is located, the others are searched beside it. Without them a "
                       "picture stays empty, and a bundled model or adapter stands in.");
    for (const std::string& note : incomplete.read.notes) wrapped_small_text(graphics, note, theme::amber);
    if (ImGui::Button("Open without them")) open_without_missing(editor);
    ImGui::SameLine();
    stays &= !ImGui::Button("Cancel") && !ImGui::IsKeyPressed(ImGuiKey_Escape);
  }
  ImGui::End();
  if (!stays) editor.incomplete_session.reset();
}

void draw_caption(const std::string& caption, const Graphics& graphics) {
  if (caption.empty()) return;
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  ImGui::SetNextWindowPos(
      {viewport->WorkPos.x + viewport->WorkSize.x / 2, viewport->WorkPos.y + viewport->WorkSize.y - 24},
      ImGuiCond_Always, {0.5f, 1});
  const OverlayStyle style(theme::accent);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {20, 12});
  if (ImGui::Begin("###caption", nullptr,
                   ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_AlwaysAutoResize |
                       ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoSavedSettings |
                       ImGuiWindowFlags_NoInputs | ImGuiWindowFlags_NoFocusOnAppearing |
                       ImGuiWindowFlags_NoNav)) {
    ImGui::PushFont(graphics.fonts().strong, 1.4f * theme::size_text);
    ImGui::TextUnformatted(caption.c_str());
    ImGui::PopFont();
    ImGui::BringWindowToDisplayFront(ImGui::GetCurrentWindow());
  }
  ImGui::End();
  ImGui::PopStyleVar();
}

void draw_messages(Editor& editor, const Graphics& graphics) {
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  float bottom = viewport->WorkPos.y + viewport->WorkSize.y - 12;
  constexpr float width = 420;
  constexpr double note_seconds = 4, error_seconds = 12;
  int shown = 0;
  for (std::size_t i = editor.messages().size(); i-- > 0 && shown < 4;) {
    const Message& message = editor.messages()[i];
    const bool error = message.severity == Severity::error;
    const double until = message.seconds + (error ? error_seconds : note_seconds);
    if (editor.clock() >= until) continue;
    ++shown;
    editor.draw_at(until); // to remove it
    ImGui::SetNextWindowPos({viewport->WorkPos.x + viewport->WorkSize.x - width - 12, bottom},
                            ImGuiCond_Always, {0, 1});
    ImGui::SetNextWindowSize({width, 0});
    const OverlayStyle style(error ? theme::red : theme::line);
    const std::string name = fmt::format("###message{}", i);
    bool dismissed = false;
    const ImGuiWindowFlags flags = ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize |
                                   ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoDocking |
                                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoFocusOnAppearing |
                                   ImGuiWindowFlags_NoNav;
    if (ImGui::Begin(name.c_str(), nullptr, flags)) {
      ImGui::PushTextWrapPos(width - 16);
      const std::string text =
          message.count > 1 ? fmt::format("{}  (×{})", message.text, message.count) : message.text;
      small_text(graphics, text, error ? theme::red : theme::text);
      ImGui::PopTextWrapPos();
      dismissed = ImGui::IsWindowHovered() && ImGui::IsMouseClicked(ImGuiMouseButton_Left);
      bottom = ImGui::GetWindowPos().y - 8;
    }
    ImGui::End();
    if (dismissed) {
      editor.dismiss_message(i);
      break;
    }
  }
}

} // namespace hydrascope::app
