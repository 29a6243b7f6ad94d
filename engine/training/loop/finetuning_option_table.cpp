// The options that fine-tuning alone has.
#include <vector>

#include "engine/training/loop/option_fields.h"

namespace hydrascope {

// The papers' numbers: Zhang et al., The Hedgehog & the Porcupine (2024), A.3; Touvron et al., DeiT (2021),
// table 9.
std::vector<TrainingOption> finetuning_options() {
  using namespace option_fields;
  using Section = OptionSection;
  using Help = PerTraining<const char*>;
  using Papers = PerTraining<double>;
  return {
      {.key = "labels",
       .flags = "--labels",
       .section = Section::data,
       .access = field([](OfFinetuning auto& request) -> auto& { return request.labels; }),
       .help = "TSV: sub-folder or label, name to show",
       .advanced = true},
      {.key = "classes",
       .flags = "--classes",
       .section = Section::data,
       .access = field([](OfFinetuning auto& request) -> auto& { return request.classes; }),
       .help = "sub-folders or labels to use: a comma list, or a file with one a line (default: those the "
               "classifier knows, or all)",
       .advanced = true},
      {.key = "layers",
       .flags = "--train-layers",
       .section = Section::parts,
       .access = field([](OfFinetuning auto& request) -> auto& { return request.trained; }),
       .help = "such as 8-11,head or 10-11.attention or 0-5,head,embeddings (default: what the schedule "
               "replaces, or the last four, and "
               "the head; decoders: what it replaces, or all layers)",
       .label = "Layers",
       .tooltip = "Which parameters are trained: 8-11,head or 10-11.attention,head or 0-11,head,embeddings.\n"
                  "Left empty: the layers that the schedule replaces, or the last four, and the head.",
       .hint = "what the schedule replaces"},
      {.key = "objective",
       .flags = "--objective",
       .section = Section::table,
       .access = field([](OfFinetuning auto& request) -> auto& { return request.objective; }),
       .help =
           "classification, regression: labels that are numbers, or next-token: each token of running text "
           "from those before it (default: next-token for decoders, else classification)",
       .advanced = true,
       .choices = {"classification", "regression", "next-token"},
       .label = "Objective",
       .tooltip = "classification: labels are names of classes\nregression: labels are numbers, as STS-B's\n"
                  "next-token: each token of running text from those before it\n"
                  "As the model is: next-token for decoders, else classification",
       .hint = "as the model is"},
      {.key = "answer_column",
       .flags = "--answer-column",
       .section = Section::table,
       .access = field([](OfFinetuning auto& request) -> auto& { return request.answer_column; }),
       .help = "next-token: column of the answer to the prompt in --column; its tokens alone are scored",
       .check = not_negative},
      {.key = "template",
       .flags = "--template",
       .section = Section::table,
       .access = field([](OfFinetuning auto& request) -> auto& { return request.prompt_template; }),
       .help = "next-token: the text around a prompt, as \"Summarize this dialog:\\n{}\\n---\\nSummary:\"",
       .advanced = true},
      {.key = "lora",
       .flags = "--lora",
       .section = Section::parts,
       .access = field([](OfFinetuning auto& request) -> auto& { return request.low_rank; }),
       .help = "such as rank=8,alpha=16: of these layers the attention's four projections alone, each by a "
               "low-rank update (the adapter holds what they become; of decoders the update's factors)",
       .advanced = true,
       .label = "LoRA",
       .tooltip =
           "rank=8,alpha=16: of these layers the attention's four projections alone, each by an update of "
           "low\nrank (Hu et al. 2022), as the Hedgehog paper does for large models. Left empty: whole "
           "weights.",
       .hint = "whole weights"},
      {.key = "images_per_class",
       .flags = "--images-per-class",
       .section = Section::pictures,
       .access = field([](OfFinetuning auto& request) -> auto& { return request.images_per_class; }),
       .help = "at most (default: all)",
       .check = not_negative,
       .advanced = true},
      {.key = "copies",
       .flags = "--copies",
       .section = Section::pictures,
       .access = field([](OfFinetuning auto& request) -> auto& { return request.copies; }),
       .help = "cached versions of a picture: itself, then augmented ones; 0: a new one in every step",
       .check = not_negative,
       .always = true,
       .advanced = true,
       .label = "Versions",
       .tooltip = "Sets how many versions of each picture are kept: itself, then cropped, mirrored, "
                  "recoloured ones.\nOurs: what enters the first "
                  "trained layer is computed once, not every epoch.\nempty: every step makes a new version.",
       .hint = "new ones",
       .unit = "of each picture",
       .range = FieldRange{0, 100},
       .papers = 2.0},
      {.key = "smallest_crop",
       .flags = "--crop",
       .section = Section::pictures,
       .access =
           field([](OfFinetuning auto& request) -> auto& { return request.augmentation.smallest_crop; }),
       .help = "share of the picture that a random crop keeps at least",
       .check = within(0.01, 1),
       .always = true,
       .advanced = true,
       .label = "Smallest crop",
       .tooltip =
           "Share of the picture that a random crop keeps at least.\nDeiT takes torchvision's 0.08; 0.35 "
           "is ours, for the few copies that are cached.",
       .unit = "of the area",
       .range = FieldRange{0.01, 1},
       .papers = 0.35},
      {.key = "color_jitter",
       .flags = "--color-jitter",
       .section = Section::pictures,
       .access = field([](OfFinetuning auto& request) -> auto& { return request.augmentation.color_jitter; }),
       .help = "by how much brightness, contrast and saturation change at most",
       .check = within(0, 1),
       .always = true,
       .advanced = true,
       .label = "Colour jitter",
       .tooltip = "By how much brightness, contrast and saturation change at most.\nDeiT's program: 0.3.",
       .range = FieldRange{0, 1},
       .papers = 0.3},
      {.key = "flip",
       .flags = "!--no-flip",
       .section = Section::pictures,
       .access = field([](OfFinetuning auto& request) -> auto& { return request.augmentation.flip; }),
       .help = "no mirrored copies",
       .advanced = true,
       .label = "mirrored versions",
       .tooltip = "Mirrors every other version, by chance. DeiT mirrors, too.",
       .papers = 1.0},
      {.key = "warmup",
       .flags = "--warmup",
       .section = Section::optimizer,
       .access = field([](OfFinetuning auto& request) -> auto& { return request.warmup; }),
       .help = "share of the steps over which the learning rate rises",
       .check = within(0, 1),
       .always = true,
       .advanced = true,
       .label = "Warm-up",
       .tooltip =
           "Share of the steps over which the learning rate rises to its peak.\nOurs: the Hedgehog paper "
           "gives the cosine alone.",
       .unit = "of the steps",
       .range = FieldRange{0, 1},
       .papers = 0.05},
      {.key = "weight_decay",
       .flags = "--weight-decay",
       .section = Section::optimizer,
       .access = field([](OfFinetuning auto& request) -> auto& { return request.weight_decay; }),
       .check = not_negative,
       .always = true,
       .advanced = true,
       .label = "Weight decay",
       .tooltip = "Hedgehog paper, A.3: none; B.5, decoders: 0.01. DeiT's recipe (table 9): 0.05.",
       .range = FieldRange{0, 1}},
      {.key = "label_smoothing",
       .flags = "--label-smoothing",
       .section = Section::optimizer,
       .access = field([](OfFinetuning auto& request) -> auto& { return request.label_smoothing; }),
       .check = within(0, 1),
       .always = true,
       .advanced = true,
       .label = "Label smoothing",
       .tooltip = Help("", "", "DeiT, table 9: 0.1.", "None for texts: neither paper names one."),
       .range = FieldRange{0, 0.99},
       .papers = Papers(0, 0, 0.1, 0)},
      {.key = "mixup",
       .flags = "--mixup",
       .section = Section::pictures,
       .access = field([](OfFinetuning auto& request) -> auto& { return request.mixup; }),
       .help = "pictures: α of the Beta distribution by which two are mixed; 0: none",
       .check = not_negative,
       .always = true,
       .advanced = true,
       .label = "Mixup",
       .tooltip =
           "α of the Beta distribution by which two pictures are mixed; 0: none.\nDeiT, table 9: 0.8, for "
           "300 epochs; none is ours, for a few.",
       .range = FieldRange{0, 10}},
      {.key = "distillation_alpha",
       .flags = "--distillation-alpha",
       .section = Section::teacher,
       .access = field([](OfFinetuning auto& request) -> auto& { return request.distillation_alpha; }),
       .help = "share of the loss that is the divergence from the same model as it was trained with softmax "
               "(DeiT's soft distillation); 0: labels alone",
       .check = within(0, 1),
       .label = "Softmax share",
       .tooltip = "Sets the share of the loss that pulls the model towards its own predictions with softmax\n"
                  "(0…1; the rest is the labels'). DeiT's soft distillation from a teacher: 0.1; none is "
                  "ours, as the "
                  "Hydra paper trains from labels.",
       .unit = "of the loss",
       .range = FieldRange{0, 1}},
      {.key = "distillation_tau",
       .flags = "--distillation-tau",
       .section = Section::teacher,
       .access = field([](OfFinetuning auto& request) -> auto& { return request.distillation_tau; }),
       .help = "its temperature",
       .check = positive,
       .advanced = true,
       .only_with = "distillation_alpha",
       .label = "Temperature",
       .tooltip = "By which both sides' logits are divided. DeiT's soft distillation: 3.",
       .range = FieldRange{0.1, 100},
       .papers = 3.0},
      {.key = "distillation_hidden",
       .flags = "--distillation-hidden",
       .section = Section::teacher,
       .access = field([](OfFinetuning auto& request) -> auto& { return request.distillation_hidden; }),
       .help =
           "times this the loss has the distance of the trained blocks' hidden states from that model's, too "
           "(TinyBERT); 0: none",
       .check = not_negative,
       .advanced = true,
       .label = "Hidden states",
       .tooltip = "Times this the loss has the distance of hidden states from the same model's with softmax, "
                  "too\n(TinyBERT, Eq. 8). Ours: 5 for Hedgehog in all layers.",
       .range = FieldRange{0, 1000}},
      {.key = "patch_dropout",
       .flags = "--patch-dropout",
       .section = Section::pictures,
       .access = field([](OfFinetuning auto& request) -> auto& { return request.patch_dropout; }),
       .help = "pictures: share of the patches that a step leaves out (PatchDropout); 0: none",
       .check = within(0, 0.95),
       .always = true,
       .advanced = true,
       .label = "Patch dropout",
       .tooltip =
           "Share of a picture's patches that a step leaves out, at random.\nLiu et al. (2022): 0.5 halves "
           "the time and keeps the accuracy; none is ours.",
       .unit = "of the patches",
       .range = FieldRange{0, 0.95}},
  };
}

} // namespace hydrascope
