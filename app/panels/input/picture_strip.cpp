#include "app/panels/input/picture_strip.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <imgui.h>

#include "app/actions/actions.h"
#include "app/document/edits.h"
#include "app/ui/widgets.h"
#include "engine/base/error_message.h"
#include "engine/figures/scale.h"

namespace hydrascope::app {

namespace {

constexpr int thumbnail_pixels = 96;
constexpr float side_of_folder = 56, thumbnail_gap = 6;

constexpr std::size_t most_known = 600; // thumbnails kept
constexpr std::size_t batch_size = 8;   // thumbnails per job; newer requests come in the next

std::size_t rgb_index(const Image& image, int x, int y, int channel) {
  const auto row = static_cast<std::size_t>(y) * static_cast<std::size_t>(image.width);
  return (row + static_cast<std::size_t>(x)) * 3 + static_cast<std::size_t>(channel);
}

// The centre square of the picture, averaged down to `side` pixels a side.
Image thumbnail_of(const Image& whole, int side) {
  const int crop = std::min(whole.width, whole.height);
  const int left = (whole.width - crop) / 2, top = (whole.height - crop) / 2;
  Image small{side, side,
              std::vector<std::uint8_t>(static_cast<std::size_t>(side) * static_cast<std::size_t>(side) * 3)};
  const auto part = [&](int i) { return static_cast<int>(std::int64_t{i} * crop / side); };
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const int x0 = left + part(x), x1 = std::max(x0 + 1, left + part(x + 1));
      const int y0 = top + part(y), y1 = std::max(y0 + 1, top + part(y + 1));
      for (int channel = 0; channel < 3; ++channel) {
        std::int64_t sum = 0;
        for (int row = y0; row < y1; ++row) {
          for (int column = x0; column < x1; ++column) {
            sum += whole.rgb[rgb_index(whole, column, row, channel)];
          }
        }
        small.rgb[rgb_index(small, x, y, channel)] =
            static_cast<std::uint8_t>(sum / (std::int64_t{x1 - x0} * (y1 - y0)));
      }
    }
  }
  return small;
}

std::filesystem::path open_picture(const Document& document) {
  const auto& input = document.scene_of(InputKind::image).input;
  const auto* image = input ? std::get_if<ImageInput>(&*input) : nullptr;
  return image == nullptr ? std::filesystem::path{} : image->path;
}

const PictureCheck* check_of(const Editor& editor, const std::filesystem::path& file) {
  const auto found = editor.checks.found.find(file);
  return found == editor.checks.found.end() ? nullptr : &found->second;
}

std::string verdict_text(const PictureCheck& check) {
  if (check.predicted.empty()) return "";
  return fmt::format("\n{} {}{}", check.predicted, percent_text(check.probability),
                     check.verdict == PictureCheck::Verdict::wrong   ? ": wrong"
                     : check.verdict == PictureCheck::Verdict::right ? ": right"
                                                                     : "");
}

} // namespace

Thumbnails::Thumbnail& Thumbnails::get(const std::filesystem::path& file) {
  const auto [entry, fresh] = known_.try_emplace(file);
  if (fresh) missing_.push_back(file);
  entry->second.used_at = frame_;
  return entry->second;
}

bool Thumbnails::collect() {
  ++frame_;
  if (BackgroundJob<Made>* job = job_.job()) {
    JobUpdate<Made> update = job->take();
    for (Made& made : update.results) {
      Thumbnail& thumbnail = known_[made.file];
      thumbnail.picture = std::move(made.picture);
      thumbnail.problem = std::move(made.problem);
    }
    if (update.done) job_.finish();
  }
  if (job_.job() != nullptr) return true;
  if (missing_.empty()) {
    forget_oldest();
    return false;
  }
  start();
  return true;
}

void Thumbnails::start() {
  const auto count = static_cast<std::ptrdiff_t>(std::min(missing_.size(), batch_size));
  const std::vector<std::filesystem::path> files(missing_.end() - count, missing_.end());
  missing_.erase(missing_.end() - count, missing_.end());
  job_.start(
      [files](BackgroundJob<Made>& job, const std::stop_token& stop) {
        for (const std::filesystem::path& file : files) {
          if (stop.stop_requested()) return;
          Made made{.file = file, .picture = nullptr, .problem = {}};
          try {
            made.picture = std::make_shared<const Image>(thumbnail_of(load_image(file), thumbnail_pixels));
          } catch (const std::exception& error) {
            made.problem = error_message(error);
          }
          job.publish(std::move(made));
        }
      },
      {});
}

