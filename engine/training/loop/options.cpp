#include "engine/training/loop/options.h"

#include <algorithm>
#include <concepts>
#include <filesystem>
#include <stdexcept>
#include <type_traits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"
#include "engine/training/loop/option_texts.h"

namespace hydrascope {
namespace {

namespace fs = std::filesystem;
using Files = std::vector<fs::path>;
using Texts = std::vector<std::string>;

// ---- Types of fields that are no option value themselves
// --------------------------------------------------------------
template <typename T>
OptionValue option_value(const T& field) {
  return field;
}
OptionValue option_value(const fs::path& field) { return field.string(); }
OptionValue option_value(const Files& field) {
  Texts texts;
  for (const fs::path& file : field) texts.push_back(file.string());
  return texts;
}
OptionValue option_value(const Texts& field) { return fmt::format("{}", fmt::join(field, ",")); }
OptionValue option_value(const std::optional<TrainedParts>& field) {
  return field ? trained_parts_text(*field) : std::string();
}
OptionValue option_value(const std::optional<LowRank>& field) {
  return field ? low_rank_text(*field) : std::string();
}
OptionValue option_value(const ChunkLengths& field) { return chunk_lengths_text(field); }

template <typename T>
void assign(T& field, const OptionValue& value) {
  field = std::get<T>(value);
}
void assign(fs::path& field, const OptionValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    field = *text;
    return;
  }
  const auto& files = std::get<Texts>(value);
  if (files.size() > 1) throw UsageError("data", "fine-tuning takes one folder or table", "name one");
  field = files.empty() ? fs::path() : fs::path(files.front());
}
void assign(Files& field, const OptionValue& value) {
  const auto& files = std::get<Texts>(value);
  field.assign(files.begin(), files.end());
}
void assign(Texts& field, const OptionValue& value) {
  const auto& text = std::get<std::string>(value);
  field = text.empty() ? Texts() : names_or_file(text, "--classes");
}
void assign(std::optional<TrainedParts>& field, const OptionValue& value) {
  const auto& text = std::get<std::string>(value);
  field.reset();
  if (!text.empty()) field = parse_trained_parts(text);
}
void assign(std::optional<LowRank>& field, const OptionValue& value) {
  const auto& text = std::get<std::string>(value);
  field.reset();
  if (!text.empty()) field = parse_low_rank(text);
}
void assign(ChunkLengths& field, const OptionValue& value) {
  field = parse_chunk_lengths(std::get<std::string>(value));
}

// ---- Access by a function that names the field
// ------------------------------------------------------------------------
template <typename T>
concept OfDistillation = std::same_as<std::remove_const_t<T>, DistillRequest>;
template <typename T>
concept OfFinetuning = std::same_as<std::remove_const_t<T>, FinetuneRequest>;

// `select` takes the request, const or not, of each training that has the option and returns the field.
template <typename Select>
OptionAccess field(const Select select) {
  const auto none = [] { return std::logic_error("the training has no such option"); };
  return {.applies = {std::is_invocable_v<Select, DistillRequest&>,
                      std::is_invocable_v<Select, FinetuneRequest&>},
          .get =
              [select, none](const TrainingRequest& request) {
                return std::visit(
                    [&](const auto& one) -> OptionValue {
                      if constexpr (std::is_invocable_v<Select, decltype(one)>)
                        return option_value(select(one));
                      else
                        throw none();
                    },
                    request);
              },
          .set =
              [select, none](TrainingRequest& request, const OptionValue& value) {
                std::visit(
                    [&](auto& one) {
                      if constexpr (std::is_invocable_v<Select, decltype(one)>)
                        assign(select(one), value);
                      else
                        throw none();
                    },
                    request);
              }};
}

// The columns of a table are held by name in one request, by themselves in the other.
struct TextColumn {
  auto& operator()(OfDistillation auto& request) const { return request.column; }
  auto& operator()(OfFinetuning auto& request) const { return request.columns.text; }
};
struct PairColumn {
  auto& operator()(OfDistillation auto& request) const { return request.pair_column; }
  auto& operator()(OfFinetuning auto& request) const { return request.columns.pair; }
};

constexpr NumberCheck positive{.kind = NumberCheck::Kind::positive};
constexpr NumberCheck not_negative{.kind = NumberCheck::Kind::not_negative};
constexpr NumberCheck within(const double least, const double most) {
  return {.kind = NumberCheck::Kind::within, .least = least, .most = most};
}

// The papers' numbers: Zhang et al., The Hedgehog & the Porcupine (2024), A.3; Touvron et al., DeiT (2021),
// table 9.
std::vector<TrainingOption> make_training_options() {
  using Section = OptionSection;
  using Help = PerTraining<const char*>;
  using Check = PerTraining<NumberCheck>;
  using Ranges = PerTraining<FieldRange>;
  using Papers = PerTraining<double>;
  return {
      {.key = "data",
       .flags = "--data",
       .section = Section::data,
       .access = field([](auto& request) -> auto& { return request.data; }),
       .help = Help("text: a text a line, or *.tsv with --column; images: folders",
                    "a folder with a sub-folder of pictures per class, or a tab-separated table of texts"),
       .required = true,
       .label = "Data",
       .tooltip =
           Help("Folders of pictures at any depth, several with ; between them",
                "A text a line, or a column of a tab-separated table;\nseveral files with ; between them",
                "A folder with a sub-folder of pictures for each class",
                "A tab-separated table, an example a line"),
       .hint = Help("a folder of pictures", "a text file or a table (.tsv)", "a folder of pictures",
                    "a text file or a table (.tsv)")},
      {.key = "output",
       .flags = "-o,--output",
       .section = Section::output,
       .access = field([](auto& request) -> auto& { return request.settings.output; }),
       .help = "the adapter to write (safetensors); checkpoints go beside it",
       .required = true,
       .always = true,
       .label = "Output",
       .tooltip =
           "The adapter to be written (safetensors). Checkpoints go beside it.\nNothing that is there is "
           "replaced without a question."},
      {.key = "epochs",
       .flags = "--epochs",
       .section = Section::steps,
       .access = field([](auto& request) -> auto& { return request.settings.epochs; }),
       .help = "at most",
       .check = positive,
       .always = true,
       .label = "Epochs",
       .tooltip = Help("At most. Hedgehog paper, A.3: texts up to 5, pictures 2.",
                       "At most. Hedgehog paper, A.3: texts up to 5, pictures up to 10."),
       .range = FieldRange{1, 1000},
       .papers = Papers(2, 5, 10, 5)},
      {.key = "batch",
       .flags = "--batch",
       .section = Section::steps,
       .access = field([](auto& request) -> auto& { return request.settings.batch; }),
       .check = positive,
       .always = true,
       .label = "Batch",
       .tooltip =
           Help("Items a step. Hedgehog paper, A.3: texts 8, pictures 32.",
                "Items a step. Hedgehog paper, A.3: texts 8, pictures 32.",
                "Items a step. The paper has no number for fine-tuning on pictures;\n32 is that of its "
                "distillation.",
                "Items a step. Hedgehog paper, A.3: 8."),
       .range = FieldRange{1, 4096},
       .papers = Papers(32, 8, 32, 8)},
      {.key = "learning_rate",
       .flags = "--learning-rate,--lr",
       .section = Section::steps,
       .access = field([](auto& request) -> auto& { return request.settings.learning_rate; }),
       .check = positive,
       .always = true,
       .label = "Learning rate",
       .tooltip = Help("Of AdamW, without weight decay. Hedgehog paper, A.3: 0.01, constant.",
                       "The peak of a cosine, AdamW. Hedgehog paper, A.3: texts 1e-5, pictures 1e-3."),
       .range = FieldRange{1e-9, 10},
       .papers = Papers(1e-2, 1e-2, 1e-3, 1e-5)},
      {.key = "validation_share",
       .flags = "--validation-share",
       .section = Section::validation,
       .access = field([](auto& request) -> auto& { return request.settings.validation_share; }),
       .help = "share of the items that is held out",
       .always = true,
       .label = "Held-out share",
       .tooltip = "Of the items, never trained on: validation. The papers have splits of their own; 5 % to "
                  "distil, 10 % to fine-tune are ours.",
       .range = FieldRange{0.001, 0.9},
       .papers = Papers(0.05, 0.1)},
      {.key = "validate_every",
       .flags = "--validate-every",
       .section = Section::validation,
       .access = field([](auto& request) -> auto& { return request.settings.validate_every; }),
       .help = "measure on the held-out items after so many steps, too (0: after each epoch only)",
       .check = not_negative},
      {.key = "patience",
       .flags = "--patience",
       .section = Section::validation,
       .access = field([](auto& request) -> auto& { return request.settings.patience; }),
       .help = "stop after so many epochs that made it no better (0: never)",
       .check = not_negative,
       .always = true,
       .label = "Patience",
       .tooltip =
           "Stops after so many epochs that made the validation no better; 0: never.\nThe Hedgehog paper "
           "stops early and gives no number; 1 is ours.",
       .range = FieldRange{0, 1000},
       .papers = 1.0},
      {.key = "checkpoint_seconds",
       .flags = "--checkpoint-seconds",
       .section = Section::output,
       .access = field([](auto& request) -> auto& { return request.settings.checkpoint_seconds; }),
       .help = "how often the state is kept",
       .check = not_negative},
      {.key = "curve",
       .flags = "--curve",
       .section = Section::output,
       .access = field([](auto& request) -> auto& { return request.settings.curve; }),
       .help = "write the loss of every step as CSV"},
      {.key = "resume",
       .flags = "--resume",
       .section = Section::output,
       .access = field([](auto& request) -> auto& { return request.settings.resume; }),
       .help = "go on from the checkpoint beside the output"},
      {.key = "cosine",
       .flags = "--cosine",
       .section = Section::decay,
       .access = field([](OfDistillation auto& request) -> auto& { return request.cosine; }),
       .help = "let the learning rate fall to 0 along a cosine (the paper keeps it constant)",
       .label = "falls along a cosine",
       .tooltip =
           "The learning rate ends at 0: closer to softmax after as many epochs.\nThe Hedgehog paper keeps "
           "it constant."},
      {.key = "validation",
       .flags = "--validation",
       .section = Section::data,
       .access = field([](OfFinetuning auto& request) -> auto& { return request.validation; }),
       .help = "the same, held out (default: a share of the data)",
       .label = "Held out",
       .tooltip = "The same kind of data, never trained on.\nLeft empty: a share of the data.",
       .hint = "a share of the data"},
      {.key = "column",
       .flags = "--column",
       .section = Section::table,
       .access = field(TextColumn{}),
       .help = Help("column of *.tsv files, from 1", "tables: column of the text, from 1"),
       .check = Check(not_negative, positive),
       .label = "Text column",
       .tooltip = Help("Of tables, from 1; 0: whole lines.\nCoLA: 4. MRPC: 4.",
                       "Of the table, from 1. CoLA: 4. MRPC: 4."),
       .range = Ranges({0, 999}, {1, 999}),
       .papers = Papers(0, 1)},
      {.key = "pair_column",
       .flags = "--pair-column",
       .section = Section::table,
       .access = field(PairColumn{}),
       .help = Help("*.tsv files: column of the second text (0: none)",
                    "tables: column of the second text (0: none)"),
       .check = not_negative,
       .label = "Second text",
       .tooltip = "Column of the second text; 0: none. MRPC: 5.",
       .range = FieldRange{0, 999}},
      {.key = "label_column",
       .flags = "--label-column",
       .section = Section::table,
       .access = field([](OfFinetuning auto& request) -> auto& { return request.columns.label; }),
       .help = "tables: column of the label",
       .check = positive,
       .label = "Label column",
       .tooltip = "CoLA: 2. MRPC: 1.",
       .range = FieldRange{1, 999},
       .papers = 2.0},
      {.key = "header",
       .flags = "--header",
       .section = Section::table,
       .access = field([](auto& request) -> auto& { return request.header; }),
       .help = Help("skip the first line of *.tsv files", "tables: skip the first line"),
       .label = "first line is a header",
       .tooltip = "The first line of tables is skipped"},
      {.key = "chunk",
       .flags = "--chunk",
       .section = Section::items,
       .access = field([](OfDistillation auto& request) -> auto& { return request.chunk; }),
       .help = "plain texts: join lines and cut them to this many tokens, or 16-256: to random lengths",
       .label = "Chunk",
       .tooltip = "Plain texts: lines joined and cut to so many tokens, 512,\nor to random lengths, 16-256",
       .hint = "a text a line"},
      {.key = "limit",
       .flags = "--limit",
       .section = Section::items,
       .access = field([](auto& request) -> auto& { return request.limit; }),
       .help = Help("at most this many items of each file", "tables: at most so many lines"),
       .check = not_negative,
       .label = "Items",
       .tooltip = "Of each file at most so many, the first ones; 0: all",
       .range = FieldRange{0, 100'000'000}},
      {.key = "labels",
       .flags = "--labels",
       .section = Section::data,
       .access = field([](OfFinetuning auto& request) -> auto& { return request.labels; }),
       .help = "TSV: sub-folder or label, name to show"},
      {.key = "classes",
       .flags = "--classes",
       .section = Section::data,
       .access = field([](OfFinetuning auto& request) -> auto& { return request.classes; }),
       .help = "sub-folders or labels to use: a comma list, or a file with one a line (default: those the "
               "classifier knows, or all)"},
      {.key = "layers",
       .flags = "--train-layers",
       .section = Section::parts,
       .access = field([](OfFinetuning auto& request) -> auto& { return request.trained; }),
       .help =
           "such as 8-11,head or 10-11.attention (default: what the schedule replaces, or the last four, and "
           "the head)",
       .label = "Layers",
       .tooltip = "Which parameters are trained: 8-11,head or 10-11.attention,head or 0-11,head,embeddings.\n"
                  "Left empty: the layers that the schedule replaces, or the last four, and the head.",
       .hint = "what the schedule replaces"},
      {.key = "lora",
       .flags = "--lora",
       .section = Section::parts,
       .access = field([](OfFinetuning auto& request) -> auto& { return request.low_rank; }),
       .help = "such as rank=8,alpha=16: of these layers the attention's four projections alone, each by a "
               "low-rank update (the adapter holds what they become)",
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
       .check = not_negative},
      {.key = "copies",
       .flags = "--copies",
       .section = Section::pictures,
       .access = field([](OfFinetuning auto& request) -> auto& { return request.copies; }),
       .help = "cached versions of a picture: itself, then augmented ones; 0: a new one in every step",
       .check = not_negative,
       .always = true,
       .label = "Copies",
       .tooltip =
           "Cached versions of each picture: itself, then augmented ones.\nOurs: what enters the first "
           "trained layer is computed once, not every epoch.\n0: every step makes a new version.",
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
       .label = "Smallest crop",
       .tooltip =
           "Share of the picture that a random crop keeps at least.\nDeiT takes torchvision's 0.08; 0.35 "
           "is ours, for the few copies that are cached.",
       .range = FieldRange{0.01, 1},
       .papers = 0.35},
      {.key = "color_jitter",
       .flags = "--color-jitter",
       .section = Section::pictures,
       .access = field([](OfFinetuning auto& request) -> auto& { return request.augmentation.color_jitter; }),
       .help = "by how much brightness, contrast and saturation change at most",
       .check = within(0, 1),
       .always = true,
       .label = "Colour jitter",
       .tooltip = "By how much brightness, contrast and saturation change at most.\nDeiT's program: 0.3.",
       .range = FieldRange{0, 1},
       .papers = 0.3},
      {.key = "flip",
       .flags = "!--no-flip",
       .section = Section::pictures,
       .access = field([](OfFinetuning auto& request) -> auto& { return request.augmentation.flip; }),
       .help = "no mirrored copies",
       .label = "mirrored copies",
       .tooltip = "Every other copy, by chance. DeiT mirrors, too.",
       .papers = 1.0},
      {.key = "warmup",
       .flags = "--warmup",
       .section = Section::optimizer,
       .access = field([](OfFinetuning auto& request) -> auto& { return request.warmup; }),
       .help = "share of the steps over which the learning rate rises",
       .check = within(0, 1),
       .always = true,
       .label = "Warm-up",
       .tooltip =
           "Share of the steps over which the learning rate rises to its peak.\nOurs: the Hedgehog paper "
           "gives the cosine alone.",
       .range = FieldRange{0, 1},
       .papers = 0.05},
      {.key = "weight_decay",
       .flags = "--weight-decay",
       .section = Section::optimizer,
       .access = field([](OfFinetuning auto& request) -> auto& { return request.weight_decay; }),
       .check = not_negative,
       .always = true,
       .label = "Weight decay",
       .tooltip = "Hedgehog paper, A.3: none. DeiT's recipe (table 9): 0.05.",
       .range = FieldRange{0, 1}},
      {.key = "label_smoothing",
       .flags = "--label-smoothing",
       .section = Section::optimizer,
       .access = field([](OfFinetuning auto& request) -> auto& { return request.label_smoothing; }),
       .check = within(0, 1),
       .always = true,
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
       .label = "Distillation",
       .tooltip =
           "Share of the loss that is the divergence from the same model as it was trained with softmax.\n"
           "DeiT's soft distillation: 0.1; none is ours, as the Hydra paper trains from labels.",
       .range = FieldRange{0, 1}},
      {.key = "distillation_tau",
       .flags = "--distillation-tau",
       .section = Section::teacher,
       .access = field([](OfFinetuning auto& request) -> auto& { return request.distillation_tau; }),
       .help = "its temperature",
       .check = positive,
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
       .label = "Patch dropout",
       .tooltip =
           "Share of a picture's patches that a step leaves out, at random.\nLiu et al. (2022): 0.5 halves "
           "the time and keeps the accuracy; none is ours.",
       .range = FieldRange{0, 0.95}},
  };
}

TrainingRequest default_request(const TrainingKind kind) {
  if (kind == TrainingKind::distill) return DistillRequest{};
  return FinetuneRequest{};
}

// What a field of the form holds: files are one text there, and numbers the papers'.
OptionValue form_value(const TrainingOption& option, const double number) {
  const auto any = option.applies(TrainingKind::finetune) ? TrainingKind::finetune : TrainingKind::distill;
  const OptionValue value = option.access.get(default_request(any));
  if (std::holds_alternative<bool>(value)) return number != 0;
  if (std::holds_alternative<int>(value)) return static_cast<int>(number);
  if (std::holds_alternative<double>(value)) return number;
  return std::string();
}

bool is_off(const TrainingOption& option, const OptionValue& value) {
  const bool inverted = option.flags[0] == '!';
  struct Visitor {
    bool inverted;
    bool operator()(const bool set) const { return set == inverted; }
    bool operator()(const int number) const { return number == 0; }
    bool operator()(const double number) const { return number == 0; }
    bool operator()(const std::string& text) const { return text.empty(); }
    bool operator()(const Texts& list) const { return list.empty(); }
  };
  return std::visit(Visitor{inverted}, value);
}

bool has_effect(const TrainingOption& option, const OptionValues& values) {
  return option.only_with.empty() || values.get<double>(option.only_with) > 0;
}

InputKind input_of(const TrainingRequest& request) {
  const auto* distillation = std::get_if<DistillRequest>(&request);
  const Files data =
      distillation != nullptr ? distillation->data : Files{std::get<FinetuneRequest>(request).data};
  return !data.empty() && fs::is_directory(data.front()) ? InputKind::image : InputKind::text;
}

std::string value_text(const OptionValue& value) {
  if (const auto* number = std::get_if<int>(&value)) return fmt::format("{}", *number);
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return fmt::format("{}", fmt::join(std::get<Texts>(value), ","));
}

} // namespace

