// The model's input, a picture or a sentence, with examples.
#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_stdlib.h>

#include "app/actions/actions.h"
#include "app/document/editor.h"
#include "app/document/edits.h"
#include "app/panels/choices.h"
#include "app/panels/input/picture_strip.h"
#include "app/panels/panel.h"
#include "app/ui/graphics.h"
#include "app/ui/widgets.h"

namespace hydrascope::app {

namespace {

// Seconds without a key before the model runs, and before the next key begins another undo step.
constexpr double typing_pause = 0.15;
constexpr double burst_pause = 1.0;

// The text fields of a sentence, or of a pair. The text goes into the document after a short pause, so that
// the model runs while the user types. Keys in quick succession are one burst, which is one undo step.
class SentenceEditor {
public:
  // Shows the document's text, unless the user is typing. A decoder takes one text, of any length.
  void follow(const TextInput* text, std::size_t session, bool decoder);
  void draw(Editor& editor, const Graphics& graphics);
  // Puts the typed text into the document now, unless that is of another session since.
  void commit(Editor& editor);
  // Discards text that is not in the document yet.
  void abandon() { waiting_ = false; }

private:
  std::string text_, pair_;
  bool with_pair_ = false, decoder_ = false;
  bool waiting_ = false;                  // for the pause after a key
  std::size_t session_ = 0;               // of the document that it was typed into
  double last_key_ = 0, last_commit_ = 0; // on the window's clock
  int burst_ = 0;
};

void SentenceEditor::follow(const TextInput* text, const std::size_t session, const bool decoder) {
  decoder_ = decoder;
  // What was typed into another session is not committed.
  if (text == nullptr || (waiting_ && session == session_)) return;
  text_ = text->text;
  // The second sentence stays while pairs are off.
  if (text->pair) pair_ = *text->pair;
  with_pair_ = text->pair.has_value();
}

void SentenceEditor::commit(Editor& editor) {
  if (!waiting_) return;
  waiting_ = false;
  if (editor.document().session != session_) return;
  last_commit_ = editor.clock();
  type_text(editor, text_, with_pair_ ? std::optional(pair_) : std::nullopt, burst_);
}

void SentenceEditor::draw(Editor& editor, const Graphics& graphics) {
  ImGui::PushFont(graphics.fonts().regular, theme::size_text);
  const float width = ImGui::GetContentRegionAvail().x;
  bool left = false; // a field, as by Ctrl+Enter: nothing more is to come
  const auto field = [&](const char* id, std::string& text, float height) {
    const bool typed = ImGui::InputTextMultiline(id, &text, {width, height}, ImGuiInputTextFlags_WordWrap);
    if (ImGui::IsItemActivated()) ++burst_;
    left |= ImGui::IsItemDeactivatedAfterEdit() && !ImGui::IsKeyPressed(ImGuiKey_Escape);
    return typed;
  };
  const bool low = is_low_window();
  const float two_lines = 2 * ImGui::GetTextLineHeight() + 2 * ImGui::GetStyle().FramePadding.y;
  constexpr float below = 130; // the options and the examples
  const float height = decoder_     ? std::max(two_lines, ImGui::GetContentRegionAvail().y - below)
                       : low        ? two_lines
                       : with_pair_ ? 72.0f
                                    : 96.0f;
  bool typed = field("##text", text_, height);
  if (with_pair_) typed |= field("##pair", pair_, height);
  if (low) ImGui::PushFont(nullptr, theme::size_small);
  const bool offers_pair = !decoder_ || with_pair_; // a pair of another model has to be switched off
  const bool switched =
      offers_pair && check_box(low ? "pair###pair" : "Pair with a second sentence###pair", &with_pair_);
  if (offers_pair && ImGui::IsItemHovered())
    text_tooltip("Add a second sentence; both go in together: [CLS] first [SEP] second [SEP]");
  if (low) ImGui::PopFont();
  ImGui::PopFont();

  const double now = editor.clock();
  if (typed || switched) {
    if (switched || now - std::max(last_key_, last_commit_) > burst_pause) ++burst_;
    last_key_ = now;
    session_ = editor.document().session;
    waiting_ = true;
  }
  if (!waiting_) return;
  if (switched || left || now - last_key_ >= typing_pause) {
    commit(editor);
  } else {
    editor.draw_soon();
  }
}

class InputPanel final : public Panel {
public:
  explicit InputPanel(PanelServices services) : Panel("input", "Input", services), strip_(services) {}
  bool shows_results() const override { return false; }

