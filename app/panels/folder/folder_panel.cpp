// A table of the pictures of a folder: how much A's schedule disagrees with softmax. A click opens a picture.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "app/document/edits.h"
#include "app/jobs/folder_jobs.h"
#include "app/panels/panel.h"
#include "app/ui/widgets.h"

namespace hydrascope::app {

namespace {

struct Column {
  const char* title;
  const char* meaning;
  float width; // relative
};

constexpr std::array<Column, 7> folder_columns = {{
    {"picture", "file, with its sub-folder", 3},
    {"A", "most likely class by A's schedule", 3},
    {"%", "its probability", 1},
    {"softmax", "most likely class with softmax in every layer", 3},
    {"class KL", "KL(softmax's classes ‖ A's), nats: how far the predictions lie apart", 1.4f},
    {"entropy", "of A's weights, nats; mean over layers and heads for which it is defined", 1.2f},
    {"KL", "KL(softmax ‖ kernel) of A's weights, nats; mean over layers and heads for which it is defined",
     1.2f},
}};

std::string number(double value, const char* undefined = "—") {
  return std::isnan(value) ? undefined : fmt::format("{:.3f}", value);
}

class FolderPanel final : public Panel {
public:
  explicit FolderPanel(PanelServices services) : Panel("folder", "Folder", services) {}
  bool needs_model() const override { return true; }
  bool exports() const override { return true; }
  bool shows_results() const override { return false; }

  void prepare(const Snapshot&) override {
    if (edition_ == editor().folder.edition) return;
    rows_ = sorted();
    edition_ = editor().folder.edition;
  }

  void draw() override {
    if (!document().folder) {
      empty_notice(graphics(),
                   "Open a folder of pictures (File) to compare A's schedule with softmax on each of them.");
      return;
    }
    draw_toolbar();
    if (rows_.empty()) {
      empty_notice(graphics(),
                   editor().folder.running
                       ? "The first picture is being looked at."
                       : "“Measure” runs A's schedule and softmax on every picture: class, entropy, "
                         "KL, and where the two disagree most.");
      return;
    }
    draw_table();
  }

  std::optional<Figure> figure() const override {
    const std::vector<PictureMeasures> rows =
        sorted(); // rows_ may be outdated while the panel is behind others
    if (rows.empty()) return std::nullopt;
    Figure figure;
    figure.title = "Folder: disagreement with softmax";
    figure.subtitle = "KL(softmax's classes ‖ A's), nats";
    BarsPanel bars;
    bars.x_label = "KL of the classes (nats)";
    for (const PictureMeasures& row : rows) {
      if (std::isnan(row.divergence)) continue;
      bars.labels.push_back(row.picture.file.filename().string() +
                            (row.class_changed() ? fmt::format(": {} → {}", row.softmax_class, row.own_class)
                                                 : ": " + row.own_class));
      bars.values.push_back(row.divergence);
    }
    if (bars.labels.empty()) return std::nullopt;
    figure.panels.emplace_back(std::move(bars));
    return figure;
  }

private:
  std::vector<PictureMeasures> sorted() const {
    std::vector<PictureMeasures> rows = editor().folder.pictures;
    sort_measures(rows, sorted_by_, descending_);
    return rows;
  }

  void draw_toolbar() {
    const FolderMeasures& measures = editor().folder;
    const bool old = !rows_.empty() && measures.key != folder_measure_key(document());
    if (measures.running) {
      if (ImGui::Button("Stop###measure")) editor().emit(StopFolder{});
    } else if (ImGui::Button("Measure###measure")) {
      editor().emit(MeasureFolder{});
    }
    ImGui::SameLine(0, 12);
    ImGui::AlignTextToFramePadding();
    const auto changed = std::ranges::count_if(rows_, &PictureMeasures::class_changed);
    std::string text = fmt::format("{} of {} pictures", rows_.size(), document().folder->pictures.size());
    if (!rows_.empty()) text += fmt::format("; {} of them change their class", changed);
    if (old) text += "; out of date: measure again";
    ellipsis_text(text, ImGui::GetContentRegionAvail().x, old ? theme::amber : theme::quiet);
    if (old && ImGui::IsItemHovered())
      text_tooltip(text + "\nThe numbers are of another folder, model or schedule");
  }

