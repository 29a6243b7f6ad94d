#include "app/panels/training_form_view.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <imgui_stdlib.h>

#include "app/window/widgets.h"

namespace hydrascope::app {

namespace {

constexpr float label_width = 104;

// Labels and controls below each other; what is hovered says where its default comes from.
class Rows {
public:
  Rows(Editor& editor, TrainingPlan& plan) : editor_(editor), plan_(plan) {}

  // Where the control follows, over all the width that is left but for `room`.
  static void label(const char* text, const char* tooltip, float room = 0) {
    field_label(text, label_width);
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", tooltip);
    ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x - room);
  }
  static void text(const char* name, std::string& value, const std::string& hint, const char* tooltip) {
    label(name, tooltip);
    ImGui::InputTextWithHint(fmt::format("##{}", name).c_str(), hint.c_str(), &value);
    said(tooltip);
  }
  void path(const char* name, std::string& value, const std::string& hint, const char* tooltip,
            Dialog dialog) {
    constexpr float button = 30;
    label(name, tooltip, button + 4);
    ImGui::InputTextWithHint(fmt::format("##{}", name).c_str(), hint.c_str(), &value);
    if (ImGui::IsItemHovered()) text_tooltip(value.empty() ? std::string(tooltip) : value + "\n" + tooltip);
    ImGui::SameLine(0, 4);
    if (ImGui::Button(fmt::format("…##{}", name).c_str(), {button, 0})) editor_.emit(ShowDialog{dialog});
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("Choose…");
  }
  static void number(const char* name, int& value, int least, int most, const char* tooltip) {
    label(name, tooltip);
    limit_width();
    if (ImGui::InputInt(fmt::format("##{}", name).c_str(), &value, 0)) value = std::clamp(value, least, most);
    said(tooltip);
  }
  static void number(const char* name, double& value, double least, double most, const char* tooltip) {
    label(name, tooltip);
    limit_width();
    if (ImGui::InputDouble(fmt::format("##{}", name).c_str(), &value, 0, 0, "%g"))
      value = std::clamp(value, least, most);
    said(tooltip);
  }
  static void flag(const char* name, bool& value, const char* tooltip) {
    label("", tooltip);
    ImGui::Checkbox(name, &value);
    said(tooltip);
  }
  TrainingPlan& plan() { return plan_; }

private:
  static void limit_width() {
    constexpr float most = 96;
    ImGui::SetNextItemWidth(std::min(most, ImGui::GetContentRegionAvail().x));
  }
  static void said(const char* tooltip) {
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", tooltip);
  }

  Editor& editor_;
  TrainingPlan& plan_;
};

void kernel_row(TrainingForm& form) {
  Rows::label("Kernel",
              "Whose feature maps learn to give softmax's weights.\nThose that distillation can train; T2R's "
              "are trained with a task, by fine-tuning.");
  if (!ImGui::BeginCombo("##kernel", form.kernel.text().c_str())) return;
  for (const std::string& name : distillable_kernels()) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float height = ImGui::GetTextLineHeight();
    kernel_square(ImGui::GetWindowDrawList(), {at.x + height / 2, at.y + height / 2}, 9, name);
    ImGui::SetCursorScreenPos({at.x + height + 6, at.y});
    if (ImGui::Selectable(name.c_str(), name == form.kernel.name))
      form.kernel = {.name = name, .parameters = {}};
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", kernel_info(name).definition.c_str());
  }
  ImGui::EndCombo();
}

void schedule_rows(const Document& document, Rows& rows) {
  Rows::label("Schedule",
              "The kernels in place, as the grid of the Kernels panel has them: training goes through them");
  ImGui::AlignTextToFramePadding();
  ellipsis_text(edited_schedule(document).summary(), ImGui::GetContentRegionAvail().x);
  Rows::text("Layers", rows.plan().layers, "what the schedule replaces",
             "Which parameters are trained: 8-11,head or 10-11.attention,head or 0-11,head,embeddings.\n"
             "Left empty: the layers that the schedule replaces, or the last four, and the head.");
  Rows::text(
      "LoRA", rows.plan().lora, "whole weights",
      "rank=8,alpha=16: of these layers the attention's four projections alone, each by an update of low\n"
      "rank (Hu et al. 2022), as the Hedgehog paper does for large models. Left empty: whole weights.");
}

