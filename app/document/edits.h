// The user's changes to the document, each one undoable step, shared by panels and actions. open.cpp opens
// files, model_edits.cpp changes kernels, adapters and heads, edits.cpp the rest.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/document/editor.h"

namespace hydrascope::app {

// ---- Inputs, models and adapters. What cannot be opened is reported as a message and changes nothing; these
// functions return whether they opened it.

// A file or folder of any supported kind: picture, text file, session, figure, adapter, model folder, folder
// of pictures.
bool open_path(Editor& editor, const std::filesystem::path& path);
// FILE, FILE:PART or FILE:PART:SEQUENCE (engine/base/capture.h), in place of a model and its input.
bool open_capture(Editor& editor, const std::filesystem::path& named, const std::string& gesture = {});
// The same for a capture that another program has sent: the part and the sequence that are shown stay, and
// all that come one after another are one step of undo.
void show_received(Editor& editor, const std::filesystem::path& file);
// The next (`by` = 1) or previous (−1) sequence of the open capture, then of the other captures in its
// folder.
void step_capture(Editor& editor, int by);
void open_image(Editor& editor, ImageInput image);
void open_in_folder(Editor& editor, ImageInput image, const std::shared_ptr<const PictureFolder>& folder);
bool open_folder(Editor& editor, const std::filesystem::path& folder); // of pictures
void open_folder_picture(Editor& editor, std::size_t index);           // of the open folder
void close_folder(Editor& editor);
// The next (`by` = 1) or previous (−1) picture in display order; without an open folder, of the picture's own
// folder.
void step_picture(Editor& editor, int by);
void show_wrong_first(Editor& editor, bool wrong_first);
// Adds to the recent inputs of the File menu.
void remember(Editor& editor, RecentInput recent);
bool open_recent(Editor& editor, const RecentInput& recent);
void open_text(Editor& editor, const std::string& text, const std::optional<std::string>& pair = {});
// While the user types: changes with the same `burst` number are one undo step. Shows what is shown.
void type_text(Editor& editor, const std::string& text, const std::optional<std::string>& pair, int burst);
bool open_model(Editor& editor, const std::string& name_or_folder);
// Replaces the adapters by this file and the bundled adapters it was trained over.
bool open_adapter(Editor& editor, const std::filesystem::path& file);
void choose_adapters(Editor& editor, const AdapterChoice& choice);
// The file and the adapters it was trained over (bundled ones or among `others`), in order of application.
// Throws as read_adapter_info.
std::vector<std::filesystem::path> adapter_chain(const std::filesystem::path& file,
                                                 const std::vector<std::filesystem::path>& others = {});
void show_kind(Editor& editor, InputKind kind);
// Where models run, as --device takes it: "auto", "cpu", "cuda:0".
void choose_device(Editor& editor, const std::string& device);

std::vector<std::filesystem::path> example_pictures(); // the installed ones, sorted by name; may be empty
const std::vector<std::string>& example_sentences();
const std::vector<std::string>& example_beginnings(); // for decoders

// ---- Kernels

void set_layer_kernel(Editor& editor, int layer, const KernelSpec& kernel);
// Sets a parameter of a layer's kernel, with `everywhere` of all kernels of the same name; nullopt: the
// default. `gesture`: of the slider being dragged.
void set_kernel_parameter(Editor& editor, int layer, const std::string& parameter,
                          const std::optional<std::string>& value, bool everywhere,
                          const std::string& gesture = {});
void reset_kernel_parameters(Editor& editor, int layer, bool everywhere);
void set_all_kernels(Editor& editor, const KernelSpec& kernel);
// Sets the kernel in the strategy's k layers, softmax in the others. `gesture`: of the slider being dragged.
void apply_preset(Editor& editor, Strategy strategy, int k, const KernelSpec& kernel,
                  const std::string& gesture = {});
// ---- Maps: sources of the kernel `phi`, of the selected layer

// Names the layer whose map is edited, and its model and side: a check for another place is of no use.
std::string map_place(const Document& document);
// What the selected layer's map begins with: the source of its kernel, if it is known, or of the default map.
MapText first_map(const Document& document);
void show_map_editor(Editor& editor); // opens the panel "Your kernel"
// The same, with this source in it as if it had been typed.
void offer_map(Editor& editor, MapText source);
bool open_map(Editor& editor, const std::filesystem::path& file); // NAME.py; reports what cannot be read
void save_map(Editor& editor, const std::filesystem::path& file); // the editor's text, as it is
// Sets the selected layer's kernel, with `everywhere` in all layers that have the same one.
void set_map(Editor& editor, const KernelSpec& kernel, bool everywhere, const std::string& gesture);

void swap_sides(Editor& editor);
// The Weights panel's kernels: sets one, adds one, removes one (never the last).
void compare_kernel(Editor& editor, int position, const std::optional<KernelSpec>& kernel);
void add_compared_kernel(Editor& editor, const std::optional<KernelSpec>& kernel);
void drop_compared_kernel(Editor& editor, int position);
// The kernel of the Tokens and Vectors panels; nullopt = the layer's own.
void select_detail_kernel(Editor& editor, const std::optional<KernelSpec>& kernel);

// ---- Selection

void select_layer(Editor& editor, int layer);
void select_head(Editor& editor, const HeadChoice& head);
void select_cell(Editor& editor, int layer, int head);                // a layer and a head
void select_query(Editor& editor, std::optional<std::int64_t> token); // nullopt = all queries
void select_default_query(Editor& editor);
void select_key(Editor& editor, std::optional<std::int64_t> token); // nullopt = the query itself
void select_pair(Editor& editor, std::int64_t query, std::int64_t key);
// Adds a head to the shown ones or removes it (never the last); shows a head alone, or all if it is alone
// already.
void toggle_head(Editor& editor, int head);
void isolate_head(Editor& editor, int head);
void select_target(Editor& editor, const Target& target);

// ---- Hidden tokens: patches painted over, word pieces masked

std::string why_not_hidden(const Editor& editor, std::int64_t token); // "" = it can be hidden
// Tokens that cannot be hidden are skipped.
void hide_tokens(Editor& editor, std::int64_t first, std::int64_t count, bool hidden);
bool is_hidden(const Document& document, std::int64_t token);
void show_all_tokens(Editor& editor);

// ---- Muted heads: their output is zero

std::string why_not_muted(const Document& document); // "" = heads can be muted
bool is_muted(const Document& document, HeadIndex head);
int muted_in_layer(const Document& document, int layer); // number of heads
bool layer_is_muted(const Document& document, int layer);
// "muted", "2 of 12 heads muted"; empty if none is.
std::string muted_words(const Document& document, int layer);
void mute_head(Editor& editor, HeadIndex head, bool muted);
void mute_layer(Editor& editor, int layer, bool muted);
void unmute_all(Editor& editor);
// The head under the pointer, else the selected one; nullopt if heads are fused.
std::optional<HeadIndex> chosen_head(const Editor& editor);

// ---- View

void show_panel(Editor& editor, const std::string& id, const std::string& title, bool open);
// Adds a map to those shown side by side or removes it (never the last).
void toggle_map(Editor& editor, MapKind kind);
void change_view(Editor& editor, const std::string& label, const std::function<void(ViewOptions&)>& edit,
                 const std::string& gesture = {});

} // namespace hydrascope::app
