// What the window's tests share: the running application and how to wait for it.
#pragma once

#include <filesystem>
#include <string>

#include <imgui.h>
#include <imgui_te_context.h>
#include <imgui_te_engine.h>

#include "app/window/application.h"

namespace hydrascope::app::window_tests {

// Set by main before any test runs.
Application& application();
inline Editor& editor() { return application().editor(); }
inline const Document& document() { return application().editor().document(); }
// As it is now, to be compared with what it becomes.
inline Document copy_of_document() { return document(); }
inline const SideResults& results() { return application().coordinator().results(Side::a); }

// Lets frames pass until every panel has what it asked for.
void settle(ImGuiTestContext* context);
// The document as it was when the program started, with the first example picture.
void start_over(ImGuiTestContext* context);
std::string last_error();
std::filesystem::path scratch_file(const std::string& name);

void register_input_tests(ImGuiTestEngine* engine);
void register_kernel_tests(ImGuiTestEngine* engine);
void register_selection_tests(ImGuiTestEngine* engine);
void register_shell_tests(ImGuiTestEngine* engine);

} // namespace hydrascope::app::window_tests