bool TrainingOption::applies(const TrainingKind kind, const InputKind input) const {
  if (section == OptionSection::pictures && input != InputKind::image) return false;
  if ((section == OptionSection::table || section == OptionSection::items) && input != InputKind::text)
    return false;
  return applies(kind);
}

std::string TrainingOption::name() const {
  std::string_view all = flags;
  all.remove_prefix(all.find("--"));
  return std::string(all.substr(0, all.find(',')));
}

std::span<const TrainingOption> training_options() {
  static const std::vector<TrainingOption> options = make_training_options();
  return options;
}

const TrainingOption& training_option(const std::string_view key) {
  const auto options = training_options();
  const auto found = std::ranges::find(options, key, &TrainingOption::key);
  if (found == options.end()) throw std::out_of_range(std::string(key));
  return *found;
}

const std::vector<const TrainingOption*>& form_options() {
  static const std::vector<const TrainingOption*> options = [] {
    std::vector<const TrainingOption*> all;
    for (const TrainingOption& option : training_options())
      if (option.in_form()) all.push_back(&option);
    std::ranges::stable_sort(all, {}, [](const TrainingOption* option) {
      const bool last =
          option->section == OptionSection::pictures && std::holds_alternative<bool>(form_value(*option, 0));
      return std::pair(option->section, last);
    });
    return all;
  }();
  return options;
}

