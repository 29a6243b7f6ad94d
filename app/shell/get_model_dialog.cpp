// The dialog that downloads a model from the Hugging Face Hub.
#include <algorithm>
#include <array>
#include <cstdlib>

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_stdlib.h>

#include "app/document/edits.h"
#include "app/jobs/model_fetch.h"
#include "app/shell/shell.h"
#include "app/ui/widgets.h"
#include "engine/models/hub/hub_cache.h"

namespace hydrascope::app {

namespace {

struct Suggestion {
  const char *repository, *description;
};
constexpr std::array<Suggestion, 7> suggestions{
    {{"facebook/deit-tiny-patch16-224", "pictures, 1,000 classes, 23 MB"},
     {"facebook/deit-small-patch16-224", "pictures, 1,000 classes, 88 MB"},
     {"facebook/deit-base-patch16-224", "pictures, 1,000 classes, 346 MB"},
     {"google/vit-base-patch16-224", "pictures, 1,000 classes, 346 MB"},
     {"facebook/dinov2-small", "pictures, no classes, 88 MB"},
     {"google-bert/bert-base-uncased", "text, masked words, 440 MB"},
     {"sentence-transformers/all-MiniLM-L6-v2", "text, similarity, 91 MB"}}};

bool is_cached(const std::string& repository) {
  return is_repository_name(repository) && is_complete_model(cached_snapshot(hub_cache_folder(), repository));
}

bool is_offline() {
  try {
    return hub_settings().offline;
  } catch (const std::exception&) {
    return false; // errors in the settings are reported when they are used
  }
}

std::string progress_text(const FetchProgress& progress, double rate) {
  if (progress.total == 0) return "asking the hub…";
  constexpr double kilo = 1e3, mega = 1e6;
  const auto bytes = static_cast<double>(progress.bytes), total = static_cast<double>(progress.total);
  std::string text = total < mega ? fmt::format("{:.0f} of {:.0f} kB", bytes / kilo, total / kilo)
                                  : fmt::format("{:.1f} of {:.1f} MB", bytes / mega, total / mega);
  if (progress.checking) return text + ", checking";
  if (rate > 0) text += fmt::format(", {:.1f} MB/s", rate / mega);
  return text;
}

} // namespace

void GetModelDialog::update_cached() {
  cached_.clear();
  for (const Suggestion& suggestion : suggestions) cached_.push_back(is_cached(suggestion.repository));
  name_cached_ = is_cached(name_);
}

void GetModelDialog::choose(const std::string& repository, ModelFetch& fetch) {
  name_ = repository;
  name_cached_ = is_cached(name_);
  fetch.clear_problem();
}

void GetModelDialog::open_or_fetch(Editor& editor, ModelFetch& fetch, bool& open) {
  if (!name_cached_) return fetch.start(name_);
  if (open_path(editor, cached_snapshot(hub_cache_folder(), name_))) open = false;
}

// Returns whether one of them was double-clicked.
bool GetModelDialog::draw_suggestions(const Graphics& graphics, ModelFetch& fetch) {
  bool confirmed = false;
  for (std::size_t i = 0; i < suggestions.size(); ++i) {
    const Suggestion& suggestion = suggestions[i];
    if (ImGui::Selectable(suggestion.repository, name_ == suggestion.repository,
                          ImGuiSelectableFlags_AllowDoubleClick)) {
      choose(suggestion.repository, fetch);
      confirmed |= ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left);
    }
    const char* const note = cached_[i] ? "in the cache" : suggestion.description;
    ImGui::PushFont(graphics.fonts().regular, theme::size_small);
    ImGui::SameLine(ImGui::GetContentRegionMax().x - ImGui::CalcTextSize(note).x - 4);
    ImGui::TextColored(cached_[i] ? theme::accent : theme::quiet, "%s", note);
    ImGui::PopFont();
  }
  return confirmed;
}

