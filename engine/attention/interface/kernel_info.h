// Facts about kernels, and how one is named with its parameters. Plain types.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hydrascope {

// The input of attention in every layer of a model, as far as a kernel's support depends on it.
struct LayerShape {
  std::int64_t heads = 1, head_width = 1, tokens = 1; // H, d, N
  // Images: N = prefix + rows · columns. Text: rows = columns = 0.
  std::int64_t prefix_tokens = 0, rows = 0, columns = 0;
  bool has_mask = false;
  bool has_layer_input = true;   // the attention module's own input is known, which poly-nl needs
  bool cross = false;            // queries and keys are different tokens
  bool causal = false;           // a token attends to itself and those before it
  std::string device = "auto";   // auto | cpu | cuda | cuda:i
  std::string dtype = "float32"; // float32 | bfloat16 | float16

  std::int64_t width() const { return heads * head_width; } // D
  bool operator==(const LayerShape&) const = default;
};

// The valid range of a whole-number parameter, and its default.
struct ParameterRange {
  std::int64_t least = 1, most = 1, initial = 1;
};

// A parameter accepted after the colon, as `features` in `performer:features=128`.
struct ParameterInfo {
  enum class Kind {
    divisor, // of the model's width D
    number,  // a whole number
    flag,    // 0 or 1
    choice,  // one of `choices`
    source   // NAME@HASH of a text, or the file it is read from
  };
  std::string name;
  Kind kind = Kind::number;
  std::string meaning; // one line
  std::string initial; // the default: a value, or words where it depends on the model
  std::vector<std::string> choices = {};
  std::function<ParameterRange(const LayerShape&)> range = {}; // for divisors and numbers
};

// What kernels are grouped by in the window, `hydrascope kernels` and the documentation, in this order.
enum class KernelFamily { exact, window, hydra, normalised_linear, trained, own };
inline constexpr int kernel_families = 6;
const char* family_name(KernelFamily family);    // "exact", "normalised linear", …
const char* family_summary(KernelFamily family); // one line: what its kernels have in common

// Properties of a feature map, as the Hydra paper's appendix tells them.
struct MapProperties {
  bool bounded = false;
  bool takes_negatives = false;
  // The paper counts x/‖x‖ as linear, though it is so only up to the length of x: `up_to_length`.
  bool linear = false, up_to_length = false;

  bool operator==(const MapProperties&) const = default;
};

// A kernel's entry in the registry as users see it (a row of `hydrascope kernels`).
struct KernelInfo {
  std::string name;
  KernelFamily family = KernelFamily::own;
  std::string definition;            // one line of mathematics
  std::string complexity;            // "O(N² D)", "O(N D)", …
  std::string feature_width;         // d′ as text ("2d"), "—" where there is no feature map
  std::string source;                // paper and equation
  std::string published;             // top-1 or KL as printed in the papers, "" if none
  bool normalised = false;           // rows of the weights sum to 1
  bool weights_positive = false;     // false: entropy and KL are undefined
  bool trainable = false;            // has trained parameters
  bool exact_softmax = false;        // computes softmax attention itself (softmax, sdpa): never "untrained"
  bool implied_weights = false;      // forms no weights (Hydra: a head per feature): those shown are implied
  MapProperties query_map, key_map;  // of φ_Q and φ_K
  bool positional = false;           // weights depend on token positions (window, cosFormer's factor)
  bool uses_query_projection = true; // false: W_q is not computed (poly-nl)
  std::vector<ParameterInfo> parameters; // accepted after the colon
  std::vector<std::string> devices;      // "cpu", "cuda"

  const ParameterInfo* parameter(std::string_view key) const; // null if it is not accepted
};

// Whether the rows of a kernel's weights are distributions, for which alone entropy and KL are defined.
inline bool has_distributions(const KernelInfo& info) { return info.normalised && info.weights_positive; }

// A kernel with its parameters, as written on the command line: `performer:features=128,seed=7`.
struct KernelSpec {
  std::string name = "softmax";
  std::map<std::string, std::string> parameters = {};

  auto operator<=>(const KernelSpec&) const = default;
  std::string text() const;  // the canonical written form
  std::string label() const; // … as people read it: `phi NAME` for a map's NAME@HASH
};

// The registry's entries in their fixed order.
const std::vector<KernelInfo>& kernel_infos();
// Throws UsageError naming the nearest known name and listing all.
const KernelInfo& kernel_info(std::string_view name);
// The facts of a kernel with its parameters, on which those of some depend (`phi`). Valid for ever. Throws
// UsageError.
const KernelInfo& kernel_info(const KernelSpec& kernel);

// Parses `name` or `name:key=value,key=value` and checks names (aliases are resolved) and parameter keys
// against the registry. Throws UsageError, which names `option`.
KernelSpec parse_kernel_spec(std::string_view text, std::string_view option = "--kernel");

// The same for a comma-separated list of kernels; an item of the form key=value continues the item before it.
std::vector<KernelSpec> parse_kernel_list(std::string_view text, std::string_view option = "--kernels");
// Its kernels as they are written, each for parse_kernel_spec: another process reads `phi:FILE` again, but
// does not know the text() of a map.
std::vector<std::string> split_kernel_list(std::string_view text, std::string_view option = "--kernels");

} // namespace hydrascope