void data_rows(const Document& document, TrainingKind kind, Rows& rows) {
  TrainingPlan& plan = rows.plan();
  const bool image = document.kind == InputKind::image;
  const bool distills = kind == TrainingKind::distill;
  rows.path("Data", plan.data, image ? "a folder of pictures" : "a text file or a table (.tsv)",
            image ? (distills ? "Folders of pictures at any depth, several with ; between them"
                              : "A folder with a sub-folder of pictures for each class")
                  : (distills ? "A text a line, or a column of a tab-separated table;\nseveral files with ; "
                                "between them"
                              : "A tab-separated table, an example a line"),
            Dialog::training_data);
  if (!distills)
    rows.path("Held out", plan.validation, "a share of the data",
              "The same kind of data, never trained on.\nLeft empty: a share of the data.",
              Dialog::training_validation);
  if (image) return;
  Rows::number("Text column", plan.column, distills ? 0 : 1, 999,
               distills ? "Of tables, from 1; 0: whole lines.\nCoLA: 4. MRPC: 4."
                        : "Of the table, from 1. CoLA: 4. MRPC: 4.");
  Rows::number("Second text", plan.pair_column, 0, 999, "Column of the second text; 0: none. MRPC: 5.");
  if (!distills) Rows::number("Label column", plan.label_column, 1, 999, "CoLA: 2. MRPC: 1.");
  Rows::flag("first line is a header", plan.header, "The first line of tables is skipped");
  if (distills)
    Rows::text("Chunk", plan.chunk, "a text a line",
               "Plain texts: lines joined and cut to so many tokens, 512,\nor to random lengths, 16-256");
  Rows::number("Items", plan.limit, 0, 100'000'000, "Of each file at most so many, the first ones; 0: all");
}

void number_rows(InputKind input, TrainingKind kind, Rows& rows) {
  TrainingPlan& plan = rows.plan();
  const bool image = input == InputKind::image;
  const bool distills = kind == TrainingKind::distill;
  Rows::number("Epochs", plan.epochs, 1, 1000,
               distills ? "At most. Hedgehog paper, A.3: texts up to 5, pictures 2."
                        : "At most. Hedgehog paper, A.3: texts up to 5, pictures up to 10.");
  Rows::number("Batch", plan.batch, 1, 4096,
               distills ? "Items a step. Hedgehog paper, A.3: texts 8, pictures 32."
               : !image ? "Items a step. Hedgehog paper, A.3: 8."
                        : "Items a step. The paper has no number for fine-tuning on pictures;\n32 is "
                          "that of its distillation.");
  Rows::number("Learning rate", plan.learning_rate, 1e-9, 10.0,
               distills ? "Of AdamW, without weight decay. Hedgehog paper, A.3: 0.01, constant."
                        : "The peak of a cosine, AdamW. Hedgehog paper, A.3: texts 1e-5, pictures 1e-3.");
  if (distills)
    Rows::flag(
        "falls along a cosine", plan.cosine,
        "The learning rate ends at 0: closer to softmax after as many epochs.\nThe Hedgehog paper keeps "
        "it constant.");
  Rows::number("Held-out share", plan.validation_share, 0.001, 0.9,
               "Of the items, never trained on: validation. The papers have splits of their own; 5 % to "
               "distil, 10 % to fine-tune are ours.");
  Rows::number("Patience", plan.patience, 0, 1000,
               "Stops after so many epochs that made the validation no better; 0: never.\nThe Hedgehog paper "
               "stops early and gives no number; 1 is ours.");
  if (distills) return;
  Rows::number("Warm-up", plan.warmup, 0.0, 1.0,
               "Share of the steps over which the learning rate rises to its peak.\nOurs: the Hedgehog paper "
               "gives the cosine alone.");
  Rows::number("Weight decay", plan.weight_decay, 0.0, 1.0,
               "Hedgehog paper, A.3: none. DeiT's recipe (table 9): 0.05.");
  Rows::number("Label smoothing", plan.label_smoothing, 0.0, 0.99,
               image ? "DeiT, table 9: 0.1." : "None for texts: neither paper names one.");
  Rows::number(
      "Distillation", plan.distillation_alpha, 0.0, 1.0,
      "Share of the loss that is the divergence from the same model as it was trained with softmax.\n"
      "DeiT's soft distillation: 0.1; none is ours, as the Hydra paper trains from labels.");
  if (plan.distillation_alpha > 0)
    Rows::number("Temperature", plan.distillation_tau, 0.1, 100.0,
                 "By which both sides' logits are divided. DeiT's soft distillation: 3.");
  Rows::number("Hidden states", plan.distillation_hidden, 0.0, 1000.0,
               "Times this the loss has the distance of hidden states from the same model's with softmax, "
               "too\n(TinyBERT, Eq. 8). Ours: 5 for Hedgehog in all layers.");
  if (!image) return;
  Rows::number("Copies", plan.copies, 0, 100,
               "Cached versions of each picture: itself, then augmented ones.\nOurs: what enters the first "
               "trained layer is computed once, not every epoch.\n0: every step makes a new version.");
  Rows::number("Smallest crop", plan.smallest_crop, 0.01, 1.0,
               "Share of the picture that a random crop keeps at least.\nDeiT takes torchvision's 0.08; 0.35 "
               "is ours, for the few copies that are cached.");
  Rows::number("Colour jitter", plan.color_jitter, 0.0, 1.0,
               "By how much brightness, contrast and saturation change at most.\nDeiT's program: 0.3.");
  Rows::number("Mixup", plan.mixup, 0.0, 10.0,
               "α of the Beta distribution by which two pictures are mixed; 0: none.\nDeiT, table 9: 0.8, "
               "for 300 epochs; none is ours, for a few.");
  Rows::number(
      "Patch dropout", plan.patch_dropout, 0.0, 0.95,
      "Share of a picture's patches that a step leaves out, at random.\nLiu et al. (2022): 0.5 halves "
      "the time and keeps the accuracy; none is ours.");
  Rows::flag("mirrored copies", plan.flip, "Every other copy, by chance. DeiT mirrors, too.");
}

