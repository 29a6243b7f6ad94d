// The data of next-token training: running text in pieces, or prompts with their answers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/run/inputs.h"
#include "engine/training/data/sampling.h"
#include "engine/training/loop/prepared_model.h"
#include "engine/training/loop/training.h"
#include "engine/training/tasks/labelled_data.h"

namespace hydrascope::training {

// Some sequences, and the predictions of them that are scored.
struct NextTokenBatch {
  ModelInput input;   // token_ids (B,N), a mask where lengths differ, `read`: the positions that predict
  at::Tensor targets; // (P) int64: the token after each of these
};

class NextTokenData {
public:
  // Throws Error, UsageError (no data, a table without answers).
  NextTokenData(const PreparedModel& prepared, const FinetuneRequest& request);

  std::int64_t items(Part part) const { return std::ssize(of(part)); }
  std::int64_t length(Part part, std::int64_t item) const {
    return std::ssize(of(part)[static_cast<std::size_t>(item)].ids);
  }
  // The number of scored tokens of some items.
  std::int64_t scored(Part part, const Items& items) const;
  // On the model's device.
  NextTokenBatch batch(Part part, const Items& items) const;

  std::string summary() const;       // for the adapter's metadata
  std::string configuration() const; // what a resumed run must have in common
  const std::string& items_name() const { return items_name_; }
  const std::vector<std::string>& notes() const { return notes_; }

private:
  struct Sequence {
    TokenIds ids;
    std::int64_t scored = 1; // tokens from here on are predicted from those before
  };
  const std::vector<Sequence>& of(Part part) const { return part == Part::training ? train_ : held_out_; }
  std::string hash_of_sequences() const;

  std::vector<Sequence> read_pieces(const std::vector<std::filesystem::path>& files);
  std::vector<Sequence> read_answers(const std::vector<std::filesystem::path>& files);

  const PreparedModel& prepared_;
  const FinetuneRequest& request_;
  ChunkLengths chunk_;
  std::vector<Sequence> train_, held_out_;
  std::string items_name_, hash_;
  std::vector<std::string> notes_;
};

} // namespace hydrascope::training
