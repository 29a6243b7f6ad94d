// Names of tokens, and the controls that several panels share: which head, which query, which kernel.
#pragma once

#include <string>

#include "app/document/editor.h"
#include "engine/run/run.h"

namespace hydrascope::app {

// "class token", "row 3, column 4" (from 1), "“mice”"; `token` may lie outside (then its number).
std::string token_name(const RunResult& run, std::int64_t token);
// Which query a result was made for, in words: "class token", "all tokens".
std::string query_name(const RunResult& run);
// A word piece as it is read: without "##".
std::string plain_piece(const std::string& piece);

// One head, all heads fused, or a chosen few of them fused.
void head_combo(Editor& editor, float width);
// The same after the selected layer's number, as a toolbar begins.
void selected_head(Editor& editor);
// Chooses the kernel that Tokens, Vectors and Monotonicity look into; `shown` is the one they show now.
void detail_kernel_combo(Editor& editor, const KernelSpec& shown, float width);
// In place or teacher-forced.
void forced_choice(Editor& editor);

// The head whose vectors are shown: the selected one, the first of those that are fused, the last of a kernel
// that has fewer.
int vectors_head(const Document& document, const KernelSpec& kernel);

// `run` says what the tokens are and which of them the target reads; null before the first run, when only
// those can be chosen that every input has.
void query_combo(Editor& editor, const RunResult* run, float width);

} // namespace hydrascope::app
