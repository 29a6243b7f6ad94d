#include "app/document/writing_edits.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "app/document/edits.h"

namespace hydrascope::app {

namespace {

const TextInput* text_input(const Document& document) {
  const auto& input = document.scene().input;
  return input ? std::get_if<TextInput>(&*input) : nullptr;
}

// Whether Editor::writing begins with the document's text.
bool is_written_on(const Editor& editor) {
  const Document& document = editor.document();
  const TextInput* const text = text_input(document);
  return document.kind == InputKind::text && is_decoder(document.scene()) && text != nullptr && !text->pair &&
         text->text == editor.writing.prompt;
}

// Whether the query, the key or a hidden token is none of so many; the last one of a decoder is not hidden.
bool names_tokens_beyond(const Scene& scene, std::int64_t tokens) {
  return scene.query.value_or(0) >= tokens || scene.key.value_or(0) >= tokens ||
         (!scene.hidden_tokens.empty() && scene.hidden_tokens.back() + 1 >= tokens);
}

} // namespace

std::string writing_setup(const Document& document, const Side side) {
  const ExecutionOptions& execution = document.execution;
  return fmt::format("{}\n{} {} {}", setup_key(document.scene_of(InputKind::text), side), execution.device,
                     execution.dtype, execution.seed);
}

std::string why_not_written(const Document& document) {
  if (!is_decoder(document.scene()) || document.kind != InputKind::text) return "no decoder is open";
  const TextInput* const text = text_input(document);
  if (text == nullptr || text->text.find_first_not_of(" \t\n") == std::string::npos)
    return "there is no text to go on with";
  return text->pair ? "a decoder takes one text, not a pair" : "";
}

bool writing_fits(const Editor& editor) {
  const Document& document = editor.document();
  const Writing& writing = editor.writing;
  const TextInput* const text = text_input(document);
  if (writing.empty() || text == nullptr || text->pair || text->text != writing.prompt) return false;
  return writing.setups[0] == writing_setup(document, Side::a) &&
         writing.setups[1] == writing_setup(document, Side::b);
}

std::string why_not_continued(const Editor& editor) {
  const Writing& writing = editor.writing;
  if (writing.empty()) return "nothing has been written";
  if (!writing_fits(editor)) return "the text or its kernels have changed since";
  for (std::size_t side = 0; side < writing.count(); ++side)
    if (writing.sides[side].ended.empty() && writing.sides[side].problem.empty()) return {};
  return "the text has ended";
}

std::string why_not_taken_over(const Editor& editor, const Side side) {
  const Writing& writing = editor.writing;
  if (writing.side(side).text.empty()) return "nothing has been written";
  if (is_taken_over(editor.document(), writing, side)) return "it has been taken over";
  const TextInput* const text = text_input(editor.document());
  return text == nullptr || text->text != writing.prompt ? "the text has changed since" : "";
}

void take_over_writing(Editor& editor, const Side side) {
  if (!why_not_taken_over(editor, side).empty()) return;
  const std::string text = editor.writing.prompt + editor.writing.side(side).text;
  editor.change(fmt::format("Take {}'s text over", side_name(side)), [&](Document& document) {
    Scene& scene = document.scene(); // earlier tokens stay, and with them what was hidden and chosen
    scene.input = TextInput{text, std::nullopt};
  });
}

bool is_taken_over(const Document& document, const Writing& writing, const Side side) {
  const TextInput* const text = text_input(document);
  const std::string& written = writing.side(side).text;
  return text != nullptr && !written.empty() && text->text == writing.prompt + written;
}

bool panels_follow(const Editor& editor) {
  const Document& document = editor.document();
  return document.writing.follow && editor.panel_open("write") && is_written_on(editor) &&
         !editor.writing.side(edited_side(document.view)).text.empty();
}

std::optional<Document> followed_document(const Editor& editor) {
  const Document& document = editor.document();
  const bool follow = panels_follow(editor);
  const WrittenSide& side = editor.writing.side(edited_side(document.view));
  std::int64_t tokens = 0; // of the shown text; 0: not known
  if (is_written_on(editor) && editor.writing.model == document.scene().model->name)
    tokens = editor.writing.prompt_tokens();
  if (tokens > 0 && follow) tokens += std::ssize(side.tokens);
  const bool beyond = tokens > 0 && names_tokens_beyond(document.scene(), tokens);
  if (!follow && !beyond) return std::nullopt;
  Document shown = document;
  Scene& scene = shown.scene();
  if (follow) scene.input = TextInput{editor.writing.prompt + side.text, std::nullopt};
  if (!beyond) return shown;
  if (scene.query.value_or(0) >= tokens) {
    scene.default_query = true;
    scene.query.reset();
  }
  if (scene.key.value_or(0) >= tokens) scene.key.reset();
  std::erase_if(scene.hidden_tokens, [&](std::int64_t token) { return token + 1 >= tokens; });
  return shown;
}

void change_writing(Editor& editor, const std::string& label,
                    const std::function<void(WritingOptions&)>& edit, const std::string& gesture) {
  editor.change(
      label, [&](Document& document) { edit(document.writing); }, gesture);
}

} // namespace hydrascope::app
