// The changes a user can make to the document, each one undoable step. Panels and actions share them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "app/document/editor.h"

namespace hydrascope::app {

// A file or folder of any kind the window takes: picture, text file, model folder, folder of pictures. What
// cannot be opened is reported as a message, and what was open stays. Returns whether it was opened.
bool open_path(Editor& editor, const std::filesystem::path& path);
void open_image(Editor& editor, ImageInput image);
void open_in_folder(Editor& editor, ImageInput image, const std::shared_ptr<const PictureFolder>& folder);
bool open_folder(Editor& editor, const std::filesystem::path& folder); // of pictures
void open_folder_picture(Editor& editor, std::size_t index);           // of the folder that is open
void close_folder(Editor& editor);
// The picture `by` places further in the order shown; without an open folder in that of the picture that is
// open.
void step_picture(Editor& editor, int by);
void show_wrong_first(Editor& editor, bool wrong_first);
// What was open, for the File menu; examples, which have a menu of their own, are left out.
void remember(Editor& editor, RecentInput recent);
bool open_recent(Editor& editor, const RecentInput& recent);
void open_text(Editor& editor, const std::string& text, const std::optional<std::string>& pair = {});
// While a sentence is being typed: the changes of one `burst`, a number that grows with every new one, are
// one undo step.
void type_text(Editor& editor, const std::string& text, const std::optional<std::string>& pair, int burst);
// An adapter's file, which replaces the automatic choice, together with the bundled ones it was trained over.
bool open_adapter(Editor& editor, const std::filesystem::path& file);
void choose_adapters(Editor& editor, const AdapterChoice& choice);
bool open_model(Editor& editor, const std::string& name_or_folder);
void show_kind(Editor& editor, InputKind kind);

void set_layer_kernel(Editor& editor, int layer, const KernelSpec& kernel);
// One parameter of a layer's kernel, or of every layer with a kernel of that name; nullopt = left out, which
// is its default. `gesture`: from a slider that is being dragged.
void set_kernel_parameter(Editor& editor, int layer, const std::string& parameter,
                          const std::optional<std::string>& value, bool everywhere,
                          const std::string& gesture = {});
void reset_kernel_parameters(Editor& editor, int layer, bool everywhere);
void set_all_kernels(Editor& editor, const KernelSpec& kernel);
// The strategy's k layers get the kernel, the others softmax. `gesture`: from a slider that is being dragged.
void apply_preset(Editor& editor, Strategy strategy, int k, const KernelSpec& kernel,
                  const std::string& gesture = {});
void swap_sides(Editor& editor);

void select_layer(Editor& editor, int layer);
void select_head(Editor& editor, const HeadChoice& head);
void select_cell(Editor& editor, int layer, int head);                // a layer and head at once
void select_query(Editor& editor, std::optional<std::int64_t> token); // nullopt = all queries
void select_default_query(Editor& editor);
void select_key(Editor& editor, std::optional<std::int64_t> token); // nullopt = the query itself
void select_pair(Editor& editor, std::int64_t query, std::int64_t key);
// Of the heads that are shown: adds one or takes it away (the last one stays); shows it alone, or all where
// it is shown alone already.
void toggle_head(Editor& editor, int head);
void isolate_head(Editor& editor, int head);
// Hiding a token of the input: a patch is painted over, a word piece masked. Nothing happens to one that
// cannot be hidden, which `why_not_hidden` says in words ("" = it can be).
std::string why_not_hidden(const Document& document, std::int64_t token);
void hide_tokens(Editor& editor, std::int64_t first, std::int64_t count, bool hidden);
bool is_hidden(const Document& document, std::int64_t token);
void show_all_tokens(Editor& editor);

void select_target(Editor& editor, const Target& target);
void compare_kernel(Editor& editor, int position, const std::optional<KernelSpec>& kernel);
void show_panel(Editor& editor, const std::string& id, const std::string& title, bool open);
void select_detail_kernel(Editor& editor,
                          const std::optional<KernelSpec>& kernel); // nullopt = the layer's own
// Adds a kernel to the comparison; takes one away (the last one stays).
void add_compared_kernel(Editor& editor, const std::optional<KernelSpec>& kernel);
void drop_compared_kernel(Editor& editor, int position);
// Of the maps that stand side by side: adds one or takes it away (the last one stays).
void toggle_map(Editor& editor, MapKind kind);
void change_view(Editor& editor, const std::string& label, const std::function<void(ViewOptions&)>& edit,
                 const std::string& gesture = {});

} // namespace hydrascope::app