OptionValues option_values(const TrainingRequest& request) {
  OptionValues values;
  for (const TrainingOption& option : training_options())
    if (option.applies(static_cast<TrainingKind>(request.index())))
      values.set(option.key, option.access.get(request));
  return values;
}

void set_options(TrainingRequest& request, const OptionValues& values) {
  for (const TrainingOption& option : training_options())
    if (option.applies(static_cast<TrainingKind>(request.index())) && values.contains(option.key))
      option.access.set(request, values.value(option.key));
}

OptionValues papers_values(const TrainingKind kind, const InputKind input) {
  OptionValues values;
  for (const TrainingOption* option : form_options())
    values.set(option->key, form_value(*option, option->papers.of(kind, input)));
  return values;
}

std::vector<const TrainingOption*> shown_options(const TrainingKind kind, const InputKind input,
                                                 const OptionValues& values) {
  std::vector<const TrainingOption*> shown;
  for (const TrainingOption* option : form_options())
    if (option->applies(kind, input) && has_effect(*option, values)) shown.push_back(option);
  std::ranges::stable_partition(
      shown, [](const TrainingOption* option) { return option->section == OptionSection::parts; });
  return shown;
}

std::vector<std::string> option_words(const TrainingRequest& request,
                                      const std::span<const OptionSection> sections) {
  const auto kind = static_cast<TrainingKind>(request.index());
  const InputKind input = input_of(request);
  const OptionValues values = option_values(request), defaults = option_values(default_request(kind));
  std::vector<std::string> words;
  for (const OptionSection section : sections)
    for (const TrainingOption& option : training_options()) {
      if (option.section != section || !option.applies(kind, input)) continue;
      const OptionValue& value = values.value(option.key);
      if (!option.always && is_off(option, value)) continue;
      if (!option.in_form() && value == defaults.value(option.key)) continue;
      if (!has_effect(option, values)) continue;
      words.push_back(option.name());
      if (!std::holds_alternative<bool>(value)) words.push_back(value_text(value));
    }
  return words;
}

} // namespace hydrascope
