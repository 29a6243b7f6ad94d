#include "engine/measure/teacher_forced_runs.h"

#include <algorithm>
#include <map>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/remainder.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"
#include "engine/base/image.h"
#include "engine/models/capture/capture_model.h"
#include "engine/run/inputs.h"
#include "engine/run/pass.h"
#include "engine/run/placement.h"

namespace hydrascope {
namespace {

// A member of all parts, concatenated along the token axis.
at::Tensor joined(const std::vector<AttentionInput>& parts, at::Tensor AttentionInput::*member,
                  std::int64_t axis) {
  std::vector<at::Tensor> tensors;
  for (const AttentionInput& part : parts) {
    if (!(part.*member).defined()) return {};
    tensors.push_back(part.*member);
  }
  return at::cat(tensors, axis);
}

AttentionInput slice(const AttentionInput& whole, std::int64_t first, std::int64_t end) {
  AttentionInput part;
  part.causal = whole.causal;
  part.key_heads = whole.key_heads;
  part.q = whole.q.slice(2, first, end);
  part.k = whole.k.slice(2, first, end);
  part.v = whole.v.slice(2, first, end);
  if (whole.layer_input.defined()) part.layer_input = whole.layer_input.slice(1, first, end);
  return part;
}

// q, k, v and layer inputs of consecutive texts (B = 1 each), cut into pieces of one length.
class PieceBuffer {
public:
  // `skipped`: tokens at the beginning that belong to no piece.
  PieceBuffer(int layers, std::int64_t length, std::int64_t skipped)
      : length_(length),
        parts_(static_cast<std::size_t>(layers)),
        tokens_(static_cast<std::size_t>(layers)),
        skip_(static_cast<std::size_t>(layers), skipped) {}

  void add(int layer, const AttentionInput& input) {
    const auto position = static_cast<std::size_t>(layer);
    const std::int64_t tokens = input.q.size(2), skipped = std::min(tokens, skip_[position]);
    skip_[position] -= skipped;
    if (skipped == tokens) return;
    parts_[position].push_back(skipped > 0 ? slice(input, skipped, tokens) : input);
    tokens_[position] += tokens - skipped;
  }

  // Whether every layer has a whole piece.
  bool full() const { return tokens_.back() >= length_; }

  // Removes the next piece of a layer, (1,H,length,d), and returns it.
  AttentionInput take(int layer) {
    const auto position = static_cast<std::size_t>(layer);
    std::vector<AttentionInput>& parts = parts_[position];
    AttentionInput whole;
    whole.causal = parts.front().causal;
    whole.key_heads = parts.front().key_heads;
    whole.q = joined(parts, &AttentionInput::q, 2);
    whole.k = joined(parts, &AttentionInput::k, 2);
    whole.v = joined(parts, &AttentionInput::v, 2);
    whole.layer_input = joined(parts, &AttentionInput::layer_input, 1);
    const std::int64_t tokens = tokens_[position];
    parts.clear();
    if (tokens > length_) parts.push_back(slice(whole, length_, tokens));
    tokens_[position] = tokens - length_;
    return slice(whole, 0, length_);
  }

private:
  std::int64_t length_;
  std::vector<std::vector<AttentionInput>> parts_; // by layer
  std::vector<std::int64_t> tokens_;               // by layer
  std::vector<std::int64_t> skip_;                 // by layer: tokens still to be skipped
};

using NoteTaker = std::function<void(const std::string&)>;
using Texts = std::shared_ptr<const std::vector<ModelInput>>; // B = 1 each

std::int64_t tokens_of(const ModelInput& text) { return text.token_ids.size(1); }

// Large enough for efficient matrix products, small enough to keep every weight matrix small.
constexpr std::size_t kBatchTokens = 256;

// The items of a process that takes every size-th one.
class Turns {
public:
  explicit Turns(const DataShare& share) : rank_(share.rank), size_(share.size) {}

  std::int64_t of(std::size_t count) const {
    return share_of(static_cast<std::int64_t>(count), rank_, size_).count;
  }
  bool has(std::size_t item) const {
    return static_cast<int>(item % static_cast<std::size_t>(size_)) == rank_;
  }

private:
  int rank_, size_;
};

// Whole texts, in batches of equal length; with `maximum` > 0 positions are modulo it. Processes take turns
// in the order of the lengths, for equal work.
class TextSeries final : public SequenceSeries {
public:
  TextSeries(Texts texts, std::optional<std::int64_t> length, std::int64_t maximum, const DataShare& share)
      : texts_(std::move(texts)), length_(length), maximum_(maximum), turns_(share) {}

