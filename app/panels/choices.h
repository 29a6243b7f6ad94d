// Names of tokens, and the controls that several panels share: which head, which query, which kernel.
#pragma once

#include <string>

#include "app/document/editor.h"
#include "engine/run/run.h"

namespace hydrascope::app {

// "class token", "row 3, column 4" (from 1), "“mice”"; "token 7" for an index that the run does not have.
std::string token_name(const RunResult& run, std::int64_t token);
// The query of a run: "class token", "all tokens".
std::string query_name(const RunResult& run);
// A word piece without "##".
std::string plain_piece(const std::string& piece);

// Chooses one head, all heads fused, or some heads fused.
void head_combo(Editor& editor, float width);
// The start of a toolbar: the number of the selected layer, and head_combo.
void selected_head(Editor& editor);
// Chooses the kernel of Tokens, Vectors and Monotonicity; `shown` is the current one.
void detail_kernel_combo(Editor& editor, const KernelSpec& shown, float width);
// Chooses between the queries and keys of this run and teacher-forced ones.
void forced_choice(Editor& editor);

// Chooses A, B, their difference, or all three side by side.
void side_choice(Editor& editor);
// Whether A and B have different kernels: then what shows one of them names it.
bool sides_differ(const Scene& scene);
// The kernels of what is shown, with the names of the sides where these differ: "B: elu ×12".
std::string kernels_text(const Document& document);

// How many heads a kernel has in the document's model: as many as its own parameter says, else the model's.
int kernel_heads(const Document& document, const KernelSpec& kernel);
// The head whose vectors are shown: the selected one, or the first of fused heads; at most the kernel's last
// head.
int vectors_head(const Document& document, const KernelSpec& kernel);

// Chooses the query. `run` has the tokens and the query that the target reads; if it is null, only the tokens
// that every input has can be chosen.
void query_combo(Editor& editor, const RunResult* run, float width);

} // namespace hydrascope::app
