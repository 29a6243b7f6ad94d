// What goes into the model: a picture or a sentence, its examples, and how to open one's own.
#include <chrono>
#include <cmath>
#include <future>

#include <fmt/format.h>
#include <imgui.h>

#include "app/panels/panels.h"
#include "app/panels/sentence_editor.h"
#include "app/panels/token_names.h"
#include "app/state/actions.h"
#include "app/state/edits.h"
#include "app/window/widgets.h"

namespace hydrascope::app {

namespace {

std::size_t rgb_index(const Image& image, int x, int y, int channel) {
  const auto row = static_cast<std::size_t>(y) * static_cast<std::size_t>(image.width);
  return (row + static_cast<std::size_t>(x)) * 3 + static_cast<std::size_t>(channel);
}

// A thumbnail is the photograph's centre square, made small by averaging.
std::shared_ptr<const Image> thumbnail(const std::filesystem::path& path, int side) {
  const Image whole = load_image(path);
  const int crop = std::min(whole.width, whole.height);
  const int left = (whole.width - crop) / 2, top = (whole.height - crop) / 2;
  Image small{side, side,
              std::vector<std::uint8_t>(static_cast<std::size_t>(side) * static_cast<std::size_t>(side) * 3)};
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const int x0 = left + x * crop / side, x1 = std::max(x0 + 1, left + (x + 1) * crop / side);
      const int y0 = top + y * crop / side, y1 = std::max(y0 + 1, top + (y + 1) * crop / side);
      for (int channel = 0; channel < 3; ++channel) {
        int sum = 0;
        for (int row = y0; row < y1; ++row) {
          for (int column = x0; column < x1; ++column) {
            sum += whole.rgb[rgb_index(whole, column, row, channel)];
          }
        }
        small.rgb[rgb_index(small, x, y, channel)] = static_cast<std::uint8_t>(sum / ((x1 - x0) * (y1 - y0)));
      }
    }
  }
  return std::make_shared<const Image>(std::move(small));
}

struct Example {
  std::filesystem::path path;
  std::future<std::shared_ptr<const Image>> coming;
  PictureTexture picture;
};

class InputPanel final : public Panel {
public:
  explicit InputPanel(PanelServices services) : Panel("input", "Input", services) {
    for (const auto& path : example_pictures()) {
      examples_.push_back({path, std::async(std::launch::async, thumbnail, path, 96), {}});
    }
  }
  bool shows_results() const override { return false; }

  void prepare(const Snapshot& snapshot) override {
    const Scene& text_scene = snapshot.document->scene_of(InputKind::text);
    sentence_.follow(text_scene.input ? std::get_if<TextInput>(&*text_scene.input) : nullptr);
    prepare_hidden(snapshot);
    const Scene& image_scene = snapshot.document->scene_of(InputKind::image);
    const auto* image = image_scene.input ? std::get_if<ImageInput>(&*image_scene.input) : nullptr;
    if (image != nullptr) picture_.set(image->image);
    picture_line_ = image != nullptr && image->image
                        ? fmt::format("{}   {} × {}", image->name, image->image->width, image->image->height)
                        : "";
  }

  void draw() override {
    static constexpr std::array<const char*, 2> kinds = {"Picture", "Sentence"};
    const bool image = document().kind == InputKind::image;
    const int clicked = segmented("kind", kinds, image ? 0 : 1);
    if (clicked >= 0 && !image) sentence_.commit(editor());
    if (clicked >= 0) show_kind(editor(), clicked == 0 ? InputKind::image : InputKind::text);
    ImGui::SameLine(ImGui::GetContentRegionMax().x - 68);
    if (ImGui::Button("Open…", {68, 0})) editor().shell.dialog = Dialog::open_file;
    if (image) {
      sentence_.abandon();
      draw_picture();
    } else {
      draw_sentence();
    }
  }

private:
  struct HiddenToken {
    std::int64_t token = 0;
    std::string name;
  };

  void prepare_hidden(const Snapshot& snapshot) {
    hidden_.clear();
    const RunResult* run = snapshot.shown().any();
    const Document& document = *snapshot.document;
    const bool same_kind = run != nullptr && (run->rows > 0) == (document.kind == InputKind::image);
    for (const std::int64_t token : document.scene().hidden_tokens)
      hidden_.push_back({token, same_kind ? token_name(*run, token) : fmt::format("token {}", token)});
  }

