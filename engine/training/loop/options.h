// The options of distill and finetune, each described once: the command line, the window's form, what is kept
// of it as JSON, and the command in an adapter's metadata are made from this table. Plain header.
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

// Something that each kind of training may have of its own, or each kind on each kind of input.
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

// The numbers that the command line takes.
struct NumberCheck {
  enum class Kind { any, positive, not_negative, within };
  Kind kind = Kind::any;
  double least = 0, most = 0; // within
};

// The numbers that the form's field takes.
struct FieldRange {
  double least = 0, most = 0;
};

// Where the value stands in the request of a training. A value has the same alternative in get and set, but
// for files: set takes them as texts or as lists. `set` throws UsageError where a text is not what it takes.
struct OptionAccess {
  std::array<bool, 2> applies{}; // by TrainingKind
  std::function<OptionValue(const TrainingRequest&)> get;
  std::function<void(TrainingRequest&, const OptionValue&)> set;
};

struct TrainingOption {
  std::string_view key; // in JSON
  const char* flags;    // "--learning-rate,--lr"; "!--no-flip": a flag that says false
  OptionSection section;
  OptionAccess access;
  PerTraining<const char*> help = "";
  PerTraining<NumberCheck> check = {};
  bool required = false;
  // Written into every stored command. Others are left out where they are 0, empty or not set.
  bool always = false;
  std::string_view only_with = ""; // key of a number; where that is 0 this one has no effect
  // The form: what the field is called (empty: it is not in the form), says when hovered, shows when empty,
  // and what it holds at first: the papers' number, for flags 1 or 0.
  const char* label = "";
  PerTraining<const char*> tooltip = "";
  PerTraining<const char*> hint = "";
  PerTraining<FieldRange> range = {};
  PerTraining<double> papers = 0.0;

  bool applies(TrainingKind kind) const { return access.applies[static_cast<std::size_t>(kind)]; }
  bool applies(TrainingKind kind, InputKind input) const; // as above; sections are of one kind of input, too
  bool in_form() const { return *label != '\0'; }
  std::string name() const; // "--learning-rate"
};

// In the order of --help.
std::span<const TrainingOption> training_options();
const TrainingOption& training_option(std::string_view key); // throws std::out_of_range
// Those that the form has; in the order of the form's JSON: by section, flags last.
const std::vector<const TrainingOption*>& form_options();

// Values of options by their keys.
class OptionValues {
public:
  void set(std::string_view key, OptionValue value) {
    values_.insert_or_assign(std::string(key), std::move(value));
  }
  bool contains(std::string_view key) const { return values_.contains(key); }
  // Both throw std::out_of_range, the second std::bad_variant_access, too.
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
// Sets the request's options to those of the values that apply to it. Throws UsageError.
void set_options(TrainingRequest& request, const OptionValues& values);

// What the form holds at first: the papers' numbers.
OptionValues papers_values(TrainingKind kind, InputKind input);

// The fields of the form for these values, from top to bottom.
std::vector<const TrainingOption*> shown_options(TrainingKind kind, InputKind input,
                                                 const OptionValues& values);

// The options of these sections as words of a command line: "--epochs", "5", …. Those that have no effect on
// the request's data, pictures or texts, are left out.
std::vector<std::string> option_words(const TrainingRequest& request,
                                      std::span<const OptionSection> sections);

} // namespace hydrascope
