// The text's tokens, coloured by how little a decoder expected each of them.
#include <algorithm>
#include <cmath>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/document/edits.h"
#include "app/panels/choices.h"
#include "app/panels/focus/focus_canvas.h"
#include "app/panels/panel.h"
#include "app/panels/side_columns.h"
#include "app/ui/widgets.h"
#include "app/views/loss_view.h"
#include "app/views/token_map.h"
#include "engine/base/error_message.h"
#include "engine/run/quantities/token_loss.h"

namespace hydrascope::app {

namespace {

LossOptions loss_options(const Document& document) {
  return {.tokens = document.view.tokens,
          .map = document.view.cividis ? ColourMap::cividis : ColourMap::magma};
}

// The strip of one side, or the difference.
class LossColumn {
public:
  void prepare(const Snapshot& snapshot) {
    error_ = snapshot.shown().error;
    const auto found = find(snapshot.shown(), TokenLossKey{});
    if (!found) {
      if (snapshot.shown().any() == nullptr) clear();
      return; // keep the last strip
    }
    run_ = found.run;
    loss_ = found.result;
    other_run_ = nullptr;
    LossStrip strip = loss_strip(*run_, *loss_, loss_options(*snapshot.document));
    strip.panel.title = kernels_ = run_->schedule.summary();
    named_ = sides_differ(snapshot.document->scene());
    if (named_ || snapshot.one_of_two)
      strip.panel.title = fmt::format("{}, {}", side_name(snapshot.document->view.shown), kernels_);
    set(std::move(strip));
  }

  void subtract(const LossColumn& a, const LossColumn& b) {
    clear();
    if (a.empty() || b.empty()) return;
    run_ = a.run_;
    loss_ = a.loss_;
    other_run_ = b.run_;
    other_ = b.loss_;
    try {
      LossStrip strip = loss_difference(a.strip_, b.strip_);
      kernels_ = a.kernels_ == b.kernels_ ? a.kernels_ : a.kernels_ + " − " + b.kernels_;
      strip.panel.title = fmt::format("{}, {}", side_name(Shown::difference), kernels_);
      named_ = a.named_;
      set(std::move(strip));
    } catch (const std::exception& reason) {
      error_ = error_message(reason);
    }
  }

  void clear() {
    run_ = other_run_ = nullptr;
    loss_ = other_ = nullptr;
    strip_ = {};
    error_.clear();
    words_.clear();
  }

  bool empty() const { return strip_.shown.empty(); }
  const std::string& error() const { return error_; } // why it is empty
  LossStrip& strip() { return strip_; }
  // The line above the strip; `alone`: no heading names its side.
  std::string line(bool alone) const {
    if (!alone || !named_) return strip_.summary;
    // "softmax ×30 − elu ×30" says that it is a difference.
    return fmt::format("{}: {}", other_ == nullptr ? strip_.panel.title : kernels_, strip_.summary);
  }
  // After a change of the strip's scale.
  void renew() { set(std::move(strip_)); }

  // Returns the token under the pointer.
  std::optional<ShownToken> draw(Editor& editor, Graphics& graphics, bool alone, float brightness) {
    ImGui::PushFont(graphics.fonts().regular, theme::size_small);
    ellipsis_text(line(alone), ImGui::GetContentRegionAvail().x, theme::quiet);
    if (ImGui::IsItemHovered())
      text_tooltip(
          strip_.panel.title + "\n" + strip_.summary +
          "\nThe loss of a token is −ln of the probability that the model gave it, from those before "
          "it.\nPerplexity is e to the mean loss: among how many tokens the model is undecided.");
    ImGui::PopFont();
    if (strip_.panel.tokens.empty()) return std::nullopt; // A and B are equal
    return draw_strip(editor, graphics, brightness);
  }

  Figure figure() const {
    Figure figure;
    figure.title = run_->model.name + " · loss of each token";
    figure.subtitle = run_text(*run_);
    figure.columns = 1;
    figure.panels.emplace_back(strip_.panel);
    return figure;
  }

private:
  void set(LossStrip strip) {
    strip_ = std::move(strip);
    words_.set(strip_.panel);
  }

