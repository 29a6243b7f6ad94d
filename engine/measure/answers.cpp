#include "engine/measure/answers.h"

#include <utility>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/models/transformer/model.h"
#include "engine/run/generate.h"
#include "engine/run/prompts.h"

namespace hydrascope {

AnswersOutcome measure_answers(const AnswersRequest& request,
                               const std::function<void(std::int64_t, std::int64_t)>& progress,
                               const std::stop_token& stop, const std::shared_ptr<ModelStore>& models) {
  GenerateRequest asked;
  asked.model_folder = request.model_folder;
  asked.adapters = request.adapters;
  asked.schedule = request.schedule;
  asked.tokens = request.tokens;
  asked.execution = request.execution;
  const AppliedModel decoder = decoder_of(asked, *models); // one version answers all prompts
  const ModelInfo& info = decoder.model->info();
  if (!info.causal)
    throw UsageError(info.name, "writes no answers", "name a decoder with --model, such as smollm2");
  if (request.tokens < 1 || request.tokens >= info.max_tokens)
    throw UsageError(fmt::format("--tokens {}", request.tokens), "leaves no room for a prompt or an answer",
                     fmt::format("use 1 to {}", info.max_tokens - 1));
  const std::vector<PromptAndAnswer> prompts = read_prompts({.file = request.data,
                                                             .prompt = request.column,
                                                             .answer = request.answer_column,
                                                             .header = request.header,
                                                             .limit = request.limit,
                                                             .layout = request.prompt_template});
  AnswersOutcome outcome;
  std::int64_t shortened = 0;
  Rouge sum;
  for (const PromptAndAnswer& one : prompts) {
    const FittedPrompt prompt =
        fitted_prompt(*decoder.model, request.prompt_template, one.prompt, info.max_tokens - request.tokens);
    shortened += prompt.shortened ? 1 : 0;
    asked.text = prompt.text;
    GenerateOutcome written = generate_by(decoder, asked, {}, stop);
    const Rouge score = rouge(written.text, one.answer);
    sum.rouge1 += score.rouge1;
    sum.rouge2 += score.rouge2;
    sum.rougeL += score.rougeL;
    outcome.answers.push_back(std::move(written.text));
    if (++outcome.items == 1) {
      outcome.schedule = written.schedule;
      outcome.device = written.device;
      outcome.dtype = written.dtype;
      outcome.adapters = written.adapters;
      outcome.notes = written.notes;
    }
    if (progress) progress(outcome.items, std::ssize(prompts));
  }
  const auto count = static_cast<double>(outcome.items);
  outcome.mean = {sum.rouge1 / count, sum.rouge2 / count, sum.rougeL / count};
  if (shortened > 0)
    outcome.notes.push_back(fmt::format("{} of {} prompts were shortened to {} tokens", shortened,
                                        outcome.items, info.max_tokens - request.tokens));
  return outcome;
}

} // namespace hydrascope
