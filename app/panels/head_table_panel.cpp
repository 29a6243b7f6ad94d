// Entropy and divergence of every head: layers down, heads across; a click opens that head everywhere.
#include <cmath>

#include <fmt/format.h>

#include "app/panels/panels.h"
#include "app/state/edits.h"
#include "app/views/table_views.h"
#include "app/window/widgets.h"
#include "engine/figures/scale.h"

namespace hydrascope::app {

namespace {

// Cells are few, so they are rectangles of the draw list with their number inside where it fits.
class HeadTablePanel final : public Panel {
public:
  HeadTablePanel(std::string id, std::string title, std::string table, std::string meaning,
                 PanelServices services)
      : Panel(std::move(id), std::move(title), services),
        table_(std::move(table)),
        meaning_(std::move(meaning)) {}
  bool exports() const override { return true; }

  void ask(const Document& document, Wants& wants) const override {
    if (teacher_forced(document)) {
      add_teacher_forced(wants.then, compared_kernel(document, 1));
    } else {
      wants.then.entropy |= table_ == "entropy";
      wants.then.kl |= table_ == "kl";
    }
  }

  void prepare(const Snapshot& snapshot) override {
    const bool forced = teacher_forced(*snapshot.document);
    const KernelSpec kernel = compared_kernel(*snapshot.document, 1);
    const FoundTable found = find_table(snapshot.shown(), table_, forced ? &kernel : nullptr);
    if (found.table == nullptr) {
      const RunResult* any = snapshot.shown().any();
      if (any == nullptr || (any->rows > 0) != (snapshot.document->kind == InputKind::image)) panel_ = {};
      return;
    }
    panel_ = head_table_panel(*found.run, *found.table);
    kernels_.clear();
    for (const LayerRun& layer : found.run->layers)
      kernels_.push_back(forced ? kernel.name : layer.kernel.name);
    caption_ = forced ? kernel.text() + ", teacher-forced" : "each layer's own kernel, in place";
  }

  void draw() override {
    if (panel_.values.empty()) {
      empty_notice(graphics(), meaning_ + " of every head, once the model has run.");
      return;
    }
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    ellipsis_text(
        panel_.scale.label.empty() ? meaning_ + " — " + caption_ : panel_.scale.label + " — " + caption_,
        ImGui::GetContentRegionAvail().x, theme::quiet);
    ImGui::PopFont();
    draw_cells();
  }

  std::optional<Figure> figure() const override {
    if (panel_.values.empty()) return std::nullopt;
    Figure figure;
    figure.title = meaning_;
    figure.subtitle = caption_;
    figure.panels.emplace_back(panel_);
    return figure;
  }

private:
  // A divergence of softmax from itself says nothing: a schedule without another kernel shows the compared
  // one.
  bool teacher_forced(const Document& document) const {
    return document.view.teacher_forced || (table_ == "kl" && edited_schedule(document).all_exact_softmax());
  }

  void draw_cells() {
    const auto layers = static_cast<int>(panel_.values.shape[0]);
    const auto heads = static_cast<int>(panel_.values.shape[1]);
    ImDrawList* list = ImGui::GetWindowDrawList();
    const ImVec2 from = ImGui::GetCursorScreenPos();
    const ImVec2 room = ImGui::GetContentRegionAvail();
    constexpr float left = 36, bottom = 16;
    ImGui::PushFont(graphics().fonts().mono, 11.0f);
    const ImVec2 at{from.x + left, from.y};
    const float width = (room.x - left - colour_bar_width) / static_cast<float>(heads);
    const float height = (room.y - bottom) / static_cast<float>(layers);
    const bool numbers = width > 34 && height > 13;
    for (int layer = 0; layer < layers; ++layer) {
      const float y = at.y + static_cast<float>(layer) * height;
      if (static_cast<std::size_t>(layer) < kernels_.size()) {
        kernel_square(list, {from.x + 5, y + height / 2}, std::min(7.0f, height - 1),
                      kernels_[static_cast<std::size_t>(layer)]);
      }
      if (height > 10 || layer % 2 == 0) {
        list->AddText({from.x + 13, y + height / 2 - 7},
                      theme::packed(layer == document().scene().layer ? theme::text : theme::quiet),
                      fmt::format("{:>2}", layer).c_str());
      }
      for (int head = 0; head < heads; ++head) {
        draw_cell(list, {at.x + static_cast<float>(head) * width, y}, {width, height}, layer, head, numbers);
      }
    }
    for (int head = 0; head < heads; ++head) {
      const std::string text = fmt::format("{}", head);
      list->AddText(
          {at.x + (static_cast<float>(head) + 0.5f) * width - ImGui::CalcTextSize(text.c_str()).x / 2,
           at.y + height * static_cast<float>(layers) + 2},
          theme::packed(theme::quiet), text.c_str());
    }
    list->AddText({from.x, at.y + height * static_cast<float>(layers) + 2}, theme::packed(theme::faint),
                  "head");
    ImGui::PopFont();
    colour_bar(graphics(), panel_.scale, {from.x + room.x - 50, from.y}, room.y - bottom);
  }