  // The words, below them their losses as bars where there is room, and the scale beside them.
  std::optional<ShownToken> draw_strip(Editor& editor, Graphics& graphics, float brightness) {
    const ImVec2 from = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
    const ImVec2 canvas{room.x - colour_bar_width, room.y};
    CanvasInput input;
    if (ImGui::BeginChild("strip", canvas)) // a long text scrolls
      input = words_.draw(graphics, ImGui::GetCursorScreenPos(), ImGui::GetContentRegionAvail(),
                          strip_.panel.query, shown_index(strip_.shown, editor.hovered_token()), brightness);
    ImGui::EndChild();
    constexpr float least_bar = 40, most_bar = 400;
    const float height = std::clamp(room.y - 20, least_bar, most_bar);
    float top = from.y + (room.y - height) / 2, bottom = top + height;
    // Beside the bars, whose axis it then is, unless they are scrolled out of view.
    if (const auto axis = words_.bars_axis();
        axis && axis->top >= from.y && axis->bottom <= from.y + room.y) {
      top = axis->top;
      bottom = axis->bottom;
    }
    colour_bar(graphics, strip_.panel.scale, {from.x + canvas.x + 10, top}, bottom - top, Backdrop::words);
    if (input.clicked) {
      const ShownToken& token = strip_.shown.at(static_cast<std::size_t>(*input.clicked));
      select_query(editor, token.first + token.count - 1);
    }
    if (!input.hovered) return std::nullopt;
    const ShownToken& token = strip_.shown.at(static_cast<std::size_t>(*input.hovered));
    editor.hover(token.first, token.count);
    std::string text = loss_details(*run_, *loss_, token);
    if (other_ != nullptr)
      text = fmt::format("A: {}\nB: {}", text, loss_details(*other_run_, *other_, token));
    text_tooltip(text + "\nclick: make it the query, from which the next token is predicted");
    return token;
  }

  std::shared_ptr<const RunResult> run_, other_run_;
  const TokenLoss *loss_ = nullptr, *other_ = nullptr; // in these runs; other_: B's in a difference
  LossStrip strip_;
  std::string kernels_;
  bool named_ = false; // A and B differ: the line says which of them it is of
  std::string error_;
  SentenceCanvas words_;
};

class LossPanel final : public Panel {
public:
  explicit LossPanel(PanelServices services) : Panel("loss", "Loss", services) {}
  bool exports() const override { return true; }
  bool needs_model() const override { return true; }

  void request(const Document& document, Requested& requested) const override {
    if (is_decoder(document.scene())) requested.first.add(TokenLossKey{});
  }

  void prepare(const Snapshot& snapshot) override {
    columns_.prepare(snapshot);
    const auto shown = columns_.shown();
    if (shown.size() < 2 || shown[0].empty() || shown[1].empty()) return;
    std::vector<LossStrip*> strips = {&shown[0].strip(), &shown[1].strip()};
    share_scale(strips);
    for (LossColumn& column : shown.first(2)) column.renew();
  }

  void draw() override {
    if (!is_decoder(document().scene())) {
      empty_notice(graphics(),
                   "The loss of each token is that of a decoder, which predicts it from those "
                   "before it. Open one from the Model menu, such as smollm2.");
      return;
    }
    side_choice(editor());
    if (columns_.empty() && columns_.shown().front().error().empty()) {
      empty_notice(graphics(), "How little the model expected each token of the text, once it has run.");
      return;
    }
    hovered_.reset();
    const bool alone = columns_.shown().size() == 1;
    if (alone) continue_line(columns_.shown().front());
    columns_.draw(graphics(), [&](LossColumn& column) {
      if (column.empty()) return missing_notice(graphics(), column.error());
      if (const auto token = column.draw(editor(), graphics(), alone, brightness())) hovered_ = token;
    });
    if (ImGui::IsMouseClicked(ImGuiMouseButton_Right)) menu_token_ = hovered_;
  }

  void draw_menu() override {
    const bool some = menu_token_ && menu_token_->first > 0;
    const std::string label = some
                                  ? fmt::format("Show what was predicted in place of “{}”", menu_token_->text)
                                  : std::string("Show what was predicted in place of a token");
    if (ImGui::MenuItem((as_label(label) + "###predicted").c_str(), nullptr, false, some))
      select_query(editor(), menu_token_->first - 1);
    ImGui::Separator();
  }

  std::optional<Figure> figure() const override {
    return columns_.figure([](const LossColumn& column) { return column.figure(); });
  }

private:
  // The line of the column stands beside the switch where it fits, and in a low window, where it is cut.
  void continue_line(const LossColumn& column) const {
    if (column.empty()) return;
    constexpr float gap = 16;
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    const float width = ImGui::CalcTextSize(column.line(true).c_str()).x;
    ImGui::PopFont();
    const float end = ImGui::GetWindowPos().x + ImGui::GetContentRegionMax().x;
    if (!is_low_window() && ImGui::GetItemRectMax().x + gap + width > end) return;
    ImGui::SameLine(0, gap);
    ImGui::AlignTextToFramePadding();
  }

  SideColumns<LossColumn> columns_;
  std::optional<ShownToken> hovered_, menu_token_;
};

} // namespace

std::unique_ptr<Panel> make_loss_panel(PanelServices services) {
  return std::make_unique<LossPanel>(services);
}

} // namespace hydrascope::app
