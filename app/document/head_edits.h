// Muting heads: what they say no longer reaches the rest of the model. Each is one undoable step.
#pragma once

#include <optional>
#include <string>

#include "app/document/editor.h"

namespace hydrascope::app {

bool is_muted(const Document& document, HeadIndex head);
int muted_in_layer(const Document& document, int layer); // how many heads
bool layer_is_muted(const Document& document, int layer);
// "muted", "2 of 12 heads muted"; empty where none is.
std::string muted_words(const Document& document, int layer);

void mute_head(Editor& editor, HeadIndex head, bool muted);
void mute_layer(Editor& editor, int layer, bool muted);
void unmute_all(Editor& editor);

// What the pointer is on, else the selected head; nullopt where heads are fused.
std::optional<HeadIndex> chosen_head(const Editor& editor);

} // namespace hydrascope::app