void GetModelDialog::draw_progress(const Editor& editor, const Graphics& graphics, const ModelFetch& fetch) {
  const FetchProgress& progress = fetch.progress();
  const auto share = static_cast<float>(static_cast<double>(progress.bytes) /
                                        static_cast<double>(std::max<std::int64_t>(1, progress.total)));
  ImGui::PushStyleColor(ImGuiCol_PlotHistogram, theme::accent);
  ImGui::ProgressBar(share, {-1, 6}, "");
  ImGui::PopStyleColor();
  small_text(graphics, progress_text(progress, fetch.bytes_per_second(editor.clock())), theme::text);
  if (progress.total == 0) return;
  ImGui::SameLine(0, 12);
  small_text(graphics, fitted(progress.file, ImGui::GetContentRegionAvail().x));
}

void GetModelDialog::draw_body(Editor& editor, const Graphics& graphics, ModelFetch& fetch, bool appearing,
                               bool& open) {
  const bool running = fetch.running();
  ImGui::BeginDisabled(running);
  if (appearing) ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(-1);
  const std::string before = name_;
  bool confirmed = ImGui::InputTextWithHint("##repository", "organisation/name", &name_,
                                            ImGuiInputTextFlags_EnterReturnsTrue);
  if (name_ != before) choose(std::string(name_), fetch);
  confirmed |= draw_suggestions(graphics, fetch);
  ImGui::EndDisabled();
  ImGui::Spacing();
  if (running) draw_progress(editor, graphics, fetch);
  if (!running && !fetch.problem().empty()) wrapped_small_text(graphics, fetch.problem(), theme::red);
  if (!running && offline_)
    wrapped_small_text(graphics, "HF_HUB_OFFLINE is set: only what is in the cache can be opened.",
                       theme::amber);
  if (!running && !offline_ && fetch.problem().empty())
    wrapped_small_text(graphics, "Any DeiT, ViT, DINOv2 or BERT of the Hugging Face Hub.\nKept in " +
                                     hub_cache_folder().string());
  ImGui::Spacing();
  const bool possible = !running && is_repository_name(name_) && (name_cached_ || !offline_);
  ImGui::BeginDisabled(!possible);
  confirmed |= ImGui::Button(name_cached_ ? "Open###go" : "Get###go");
  ImGui::EndDisabled();
  if (confirmed && possible) open_or_fetch(editor, fetch, open);
  ImGui::SameLine();
  if (ImGui::Button(running ? "Cancel###stop" : "Close###stop")) {
    if (running) {
      fetch.cancel();
    } else {
      open = false;
    }
  }
  if (!running && ImGui::IsKeyPressed(ImGuiKey_Escape)) open = false;
}

void GetModelDialog::draw(Editor& editor, const Graphics& graphics, ModelFetch& fetch, bool& open) {
  if (!open) {
    fetch.cancel(); // closing the dialog cancels the download
    was_open_ = false;
    return;
  }
  const bool appearing = !was_open_;
  if (appearing || was_running_ != fetch.running()) update_cached();
  if (appearing) {
    fetch.clear_problem();
    offline_ = is_offline();
  }
  was_open_ = true;
  was_running_ = fetch.running();
  constexpr double refresh = 0.5; // seconds; of the rate, if no data arrives
  if (was_running_) editor.draw_at(editor.clock() + refresh);
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  ImGui::SetNextWindowPos(viewport->GetWorkCenter(), ImGuiCond_Always, {0.5f, 0.5f});
  ImGui::SetNextWindowSize({std::min(520.0f, viewport->WorkSize.x - 16), 0});
  if (appearing) ImGui::SetNextWindowFocus();
  const OverlayStyle style;
  // During a download only the Cancel button closes the dialog.
  bool* const closable = was_running_ ? nullptr : &open;
  if (ImGui::Begin("Get a model###get_model", closable,
                   ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoSavedSettings |
                       ImGuiWindowFlags_NoCollapse | ImGuiWindowFlags_NoResize | ImGuiWindowFlags_NoMove)) {
    draw_body(editor, graphics, fetch, appearing, open);
  }
  ImGui::End();
}

} // namespace hydrascope::app