// Those that have not been used for longest, about half of them.
void Thumbnails::forget_oldest() {
  if (known_.size() <= most_known) return;
  std::vector<std::uint64_t> frames;
  for (const auto& [file, thumbnail] : known_) frames.push_back(thumbnail.used_at);
  const auto middle = frames.begin() + static_cast<std::ptrdiff_t>(frames.size() / 2);
  std::ranges::nth_element(frames, middle);
  std::erase_if(known_, [limit = *middle](const auto& entry) { return entry.second.used_at < limit; });
}

PictureStrip::PictureStrip(PanelServices services) : services_(services), examples_(example_pictures()) {}

float PictureStrip::height() const {
  const float line = ImGui::GetTextLineHeightWithSpacing();
  if (editor().document().folder) return side_of_folder + ImGui::GetStyle().ScrollbarSize + 2 * line + 12;
  return examples_.empty() ? 0 : side_of_examples() + line + 4;
}

// As large as lets all examples stand in one row.
float PictureStrip::side_of_examples() const {
  const auto count = static_cast<float>(std::max<std::size_t>(examples_.size(), 1));
  return std::clamp((ImGui::GetContentRegionAvail().x + thumbnail_gap) / count - thumbnail_gap, 24.0f, 96.0f);
}

void PictureStrip::draw() {
  if (const auto folder = editor().document().folder) { // held: a click may change the document
    draw_folder_line(*folder);
    draw_pictures(*folder);
  } else {
    draw_examples();
  }
  if (thumbnails_.collect()) editor().draw_soon();
}

void PictureStrip::draw_folder_line(const PictureFolder& folder) {
  const Document& document = editor().document();
  const auto order = shown_order(folder, document.wrong_first, editor().checks);
  const auto index = find_picture(folder, open_picture(document));
  const auto place = index ? std::ranges::find(order, *index) - order.begin() + 1 : 0;
  ImGui::PushFont(graphics().fonts().regular, theme::size_small);
  const std::string words =
      fmt::format("{}   {} of {}", folder.path.filename().string(), place, order.size());
  ellipsis_text(words, ImGui::GetContentRegionAvail().x - 64, theme::quiet);
  if (ImGui::IsItemHovered())
    text_tooltip(fmt::format("{}\nPage Down, Page Up: next and previous", folder.path.string()));
  ImGui::SameLine(ImGui::GetContentRegionMax().x - 44);
  if (ImGui::SmallButton("Close")) close_folder(editor());

  static constexpr std::array<const char*, 2> orders = {"by name", "wrong first"};
  const char* const reason = folder.labelled ? "" : "the folder has no sub-folder per class";
  const std::array<const char*, 2> reasons = {"", reason};
  const int clicked = segmented("order", orders, document.wrong_first ? 1 : 0, reasons);
  if (clicked >= 0) show_wrong_first(editor(), clicked == 1);
  const PictureChecks& checks = editor().checks;
  if (document.wrong_first && checks.total > 0) {
    ImGui::SameLine(0, 10);
    ImGui::AlignTextToFramePadding();
    const bool whole = !checks.running && !checks.failed;
    std::string counts =
        whole || checks.renews
            ? fmt::format("{} wrong, {} right", checks.wrong, checks.right)
            : fmt::format("{} wrong, {} of {} predicted", checks.wrong, checks.found.size(), checks.total);
    if (checks.renews)
      counts += checks.failed ? " by earlier weights"
                              : fmt::format("; {} of {} predicted again", checks.newer.size(), checks.total);
    ellipsis_text(counts, ImGui::GetContentRegionAvail().x, theme::quiet);
    if (checks.renews && ImGui::IsItemHovered())
      text_tooltip(counts + (checks.failed ? "\nThe predictions by the newer weights have failed."
                                           : "\nThe weights have changed; the order changes once all "
                                             "pictures are predicted again."));
  }
  ImGui::PopFont();
}

