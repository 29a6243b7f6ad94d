#include "engine/training/checkpoint.h"

#include <cstring>

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/plain/error.h"
#include "engine/plain/safetensors.h"

namespace hydrascope::training {
namespace {

constexpr const char* format_name = "hydrascope-checkpoint-1";

ElementType element_type(const at::ScalarType type) {
  switch (type) {
    case at::kFloat: return ElementType::f32;
    case at::kHalf: return ElementType::f16;
    case at::kBFloat16: return ElementType::bf16;
    case at::kDouble: return ElementType::f64;
    case at::kLong: return ElementType::i64;
    default: throw Error("training", "a tensor of a type that files do not hold");
  }
}

at::Tensor read_float(const TensorView& view, const std::string& subject, const std::string& name) {
  if (view.type != ElementType::f32)
    throw BrokenFile(subject, name + " is not float32", "start again without --resume");
  at::Tensor tensor = at::empty(view.shape, at::kFloat);
  std::memcpy(tensor.mutable_data_ptr<float>(), view.bytes.data(), view.bytes.size());
  return tensor;
}

} // namespace

std::filesystem::path checkpoint_path(const std::filesystem::path& output) {
  return std::filesystem::path(output).concat(".checkpoint");
}

void write_tensors(const std::filesystem::path& file, const NamedTensors& tensors,
                   const std::map<std::string, std::string>& metadata) {
  std::vector<at::Tensor> keep; // the views point into these until the file is written
  std::map<std::string, TensorView> views;
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor flat = tensor.detach().cpu().contiguous();
    keep.push_back(flat);
    views[name] = {element_type(flat.scalar_type()), flat.sizes().vec(),
                   std::span(static_cast<const std::byte*>(flat.const_data_ptr()), flat.nbytes())};
  }
  write_safetensors(file, views, metadata);
}

void save_checkpoint(const std::filesystem::path& file, const Checkpoint& checkpoint) {
  NamedTensors tensors;
  for (const auto& [name, tensor] : checkpoint.parameters) tensors["parameter." + name] = tensor;
  for (const auto& [name, tensor] : checkpoint.best_parameters) tensors["best." + name] = tensor;
  for (const auto& [name, tensor] : checkpoint.moments) tensors["moment." + name] = tensor;
  const nlohmann::json state = {{"step", checkpoint.step},
                                {"updates", checkpoint.updates},
                                {"epoch_loss", checkpoint.epoch_loss},
                                {"epoch_layers", checkpoint.epoch_layers},
                                {"best", checkpoint.best},
                                {"best_step", checkpoint.best_step},
                                {"initial_divergence", checkpoint.initial_divergence},
                                {"curve", checkpoint.curve},
                                {"notes", checkpoint.notes}};
  write_tensors(
      file, tensors,
      {{"format", format_name}, {"configuration", checkpoint.configuration}, {"state", state.dump()}});
}

Checkpoint load_checkpoint(const std::filesystem::path& file, const std::string& configuration) {
  if (!std::filesystem::exists(file))
    throw Error(file.string(), "there is no checkpoint to resume from", "leave out --resume");
  const SafetensorsFile contents = SafetensorsFile::open(file);
  const auto& metadata = contents.metadata();
  if (!metadata.contains("format") || metadata.at("format") != format_name)
    throw ForeignFile(file.string(), "is no checkpoint of this program", "start again without --resume");
  Checkpoint result;
  try {
    result.configuration = metadata.at("configuration");
    const auto state = nlohmann::json::parse(metadata.at("state"));
    result.step = state.at("step");
    result.updates = state.at("updates");
    result.epoch_loss = state.at("epoch_loss");
    result.epoch_layers = state.at("epoch_layers").get<std::vector<double>>();
    result.best = state.at("best");
    result.best_step = state.at("best_step");
    result.initial_divergence = state.at("initial_divergence");
    result.curve = state.at("curve").get<std::vector<std::pair<std::int64_t, double>>>();
    result.notes = state.at("notes").get<std::vector<std::string>>();
  } catch (const std::exception& error) {
    throw BrokenFile(file.string(), fmt::format("its metadata cannot be read ({})", error.what()),
                     "start again without --resume");
  }
  if (result.configuration != configuration)
    throw UsageError(
        "--resume",
        fmt::format("{} was made with {}, not with {}", file.string(), result.configuration, configuration),
        "use the same options, or leave out --resume");
  for (const auto& [name, view] : contents.tensors()) {
    const auto part = [&](const std::string_view prefix, NamedTensors& into) {
      if (name.starts_with(prefix)) into[name.substr(prefix.size())] = read_float(view, file.string(), name);
    };
    part("parameter.", result.parameters);
    part("best.", result.best_parameters);
    part("moment.", result.moments);
  }
  return result;
}

bool CheckpointClock::due() {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < std::chrono::minutes(1)) return false;
  last_ = now;
  return true;
}

} // namespace hydrascope::training