  void draw_cell(ImDrawList* list, ImVec2 at, ImVec2 size, int layer, int head, bool numbers) {
    const auto index = static_cast<std::size_t>(layer) * static_cast<std::size_t>(panel_.values.shape[1]) +
                       static_cast<std::size_t>(head);
    const float value = panel_.values.values[index];
    const ImVec2 to{at.x + size.x - 1, at.y + size.y - 1};
    ImGui::SetCursorScreenPos(at);
    ImGui::PushID(layer * 1000 + head);
    if (ImGui::InvisibleButton("cell", size)) select_cell(editor(), layer, head);
    ImGui::PopID();
    const bool hovered = ImGui::IsItemHovered();
    if (std::isnan(value)) { // undefined is hatched, never zero-coloured
      list->AddRectFilled(at, to, theme::packed(theme::raised, brightness()));
      list->PushClipRect(at, to, true);
      const int lines = static_cast<int>((size.x + size.y) / 6) + 1;
      for (int line = 0; line < lines; ++line) {
        const float x = at.x - size.y + 6 * static_cast<float>(line);
        list->AddLine({x, to.y}, {x + size.y, at.y}, theme::packed(theme::faint, 0.6f));
      }
      list->PopClipRect();
    } else {
      const Colour colour = scale_colour(panel_.scale, static_cast<double>(value));
      list->AddRectFilled(at, to, theme::packed(colour, brightness()));
      if (numbers) {
        const std::string text = fmt::format("{:.2f}", value);
        const ImVec2 text_size = ImGui::CalcTextSize(text.c_str());
        list->AddText({at.x + (size.x - text_size.x) / 2, at.y + (size.y - text_size.y) / 2},
                      theme::packed(theme::ink_on(colour), 0.9f), text.c_str());
      }
    }
    const Scene& scene = document().scene();
    const bool selected = scene.layer == layer && scene.head.head == head;
    if (selected || hovered) {
      list->AddRect({at.x - 1, at.y - 1}, {to.x + 1, to.y + 1},
                    theme::packed(selected ? theme::accent : theme::text), 0, 2.0f);
    }
    if (hovered) {
      const std::string shown = std::isnan(value) ? "undefined: this kernel's weights are signed"
                                                  : number_text(static_cast<double>(value), 4) + " nats";
      ImGui::SetTooltip("layer %d, head %d\n%s", layer, head, shown.c_str());
    }
  }

  std::string table_, meaning_, caption_;
  HeatMapPanel panel_;
  std::vector<std::string> kernels_;
};

} // namespace

std::unique_ptr<Panel> make_entropy_panel(PanelServices services) {
  return std::make_unique<HeadTablePanel>("entropy", "Entropy", "entropy", "Entropy, nats", services);
}

std::unique_ptr<Panel> make_divergence_panel(PanelServices services) {
  return std::make_unique<HeadTablePanel>("kl", "KL", "kl", "KL(softmax ‖ kernel), nats", services);
}

} // namespace hydrascope::app
