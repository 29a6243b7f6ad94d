#include "engine/training/loop/training_files.h"

#include <cstring>
#include <string_view>

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/attention/own/map_source.h"
#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/base/json_limits.h"
#include "engine/base/json_text.h"
#include "engine/base/safetensors.h"
#include "engine/base/temporary.h"
#include "engine/base/version.h"

namespace hydrascope {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(HeldOut, step, loss, divergence, accuracy, constant_answer,
                                                matthews, f1, pearson, spearman, head_losses)

namespace training {
namespace {

constexpr const char* format_name = "hydrascope-checkpoint-3";

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

void write_tensors(const std::filesystem::path& file, const NamedTensors& tensors,
                   const std::map<std::string, std::string>& metadata) {
  std::vector<at::Tensor> owners; // of the memory that the views point to
  std::map<std::string, TensorView> views;
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor flat = tensor.detach().cpu().contiguous();
    owners.push_back(flat);
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
                                {"sums", checkpoint.sums},
                                {"epoch_loss", checkpoint.epoch_loss},
                                {"before", checkpoint.before},
                                {"best", checkpoint.best},
                                {"has_best", checkpoint.has_best},
                                {"worse", checkpoint.worse},
                                {"curve", checkpoint.curve},
                                {"validations", checkpoint.validations},
                                {"notes", checkpoint.notes},
                                {"loss_scale", checkpoint.loss_scale.factor},
                                {"steps_at_scale", checkpoint.loss_scale.steps},
                                {"validation_due", checkpoint.validation_due}};
  write_tensors(
      file, tensors,
      {{"format", format_name}, {"configuration", checkpoint.configuration}, {"state", text_of_json(state)}});
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
    const auto state = parse_json<nlohmann::json>(metadata.at("state"));
    state.at("step").get_to(result.step);
    state.at("sums").get_to(result.sums);
    state.at("epoch_loss").get_to(result.epoch_loss);
    state.at("before").get_to(result.before);
    state.at("best").get_to(result.best);
    state.at("has_best").get_to(result.has_best);
    state.at("worse").get_to(result.worse);
    state.at("curve").get_to(result.curve);
    state.at("validations").get_to(result.validations);
    state.at("notes").get_to(result.notes);
    result.validation_due = state.value("validation_due", false);
    result.loss_scale = {state.value("loss_scale", 0.0), state.value("steps_at_scale", std::int64_t{0})};
  } catch (const std::exception& error) {
    throw BrokenFile(file.string(), fmt::format("its metadata cannot be read ({})", error.what()),
                     "start again without --resume");
  }
  if (result.configuration != read_from_json(configuration)) // it may name a file whose name is not UTF-8
    throw UsageError(
        "--resume",
        fmt::format("{} was made with {}, not with {}", file.string(), result.configuration, configuration),
        "use the same options; otherwise, or after an update of the program, leave out --resume");
  for (const auto& [name, view] : contents.tensors()) {
    const auto part = [&](const std::string_view prefix, NamedTensors& into) {
      if (name.starts_with(prefix)) into[name.substr(prefix.size())] = read_float(view, file.string(), name);
    };
    part("parameter.", result.parameters);
    part("best.", result.best_parameters);
    part("moment.", result.moments);
  }
  contents.mapping()->require();
  return result;
}

bool Interval::due() {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < std::chrono::duration<double>(seconds_)) return false;
  last_ = now;
  return true;
}

} // namespace training
} // namespace hydrascope

namespace hydrascope::training {

AdapterInfo write_adapter(const std::filesystem::path& file, const NamedTensors& parameters,
                          const AdapterRecord& record) {
  NamedTensors halves;
  for (const auto& [name, tensor] : parameters) halves[name] = tensor.detach().to(at::kHalf);
  auto layers = nlohmann::json::array();
  for (const auto& layer : record.layers) {
    layers.push_back({{"layer", layer.layer}, {"kernel", layer.kernel.text()}});
    if (std::string text = text_of_source(layer.kernel); !text.empty())
      layers.back()["source"] = std::move(text);
  }
  auto classes = nlohmann::json::array();
  for (const auto& one : record.classes) classes.push_back({{"id", one.id}, {"label", one.label}});
  std::map<std::string, std::string> metadata = {{"format", "hydrascope-adapter-1"},
                                                 {"name", file.stem().string()},
                                                 {"role", record.role},
                                                 {"base", record.base.hash},
                                                 {"layers", text_of_json(layers)},
                                                 {"image_size", std::to_string(record.image_size)},
                                                 {"tokens", std::to_string(record.tokens)},
                                                 {"classes", text_of_json(classes)},
                                                 {"data", record.data},
                                                 {"steps", std::to_string(record.steps)},
                                                 {"loss", fmt::format("{:.4f}", record.loss)},
                                                 {"accuracy", record.accuracy},
                                                 {"command", shared_command(record.command)},
                                                 {"version", version}};
  if (!record.base.over.empty()) metadata["over"] = text_of_json(nlohmann::json(record.base.over));
  if (!record.data_hash.empty()) metadata["data_hash"] = record.data_hash;
  if (record.low_rank_alpha > 0) metadata["lora_alpha"] = fmt::format("{}", record.low_rank_alpha);
  if (record.label_deviation > 0) {
    metadata["label_mean"] = fmt::format("{}", record.label_mean);
    metadata["label_deviation"] = fmt::format("{}", record.label_deviation);
  }
  if (file.has_parent_path()) create_folders(file.parent_path());
  write_tensors(file, halves, metadata);
  return read_adapter_info(file);
}

std::string shared_command(const std::string& whole) {
  std::string command = whole, result;
  constexpr std::string_view resume = " --resume";
  if (const auto found = command.find(resume);
      found != std::string::npos &&
      (found + resume.size() == command.size() || command[found + resume.size()] == ' '))
    command.erase(found, resume.size());
  std::size_t start = 0; // of the current path: one begins after a space, a quote, a comma or =
  bool quoted = false;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    const bool last = i + 1 == command.size() || command[i + 1] == ' ' || command[i + 1] == '\'';
    if (c == '/') {
      if (!last) result.resize(start); // a folder with a slash at its end keeps its name
      continue;
    }
    result += c;
    if (c == '\'') quoted = !quoted;
    if ((c == ' ' && !quoted) || c == '\'' || c == ',' || c == '=') start = result.size();
  }
  return result;
}

} // namespace hydrascope::training
