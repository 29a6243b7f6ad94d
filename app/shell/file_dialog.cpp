#include "app/shell/file_dialog.h"

#include <algorithm>
#include <sstream>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_stdlib.h>
#include <unistd.h>

#include "app/shell/shell.h"
#include "app/ui/widgets.h"
#include "engine/base/text.h"

namespace hydrascope::app {

namespace {

namespace fs = std::filesystem;

bool is_folder(const fs::path& path) {
  std::error_code none;
  return fs::is_directory(path, none);
}

// Why nothing can be written to this path; empty if something can.
std::string why_not_written(const fs::path& file) {
  const fs::path folder = file.parent_path();
  if (!is_folder(folder)) return fmt::format("there is no folder {}", folder.string());
  if (::access(folder.c_str(), W_OK) != 0) return fmt::format("{} cannot be written to", folder.string());
  return {};
}

// "*.png *.jpg"; empty where all files are listed.
std::string listed_patterns(const std::vector<std::string>& filters) {
  std::string result;
  for (std::size_t i = 1; i < filters.size(); i += 2)
    if (filters[i] != "*") result.append(result.empty() ? "" : " ").append(filters[i]);
  return result;
}

} // namespace

bool passes(const fs::path& file, const std::vector<std::string>& filters) {
  bool any = true; // "All files" alone
  const std::string name = lower_case(file.filename().string());
  for (std::size_t i = 1; i < filters.size(); i += 2) {
    std::istringstream patterns(filters[i]);
    for (std::string pattern; patterns >> pattern;) {
      if (pattern == "*") continue;
      if (name.ends_with(pattern.substr(1))) return true;
      any = false;
    }
  }
  return any;
}

void FileDialog::open(FileQuestion question, const fs::path& folder) {
  const fs::path proposed = question.name;
  question_ = std::move(question);
  problem_.clear();
  to_replace_.clear();
  appearing_ = focus_ = true;
  path_ = proposed.filename().string();
  enter(proposed.has_parent_path() && is_folder(proposed.parent_path()) ? proposed.parent_path() : folder);
}

fs::path FileDialog::typed() const { return (folder_ / path_).lexically_normal(); }

void FileDialog::enter(const fs::path& folder) {
  const bool saves = question_->kind == FileQuestion::Kind::save_file;
  const fs::path name = saves ? fs::path(path_).filename() : fs::path();
  folder_ = folder;
  path_ = (folder / name).string();
  list();
}

void FileDialog::list() {
  entries_.clear();
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    const bool folder = is_folder(at->path());
    const bool listed = folder || (question_->kind != FileQuestion::Kind::open_folder &&
                                   passes(at->path(), question_->filters));
    if (listed && !name.starts_with('.')) entries_.push_back({name, folder});
  }
  std::ranges::sort(entries_, {},
                    [](const Entry& entry) { return std::pair(!entry.folder, lower_case(entry.name)); });
}

bool FileDialog::draw_entries() {
  bool chosen = false;
  std::optional<fs::path> entered;
  const float below = ImGui::GetFrameHeightWithSpacing();
  if (ImGui::BeginChild("entries", {0, -below})) {
    if (folder_.has_relative_path() && ImGui::Selectable("../")) entered = folder_.parent_path();
    for (const Entry& entry : entries_) {
      const fs::path path = folder_ / entry.name;
      const std::string label = with_known_glyphs(entry.name) + (entry.folder ? "/" : "");
      if (ImGui::Selectable(label.c_str(), typed() == path, ImGuiSelectableFlags_AllowDoubleClick)) {
        if (entry.folder) {
          entered = path;
        } else {
          path_ = path.string();
          chosen = ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left);
        }
      }
    }
  }
  ImGui::EndChild();
  if (entered) {
    problem_.clear();
    enter(*entered);
  }
  return chosen;
}

bool FileDialog::accept() {
  const fs::path path = typed();
  const bool exists = fs::exists(fs::symlink_status(path));
  problem_.clear();
  switch (question_->kind) {
    case FileQuestion::Kind::open_folder:
      if (!is_folder(path)) problem_ = "this is no folder";
      break;
    case FileQuestion::Kind::open_file:
      if (is_folder(path)) {
        enter(path);
        focus_ = true;
        return false;
      }
      if (!exists) problem_ = "there is no such file";
      break;
    case FileQuestion::Kind::save_file:
      if (is_folder(path)) {
        problem_ = "this is a folder: add a file name";
      } else if (std::string why = why_not_written(path); !why.empty()) {
        problem_ = std::move(why);
      } else if (exists && to_replace_ != path) {
        to_replace_ = path;
        problem_ = "the file exists: Save again replaces it";
      }
      break;
  }
  if (!problem_.empty()) focus_ = true;
  return problem_.empty();
}

std::optional<fs::path> FileDialog::draw(const Graphics& graphics) {
  if (!question_) return std::nullopt;
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  ImGui::SetNextWindowPos(viewport->GetWorkCenter(), ImGuiCond_Appearing, {0.5f, 0.5f});
  ImGui::SetNextWindowSize(
      {std::min(620.0f, viewport->WorkSize.x - 16), std::min(440.0f, viewport->WorkSize.y - 32)},
      ImGuiCond_Appearing);
  if (std::exchange(appearing_, false)) ImGui::SetNextWindowFocus();
  const OverlayStyle style;
  bool stays = true, accepted = false;
  if (ImGui::Begin(
          (question_->title + "###file_dialog").c_str(), &stays,
          ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoCollapse)) {
    if (std::exchange(focus_, false)) ImGui::SetKeyboardFocusHere();
    ImGui::SetNextItemWidth(-1);
    bool chosen = ImGui::InputText("##path", &path_, ImGuiInputTextFlags_EnterReturnsTrue);
    if (ImGui::IsItemEdited()) {
      const fs::path folder = typed().parent_path(); // of "a/b/" too: a/b
      problem_.clear();
      if (folder != folder_ && fs::path(path_).is_absolute() && is_folder(folder)) {
        folder_ = folder;
        list();
      }
    }
    if (!problem_.empty()) wrapped_small_text(graphics, problem_, theme::red);
    chosen |= draw_entries();
    const char* const verb = question_->kind == FileQuestion::Kind::save_file     ? "Save"
                             : question_->kind == FileQuestion::Kind::open_folder ? "Choose this folder"
                                                                                  : "Open";
    chosen |= ImGui::Button(verb);
    ImGui::SameLine();
    stays &= !ImGui::Button("Cancel") && !ImGui::IsKeyPressed(ImGuiKey_Escape);
    if (const std::string patterns = listed_patterns(question_->filters); !patterns.empty()) {
      ImGui::SameLine(0, 16);
      ImGui::AlignTextToFramePadding();
      ImGui::PushFont(graphics.fonts().regular, theme::size_small);
      ellipsis_text("Listed: " + patterns, ImGui::GetContentRegionAvail().x, theme::quiet);
      ImGui::PopFont();
    }
    accepted = chosen && accept();
  }
  ImGui::End();
  if (!accepted && stays) return std::nullopt;
  question_.reset();
  return accepted ? typed() : fs::path();
}

} // namespace hydrascope::app
