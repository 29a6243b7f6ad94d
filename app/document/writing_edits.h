// What the document says of the text that a decoder writes after its own, and taking that text over.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "app/document/editor.h"

namespace hydrascope::app {

// Model, adapters, the side's schedule and how it is computed: what was written under one setup cannot go on
// under another.
std::string writing_setup(const Document& document, Side side);
// Why nothing can be written; empty: it can.
std::string why_not_written(const Document& document);
// Whether Editor::writing is of the document's text and of its kernels.
bool writing_fits(const Editor& editor);
// Why it does not go on; empty: it can.
std::string why_not_continued(const Editor& editor);

// Why a side's text cannot be taken over; empty: it can.
std::string why_not_taken_over(const Editor& editor, Side side);
// Appends what a side has written to the document's text, as one undoable step.
void take_over_writing(Editor& editor, Side side);
// The document's text is that of a side with what it wrote.
bool is_taken_over(const Document& document, const Writing& writing, Side side);

// Whether the other panels show the text with what was written, on the side that they show.
bool panels_follow(const Editor& editor);
// The document as the other panels show it: where they follow, its text goes on with what was written on the
// side that is shown. A query, a key and hidden tokens that the shown text does not have are left out.
// nullopt: as it is.
std::optional<Document> followed_document(const Editor& editor);

void change_writing(Editor& editor, const std::string& label,
                    const std::function<void(WritingOptions&)>& edit, const std::string& gesture = {});

} // namespace hydrascope::app
