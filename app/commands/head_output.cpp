#include "app/commands/head_output.h"

#include <array>
#include <cmath>
#include <ostream>
#include <utility>

#include <fmt/format.h>
#include <fmt/ostream.h>

#include "app/views/similar_heads_view.h"

namespace hydrascope::app {
namespace {

using Json = nlohmann::ordered_json;

std::array<std::pair<const char*, const DeletionCurve*>, 3> curves_of(const DeletionResult& deletion) {
  return {{{"most_first", &deletion.most_first},
           {"least_first", &deletion.least_first},
           {"random", &deletion.random}}};
}

} // namespace

Json similar_heads_json(const SimilarHeads& similar) {
  Json json = {{"layer", similar.head.layer},
               {"head", similar.head.head},
               {"metric", distance_quantity(similar.metric)},
               {"nearest", Json::array()},
               {"distances", Json::array()}};
  for (const NearHead& near : nearest_heads(similar, 10))
    json["nearest"].push_back(
        {{"layer", near.head.layer}, {"head", near.head.head}, {"distance", near.distance}});
  for (std::int64_t layer = 0; layer < similar.distances.extent(0); ++layer) {
    Json row = Json::array();
    for (const float distance : similar.distances.slice(layer))
      row.push_back(std::isnan(distance) ? Json(nullptr) : Json(distance));
    json["distances"].push_back(std::move(row));
  }
  return json;
}

Json deletion_json(const DeletionResult& deletion) {
  Json json = {{"layer", deletion.key.layer},
               {"target", deletion.target},
               {"hidden", deletion.hidden},
               {"shares", deletion.shares}};
  for (const auto& [name, curve] : curves_of(deletion)) {
    json[name] = {{"values", curve->values}, {"area", curve->area}};
    if (!curve->probabilities.empty()) json[name]["probabilities"] = curve->probabilities;
  }
  return json;
}

void print_similar_heads(std::ostream& out, const SimilarHeads& similar) {
  fmt::print(out, "heads like head {} of layer {}, {}\n", similar.head.head, similar.head.layer,
             distance_quantity(similar.metric));
  for (const NearHead& near : nearest_heads(similar, 10))
    fmt::print(out, "  layer {:>2}, head {:>2}  {:.4f}\n", near.head.layer, near.head.head, near.distance);
}

void print_deletion(std::ostream& out, const DeletionResult& deletion) {
  const bool probabilities = !deletion.most_first.probabilities.empty();
  fmt::print(out, "deletion by the focus map of layer {}: {}{}\n  hidden  most first  least first  random\n",
             deletion.key.layer, deletion.target, probabilities ? ", as a probability" : "");
  const auto number = [&](const DeletionCurve& curve, std::size_t step) {
    return (probabilities ? curve.probabilities : curve.values).at(step);
  };
  for (std::size_t step = 0; step < deletion.hidden.size(); ++step)
    fmt::print(out, "  {:>6}  {:>10.4f}  {:>11.4f}  {:>6.4f}\n", deletion.hidden[step],
               number(deletion.most_first, step), number(deletion.least_first, step),
               number(deletion.random, step));
  fmt::print(out, "  {:>6}  {:>10.4f}  {:>11.4f}  {:>6.4f}\n", "area", deletion.most_first.area,
             deletion.least_first.area, deletion.random.area);
}

} // namespace hydrascope::app
