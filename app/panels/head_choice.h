// Controls that several panels share: which heads, and on whose q and k.
#pragma once

#include "app/document/editor.h"

namespace hydrascope::app {

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

} // namespace hydrascope::app
