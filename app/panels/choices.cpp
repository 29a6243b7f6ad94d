#include "app/panels/choices.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include <fmt/format.h>

#include "app/document/edits.h"
#include "app/panels/side_columns.h"
#include "app/ui/widgets.h"
#include "app/views/token_map.h"

namespace hydrascope::app {

std::string plain_piece(const std::string& piece) {
  return piece.starts_with("##") && piece.size() > 2 ? piece.substr(2) : piece;
}

std::string token_name(const RunResult& run, std::int64_t token) {
  if (run.rows > 0) {
    if (token < run.prefix_tokens) return prefix_name(run, static_cast<std::size_t>(token));
    // Rows and columns from 1, as in the files that a run writes.
    const std::int64_t patch = token - run.prefix_tokens;
    return fmt::format("row {}, column {}", patch / run.columns + 1, patch % run.columns + 1);
  }
  if (token < 0 || static_cast<std::size_t>(token) >= run.tokens.size())
    return fmt::format("token {}", token);
  return fmt::format("“{}”", token_text(run, static_cast<std::size_t>(token)));
}

std::string query_name(const RunResult& run) {
  return run.query ? token_name(run, *run.query) : "all tokens";
}

void head_combo(Editor& editor, float width) {
  const Scene& scene = editor.document().scene();
  const int heads = scene.model ? scene.model->heads : 0;
  ImGui::SetNextItemWidth(width);
  const std::string shown = fitted(scene.head.text(), width - ImGui::GetFrameHeight() - 8);
  if (!ImGui::BeginCombo("##head", shown.c_str(), ImGuiComboFlags_HeightLarge)) return;
  for (const HeadFusion fusion : {HeadFusion::mean, HeadFusion::min, HeadFusion::max}) {
    HeadChoice choice{.head = std::nullopt, .fusion = fusion, .subset = scene.head.subset};
    if (ImGui::Selectable(choice.text().c_str(), scene.head == choice)) select_head(editor, choice);
  }
  if (!scene.head.subset.empty()) {
    if (ImGui::Selectable("all heads", false))
      select_head(editor, {.head = std::nullopt, .fusion = scene.head.fusion});
  }
  ImGui::Separator();
  const std::vector<int> chosen = shown_heads(scene.head, heads);
  for (int head = 0; head < heads; ++head) {
    ImGui::PushID(head);
    bool on = std::ranges::count(chosen, head) > 0;
    if (check_box("##fused", &on)) toggle_head(editor, head);
    if (ImGui::IsItemHovered()) text_tooltip("fuse this head with the others that are ticked");
    ImGui::SameLine(0, 6);
    const HeadChoice choice{.head = head, .fusion = scene.head.fusion};
    if (ImGui::Selectable(choice.text().c_str(), scene.head.head == head)) select_head(editor, choice);
    if (const std::string shares = shares_keys_text(*scene.model, head);
        !shares.empty() && ImGui::IsItemHovered())
      text_tooltip(shares);
    ImGui::PopID();
  }
  ImGui::EndCombo();
}

void selected_head(Editor& editor) {
  ImGui::AlignTextToFramePadding();
  ImGui::TextColored(theme::quiet, "layer %d", editor.document().scene().layer);
  ImGui::SameLine(0, 12);
  head_combo(editor, 124);
}

void detail_kernel_combo(Editor& editor, const KernelSpec& shown, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  kernel_square(ImGui::GetWindowDrawList(), {at.x + 5, at.y + ImGui::GetFrameHeight() / 2}, 10, shown.name);
  ImGui::SetCursorScreenPos({at.x + 16, at.y});
  const int picked = kernel_combo("##detail_kernel", shown.label(), true, width - 16, editor.list_search());
  if (picked == -1) select_detail_kernel(editor, std::nullopt);
  if (picked >= 0) {
    select_detail_kernel(
        editor, KernelSpec{.name = kernel_infos()[static_cast<std::size_t>(picked)].name, .parameters = {}});
  }
}

void forced_choice(Editor& editor) {
  static constexpr std::array<const char*, 2> forced = {"this run", "softmax inputs"};
  const int force = segmented("forced", forced, editor.document().view.teacher_forced ? 1 : 0);
  if (ImGui::IsItemHovered())
    text_tooltip(
        "Choose the queries and keys that a kernel gets.\nthis run: as they are in this run\n"
        "softmax inputs: as they are with softmax in every layer (teacher-forced), the same for every "
        "kernel");
  if (force >= 0)
    change_view(editor, "Softmax inputs", [&](ViewOptions& v) { v.teacher_forced = force == 1; });
}

void side_choice(Editor& editor) {
  static const std::array<const char*, 4> sides = {side_name(Shown::a), side_name(Shown::b),
                                                   side_name(Shown::difference), "side by side"};
  const int side = segmented("side", sides, static_cast<int>(editor.document().view.shown));
  if (ImGui::IsItemHovered())
    text_tooltip(
        "A and B are two schedules of kernels on the same input: A is the one you start with, B is softmax "
        "in\n"
        "every layer. Where B alone is shown, Model and kernels changes B.");
  if (side >= 0)
    change_view(editor, "Choose side", [&](ViewOptions& v) { v.shown = static_cast<Shown>(side); });
}

bool sides_differ(const Scene& scene) { return scene.schedules[0] != scene.schedules[1]; }

std::string kernels_text(const Document& document) {
  const Scene& scene = document.scene();
  if (edited_schedule(document).layers.empty()) return {};
  if (!sides_differ(scene)) return edited_schedule(document).summary();
  const auto text_of = [&](Side side) {
    return fmt::format("{}: {}", side_name(side), scene.schedules[static_cast<std::size_t>(side)].summary());
  };
  if (!shows_both(document.view)) return text_of(edited_side(document.view));
  const std::string both = text_of(Side::a) + "   " + text_of(Side::b);
  return document.view.shown == Shown::all ? both
                                           : fmt::format("{}   {}", side_name(Shown::difference), both);
}

int kernel_heads(const Document& document, const KernelSpec& kernel) {
  const Scene& scene = document.scene();
  int heads = scene.model ? scene.model->heads : 1;
  if (const auto own = kernel.parameters.find("heads"); own != kernel.parameters.end())
    std::from_chars(own->second.data(), own->second.data() + own->second.size(), heads);
  return heads;
}

int vectors_head(const Document& document, const KernelSpec& kernel) {
  const Scene& scene = document.scene();
  const std::vector<int> shown = shown_heads(scene.head, scene.model ? scene.model->heads : 1);
  return std::clamp(shown.empty() ? 0 : shown.front(), 0, std::max(kernel_heads(document, kernel) - 1, 0));
}

namespace {

bool chosen(const Scene& scene, std::optional<std::int64_t> token) {
  return !scene.default_query && scene.query == token;
}

void distillation_entry(Editor& editor) {
  const Document& document = editor.document();
  const Scene& scene = document.scene();
  const bool image = document.kind == InputKind::image;
  const bool there = image && scene.model && has_distillation_token(scene.model->prefix_tokens);
  ImGui::BeginDisabled(!there);
  if (ImGui::Selectable("distillation token", there && chosen(scene, 1))) select_query(editor, 1);
  ImGui::EndDisabled();
  if (there || !ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled)) return;
  const std::string model = scene.model ? scene.model->name : "no model";
  text_tooltip(fmt::format("{} has no distillation token: distilled DeiT models have one", model));
}

// Of a recorded model that has registers.
void register_entries(Editor& editor, const RunResult& run) {
  for (std::int64_t token = 1; run.prefix_tokens > 2 && token < run.prefix_tokens; ++token)
    if (ImGui::Selectable(token_name(run, token).c_str(), chosen(editor.document().scene(), token)))
      select_query(editor, token);
}

// Row and column of a patch, initially of the middle one.
void patch_entry(Editor& editor, const RunResult& run) {
  const Scene& scene = editor.document().scene();
  const bool a_patch = !scene.default_query && scene.query && *scene.query >= run.prefix_tokens;
  const int patch = a_patch ? static_cast<int>(*scene.query) - run.prefix_tokens
                            : run.rows / 2 * run.columns + run.columns / 2;
  int row = patch / run.columns + 1, column = patch % run.columns + 1;
  if (ImGui::Selectable("patch …", a_patch, ImGuiSelectableFlags_NoAutoClosePopups))
    select_query(editor, run.prefix_tokens + patch);
  if (ImGui::IsItemHovered()) text_tooltip("or click a patch in the map");
  ImGui::SetNextItemWidth(96);
  bool moved = ImGui::InputInt("row", &row);
  ImGui::SetNextItemWidth(96);
  moved |= ImGui::InputInt("column", &column);
  if (!moved) return;
  row = std::clamp(row, 1, run.rows);
  column = std::clamp(column, 1, run.columns);
  select_query(editor, run.prefix_tokens + (row - 1) * run.columns + column - 1);
}

void word_entries(Editor& editor, const RunResult& run) {
  const Scene& scene = editor.document().scene();
  // A model's class token has an entry of its own.
  const std::int64_t first = run.model.causal || run.model.capture ? 0 : 1;
  for (std::int64_t token = first; token < static_cast<std::int64_t>(run.tokens.size()); ++token) {
    ImGui::PushID(static_cast<int>(token));
    const std::string name = as_label(token_name(run, token));
    if (ImGui::Selectable(name.c_str(), chosen(scene, token))) select_query(editor, token);
    ImGui::PopID();
  }
}

} // namespace

