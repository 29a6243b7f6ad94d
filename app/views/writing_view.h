// What a decoder writes after a text under two schedules, as figures and text. Plain header.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "app/views/selection.h"
#include "engine/figures/figure.h"

namespace hydrascope::app {

// How the user wants it written.
struct WritingOptions {
  double temperature = 0.7; // 0: always the likeliest token
  double top_p = 0.9;
  std::uint64_t seed = 0;
  int tokens = 64;     // at most, with each start
  bool follow = false; // the other panels show the text with what was written

  bool operator==(const WritingOptions&) const = default;
};

struct WrittenToken {
  int id = 0;
  std::string name;             // as lists show it, with its space
  std::string text;             // the characters that have become whole with it
  double logprob = 0;           // nats, whatever the temperature
  double ms = 0;                // of the model and of the choice
  std::int64_t state_bytes = 0; // of all layers with it
};

struct WrittenSide {
  std::string schedule;           // in words
  std::string kernel;             // telling_kernel()
  std::int64_t prompt_tokens = 0; // 0: the text has not been read yet
  double prefill_ms = 0;          // of reading the text, and what had been written before
  std::vector<WrittenToken> tokens;
  std::string text;    // all that was written
  std::string ended;   // why it cannot go on: "end of text", "positions"; empty: it can
  std::string problem; // why nothing is written
  std::vector<std::string> notes;
};

// What has been written. The options may change meanwhile: they apply to the tokens after that.
struct Writing {
  std::string model; // name
  std::string prompt;
  // What the sides were written with (writing_setup(), app/jobs/writing_job.h): it goes on with that alone.
  std::array<std::string, 2> setups;
  std::array<WrittenSide, 2> sides; // by Side
  bool alike = false;               // both have the same schedule: what A writes is B's, too
  bool running = false;
  std::int64_t read_before = 0;        // tokens of the prompt, if an earlier start has read it; 0: none has
  std::array<std::size_t, 2> wanted{}; // tokens at which the present or last start ends, by side
  std::uint64_t start = 0;             // of the job that writes it; 0: none of this process does
  std::uint64_t edition = 0;           // changes with every token

  bool empty() const { return prompt.empty() && sides[0].tokens.empty() && sides[0].problem.empty(); }
  std::size_t count() const { return alike ? 1 : 2; } // sides that are written
  const WrittenSide& side(Side which) const { return sides[alike ? 0 : static_cast<std::size_t>(which)]; }
  std::int64_t prompt_tokens() const { // 0: not known yet
    return std::max({read_before, sides[0].prompt_tokens, sides[1].prompt_tokens});
  }
};

// The kernel whose colour a schedule has in plots: of several the first that is not exact.
std::string telling_kernel(const Schedule& schedule);
// How many tokens both begin with.
std::size_t common_tokens(const WrittenSide& a, const WrittenSide& b);
std::string state_text(std::int64_t bytes); // "60 kB", "12.3 MB"
// "23.4 ms a token, state 12.3 MB"; medians of the last tokens. Empty before the first.
std::string writing_speed_text(const WrittenSide& side);
// "end of text after 31 tokens", "12 of 64 tokens".
std::string writing_progress_text(const Writing& writing, Side which);

// Time per token and bytes of state against the number of tokens read so far, a panel each; no panels before
// the first token. `brief`: the lines are A and B, without their kernels, which stand beside them.
Figure writing_speed_figure(const Writing& writing, bool brief = false);
// The texts, each token coloured by its loss, and the plots.
Figure writing_figure(const Writing& writing);

} // namespace hydrascope::app
