#include "app/views/vectors_view.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include <fmt/format.h>

#include "app/views/selection.h"
#include "engine/attention/interface/kernel_info.h"
#include "engine/figures/scale.h"

namespace hydrascope::app {
namespace {

std::vector<double> doubles(std::span<const float> values) { return {values.begin(), values.end()}; }

std::vector<double> product(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> result(std::min(a.size(), b.size()));
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = a[i] * b[i];
  return result;
}

double total(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

// Row `token` of head `head` of (h,N,d).
std::vector<double> token_vector(const Array& heads, std::int64_t head, std::int64_t token) {
  const auto width = static_cast<std::size_t>(heads.extent(2));
  return doubles(heads.slice(head).subspan(static_cast<std::size_t>(token) * width, width));
}

constexpr const char* unseen_note = "weight = 0: the query does not attend to this key";

// φ(q)·φ(k_t) or q·k_t of the tokens t that the query sees, in their order.
std::vector<double> similarities(const RunResult& run, const VectorsResult& vectors,
                                 const std::vector<double>& query, std::span<const float> keys) {
  const std::size_t width = query.size();
  std::vector<double> result;
  for (std::size_t token = 0; token < keys.size() / width; ++token) {
    if (!sees(run, vectors.query, static_cast<std::int64_t>(token))) continue;
    double sum = 0;
    for (std::size_t f = 0; f < width; ++f) sum += query[f] * static_cast<double>(keys[token * width + f]);
    result.push_back(sum);
  }
  return result;
}

void add_products(VectorsView& view, const VectorsResult& vectors, std::int64_t key) {
  const std::vector<double> q = token_vector(vectors.q, vectors.head, vectors.query);
  const std::vector<double> k = token_vector(vectors.k, vectors.head, key);
  const std::vector<double> both = product(q, k);
  const double score = total(both);
  const double scaled = score / std::sqrt(static_cast<double>(q.size()));
  view.strips.push_back({"q", "query of this head, after its projection", q, ""});
  view.strips.push_back({"k", "key of this head, after its projection", k, ""});
  view.strips.push_back({"q ⊙ k", "their product, feature by feature", both,
                         fmt::format("q·k = {}   q·k/√d = {}", number_text(score), number_text(scaled))});
}

void add_features(VectorsView& view, const RunResult& run, const VectorsResult& vectors, std::int64_t key) {
  const std::vector<double> query = doubles(vectors.query_feature.values);
  const std::vector<double> keys = doubles(vectors.key_features.slice(key));
  const std::vector<double> both = product(query, keys);
  const double similarity = total(both);
  view.strips.push_back({"φ(q)", "the kernel's feature map of q", query, ""});
  view.strips.push_back({"φ(k)", "the kernel's feature map of k", keys, ""});
  view.strips.push_back({"φ(q) ⊙ φ(k)", "their product, feature by feature", both,
                         fmt::format("φ(q)·φ(k) = {}", number_text(similarity))});
  if (!sees(run, vectors.query, key)) {
    view.notes.emplace_back(unseen_note);
  } else if (kernel_info(vectors.kernel).normalised) {
    const double sum = total(similarities(run, vectors, query, vectors.key_features.values));
    view.notes.push_back(sum == 0
                             ? "all similarities of this query are 0: its row of weights is 0"
                             : fmt::format("weight = {} / {} (the row's sum) = {}", number_text(similarity),
                                           number_text(sum), number_text(similarity / sum)));
  } else {
    view.notes.emplace_back("weight = φ(q)·φ(k): this kernel has no normaliser");
  }
  if (vectors.rescaled) {
    view.notes.emplace_back(
        "φ as the kernel computes it: each feature over its largest key, the query over its largest feature");
  }
}

void add_softmax(VectorsView& view, const RunResult& run, const VectorsResult& vectors, std::int64_t key) {
  view.notes.emplace_back(
      "softmax has no feature map of finite width: its weight is exp(q·k/√d) over the row's sum");
  if (!sees(run, vectors.query, key)) {
    view.notes.emplace_back(unseen_note);
    return;
  }
  if (!kernel_info(vectors.kernel).exact_softmax) return;
  const std::vector<double> query = token_vector(vectors.q, vectors.head, vectors.query);
  const double score = total(product(query, token_vector(vectors.k, vectors.head, key)));
  const double scale = 1 / std::sqrt(static_cast<double>(query.size()));
  double sum = 0; // over this key's exponential; too large for a double where the weight is 0
  for (const double other : similarities(run, vectors, query, vectors.k.slice(vectors.head)))
    sum += std::exp((other - score) * scale);
  view.notes.push_back(fmt::format("weight = {}", number_text(1 / sum)));
}

void add_global(VectorsView& view, const VectorsResult& vectors) {
  view.global = true;
  const std::vector<double> global = doubles(vectors.global.values);
  const std::vector<double> gate = doubles(vectors.query_feature.values);
  const std::vector<double> out = product(gate, global);
  view.strips.push_back({"Σ φ(K)⊙V", "the global vector, the same for every query", global, ""});
  view.strips.push_back({"φ(Q)", "the query token's gate over it", gate, ""});
  view.strips.push_back({"out", "gate ⊙ global vector: the query token's output", out, ""});
  if (vectors.gradient.empty()) {
    view.notes.emplace_back("g, the target's gradient, is known for this run alone");
    return;
  }
  const std::vector<double> gradient = doubles(vectors.gradient.values);
  const std::vector<double> shares = product(out, gradient);
  view.strips.push_back({"g", "∂(target)/∂(out) of the query token", gradient, ""});
  view.strips.push_back({"out ⊙ g", "what each feature adds to the focus map's sum", shares,
                         fmt::format("out·g = {}", number_text(total(shares)))});
}

Scale signed_scale(const Array& values, std::string label) {
  Scale scale;
  scale.map = ColourMap::blue_white_red;
  double high = 0;
  for (const float value : values.values) high = std::max(high, std::abs(static_cast<double>(value)));
  scale.high = high > 0 ? high : 1;
  scale.low = -scale.high;
  scale.label = std::move(label);
  return scale;
}

std::string one_of(const VectorsResult& vectors, int feature) {
  return fmt::format("feature {}, one of {}", feature, vectors.global.values.size());
}

} // namespace

VectorsView vectors_view(const RunResult& run, const VectorsResult& vectors, std::int64_t key) {
  VectorsView view;
  const std::int64_t shown = std::clamp<std::int64_t>(key, 0, vectors.k.extent(1) - 1);
  if (!vectors.global.empty()) {
    add_global(view, vectors);
    return view;
  }
  add_products(view, vectors, shown);
  if (vectors.query_feature.empty()) {
    add_softmax(view, run, vectors, shown);
  } else {
    add_features(view, run, vectors, shown);
  }
  return view;
}

VectorsView vectors_difference(const VectorsView& a, const VectorsView& b) {
  VectorsView view;
  view.global = a.global && b.global;
  std::string left;
  for (const FeatureStrip& strip : a.strips) {
    const auto other = std::ranges::find(b.strips, strip.name, &FeatureStrip::name);
    if (other == b.strips.end() || other->values.size() != strip.values.size()) {
      left += (left.empty() ? "" : ", ") + strip.name;
      continue;
    }
    FeatureStrip difference{strip.name, difference_label(strip.meaning), strip.values, ""};
    for (std::size_t f = 0; f < difference.values.size(); ++f) difference.values[f] -= other->values[f];
    view.strips.push_back(std::move(difference));
  }
  view.notes.push_back(std::string(side_name(Shown::difference)) + ", feature by feature");
  if (!left.empty()) view.notes.push_back("not of " + left + ": B has none of that width");
  return view;
}

HeatMapPanel filling_panel(const RunResult& run, const VectorsResult& vectors, int feature) {
  HeatMapPanel panel;
  const std::int64_t tokens = vectors.values.extent(0);
  const std::int64_t prefix = run.rows > 0 ? run.prefix_tokens : 0;
  panel.values.shape = {1, tokens};
  if (run.rows > 0) panel.values.shape = {run.rows, run.columns};
  for (std::int64_t token = prefix; token < tokens; ++token) {
    const auto f = static_cast<std::size_t>(feature);
    panel.values.values.push_back(vectors.key_features.slice(token)[f] * vectors.values.slice(token)[f]);
    if (run.rows == 0) panel.x_ticks.push_back(token_text(run, static_cast<std::size_t>(token)));
  }
  panel.title = one_of(vectors, feature) + ": which tokens fill it";
  panel.scale = signed_scale(panel.values, "φ(K)·V of this feature");
  return panel;
}

HeatMapPanel rank_one_panel(const RunResult& run, const VectorsResult& vectors, int feature) {
  HeatMapPanel panel;
  const std::int64_t tokens = vectors.query_features.extent(0);
  panel.values.shape = {tokens, tokens};
  panel.values.values.reserve(static_cast<std::size_t>(tokens * tokens));
  const auto f = static_cast<std::size_t>(feature);
  for (std::int64_t row = 0; row < tokens; ++row) {
    const float query = vectors.query_features.slice(row)[f];
    for (std::int64_t column = 0; column < tokens; ++column)
      panel.values.values.push_back(query * vectors.key_features.slice(column)[f]);
  }
  panel.title = one_of(vectors, feature) + ": φ(Q)φ(K)ᵀ, of rank one";
  panel.x_label = "key token";
  panel.y_label = "query token";
  panel.scale = signed_scale(panel.values, "φ(Q)·φ(K) of this feature");
  if (run.rows == 0) {
    for (std::size_t token = 0; token < run.tokens.size(); ++token)
      panel.x_ticks.push_back(token_text(run, token));
    panel.y_ticks = panel.x_ticks;
  }
  return panel;
}

Figure vectors_figure(const RunResult& run, const VectorsResult& vectors, const VectorsView& view,
                      std::int64_t key) {
  Figure figure;
  figure.title = fmt::format("{} · layer {} · {} · {}", run.model.name, vectors.layer, vectors.kernel.label(),
                             view.global ? "all features" : fmt::format("head {}", vectors.head));
  figure.subtitle = view.global ? fmt::format("query token {}", vectors.query)
                                : fmt::format("query token {}, key token {}", vectors.query, key);
  for (const std::string& note : view.notes) figure.subtitle += "; " + note;
  figure.columns = view.global ? 1 : 3;
  for (const FeatureStrip& strip : view.strips) {
    LinesPanel panel;
    panel.title = strip.sum.empty() ? strip.name : strip.name + ": " + strip.sum;
    panel.x_label = "feature";
    LinesPanel::Line line;
    line.name = strip.name;
    line.colour = kernel_colour(vectors.kernel.name);
    line.y = strip.values;
    for (std::size_t f = 0; f < strip.values.size(); ++f) line.x.push_back(static_cast<double>(f));
    panel.lines.push_back(std::move(line));
    figure.panels.emplace_back(std::move(panel));
  }
  return figure;
}

} // namespace hydrascope::app
