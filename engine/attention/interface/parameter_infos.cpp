#include "engine/attention/interface/parameter_infos.h"

#include <utility>

namespace hydrascope {

ParameterInfo heads_info() {
  return {.name = "heads",
          .kind = ParameterInfo::Kind::divisor,
          .meaning = "heads that the D features are cut into, d = D/heads",
          .initial = "the model's own",
          .range = [](const LayerShape& shape) {
            return ParameterRange{.least = 1, .most = shape.width(), .initial = shape.heads};
          }};
}

ParameterInfo seed_info() {
  return {.name = "seed",
          .kind = ParameterInfo::Kind::number,
          .meaning = "of the random numbers, which every layer draws for itself",
          .initial = "0",
          .range = [](const LayerShape&) { return ParameterRange{.least = 0, .most = 100, .initial = 0}; }};
}

ParameterInfo shared_info() {
  return {.name = "shared",
          .kind = ParameterInfo::Kind::flag,
          .meaning = "one trained map serves queries and keys, instead of one each",
          .initial = "0"};
}

ParameterInfo bias_info() {
  return {.name = "bias",
          .kind = ParameterInfo::Kind::flag,
          .meaning = "the trained map adds b after W",
          .initial = "1"};
}

ParameterInfo choice_info(std::string name, std::string meaning, std::vector<std::string> choices) {
  std::string first = choices.front();
  return {.name = std::move(name),
          .kind = ParameterInfo::Kind::choice,
          .meaning = std::move(meaning),
          .initial = std::move(first),
          .choices = std::move(choices)};
}

} // namespace hydrascope