  // What is hidden, each to be shown again by a click.
  void draw_hidden() {
    if (hidden_.empty()) return;
    const bool image = document().kind == InputKind::image;
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    ImGui::AlignTextToFramePadding();
    ImGui::TextColored(theme::quiet, "%s",
                       fmt::format("{} {}", hidden_.size(), image ? "hidden" : "masked").c_str());
    ImGui::SameLine();
    if (ImGui::SmallButton("Show all")) show_all_tokens(editor());
    constexpr std::size_t most = 12;
    for (std::size_t i = 0; i < std::min(hidden_.size(), most); ++i) {
      const HiddenToken& hidden = hidden_[i];
      const std::string text = with_known_glyphs(hidden.name);
      const float width = ImGui::CalcTextSize(text.c_str()).x + 2 * ImGui::GetStyle().FramePadding.x;
      if (i > 0) same_line_if_fits(width, 6);
      ImGui::PushID(static_cast<int>(hidden.token));
      if (ImGui::SmallButton(fmt::format("{}###show", text).c_str())) hide_tokens(editor(), hidden.token, 1, false);
      if (ImGui::IsItemHovered()) {
        ImGui::SetTooltip("Show it again");
        editor().hover(hidden.token);
      }
      ImGui::PopID();
    }
    if (hidden_.size() > most)
      ImGui::TextColored(theme::quiet, "%s", fmt::format("and {} more", hidden_.size() - most).c_str());
    ImGui::PopFont();
  }

  void draw_picture() {
    const float width = ImGui::GetContentRegionAvail().x;
    draw_hidden();
    const float strip = ImGui::GetContentRegionAvail().y < 240 ? 36 : 48;
    const float line = ImGui::GetTextLineHeightWithSpacing();
    const float room = ImGui::GetContentRegionAvail().y - strip - 2 * line - 8;
    if (const Image* image = picture_.image(); image != nullptr && room > 40) {
      const float scale =
          std::min(width / static_cast<float>(image->width), room / static_cast<float>(image->height));
      const ImVec2 size{static_cast<float>(image->width) * scale, static_cast<float>(image->height) * scale};
      const ImVec2 at = ImGui::GetCursorScreenPos();
      picture_.draw(ImGui::GetWindowDrawList(), at, {at.x + size.x, at.y + size.y});
      ImGui::Dummy(size);
    } else if (image == nullptr) {
      wrapped_small_text(graphics(), "Drop a picture here, press Open, or click an example.");
    }
    if (!picture_line_.empty()) {
      ImGui::PushFont(graphics().fonts().regular, theme::size_small);
      ellipsis_text(picture_line_, width, theme::quiet);
      ImGui::PopFont();
    }
    draw_examples(strip);
  }

  void draw_examples(float side) {
    if (examples_.empty()) return;
    small_text(graphics(), "Examples");
    ImDrawList* list = ImGui::GetWindowDrawList();
    for (std::size_t i = 0; i < examples_.size(); ++i) {
      Example& example = examples_[i];
      if (example.coming.valid()) {
        editor().shell.animate = true;
        if (example.coming.wait_for(std::chrono::seconds(0)) == std::future_status::ready) take(example);
      }
      if (i > 0) ImGui::SameLine(0, 6);
      const ImVec2 at = ImGui::GetCursorScreenPos();
      const std::string name = example.path.stem().string();
      if (ImGui::InvisibleButton(name.c_str(), {side, side})) open_path(editor(), example.path);
      const bool hovered = ImGui::IsItemHovered();
      example.picture.draw(list, at, {at.x + side, at.y + side}, hovered ? 1.0f : 0.8f);
      if (hovered) {
        list->AddRect(at, {at.x + side, at.y + side}, theme::packed(theme::accent), 2.0f);
        ImGui::SetTooltip("%s", name.c_str());
      }
    }
  }

  void take(Example& example) {
    try {
      example.picture.set(example.coming.get());
    } catch (const std::exception& error) {
      editor().say(Severity::error, error.what());
    }
  }

  // How its tokens are shown everywhere.
  void draw_display() {
    TokenDisplay display = document().view.tokens;
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    bool changed = ImGui::Checkbox("[CLS], [SEP]", &display.special);
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("Show the special tokens; they take part in the run either way");
    same_line_if_fits(110);
    changed |= ImGui::Checkbox("whole words", &display.whole_words);
    if (ImGui::IsItemHovered())
      ImGui::SetTooltip("Show the pieces of a word as one:\ncontributions and weights towards them are added up");
    ImGui::PopFont();
    if (changed)
      change_view(editor(), "Show tokens", [&](ViewOptions& view) { view.tokens = display; });
  }

  void draw_sentence() {
    sentence_.draw(editor(), graphics());
    const float width = ImGui::GetContentRegionAvail().x;
    draw_display();
    draw_hidden();
    small_text(graphics(), "Examples");
    for (const std::string& sentence : example_sentences()) {
      ImGui::PushFont(graphics().fonts().regular, theme::size_small);
      const std::string shown = fitted(sentence, width - 8);
      if (ImGui::Selectable(fmt::format("{}##{}", shown, sentence).c_str())) {
        sentence_.abandon();
        open_text(editor(), sentence);
      }
      ImGui::PopFont();
      if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", sentence.c_str());
    }
  }

  std::vector<Example> examples_;
  PictureTexture picture_;
  std::string picture_line_;
  SentenceEditor sentence_;
  std::vector<HiddenToken> hidden_;
};

} // namespace

std::unique_ptr<Panel> make_input_panel(PanelServices services) {
  return std::make_unique<InputPanel>(services);
}

} // namespace hydrascope::app