void query_combo(Editor& editor, const RunResult* run, float width) {
  const Document& document = editor.document();
  const Scene& scene = document.scene();
  const bool image = document.kind == InputKind::image;
  const bool decoder = is_decoder(scene), capture = is_capture(scene);
  const bool has_class = capture ? image && scene.model->prefix_tokens > 0 : !decoder;
  const std::string name = run == nullptr ? "default" : query_name(*run);
  ImGui::SetNextItemWidth(width);
  const std::string preview = fitted(as_label("query: " + name), width - ImGui::GetFrameHeight() - 8);
  if (!ImGui::BeginCombo("##query", preview.c_str(), ImGuiComboFlags_HeightLarge)) return;
  if (ImGui::Selectable("default", scene.default_query)) select_default_query(editor);
  if (ImGui::IsItemHovered())
    text_tooltip(decoder      ? "Reset query: the last token, from which the next one is predicted"
                 : !has_class ? "Reset query: all tokens; where there are many, the last one"
                 : capture    ? "Reset query: the class token"
                              : "Reset query: the class token where the classifier reads it alone, else all "
                                "tokens");
  if (has_class) {
    if (ImGui::Selectable(image ? "class token" : "class token [CLS]", chosen(scene, 0)))
      select_query(editor, 0);
    distillation_entry(editor);
  }
  if (ImGui::Selectable("all tokens", chosen(scene, std::nullopt))) select_query(editor, std::nullopt);
  if (run != nullptr) {
    ImGui::Separator();
    if (image) {
      register_entries(editor, *run);
      patch_entry(editor, *run);
    } else {
      word_entries(editor, *run);
    }
  }
  ImGui::EndCombo();
}

} // namespace hydrascope::app