  std::optional<std::int64_t> length() const override { return length_; }
  std::int64_t items() const override { return turns_.of(texts_->size()); }

  void visit(const std::shared_ptr<const Model>& model, const LayerVisitor& visitor,
             const std::stop_token& stop, const NoteTaker&) const override {
    std::map<std::int64_t, std::vector<const ModelInput*>> by_length;
    for (const ModelInput& text : *texts_) by_length[tokens_of(text)].push_back(&text);
    std::size_t item = 0;
    for (auto& [length, texts] : by_length) {
      std::erase_if(texts, [&](const ModelInput*) { return !turns_.has(item++); });
      const std::size_t at_once = std::max<std::size_t>(1, kBatchTokens / static_cast<std::size_t>(length));
      for (std::size_t first = 0; first < texts.size(); first += at_once) {
        const std::size_t end = std::min(texts.size(), first + at_once);
        ModelInput input = padded_batch({texts.begin() + static_cast<std::ptrdiff_t>(first),
                                         texts.begin() + static_cast<std::ptrdiff_t>(end)});
        if (maximum_ > 0)
          input.positions = at::remainder(at::arange(input.token_ids.size(1), at::kLong), maximum_);
        visit_softmax_run(model, input, visitor, stop);
      }
    }
  }

private:
  Texts texts_;
  std::optional<std::int64_t> length_;
  std::int64_t maximum_;
  Turns turns_;
};

// Texts run by themselves, their q, k and v concatenated and cut to one length. Each process has consecutive
// pieces, so that only texts across two processes' pieces are run twice.
class ConcatenatedSeries final : public SequenceSeries {
public:
  ConcatenatedSeries(Texts texts, std::int64_t length, std::int64_t tokens, const DataShare& share)
      : texts_(std::move(texts)), length_(length), own_(share_of(tokens / length, share.rank, share.size)) {}

  std::optional<std::int64_t> length() const override { return length_; }
  std::int64_t items() const override { return own_.count; }

  void visit(const std::shared_ptr<const Model>& model, const LayerVisitor& visitor,
             const std::stop_token& stop, const NoteTaker&) const override {
    const int layers = model->info().layers;
    std::int64_t before = own_.first * length_; // tokens
    auto text = texts_->begin();
    for (; text != texts_->end() && tokens_of(*text) <= before; ++text) before -= tokens_of(*text);
    PieceBuffer buffer(layers, length_, before);
    std::int64_t left = own_.count;
    for (; text != texts_->end(); ++text) {
      if (left == 0) return; // the remaining texts do not fill a piece
      visit_softmax_run(
          model, *text, [&](int layer, const AttentionInput& input) { buffer.add(layer, input); }, stop);
      for (; left > 0 && buffer.full(); --left)
        for (int layer = 0; layer < layers; ++layer) {
          if (stop.stop_requested()) throw Cancelled();
          visitor(layer, buffer.take(layer));
        }
    }
  }

private:
  Texts texts_;
  std::int64_t length_;
  ItemRange own_;
};

class PictureSeries final : public SequenceSeries {
public:
  PictureSeries(std::vector<std::filesystem::path> files, std::optional<int> image_size,
                const DataShare& share)
      : files_(std::move(files)), image_size_(image_size) {
    std::size_t item = 0;
    std::erase_if(files_, [&, turns = Turns(share)](const auto&) { return !turns.has(item++); });
  }

  std::int64_t items() const override { return static_cast<std::int64_t>(files_.size()); }

  void visit(const std::shared_ptr<const Model>& model, const LayerVisitor& visitor,
             const std::stop_token& stop, const NoteTaker& note) const override {
    for (const auto& file : files_)
      if (const auto image = loaded(file, note))
        visit_softmax_run(model, model->prepare_image(*image, image_size_), visitor, stop);
  }

private:
  static std::optional<Image> loaded(const std::filesystem::path& file, const NoteTaker& note) {
    try {
      return load_image(file);
    } catch (const ForeignFile&) {
      return std::nullopt; // such as the label lists among many data sets' pictures
    } catch (const Error& error) {
      note(fmt::format("skipped {}", error.what()));
      return std::nullopt;
    }
  }

