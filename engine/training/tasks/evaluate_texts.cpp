#include <algorithm>
#include <map>
#include <numeric>

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/run/token_texts.h"
#include "engine/training/loop/trained_parameters.h"
#include "engine/training/tasks/evaluation.h"

namespace hydrascope::training {
namespace {

std::vector<std::int64_t> targets_of(const Evaluation& evaluation, const std::vector<LabelledText>& texts) {
  std::map<std::string, std::int64_t> classes; // each label is looked up, and told if unknown, once
  for (const LabelledText& text : texts) classes.emplace(text.label, 0);
  std::vector<std::string> labels;
  for (const auto& [label, index] : classes) labels.push_back(label);
  const std::vector<std::int64_t> matched = evaluation.classes_of(labels, "labels");
  for (std::size_t i = 0; i < labels.size(); ++i) classes[labels[i]] = matched[i];
  std::vector<std::int64_t> targets;
  for (const LabelledText& text : texts) targets.push_back(classes[text.label]);
  return targets;
}

} // namespace

EvaluateOutcome evaluate_texts(Evaluation& evaluation) {
  const EvaluateRequest& request = evaluation.request();
  const PreparedModel& prepared = evaluation.prepared();
  const auto texts = read_labelled_texts(request.data, request.columns, request.header, request.limit);
  const auto targets = targets_of(evaluation, texts);
  std::vector<ModelInput> inputs;
  std::int64_t cut = 0;
  for (const LabelledText& text : texts) {
    inputs.push_back(prepared.model->prepare_text(text.text, text.pair));
    cut += inputs.back().note.empty() ? 0 : 1;
  }
  if (cut > 0)
    evaluation.note(fmt::format("{} of {} texts were cut at {} tokens", cut, texts.size(),
                                prepared.model->info().max_tokens));
  // Texts of like length share a batch, so that little of it is padding.
  std::vector<std::size_t> order(inputs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](const std::size_t i) { return inputs[i].token_ids.size(1); });
  ClassPlan plan;
  plan.classes = prepared.classes;
  const RunnableModel model = runnable(prepared, {}, plan);
  const auto batch = static_cast<std::size_t>(std::max(1, request.batch));
  for (std::size_t first = 0; first < order.size(); first += batch) {
    const std::size_t end = std::min(order.size(), first + batch);
    std::vector<const ModelInput*> some;
    std::vector<std::int64_t> wanted;
    for (std::size_t i = first; i < end; ++i) {
      some.push_back(&inputs[order[i]]);
      wanted.push_back(targets[order[i]]);
    }
    const ModelInput input = padded_batch(some);
    evaluation.count(wanted, model.logits({}, input, 0));
    evaluation.progress(static_cast<std::int64_t>(end), static_cast<std::int64_t>(order.size()));
  }
  return evaluation.outcome();
}

} // namespace hydrascope::training
