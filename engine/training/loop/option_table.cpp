// The table of training options: one entry each, which is all that an option needs beside its use. Those that
// fine-tuning alone has are in finetuning_option_table.cpp.
#include <algorithm>
#include <iterator>
#include <vector>

#include "engine/training/loop/option_fields.h"

namespace hydrascope {
namespace {

using namespace option_fields;

// Table columns are separate fields in DistillRequest and one struct in FinetuneRequest.
struct TextColumn {
  auto& operator()(OfDistillation auto& request) const { return request.column; }
  auto& operator()(OfFinetuning auto& request) const { return request.columns.text; }
};
struct PairColumn {
  auto& operator()(OfDistillation auto& request) const { return request.pair_column; }
  auto& operator()(OfFinetuning auto& request) const { return request.columns.pair; }
};

} // namespace

// The papers' numbers: Zhang et al., The Hedgehog & the Porcupine (2024), A.3; Touvron et al., DeiT (2021),
// table 9.
std::vector<TrainingOption> make_training_options() {
  using Section = OptionSection;
  using Help = PerTraining<const char*>;
  using Check = PerTraining<NumberCheck>;
  using Ranges = PerTraining<FieldRange>;
  using Papers = PerTraining<double>;
  std::vector<TrainingOption> options = {
      {.key = "data",
       .flags = "--data",
       .section = Section::data,
       .access = field([](auto& request) -> auto& { return request.data; }),
       .help = Help("text: a text a line, or *.tsv with --column; images: folders",
                    "a folder with a sub-folder of pictures per class, or a tab-separated table of texts; "
                    "decoders: texts, or a table with --answer-column"),
       .required = true,
       .label = "Train on",
       .tooltip =
           Help("Folders of pictures at any depth, several with ; between them",
                "A text a line, or a column of a tab-separated table;\nseveral files with ; between them",
                "A folder with a sub-folder of pictures for each class",
                "A tab-separated table, an example a line; decoders: texts"),
       .hint = Help("a folder of pictures", "a text file or a table (.tsv)", "a folder of pictures",
                    "a text file or a table (.tsv)")},
      {.key = "output",
       .flags = "-o,--output",
       .section = Section::output,
       .access = field([](auto& request) -> auto& { return request.settings.output; }),
       .help = "the adapter to write (safetensors); checkpoints go beside it",
       .required = true,
       .always = true,
       .label = "Adapter",
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
       .tooltip = Help("At most. Hedgehog paper, A.3: texts up to 5, pictures 2; B.5: decoders 2.",
                       "At most. Hedgehog paper, A.3: texts up to 5, pictures up to 10.\nDecoders 2: ours."),
       .range = FieldRange{1, 1000},
       .papers = Papers(2, 5, 10, 5)},
      {.key = "batch",
       .flags = "--batch",
       .section = Section::steps,
       .access = field([](auto& request) -> auto& { return request.settings.batch; }),
       .check = positive,
       .always = true,
       .label = "Batch size",
       .tooltip =
           Help("Items in a step. Hedgehog paper, A.3: texts 8, pictures 32.",
                "Items in a step. Hedgehog paper, A.3: texts 8, pictures 32.",
                "Items in a step. The paper has no number for fine-tuning on pictures;\n32 is that of its "
                "distillation.",
                "Items in a step. Hedgehog paper, A.3: 8."),
       .unit = Help("pictures", "texts", "pictures", "texts"),
       .range = FieldRange{1, 4096},
       .papers = Papers(32, 8, 32, 8)},
      {.key = "accumulate",
       .flags = "--accumulate",
       .section = Section::steps,
       .access = field([](auto& request) -> auto& { return request.settings.accumulate; }),
       .help = "run each batch in so many parts, one after another: less memory, the same gradients",
       .check = positive,
       .advanced = true},
      {.key = "learning_rate",
       .flags = "--learning-rate,--lr",
       .section = Section::steps,
       .access = field([](auto& request) -> auto& { return request.settings.learning_rate; }),
       .check = positive,
       .always = true,
       .label = "Learning rate",
       .tooltip = Help("Of AdamW, without weight decay. Hedgehog paper, A.3: 0.01, constant.",
                       "The peak of a cosine, AdamW. Hedgehog paper, A.3: texts 1e-5, pictures "
                       "1e-3;\ndecoders 1e-4, as with LoRA (B.5; full: 6e-4)."),
       .range = FieldRange{1e-9, 10},
       .papers = Papers(1e-2, 1e-2, 1e-3, 1e-5)},
      {.key = "validation_share",
       .flags = "--validation-share",
       .section = Section::validation,
       .access = field([](auto& request) -> auto& { return request.settings.validation_share; }),
       .help = "share of the items that is held out",
       .always = true,
       .advanced = true,
       .label = "Held-out share",
       .tooltip = "Of the items, never trained on: validation. The papers have splits of their own; 5 % to "
                  "distil, 10 % to fine-tune are ours.",
       .unit = "of the items",
       .range = FieldRange{0.001, 0.9},
       .papers = Papers(0.05, 0.1)},
      {.key = "validate_every",
       .flags = "--validate-every",
       .section = Section::validation,
       .access = field([](auto& request) -> auto& { return request.settings.validate_every; }),
       .help = "measure on the held-out items after so many steps, too (0: after each epoch only)",
       .check = not_negative,
       .advanced = true},
      {.key = "patience",
       .flags = "--patience",
       .section = Section::validation,
       .access = field([](auto& request) -> auto& { return request.settings.patience; }),
       .help = "stop after so many epochs that made it no better (0: never)",
       .check = not_negative,
       .always = true,
       .advanced = true,
       .label = "Stop after",
       .tooltip = "Stops after so many epochs in a row that did not improve the held-out numbers; empty: "
                  "never.\nThe Hedgehog paper "
                  "stops early and gives no number; 1 is ours. Decoders: never.",
       .hint = "never",
       .unit = "epochs no better",
       .range = FieldRange{0, 1000},
       .papers = 1.0},
      {.key = "checkpoint_seconds",
       .flags = "--checkpoint-seconds",
       .section = Section::output,
       .access = field([](auto& request) -> auto& { return request.settings.checkpoint_seconds; }),
       .help = "how often the state is kept",
       .check = not_negative,
       .advanced = true},
      {.key = "curve",
       .flags = "--curve",
       .section = Section::output,
       .access = field([](auto& request) -> auto& { return request.settings.curve; }),
       .help = "write the loss of every step as CSV",
       .advanced = true},
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
       .advanced = true,
       .label = "cosine decay",
       .tooltip =
           "The learning rate ends at 0: closer to softmax after as many epochs.\nThe Hedgehog paper keeps "
           "it constant."},
      {.key = "start",
       .flags = "--start",
       .section = Section::output,
       .access = field([](OfDistillation auto& request) -> auto& { return request.start; }),
       .help =
           "start from this adapter's maps; another kernel's fit if names and shapes match (hedgehog's for "
           "hedgehog-softmax)",
       .advanced = true},
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
       .advanced = PerTraining<bool>(true, false),
       .label = "Text column",
       .tooltip = Help("Of tables, from 1; empty: whole lines.\nCoLA: 4. MRPC: 4.",
                       "Of the table, from 1. CoLA: 4. MRPC: 4."),
       .hint = "none",
       .range = Ranges({0, 999}, {1, 999}),
       .papers = Papers(0, 1)},
      {.key = "pair_column",
       .flags = "--pair-column",
       .section = Section::table,
       .access = field(PairColumn{}),
       .objectives = {Objective::classification, Objective::regression},
       .help = Help("*.tsv files: column of the second text (0: none)",
                    "tables: column of the second text (0: none)"),
       .check = not_negative,
       .advanced = true,
       .label = "Second-text column",
       .tooltip = "Of tables, from 1; empty: none. MRPC: 5.",
       .hint = "none",
       .range = FieldRange{0, 999}},
      {.key = "label_column",
       .flags = "--label-column",
       .section = Section::table,
       .access = field([](OfFinetuning auto& request) -> auto& { return request.columns.label; }),
       .objectives = {Objective::classification, Objective::regression},
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
       .advanced = true,
       .label = "first line is a header",
       .tooltip = "The first line of tables is skipped"},
      {.key = "chunk",
       .flags = "--chunk",
       .section = Section::items,
       .access = field([](auto& request) -> auto& { return request.chunk; }),
       .objectives = {Objective::next_token},
       .help = Help("plain texts: join lines and cut them to this many tokens, or 16-256: to random lengths "
                    "(decoders: 256)",
                    "decoders: cut running text to this many tokens, or 16-256: to random lengths (256); "
                    "prompts and answers to at most so many"),
       .advanced = PerTraining<bool>(true, false),
       .label = "Split",
       .tooltip =
           Help("Plain texts: joins lines and cuts them to so many tokens, 512,\nor to random lengths, "
                "16-256. Left empty: one text per line; decoders 256.",
                "Decoders: tokens of a piece of running text, 512,\nor random lengths, 16-256. Left "
                "empty: 256."),
       .hint = Help("one text per line", "256")},
      {.key = "limit",
       .flags = "--limit",
       .section = Section::items,
       .access = field([](auto& request) -> auto& { return request.limit; }),
       .help = Help("at most this many items of each file", "tables: at most so many lines"),
       .check = not_negative,
       .advanced = true,
       .label = "Max. items",
       .tooltip = "Takes at most so many of each file, the first ones; empty: all",
       .hint = "all",
       .unit = "of each file",
       .range = FieldRange{0, 100'000'000}},
      {.key = "crops",
       .flags = "--copies",
       .section = Section::pictures,
       .access = field([](OfDistillation auto& request) -> auto& { return request.copies; }),
       .help = "pictures: versions of each: itself, then random crops, for sets that are too small",
       .check = within(1, most_copies),
       .always = true,
       .label = "Versions",
       .tooltip = "Sets how many versions of each picture are used: itself, then random crops, mirrored and "
                  "recoloured.\nThey stretch a "
                  "set of a few pictures. The paper distils on ImageNet, whose pictures need none: 1.",
       .unit = "of each picture",
       .range = FieldRange{1, most_copies},
       .papers = 1.0},
  };
  std::vector<TrainingOption> finetuning = finetuning_options();
  std::ranges::move(finetuning, std::back_inserter(options));
  return options;
}

} // namespace hydrascope