// The numbers of the papers, with the user's own data and files.
TrainingPlan with_papers_numbers(const TrainingPlan& plan, TrainingKind kind, InputKind input) {
  TrainingPlan fresh = default_plan(kind, input);
  fresh.data = plan.data;
  fresh.validation = plan.validation;
  fresh.column = plan.column;
  fresh.pair_column = plan.pair_column;
  fresh.label_column = plan.label_column;
  fresh.header = plan.header;
  fresh.chunk = plan.chunk;
  fresh.limit = plan.limit;
  fresh.layers = plan.layers;
  fresh.lora = plan.lora;
  fresh.output = plan.output;
  return fresh;
}

void output_rows(Editor& editor, const std::string& default_output, Rows& rows) {
  TrainingForm& form = editor.training_form;
  const std::string before = rows.plan().output;
  const std::string about = fmt::format(
      "The adapter to be written (safetensors). Checkpoints go beside it.\nNothing that is there is replaced "
      "without a question.\nLeft empty: {}",
      default_output);
  rows.path("Output", rows.plan().output, std::filesystem::path(default_output).filename().string(),
            about.c_str(), Dialog::training_output);
  if (rows.plan().output != before) editor.training.question = TrainingQuestion::none;
  Rows::label("Refresh", "How often the panels take up the model in training, while they show it");
  constexpr float width = 64;
  ImGui::SetNextItemWidth(width);
  if (ImGui::InputDouble("##refresh", &form.live_seconds, 0, 0, "%g"))
    form.live_seconds = std::clamp(form.live_seconds, 0.01, 3600.0);
  ImGui::SameLine(0, 6);
  ImGui::AlignTextToFramePadding();
  ImGui::TextColored(theme::quiet, "seconds of training");
}

} // namespace

void draw_training_form(Editor& editor, const Graphics& graphics, const std::string& default_output) {
  TrainingForm& form = editor.training_form;
  const Document& document = editor.document();
  ImGui::PushFont(graphics.fonts().regular, theme::size_small);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(ImGui::GetStyle().FramePadding.x, 2));
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(ImGui::GetStyle().ItemSpacing.x, 4));
  static constexpr std::array<const char*, 2> kinds = {"Distil", "Fine-tune"};
  if (const int clicked = segmented("kind", kinds, static_cast<int>(form.kind)); clicked >= 0) {
    form.kind = static_cast<TrainingKind>(clicked);
    editor.training.question = TrainingQuestion::none;
  }
  if (ImGui::IsItemHovered())
    ImGui::SetTooltip(
        "Distil: a kernel's feature maps learn softmax's weights, layer by layer; the model "
        "stays as it is.\nFine-tune: chosen layers learn a task, through the kernels in place.");
  TrainingPlan& plan = form.plan(form.kind, document.kind);
  Rows rows(editor, plan);
  if (form.kind == TrainingKind::distill) {
    kernel_row(form);
  } else {
    schedule_rows(document, rows);
  }
  data_rows(document, form.kind, rows);
  number_rows(document.kind, form.kind, rows);
  output_rows(editor, default_output, rows);
  const TrainingPlan papers = with_papers_numbers(plan, form.kind, document.kind);
  ImGui::BeginDisabled(papers == plan);
  field_label("", label_width);
  if (ImGui::Button("The papers' numbers")) plan = papers;
  ImGui::EndDisabled();
  ImGui::PopStyleVar(2);
  ImGui::PopFont();
}

} // namespace hydrascope::app
