// What goes into the model: a picture or a sentence, its examples, and how to open one's own.
#include <chrono>
#include <cmath>
#include <future>

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_stdlib.h>

#include "app/panels/panels.h"
#include "app/state/actions.h"
#include "app/state/edits.h"
#include "app/window/widgets.h"

namespace hydrascope::app {

namespace {

constexpr double typing_pause = 0.25; // seconds without a key before the model runs

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
    const auto* text = text_scene.input ? std::get_if<TextInput>(&*text_scene.input) : nullptr;
    // What is being typed is ahead of the document until the pause; everything else comes from it.
    if (text != nullptr && last_typed_ < 0) {
      typed_ = text->text;
      pair_ = text->pair.value_or("");
      with_pair_ = text->pair.has_value();
    }
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
    if (clicked >= 0) show_kind(editor(), clicked == 0 ? InputKind::image : InputKind::text);
    ImGui::SameLine(ImGui::GetContentRegionMax().x - 68);
    if (ImGui::Button("Open…", {68, 0})) editor().shell.dialog = Dialog::open_file;
    if (image) {
      draw_picture();
    } else {
      draw_sentence();
    }
  }

private:
  void draw_picture() {
    const float width = ImGui::GetContentRegionAvail().x;
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

  void draw_sentence() {
    ImGui::PushFont(graphics().fonts().regular, theme::size_text);
    const float width = ImGui::GetContentRegionAvail().x;
    bool changed = ImGui::InputTextMultiline("##text", &typed_, {width, 96}, ImGuiInputTextFlags_WordWrap);
    changed |= ImGui::Checkbox("Pair with a second sentence", &with_pair_);
    if (with_pair_)
      changed |= ImGui::InputTextMultiline("##pair", &pair_, {width, 56}, ImGuiInputTextFlags_WordWrap);
    ImGui::PopFont();
    if (changed) last_typed_ = editor().clock();
    if (last_typed_ >= 0) {
      editor().shell.animate = true;
      if (editor().clock() - last_typed_ >= typing_pause) {
        last_typed_ = -1;
        type_text(editor(), typed_, with_pair_ ? std::optional(pair_) : std::nullopt);
      }
    }
    small_text(graphics(), "Examples");
    for (const std::string& sentence : example_sentences()) {
      ImGui::PushFont(graphics().fonts().regular, theme::size_small);
      const std::string shown = fitted(sentence, width - 8);
      if (ImGui::Selectable(fmt::format("{}##{}", shown, sentence).c_str())) {
        last_typed_ = -1;
        open_text(editor(), sentence);
      }
      ImGui::PopFont();
      if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", sentence.c_str());
    }
  }

  std::vector<Example> examples_;
  PictureTexture picture_;
  std::string picture_line_;
  std::string typed_, pair_;
  bool with_pair_ = false;
  double last_typed_ = -1; // on the window's clock; below 0: nothing is waiting
};

} // namespace

std::unique_ptr<Panel> make_input_panel(PanelServices services) {
  return std::make_unique<InputPanel>(services);
}

} // namespace hydrascope::app
