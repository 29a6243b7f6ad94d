// The options of distill and finetune, each described once. The command line, the window's form and its JSON,
// and the command in an adapter's metadata are made from this table. Plain header.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/training/loop/training.h"

namespace hydrascope {

enum class TrainingKind { distill, finetune };
using TrainingRequest = std::variant<DistillRequest, FinetuneRequest>;

using OptionValue = std::variant<bool, int, double, std::string, std::vector<std::string>>;

// A value per kind of training, or per kind of training and kind of input.
template <typename T>
class PerTraining {
public:
  PerTraining() : values_{} {}
  PerTraining(T all) : values_{all, all, all, all} {}
  PerTraining(T distill, T finetune) : values_{distill, distill, finetune, finetune} {}
  PerTraining(T distill_images, T distill_texts, T finetune_images, T finetune_texts)
      : values_{distill_images, distill_texts, finetune_images, finetune_texts} {}
  const T& of(TrainingKind kind, InputKind input) const {
    return values_[2 * static_cast<std::size_t>(kind) + (input == InputKind::image ? 0 : 1)];
  }

private:
  std::array<T, 4> values_;
};

// In the order of the form's JSON.
enum class OptionSection {
  data,
  table,
  items,
  parts,
  steps,
  decay,
  validation,
  optimizer,
  teacher,
  pictures,
  output
};

// The headings of --help and of the form, in this order.
enum class OptionGroup { data, model, optimisation, output };
OptionGroup group_of(OptionSection section);
const char* group_title(OptionGroup group);

// The numbers that the command line accepts.
struct NumberCheck {
  enum class Kind { any, positive, not_negative, within };
  Kind kind = Kind::any;
  double least = 0, most = 0; // within
};

// The numbers that the form's field accepts.
struct FieldRange {
  double least = 0, most = 0;
};

// Reads and writes the option's field of a request. The value has the same alternative in both, except that
// `set` takes files as a text or as a list. `set` throws UsageError for a text that is not understood.
struct OptionAccess {
  std::array<bool, 2> applies{}; // by TrainingKind
  std::function<OptionValue(const TrainingRequest&)> get;
  std::function<void(TrainingRequest&, const OptionValue&)> set;
};

struct TrainingOption {
  std::string_view key; // in JSON
  const char* flags;    // "--learning-rate,--lr"; "!--no-flip": a flag that sets false
  OptionSection section;
  OptionAccess access;
  // The fine-tuning objectives that have this option; empty: all. The others refuse it, and the form hides
  // it.
  std::vector<Objective> objectives = {};
  PerTraining<const char*> help = "";
  PerTraining<NumberCheck> check = {};
  bool required = false;
  // Written into every stored command; others only if they are not 0, empty or unset.
  bool always = false;
  PerTraining<bool> advanced = false;    // rarely changed: last in its group, and folded away in the form
  std::vector<const char*> choices = {}; // of a text: all that it can be, beside empty; none: any text
  std::string_view only_with = "";       // key of a number; if that is 0, this option has no effect
  // The form's field: its label (empty: not in the form), its tooltip, its text when empty, its unit, its
  // range, and its initial value: the papers' number, for flags 1 or 0.
  const char* label = "";
  PerTraining<const char*> tooltip = "";
  PerTraining<const char*> hint = "";
  PerTraining<const char*> unit = ""; // after a number
  PerTraining<FieldRange> range = {};
  PerTraining<double> papers = 0.0;

  bool applies(TrainingKind kind) const { return access.applies[static_cast<std::size_t>(kind)]; }
  bool applies(TrainingKind kind, InputKind input) const; // and to this kind of input
  bool is_of(Objective objective) const;                  // of fine-tuning
  bool in_form() const { return *label != '\0'; }
  std::string name() const; // "--learning-rate"
};

// Make the table (option_table.cpp), and the part of it that fine-tuning alone has.
std::vector<TrainingOption> make_training_options();
std::vector<TrainingOption> finetuning_options();
// The table, made once.
std::span<const TrainingOption> training_options();
const TrainingOption& training_option(std::string_view key); // throws std::out_of_range
// The options that apply to this kind of training in the order of --help: by group, those that are rarely
// changed last.
std::vector<const TrainingOption*> help_options(TrainingKind kind);
// The options of the form in the order of its JSON: by section, flags last.
const std::vector<const TrainingOption*>& form_options();

// Values of options by key.
class OptionValues {
public:
  void set(std::string_view key, OptionValue value) {
    values_.insert_or_assign(std::string(key), std::move(value));
  }
  void erase(std::string_view key) { values_.erase(std::string(key)); }
  bool contains(std::string_view key) const { return values_.contains(key); }
  // Throw std::out_of_range; get also std::bad_variant_access.
  const OptionValue& value(std::string_view key) const { return values_.at(std::string(key)); }
  OptionValue& value(std::string_view key) { return values_.at(std::string(key)); }
  template <typename T>
  T& get(std::string_view key) {
    return std::get<T>(value(key));
  }
  template <typename T>
  const T& get(std::string_view key) const {
    return std::get<T>(value(key));
  }
  bool operator==(const OptionValues&) const = default;

private:
  std::map<std::string, OptionValue, std::less<>> values_;
};

// The values of all options that apply to the request.
OptionValues option_values(const TrainingRequest& request);
// Sets the options that apply to the request to their values. Throws UsageError.
void set_options(TrainingRequest& request, const OptionValues& values);

// What a training reads: pictures or texts, and whether the model is a decoder, which learns the next token.
struct TrainingData {
  InputKind input = InputKind::image;
  bool next_token = false;
};

// The objective of a fine-tuning in the form.
Objective objective_of(TrainingData data, const OptionValues& values);

// The values that a training has where none are given, on the command line and in the form: the papers'
// numbers; decoders are fine-tuned as next_token_request() says and distilled in two epochs (Hedgehog paper,
// B.5).
OptionValues default_values(TrainingKind kind, TrainingData data);

// Those of the form's options, with files and lists as empty texts.
OptionValues papers_values(TrainingKind kind, InputKind input, bool next_token = false);

// The fields of the form for these data and values, from top to bottom: by group, those that are rarely
// changed last. For decoders the form has no table options: it does not offer prompts and answers.
std::vector<const TrainingOption*> shown_options(TrainingKind kind, TrainingData data,
                                                 const OptionValues& values);

// The options of these sections as words of a command line, "--epochs", "5", …, without those that have no
// effect on the request's kind of data.
std::vector<std::string> option_words(const TrainingRequest& request,
                                      std::span<const OptionSection> sections);

} // namespace hydrascope
