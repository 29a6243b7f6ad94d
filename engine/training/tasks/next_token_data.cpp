#include "engine/training/tasks/next_token_data.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include "engine/base/encoding.h"
#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/run/placement.h"
#include "engine/run/prompts.h"
#include "engine/training/tasks/running_text.h"

namespace hydrascope::training {
namespace {

// What an answer's tokens leave to a prompt at least.
constexpr std::int64_t least_prompt = 8;

} // namespace

NextTokenData::NextTokenData(const PreparedModel& prepared, const FinetuneRequest& request)
    : prepared_(prepared), request_(request), chunk_(checked_chunk(request.chunk, prepared.model->info())) {
  if (request.data.empty()) throw UsageError("--data", "nothing to train on", "name a text file");
  const bool answers = request.answer_column > 0;
  for (const auto& file : request.data) {
    if (std::filesystem::is_directory(file))
      throw UsageError("--data " + file.string(), "is a folder, but the model takes texts",
                       "name text files");
    if (!answers && file.extension() == ".tsv")
      throw UsageError("--data " + file.string(), "is a table, and no column of it is named as the answers",
                       "name it with --answer-column");
  }
  const auto read = [&](const auto& files) { return answers ? read_answers(files) : read_pieces(files); };
  train_ = read(request.data);
  items_name_ = answers            ? std::string("answers")
                : chunk_.least > 0 ? fmt::format("pieces of {} to {} tokens", chunk_.least, chunk_.most)
                                   : fmt::format("pieces of {} tokens", chunk_.most);
  if (!request.validation.empty()) {
    held_out_ = read(std::vector{request.validation});
  } else {
    const ItemSplit split = split_items(items(Part::training), request.settings.validation_share,
                                        mix({request.settings.execution.seed, 1}));
    std::vector<Sequence> all = std::move(train_);
    train_.clear();
    for (auto [from, to] : {std::pair(&split.held_out, &held_out_), std::pair(&split.training, &train_)})
      for (const std::int64_t item : *from) to->push_back(std::move(all[static_cast<std::size_t>(item)]));
  }
  if (train_.empty() || held_out_.empty())
    throw UsageError("--data",
                     fmt::format("needs two {} or more: one to train on and one held out", items_name_),
                     answers ? "name another file" : "name a longer text, or a smaller --chunk");
  hash_ = hash_of_sequences().substr(0, 12);
}

// Of the tokens, which depend on the files, on columns, templates and lengths, and on the tokenizer.
std::string NextTokenData::hash_of_sequences() const {
  Digest digest(DigestKind::sha256);
  for (const auto* const part : {&train_, &held_out_})
    for (const Sequence& sequence : *part) {
      digest.add(fmt::format("{}, {}\n", sequence.scored, sequence.ids.size()));
      digest.add({reinterpret_cast<const char*>(sequence.ids.data()),
                  sequence.ids.size() * sizeof(TokenIds::value_type)});
    }
  return digest.hexadecimal();
}

std::vector<NextTokenData::Sequence> NextTokenData::read_pieces(
    const std::vector<std::filesystem::path>& files) {
  std::vector<Sequence> sequences;
  for (TokenIds& piece :
       pieces_of_files(*prepared_.model, files, chunk_, request_.limit, request_.settings.execution.seed))
    if (piece.size() > 1) sequences.push_back({std::move(piece), 1});
  return sequences;
}

std::vector<NextTokenData::Sequence> NextTokenData::read_answers(
    const std::vector<std::filesystem::path>& files) {
  const Model& model = *prepared_.model;
  const std::int64_t end = end_token(model);
  const std::int64_t most = request_.chunk.most > 0 ? chunk_.most : model.info().max_tokens;
  std::int64_t shortened = 0;
  std::vector<Sequence> sequences;
  for (const auto& file : files)
    for (const PromptAndAnswer& one : read_prompts({.file = file,
                                      .prompt = request_.columns.text,
                                      .answer = request_.answer_column,
                                      .header = request_.header,
                                      .limit = request_.limit,
                                      .layout = request_.prompt_template})) {
      const std::int64_t answer = std::ssize(model.text_ids(one.answer)) + 2; // a blank and the end
      const FittedPrompt prompt =
          fitted_prompt(model, request_.prompt_template, one.prompt, std::max(most - answer, least_prompt));
      // Both as one text, as the model goes on with it: what the prompt alone has, too, is not scored.
      Sequence sequence{model.text_ids(prompt.text + answer_after(prompt.text, one.answer)), 0};
      if (end >= 0) sequence.ids.push_back(end);
      sequence.scored = std::ranges::mismatch(prompt.ids, sequence.ids).in1 - prompt.ids.begin();
      const bool cut = std::ssize(sequence.ids) > most;
      if (cut) sequence.ids.resize(static_cast<std::size_t>(most));
      shortened += prompt.shortened || cut ? 1 : 0;
      if (sequence.scored > 0 && sequence.scored < std::ssize(sequence.ids))
        sequences.push_back(std::move(sequence));
    }
  if (shortened > 0)
    notes_.push_back(
        fmt::format("{} of {} prompts and answers were cut to {} tokens", shortened, sequences.size(), most));
  return sequences;
}

std::int64_t NextTokenData::scored(const Part part, const Items& items) const {
  std::int64_t sum = 0;
  for (const std::int64_t item : items) {
    const Sequence& sequence = of(part)[static_cast<std::size_t>(item)];
    sum += std::ssize(sequence.ids) - sequence.scored;
  }
  return sum;
}

NextTokenBatch NextTokenData::batch(const Part part, const Items& items) const {
  std::vector<const TokenIds*> texts;
  std::int64_t longest = 0;
  for (const std::int64_t item : items) {
    texts.push_back(&of(part)[static_cast<std::size_t>(item)].ids);
    longest = std::max(longest, std::ssize(*texts.back()));
  }
  std::vector<std::int64_t> read, targets;
  for (std::size_t row = 0; row < items.size(); ++row) {
    const Sequence& sequence = of(part)[static_cast<std::size_t>(items[row])];
    for (std::int64_t token = sequence.scored; token < std::ssize(sequence.ids); ++token) {
      read.push_back(static_cast<std::int64_t>(row) * longest + token - 1);
      targets.push_back(sequence.ids[static_cast<std::size_t>(token)]);
    }
  }
  NextTokenBatch batch;
  batch.input = placed(*prepared_.model, text_batch(texts));
  const at::Device device = prepared_.model->device();
  batch.input.read = at::tensor(read, at::kLong).to(device);
  batch.targets = at::tensor(targets, at::kLong).to(device);
  return batch;
}

std::string NextTokenData::summary() const {
  std::string names;
  for (const auto& file : request_.data) names += (names.empty() ? "" : ", ") + last_name(file);
  return fmt::format("{} ({} {})", names, train_.size(), items_name_);
}

std::string NextTokenData::configuration() const {
  std::string text = fmt::format("{}, hash {}", summary(), hash_);
  if (request_.answer_column > 0)
    text += fmt::format(", columns {} and {}, template {}", request_.columns.text, request_.answer_column,
                        request_.prompt_template);
  return text;
}

} // namespace hydrascope::training
