#include "app/document/writing_edits.h"

#include <algorithm>

#include <fmt/format.h>

#include "app/document/edits.h"

namespace hydrascope::app {

namespace {

const TextInput* text_input(const Document& document) {
  const auto& input = document.scene().input;
  return input ? std::get_if<TextInput>(&*input) : nullptr;
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

std::optional<Document> followed_document(const Editor& editor) {
  const Document& document = editor.document();
  if (!document.writing.follow || document.kind != InputKind::text || !is_decoder(document.scene()) ||
      !editor.panel_open("write"))
    return std::nullopt;
  const TextInput* const text = text_input(document);
  const std::string& written = editor.writing.side(edited_side(document.view)).text;
  if (text == nullptr || text->pair || text->text != editor.writing.prompt || written.empty())
    return std::nullopt;
  Document followed = document;
  followed.scene().input = TextInput{editor.writing.prompt + written, std::nullopt};
  return followed;
}

void change_writing(Editor& editor, const std::string& label,
                    const std::function<void(WritingOptions&)>& edit, const std::string& gesture) {
  editor.change(
      label, [&](Document& document) { edit(document.writing); }, gesture);
}

} // namespace hydrascope::app
