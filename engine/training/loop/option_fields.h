// Fields of a training's request as texts (command line, window's form) and as option values. Plain header.
#pragma once

#include <concepts>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "engine/training/loop/options.h"

namespace hydrascope {

// The parameters to train, as "8-9,10-11.attention,head". Throws UsageError.
TrainedParts parse_trained_parts(const std::string& text);
std::string trained_parts_text(const TrainedParts& parts);

// A low-rank update, as "rank=8,alpha=16"; a number that is left out has its default. Throws UsageError.
LowRank parse_low_rank(const std::string& text);
std::string low_rank_text(const LowRank& update);

// "512" is {0, 512}, "16-256" is {16, 256}, an empty text {0, 0}. Throws UsageError.
ChunkLengths parse_chunk_lengths(const std::string& text);
std::string chunk_lengths_text(const ChunkLengths& chunk);

// "classification", "regression", "next-token", or an empty text. Throws UsageError.
Objective parse_objective(const std::string& text);
std::string objective_text(Objective objective);

// The names of a comma list, or of a file with one per line (of tab-separated columns the first). `option` is
// named in errors. Throws UsageError, Error.
std::vector<std::string> names_or_file(const std::string& text, const std::string& option);

// ---- Conversion between fields and option values, and the access that the table is made of ----
namespace option_fields {

template <typename T>
OptionValue option_value(const T& field) {
  return field;
}
OptionValue option_value(const std::filesystem::path& field);
OptionValue option_value(const std::vector<std::filesystem::path>& field);
OptionValue option_value(const std::vector<std::string>& field); // a comma list
OptionValue option_value(const std::optional<TrainedParts>& field);
OptionValue option_value(const std::optional<LowRank>& field);
OptionValue option_value(const ChunkLengths& field);
OptionValue option_value(const Objective& field);

// The other way. Throw UsageError where a text is not understood.
template <typename T>
void assign(T& field, const OptionValue& value) {
  field = std::get<T>(value);
}
void assign(std::filesystem::path& field, const OptionValue& value); // of several files: UsageError
void assign(std::vector<std::filesystem::path>& field, const OptionValue& value);
void assign(std::vector<std::string>& field, const OptionValue& value);
void assign(std::optional<TrainedParts>& field, const OptionValue& value);
void assign(std::optional<LowRank>& field, const OptionValue& value);
void assign(ChunkLengths& field, const OptionValue& value);
void assign(Objective& field, const OptionValue& value);

inline constexpr NumberCheck positive{.kind = NumberCheck::Kind::positive};
inline constexpr NumberCheck not_negative{.kind = NumberCheck::Kind::not_negative};
constexpr NumberCheck within(const double least, const double most) {
  return {.kind = NumberCheck::Kind::within, .least = least, .most = most};
}

template <typename T>
concept OfDistillation = std::same_as<std::remove_const_t<T>, DistillRequest>;
template <typename T>
concept OfFinetuning = std::same_as<std::remove_const_t<T>, FinetuneRequest>;

// Access through `select`, which takes the request, const or not, of each training that has the option and
// returns the field.
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

} // namespace option_fields

} // namespace hydrascope
