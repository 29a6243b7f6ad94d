// How well a decoder answers the prompts of a table: ROUGE of its greedy answers (Hedgehog paper, table 11).
// Plain header.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/measure/rouge.h"
#include "engine/models/model_info.h"
#include "engine/run/model_store.h"
#include "engine/run/run.h"

namespace hydrascope {

struct AnswersRequest {
  std::filesystem::path model_folder;
  AdapterChoice adapters;
  ScheduleChoice schedule;
  std::filesystem::path data;         // a tab-separated table
  int column = 1, answer_column = 2;  // of prompts and of reference answers, from 1
  bool header = false;                // the first line is skipped
  std::string prompt_template = "{}"; // PromptTable::layout
  int limit = 0;                      // lines; 0: all
  std::int64_t tokens = 100;          // of an answer, at most; it ends earlier with a token that ends a text
  ExecutionOptions execution;
};

struct AnswersOutcome {
  std::int64_t items = 0;
  Rouge mean;                       // over the items, each equal
  std::vector<std::string> answers; // in order
  Schedule schedule;
  std::string device, dtype;
  std::vector<AdapterInfo> adapters; // applied
  std::vector<std::string> notes;
};

// A prompt that does not fit beside an answer of `tokens` tokens is shortened. Throws as read_prompts() and
// generate(), UsageError (a model that is no decoder, an impossible number of tokens).
AnswersOutcome measure_answers(const AnswersRequest& request,
                               const std::function<void(std::int64_t, std::int64_t)>& progress = {},
                               const std::stop_token& stop = {},
                               const std::shared_ptr<ModelStore>& models = make_model_store());

} // namespace hydrascope