  void draw_table() {
    const ImGuiTableFlags flags = ImGuiTableFlags_Sortable | ImGuiTableFlags_ScrollY | ImGuiTableFlags_RowBg |
                                  ImGuiTableFlags_Resizable | ImGuiTableFlags_NoSavedSettings;
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    constexpr float least_height = 90; // else the panel scrolls
    if (ImGui::BeginTable("pictures", static_cast<int>(folder_columns.size()), flags,
                          {0, std::max(ImGui::GetContentRegionAvail().y, least_height)})) {
      ImGui::TableSetupScrollFreeze(0, 1);
      for (std::size_t i = 0; i < folder_columns.size(); ++i) {
        const bool first = static_cast<FolderColumn>(i) == FolderColumn::divergence;
        const ImGuiTableColumnFlags sorting = (first ? ImGuiTableColumnFlags_DefaultSort : 0) |
                                              (i < 2 || i == 3 ? ImGuiTableColumnFlags_PreferSortAscending
                                                               : ImGuiTableColumnFlags_PreferSortDescending);
        ImGui::TableSetupColumn(folder_columns[i].title, ImGuiTableColumnFlags_WidthStretch | sorting,
                                folder_columns[i].width);
      }
      draw_headers();
      ImGuiListClipper clipper;
      clipper.Begin(static_cast<int>(rows_.size()));
      while (clipper.Step())
        for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i)
          draw_row(i, rows_[static_cast<std::size_t>(i)]);
      ImGui::EndTable();
    }
    ImGui::PopFont();
  }

  void draw_headers() {
    ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
    for (std::size_t i = 0; i < folder_columns.size(); ++i) {
      ImGui::TableSetColumnIndex(static_cast<int>(i));
      ImGui::TableHeader(folder_columns[i].title);
      if (ImGui::IsItemHovered()) text_tooltip(folder_columns[i].meaning);
    }
    ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs();
    if (specs == nullptr || !specs->SpecsDirty || specs->SpecsCount < 1) return;
    sorted_by_ = static_cast<FolderColumn>(specs->Specs[0].ColumnIndex);
    descending_ = specs->Specs[0].SortDirection == ImGuiSortDirection_Descending;
    sort_measures(rows_, sorted_by_, descending_);
    specs->SpecsDirty = false;
  }

  void draw_row(int index, const PictureMeasures& row) {
    ImGui::PushID(index);
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    const std::string name =
        (row.picture.label.empty() ? "" : row.picture.label + "/") + row.picture.file.filename().string();
    const auto* image = document().scene_of(InputKind::image).input
                            ? std::get_if<ImageInput>(&*document().scene_of(InputKind::image).input)
                            : nullptr;
    const bool shown = image != nullptr && image->path == row.picture.file;
    if (ImGui::Selectable("##picture", shown,
                          ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowOverlap))
      open(row);
    if (ImGui::IsItemHovered() && !row.problem.empty()) text_tooltip(row.problem);
    ImGui::SameLine(0, 0);
    const auto cell = [](const std::string& text, const ImVec4& colour) {
      ellipsis_text(text, ImGui::GetContentRegionAvail().x, colour);
    };
    cell(name, row.problem.empty() ? theme::text : theme::red);
    const ImVec4 own = row.class_changed() ? ImVec4(theme::amber) : ImVec4(theme::text);
    ImGui::TableNextColumn();
    cell(row.own_class.empty() ? "—" : row.own_class, own);
    draw_number(std::isnan(row.own_probability) ? "—" : fmt::format("{:.1f}", row.own_probability * 100));
    ImGui::TableNextColumn();
    cell(row.softmax_class.empty() ? "—" : row.softmax_class, theme::text);
    draw_number(number(row.divergence));
    draw_number(number(row.entropy));
    draw_number(number(row.kl));
    ImGui::PopID();
  }

  // Right-aligned.
  void draw_number(const std::string& text) const {
    ImGui::TableNextColumn();
    ImGui::PushFont(graphics().fonts().mono, theme::size_small);
    const float room = ImGui::GetContentRegionAvail().x - ImGui::CalcTextSize(text.c_str()).x;
    if (room > 0) ImGui::SetCursorPosX(ImGui::GetCursorPosX() + room);
    ImGui::TextColored(theme::text, "%s", text.c_str());
    ImGui::PopFont();
  }

  void open(const PictureMeasures& row) {
    if (!document().folder) return;
    if (const auto index = find_picture(*document().folder, row.picture.file))
      open_folder_picture(editor(), *index);
  }

  std::vector<PictureMeasures> rows_; // sorted
  std::uint64_t edition_ = 0;         // of rows_
  FolderColumn sorted_by_ = FolderColumn::divergence;
  bool descending_ = true;
};

} // namespace

std::unique_ptr<Panel> make_folder_panel(PanelServices services) {
  return std::make_unique<FolderPanel>(services);
}

} // namespace hydrascope::app
