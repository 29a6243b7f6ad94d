// hydrascope bench write: what a decoder that writes costs the window and takes for each token.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/commands/bench_session.h"
#include "app/commands/commands.h"
#include "app/commands/option_checks.h"
#include "app/document/commands.h"
#include "app/document/writing_edits.h"
#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/base/tsv.h"

namespace hydrascope::app {

namespace {

struct WriteOptions {
  WindowOptions window;
  int context = 512;
  int tokens = 64;
  bool follow = false;
};

// Sentences of about so many tokens together.
std::string long_text(const int tokens) {
  constexpr std::size_t bytes_per_token = 4;
  const std::size_t bytes = static_cast<std::size_t>(tokens) * bytes_per_token;
  std::string text;
  for (const std::vector<TsvLine> lines = read_tsv(assets_folder() / "sentences.txt");
       !lines.empty() && text.size() < bytes;) {
    for (const TsvLine& line : lines) {
      if (text.size() < bytes) text += (text.empty() ? "" : " ") + line.cells.front();
    }
  }
  return text;
}

std::vector<double> token_times(const WrittenSide& side) {
  std::vector<double> times;
  for (const WrittenToken& token : side.tokens) times.push_back(token.ms);
  return times;
}

void run_write(WriteOptions options) {
  WindowOptions& window = options.window;
  if (window.common.model.empty()) window.common.model = "smollm2";
  if (window.text.empty()) window.text = long_text(options.context);
  BenchSession session(window);
  session.model("bench write");
  Application& application = session.application();
  Editor& editor = application.editor();
  application.run("view.layout.text");
  session.until_settled();
  change_writing(editor, "Write", [&](WritingOptions& writing) {
    writing.tokens = options.tokens;
    writing.follow = options.follow;
  });
  if (const std::string why = why_not_written(session.document()); !why.empty())
    throw Error("bench write", why, "choose another model or kernel");
  session.until_settled();
  session.forget_frames();
  session.limit_frames(60); // as a display does: more would slow the tokens
  editor.emit(StartWriting{});
  session.frame();
  const Writing& written = editor.writing;
  // From the first tokens on: before, the prompts are read.
  std::optional<std::chrono::steady_clock::time_point> began;
  session.until([&] {
    const bool both = !written.sides[0].tokens.empty() && (written.alike || !written.sides[1].tokens.empty());
    if (both && !began) began = std::chrono::steady_clock::now();
    return !written.running;
  });
  const double seconds =
      began ? std::chrono::duration<double>(std::chrono::steady_clock::now() - *began).count() : 0;
  for (std::size_t side = 0; side < written.count(); ++side) {
    if (!written.sides[side].problem.empty()) throw Error("bench write", written.sides[side].problem);
  }
  nlohmann::ordered_json result = {
      {"tokens_before", static_cast<double>(written.side(Side::a).prompt_tokens)},
      {"tokens", static_cast<double>(written.side(Side::a).tokens.size())},
      {"token_a_ms", summary_json(token_times(written.side(Side::a)))}};
  if (!written.alike) result["token_b_ms"] = summary_json(token_times(written.side(Side::b)));
  // Of the sides together as it is seen, waiting for each other and for frames included.
  if (options.tokens > 1) result["each_side_ms_a_token"] = 1000 * seconds / (options.tokens - 1);
  result["frames"] = static_cast<double>(session.frames_ms().size());
  result["frame_ms"] = summary_json(session.frames_ms());
  result["frame_cpu_ms"] = summary_json(session.frames_cpu_ms());
  print_result(result, window.common.json);
}

} // namespace

void add_bench_writing(CLI::App& bench) {
  CLI::App* write = bench.add_subcommand(
      "write", "let a decoder write in the window, off screen: time of each token, frames meanwhile");
  const auto options = std::make_shared<WriteOptions>();
  write->add_option("--text", options->window.text, "what it goes on with, instead of example sentences");
  write->add_option("--context", options->context, "example sentences of about so many tokens")
      ->check(positive_number())
      ->capture_default_str();
  write->add_option("--tokens", options->tokens, "write so many")
      ->check(positive_number())
      ->capture_default_str();
  write->add_flag("--follow", options->follow, "let the other panels follow what is written");
  add_common_options(*write, options->window.common, CaptureUse::refused);
  write->callback([options] { run_write(*options); });
}

} // namespace hydrascope::app