  std::vector<std::filesystem::path> files_;
  std::optional<int> image_size_;
};

// The sequences of captures, one after the other.
class CaptureSeries final : public SequenceSeries {
public:
  CaptureSeries(std::vector<std::filesystem::path> sequences, const DataShare& share)
      : sequences_(std::move(sequences)) {
    std::size_t item = 0;
    std::erase_if(sequences_, [&, turns = Turns(share)](const auto&) { return !turns.has(item++); });
  }

  std::int64_t items() const override { return static_cast<std::int64_t>(sequences_.size()); }

  void visit(const std::shared_ptr<const Model>& model, const LayerVisitor& visitor,
             const std::stop_token& stop, const NoteTaker&) const override {
    for (const auto& sequence : sequences_) {
      const auto capture = placed_capture(load_capture(sequence), model->device(), at::kFloat);
      visit_softmax_run(capture, capture->recorded_input(), visitor, stop);
    }
  }

private:
  std::vector<std::filesystem::path> sequences_;
};

// Texts, or pairs of which each is one input.
Texts read_data(const Model& model, const std::filesystem::path& file, const TeacherForcedRequest& request,
                std::vector<std::string>& notes) {
  if (std::filesystem::is_directory(file))
    throw UsageError(file.string(),
                     fmt::format("is a folder, and the model {} takes text", model.info().name),
                     "name a text file, or choose a vision model with --model");
  TokenizedTexts texts =
      tokenized(model, read_pairs(file, request.column, request.pair_column, request.header, request.limit));
  if (texts.texts.empty()) throw Error(file.string(), "holds no text", "name another file");
  if (texts.cut > 0)
    notes.push_back(
        fmt::format("{}: {} texts were cut at {} tokens", file.string(), texts.cut, model.info().max_tokens));
  return std::make_shared<const std::vector<ModelInput>>(std::move(texts.texts));
}

std::unique_ptr<SequenceSeries> concatenated(const Texts& texts, std::int64_t length,
                                             const std::filesystem::path& file, const DataShare& share) {
  std::int64_t tokens = 0;
  for (const ModelInput& text : *texts) tokens += tokens_of(text);
  if (length > tokens)
    throw UsageError(fmt::format("--lengths {}", length),
                     fmt::format("the texts of {} have {} tokens together", file.string(), tokens),
                     "choose a smaller length or more text");
  return std::make_unique<ConcatenatedSeries>(texts, length, tokens, share);
}

// The file as one text (length 0), or in pieces of `length` tokens. A decoder reads it as it stands, the line
// ends included; other models its lines one after the other.
std::vector<TokenIds> joined_pieces(const Model& model, const std::filesystem::path& file,
                                    const TeacherForcedRequest& request, std::int64_t length,
                                    std::vector<std::string>& notes) {
  if (!model.info().causal)
    return joined_texts(token_ids_of(*read_data(model, file, request, notes)), length);
  TokenIds text;
  if (request.column > 0 || request.header) {
    const auto lines = read_texts(file, request.column, request.header, 0);
    text = model.text_ids(fmt::format("{}", fmt::join(lines, "\n")));
  } else {
    text = running_text(model, file);
  }
  if (length == 0) return {std::move(text)};
  std::vector<TokenIds> pieces = pieces_of(text, length);
  const auto most = static_cast<std::size_t>(request.limit);
  if (most > 0 && pieces.size() > most) pieces.resize(most);
  return pieces;
}

std::unique_ptr<SequenceSeries> joined(std::vector<TokenIds> pieces, std::int64_t length,
                                       const std::filesystem::path& file, const ModelInfo& info,
                                       const DataShare& share, std::vector<std::string>& notes) {
  const auto size = [](const TokenIds& piece) { return static_cast<std::int64_t>(piece.size()); };
  if (length > 0 && !pieces.empty() && size(pieces.back()) < length) {
    const std::int64_t last = size(pieces.back());
    pieces.pop_back();
    if (pieces.empty())
      throw UsageError(fmt::format("--lengths {}", length),
                       fmt::format("the joined text of {} has {} tokens", file.string(), last),
                       "choose a smaller length or more text");
  }
  if (pieces.empty()) throw Error(file.string(), "holds no word", "name another file");
  const std::int64_t tokens = size(pieces.front());
  if (tokens > info.max_tokens)
    notes.push_back(
        fmt::format("{}: fed as one text of {} tokens, whose positions begin again after every {}",
                    file.string(), tokens, info.max_tokens));
  else
    notes.push_back(fmt::format("{}: fed as one text of {} tokens", file.string(), tokens));
  std::vector<ModelInput> inputs;
  for (const TokenIds& piece : pieces) inputs.push_back(text_batch({&piece}));
  return std::make_unique<TextSeries>(std::make_shared<const std::vector<ModelInput>>(std::move(inputs)),
                                      tokens, info.max_tokens, share);
}

void check_lengths(const TeacherForcedRequest& request) {
  const std::int64_t least = request.joined ? 3 : 1; // joined pieces have their own first and last token
  for (const std::int64_t length : request.lengths)
    if (length < least)
      throw UsageError(fmt::format("--lengths {}", length), fmt::format("must be {} or more", least),
                       "choose another");
}

} // namespace

void visit_softmax_run(const std::shared_ptr<const Model>& model, const ModelInput& input,
                       const LayerVisitor& visit, const std::stop_token& stop) {
  const at::NoGradGuard no_gradients;
  const auto layers = static_cast<std::size_t>(model->info().layers);
  const LayerKernel softmax{kernel_for(model->info(), KernelSpec{}), {}, false};
  Pass pass = plain_pass(model, std::vector(layers, softmax), placed(*model, input));
  pass.tapped.assign(layers, true);
  const PassOutcome outcome = run_pass(pass, stop, [&](int layer, const AttentionTap& tap) {
    // On another device one check has to do, as each waits for it: what is not finite stays so to the end.
    if (tap.out.defined() && tap.out.is_cpu()) check_finite(tap.out, *model);
    visit(layer, tap.input);
  });
  check_finite(outcome.output, *model);
}

std::vector<SeriesOfData> make_series(const AppliedModel& model, const TeacherForcedRequest& request,
                                      std::vector<std::string>& notes) {
  if (request.data.empty()) throw UsageError("--data", "nothing to measure on", "name a file");
  const ModelInfo& info = model.model->info();
  check_lengths(request);
  check_pair_column(request.column, request.pair_column);
  const bool reads_texts = !info.capture && info.input == InputKind::text;
  if (!reads_texts && (!request.lengths.empty() || request.joined || request.pair_column > 0))
    throw UsageError("--lengths, --joined and --pair-column", "are for texts", "leave them out");
  if (request.pair_column > 0 && request.joined)
    throw UsageError("--pair-column", "makes inputs of two texts, --joined one of all", "leave one out");
  std::vector<SeriesOfData> all;
  if (info.capture) {
    for (const auto& data : request.data)
      all.push_back({data, std::make_unique<CaptureSeries>(capture_sequences({data}, info), request.share)});
    return all;
  }
  if (info.input == InputKind::image) {
    const auto size =
        request.execution.image_size ? request.execution.image_size : model.adapter_image_size();
    for (const auto& folder : request.data) {
      if (std::filesystem::is_regular_file(folder))
        throw UsageError(folder.string(),
                         fmt::format("is a file, and the model {} takes pictures", info.name),
                         "name a folder, or choose a text model with --model");
      all.push_back(
          {folder, std::make_unique<PictureSeries>(files_below(folder, request.limit), size, request.share)});
    }
    return all;
  }
  for (const auto& file : request.data) {
    std::vector<std::int64_t> lengths = request.lengths;
    if (lengths.empty()) lengths.push_back(0);
    if (request.joined) {
      for (const std::int64_t length : lengths)
        all.push_back({file, joined(joined_pieces(*model.model, file, request, length, notes), length, file,
                                    info, request.share, notes)});
      continue;
    }
    const Texts texts = read_data(*model.model, file, request, notes);
    for (const std::int64_t length : lengths) {
      if (length > 0)
        all.push_back({file, concatenated(texts, length, file, request.share)});
      else
        all.push_back({file, std::make_unique<TextSeries>(texts, std::nullopt, 0, request.share)});
    }
  }
  return all;
}

} // namespace hydrascope
