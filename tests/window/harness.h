// What the window's tests share: the running application and how to wait for it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <imgui.h>
#include <imgui_te_context.h>
#include <imgui_te_engine.h>

#include "app/shell/application.h"

namespace hydrascope::app::window_tests {

// The kernels that tests replace softmax by.
inline const KernelSpec softmax, elu{"elu", {}}, hedgehog{"hedgehog", {}}, hydra{"hydra-cosine", {}};

// Set by main before any test runs.
Application& application();
inline Editor& editor() { return application().editor(); }
inline const Document& document() { return application().editor().document(); }
// As it is now, to be compared with what it becomes.
inline Document copy_of_document() { return document(); }
inline const SideResults& results() { return application().coordinator().results(Side::a); }
// A classifier's logits, by class.
std::vector<double> logits(const RunResult& run);

// Lets frames pass until every panel has what it asked for.
void settle(ImGuiTestContext* context);
// The document as it was when the program started, with the first example picture, and the settings that it
// started with; nothing open that an action opens.
void start_over(ImGuiTestContext* context);
// The same without waiting for a run.
void start_over_at_once();
// Does it after the next frame, on the thread that draws: a test has its own, which knows no OpenGL.
void between_frames(ImGuiTestContext* context, std::function<void()> work);
// Of the window, in pixels.
void resize(ImGuiTestContext* context, int width, int height);
std::string last_error();
// Whether a window of this id was drawn in the last frame.
bool is_shown(const char* window);
// Moves the pointer over the reference window's table of heads to this head's cell; fails the test where
// there is none.
void point_at_head(ImGuiTestContext* context, HeadIndex head);
// What the desktop's next file dialog is answered with; without it it is cancelled.
void answer_dialog(const std::filesystem::path& file);
// Of the dialog that is opened in these frames; waits until it is answered. Empty: none was opened.
std::string title_of_dialog(ImGuiTestContext* context);
void dismiss_messages(Editor& editor);
// The session that is shown, as it is written for this file. Fails the test where it reads back as another.
std::string written_session(const std::filesystem::path& file);
// The same choices, and pictures of the same pixels: documents that were read hold pictures of their own.
bool same_content(const Document& left, Document right);
// A name in a folder of this process's own, below the system's for temporary files. Nothing is there yet.
std::filesystem::path scratch_file(const std::string& name);
std::filesystem::path fresh_folder(const std::string& name); // there, and empty
std::filesystem::path golden_decoder();                      // tiny, of random weights
// Opens it with a text, softmax on A and elu on B.
void open_decoder(ImGuiTestContext* context, const std::string& text = "the cat sat on the mat");
std::filesystem::path example(
    const std::string& name); // the bundled picture of this stem; empty if there is none

void register_action_tests(ImGuiTestEngine* engine);
void register_appearance_tests(ImGuiTestEngine* engine);
void register_capture_tests(ImGuiTestEngine* engine);
void register_clipboard_tests(ImGuiTestEngine* engine);
void register_device_tests(ImGuiTestEngine* engine);
void register_display_tests(ImGuiTestEngine* engine);
void register_folder_tests(ImGuiTestEngine* engine);
void register_hidden_token_tests(ImGuiTestEngine* engine);
void register_export_tests(ImGuiTestEngine* engine);
void register_focus_map_tests(ImGuiTestEngine* engine);
void register_focus_tests(ImGuiTestEngine* engine);
void register_get_model_tests(ImGuiTestEngine* engine);
void register_head_tests(ImGuiTestEngine* engine);
void register_frame_tests(ImGuiTestEngine* engine);
void register_input_tests(ImGuiTestEngine* engine);
void register_kernel_tests(ImGuiTestEngine* engine);
void register_layout_tests(ImGuiTestEngine* engine);
void register_own_kernel_tests(ImGuiTestEngine* engine);
void register_run_tests(ImGuiTestEngine* engine);
void register_screenshots(ImGuiTestEngine* engine);
void register_selection_tests(ImGuiTestEngine* engine);
void register_session_tests(ImGuiTestEngine* engine);
void register_session_store_tests(ImGuiTestEngine* engine);
void register_settings_tests(ImGuiTestEngine* engine);
void register_shell_tests(ImGuiTestEngine* engine);
void register_column_tests(ImGuiTestEngine* engine);
void register_text_tests(ImGuiTestEngine* engine);
void register_tour_tests(ImGuiTestEngine* engine);
void register_gallery_tests(ImGuiTestEngine* engine);
void register_timing_tests(ImGuiTestEngine* engine);
void register_training_tests(ImGuiTestEngine* engine);
void register_training_option_tests(ImGuiTestEngine* engine);
void register_view_tests(ImGuiTestEngine* engine);
void register_decoder_tests(ImGuiTestEngine* engine);
void register_soak_tests(ImGuiTestEngine* engine);

// The loop of the program in place of the test engine's, which draws all the time: whether frames are drawn
// when something happens and only then. Returns what went wrong; empty if nothing did.
std::string check_idle_gate(Application& application);
// A session saved by one program and opened by others that start after it. Returns what is not as it was;
// empty if all is. No other program may run in this process meanwhile.
std::string check_restart(const WindowOptions& options);

} // namespace hydrascope::app::window_tests