void PictureStrip::draw_pictures(const PictureFolder& folder) {
  const auto order = shown_order(folder, editor().document().wrong_first, editor().checks);
  const float bar = ImGui::GetStyle().ScrollbarSize;
  const bool drawn = ImGui::BeginChild("folder", {0, side_of_folder + bar + 4}, ImGuiChildFlags_None,
                                       ImGuiWindowFlags_HorizontalScrollbar);
  if (drawn) {
    const float step = side_of_folder + thumbnail_gap;
    const float width = ImGui::GetWindowWidth();
    if (ImGui::IsWindowHovered() && ImGui::GetIO().MouseWheel != 0)
      ImGui::SetScrollX(ImGui::GetScrollX() - ImGui::GetIO().MouseWheel * step);
    const auto current = open_picture(editor().document());
    const auto index = find_picture(folder, current);
    const auto place = index ? std::ranges::find(order, *index) - order.begin() : 0;
    if (index && current != scrolled_to_) {
      ImGui::SetScrollX(static_cast<float>(place) * step - (width - step) / 2);
      scrolled_to_ = current;
    }
    // Draws, and so requests, only the pictures in view.
    const auto count = static_cast<std::ptrdiff_t>(order.size());
    const auto first = std::clamp(static_cast<std::ptrdiff_t>(std::floor(ImGui::GetScrollX() / step)),
                                  std::ptrdiff_t{0}, count);
    const auto last = std::min(count, first + static_cast<std::ptrdiff_t>(std::ceil(width / step)) + 1);
    const ImVec2 from = ImGui::GetCursorPos();
    for (std::ptrdiff_t i = first; i < last; ++i) {
      ImGui::SetCursorPos({from.x + static_cast<float>(i) * step, from.y});
      draw_picture(folder, order[static_cast<std::size_t>(i)], side_of_folder, index && i == place);
    }
    ImGui::SetCursorPos({from.x + static_cast<float>(count) * step - thumbnail_gap - 1, from.y});
    ImGui::Dummy({1, side_of_folder}); // the width of the strip
  }
  ImGui::EndChild();
}

void PictureStrip::draw_picture(const PictureFolder& folder, std::size_t index, float side, bool chosen) {
  const FolderPicture& picture = folder.pictures[index];
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::PushID(static_cast<int>(index));
  const bool clicked = draw_thumbnail(picture.file, "picture", side);
  ImGui::PopID();
  const PictureCheck* check = editor().document().wrong_first ? check_of(editor(), picture.file) : nullptr;
  if (check != nullptr && check->verdict == PictureCheck::Verdict::wrong) {
    // A cross as well as red, for the colour-blind.
    const ImU32 red = theme::packed(theme::red);
    const float x = at.x + side - 9, y = at.y + 9;
    list->AddCircleFilled({x, y}, 7, theme::packed(theme::under_picture_ring));
    list->AddLine({x - 3, y - 3}, {x + 3, y + 3}, red, 2.0f);
    list->AddLine({x - 3, y + 3}, {x + 3, y - 3}, red, 2.0f);
    list->AddRect({at.x + 1, at.y + 1}, {at.x + side - 1, at.y + side - 1}, red, 2.0f, 2.0f);
  }
  if (chosen) list->AddRect(at, {at.x + side, at.y + side}, theme::packed(theme::accent), 2.0f, 2.0f);
  if (ImGui::IsItemHovered()) {
    const std::string label = picture.label.empty() ? "" : "\nlabelled " + picture.label;
    text_tooltip(fmt::format("{}{}{}", picture.file.filename().string(), label,
                             check == nullptr ? "" : verdict_text(*check)));
  }
  if (clicked) open_folder_picture(editor(), index);
}

bool PictureStrip::draw_thumbnail(const std::filesystem::path& file, const char* id, float side) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  Thumbnails::Thumbnail& thumbnail = thumbnails_.get(file);
  const bool clicked = ImGui::InvisibleButton(id, {side, side});
  const bool hovered = ImGui::IsItemHovered();
  if (thumbnail.picture) {
    graphics().draw_picture(list, thumbnail.picture, at, {at.x + side, at.y + side}, hovered ? 1.0f : 0.85f);
  } else {
    list->AddRectFilled(at, {at.x + side, at.y + side}, theme::packed(theme::raised), 2.0f);
  }
  if (hovered) {
    list->AddRect(at, {at.x + side, at.y + side}, theme::packed(theme::text), 2.0f);
    if (!thumbnail.problem.empty()) text_tooltip(thumbnail.problem);
  }
  return clicked;
}

void PictureStrip::draw_examples() {
  if (examples_.empty()) return;
  small_text(graphics(), "Examples");
  const float side = std::floor(side_of_examples());
  for (std::size_t i = 0; i < examples_.size(); ++i) {
    if (i > 0) same_line_if_fits(side, thumbnail_gap);
    const std::string name = examples_[i].stem().string();
    const bool clicked = draw_thumbnail(examples_[i], name.c_str(), side);
    if (ImGui::IsItemHovered()) text_tooltip(name);
    if (clicked) open_path(editor(), examples_[i]);
  }
}

} // namespace hydrascope::app