  void prepare(const Snapshot& snapshot) override {
    // Not the snapshot's, whose text may go on with what is being written.
    const Scene& text_scene = document().scene_of(InputKind::text);
    const auto* text = text_scene.input ? std::get_if<TextInput>(&*text_scene.input) : nullptr;
    sentence_.follow(text, document().session, is_decoder(text_scene));
    constexpr std::size_t most = 2000; // bytes of a capture's tokens
    sentence_text_ = text == nullptr ? std::string() : with_known_glyphs(text->text.substr(0, most));
    prepare_hidden(snapshot);
    const Scene& image_scene = snapshot.document->scene_of(InputKind::image);
    const auto* image = image_scene.input ? std::get_if<ImageInput>(&*image_scene.input) : nullptr;
    picture_ = image != nullptr ? image->image : nullptr;
    picture_line_ = image != nullptr && image->image
                        ? fmt::format("{}   {} × {}", image->name, image->image->width, image->image->height)
                        : "";
  }

  void draw() override {
    const bool decoder = is_decoder(document().scene_of(InputKind::text));
    const std::array<const char*, 2> kinds = {"Picture", decoder ? "Text" : "Sentence"};
    const bool image = document().kind == InputKind::image;
    const int clicked = segmented("kind", kinds, image ? 0 : 1);
    if (clicked >= 0 && !image) sentence_.commit(editor());
    if (clicked >= 0) show_kind(editor(), clicked == 0 ? InputKind::image : InputKind::text);
    same_line_for_last_button("Open…");
    if (ImGui::Button("Open…")) editor().emit(ShowDialog{Dialog::open_file});
    // What was typed last, before the picture was shown; a capture has taken the place of the text itself.
    if (is_capture(document().scene_of(InputKind::text)))
      sentence_.abandon();
    else if (image)
      sentence_.commit(editor());
    if (is_capture(document().scene())) {
      draw_capture();
      if (image) draw_picture();
    } else if (image) {
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
    for (const std::int64_t token : snapshot.document->scene().hidden_tokens)
      hidden_.push_back({token, run != nullptr ? token_name(*run, token) : fmt::format("token {}", token)});
  }

  // A button for each hidden token, which shows it again.
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
      const std::string text = as_label(hidden.name);
      const float width = button_width(text.c_str());
      if (i > 0) same_line_if_fits(width, 6);
      ImGui::PushID(static_cast<int>(hidden.token));
      if (ImGui::SmallButton(fmt::format("{}###show", text).c_str()))
        hide_tokens(editor(), hidden.token, 1, false);
      if (ImGui::IsItemHovered()) {
        text_tooltip("Show it again");
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
    const float line = ImGui::GetTextLineHeightWithSpacing();
    const float room = ImGui::GetContentRegionAvail().y - strip_.height() - line - 8;
    constexpr float least = 60;
    const bool beside = room < least; // in a low panel the picture stands beside the rest
    if (const Image* image = picture_.get(); image != nullptr) {
      const ImVec2 most{beside ? width * 0.45f : width,
                        beside ? std::max(ImGui::GetContentRegionAvail().y, 40.0f) : room};
      const float scale =
          std::min(most.x / static_cast<float>(image->width), most.y / static_cast<float>(image->height));
      const ImVec2 size{static_cast<float>(image->width) * scale, static_cast<float>(image->height) * scale};
      const ImVec2 at = ImGui::GetCursorScreenPos();
      graphics().draw_picture(ImGui::GetWindowDrawList(), picture_, at, {at.x + size.x, at.y + size.y});
      ImGui::Dummy(size);
      if (beside) ImGui::SameLine();
    } else if (image == nullptr) {
      wrapped_small_text(graphics(),
                         "Drop a picture or a folder of them here, paste one (Ctrl+V), press Open, or click "
                         "an example.");
    }
    ImGui::BeginGroup();
    if (!picture_line_.empty()) {
      ImGui::PushFont(graphics().fonts().regular, theme::size_small);
      ellipsis_text(picture_line_, ImGui::GetContentRegionAvail().x, theme::quiet);
      ImGui::PopFont();
    }
    strip_.draw();
    ImGui::EndGroup();
  }

  // What was recorded, and the choice of its part and sequence.
  void draw_capture() {
    const CaptureInfo capture = *document().scene().model->capture;
    const ModelInfo& model = *document().scene().model;
    const float width = ImGui::GetContentRegionAvail().x;
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    ellipsis_text("Recorded attention: " + capture.file.filename().string(), width, theme::text);
    if (!capture.source.empty()) ellipsis_text(capture.source, width, theme::quiet);
    std::string facts = fmt::format("{} layer{}, {} heads of {}", model.layers, model.layers == 1 ? "" : "s",
                                    model.heads, model.width / std::max(model.heads, 1));
    if (capture.key_heads != model.heads) facts += fmt::format(" ({} of keys)", capture.key_heads);
    facts += capture.queries > 0
                 ? fmt::format("; {} queries, {} keys", capture.queries, capture.tokens - capture.queries)
                 : fmt::format("; {} tokens", capture.tokens);
    ellipsis_text(facts, width, theme::quiet);
    ImGui::PopFont();
    const auto part_at = static_cast<std::size_t>(capture.part);
    if (capture.parts.size() > 1) {
      ImGui::SetNextItemWidth(width);
      const std::string& shown = capture.parts.at(part_at);
      if (ImGui::BeginCombo("##part", fitted(shown, width - ImGui::GetFrameHeight() - 8).c_str())) {
        for (std::size_t part = 0; part < capture.parts.size(); ++part)
          if (ImGui::Selectable(fmt::format("{}###part{}", capture.parts[part], part).c_str(),
                                part == part_at))
            open_capture(editor(), fmt::format("{}:{}", capture.file.string(), part));
        ImGui::EndCombo();
      }
      if (ImGui::IsItemHovered())
        text_tooltip("Choose which layers of the capture are shown: those of one shape");
    }
    if (capture.items > 1) {
      if (ImGui::Button("<###previous_sequence")) step_capture(editor(), -1);
      ImGui::SameLine();
      ImGui::AlignTextToFramePadding();
      ImGui::TextColored(theme::quiet, "%s",
                         fmt::format("sequence {} of {}", capture.item + 1, capture.items).c_str());
      ImGui::SameLine();
      if (ImGui::Button(">###next_sequence")) step_capture(editor(), 1);
    }
    if (capture.rows > 0) return;
    ImGui::PushFont(graphics().fonts().regular, theme::size_text);
    ImGui::PushTextWrapPos(0);
    ImGui::TextUnformatted(sentence_text_.c_str());
    ImGui::PopTextWrapPos();
    ImGui::PopFont();
  }

  // The options for the tokens of sentences. Of a capture they would change nothing: which of its tokens are
  // special, or belong to one word, is not recorded.
  void draw_display() {
    TokenDisplay display = document().view.tokens;
    ImGui::PushFont(graphics().fonts().regular, theme::size_small);
    const bool decoder = is_decoder(document().scene());
    bool changed = check_box(decoder ? "special tokens" : "[CLS], [SEP]", &display.special);
    if (ImGui::IsItemHovered()) text_tooltip("Show the special tokens; they take part in the run either way");
    same_line_if_fits(110);
    changed |= check_box("whole words", &display.whole_words);
    if (ImGui::IsItemHovered())
      text_tooltip("Show the pieces of a word as one:\ncontributions and weights towards them are added up");
    ImGui::PopFont();
    if (changed) change_view(editor(), "Show tokens", [&](ViewOptions& view) { view.tokens = display; });
  }

  void draw_sentence() {
    sentence_.draw(editor(), graphics());
    const float width = ImGui::GetContentRegionAvail().x;
    const bool decoder = is_decoder(document().scene());
    if (is_low_window() && !decoder) ImGui::SameLine(0, 12); // the options in one line
    draw_display();
    draw_hidden();
    small_text(graphics(), "Examples");
    for (const std::string& sentence : decoder ? example_beginnings() : example_sentences()) {
      ImGui::PushFont(graphics().fonts().regular, theme::size_small);
      const std::string shown = fitted(sentence, width - 8);
      if (ImGui::Selectable(fmt::format("{}##{}", shown, sentence).c_str())) {
        sentence_.abandon();
        open_text(editor(), sentence);
      }
      ImGui::PopFont();
      if (ImGui::IsItemHovered()) text_tooltip(sentence);
    }
  }

  PictureStrip strip_;
  std::shared_ptr<const Image> picture_;
  std::string picture_line_;
  SentenceEditor sentence_;
  std::string sentence_text_; // the beginning of a capture's tokens
  std::vector<HiddenToken> hidden_;
};

} // namespace

std::unique_ptr<Panel> make_input_panel(PanelServices services) {
  return std::make_unique<InputPanel>(services);
}

} // namespace hydrascope::app
