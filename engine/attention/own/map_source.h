// The source of a feature map or a score of the user's own: Python for PyTorch that is TorchScript, too.
// Plain header.
//
//   parameters = {"W": ("H d d", "identity"), "b": ("H d", "zeros")}
//   logarithm = True
//
//   def phi(x, W, b):
//       y = x @ W + b.unsqueeze(1)
//       return torch.cat([y, -y], -1)
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/attention/interface/kernel_info.h"
#include "engine/base/error.h"

namespace hydrascope {

// The source is wrong at a line: "phi elu, line 3: reason".
class SourceError : public UsageError {
public:
  SourceError(const std::string& name, int line, const std::string& reason);

  int line() const { return line_; } // from 1; 0: no single line
  const std::string& reason() const { return reason_; }

private:
  int line_;
  std::string reason_;
};

// A parameter: one tensor for each side or, with `shared`, for both.
struct MapParameter {
  enum class Start { zeros, ones, identity, normal };
  // A length: `factor`, times H or d.
  struct Length {
    enum class Unit { one, heads, head_width };
    std::int64_t factor = 1;
    Unit unit = Unit::one;
  };
  std::string name;
  std::vector<Length> shape;
  Start start = Start::zeros;
  bool fixed = false; // not trained
};

struct MapSource {
  // What the functions define: φ of normalised linear attention (Hedgehog paper, Eq. 2), of the same without
  // a normaliser (Hydra paper, Eq. 7), of Hydra's D-wide rows (Eq. 10), or weights themselves.
  enum class Form { normalised, unnormalised, hydra, score };
  struct Function {
    std::string name;                    // phi, phi_k, score
    std::vector<std::string> parameters; // its arguments after x or q, k: `i`, `n` or a parameter's name
  };

  std::string name;
  std::string text; // as it was typed
  Form form = Form::normalised;
  bool divided_by_sums = true; // scores: each row is divided by its sum
  bool logarithm = false;      // the functions return log φ, or the logarithms of the weights
  // `signed`: True allows both, "features" is for maps whose products are never negative (a polynomial).
  bool negative_features = false, negative_weights = false;
  bool shared = false; // one set of parameters for queries and keys
  std::vector<MapParameter> parameters;
  std::vector<Function> functions;
  std::string script; // the functions alone, on the lines where they stand in `text`

  const Function* function(std::string_view function_name) const; // null if there is none
  bool takes(std::string_view argument) const;                    // phi or phi_k has this argument
  bool positional() const { return takes("i") || takes("n"); }
};

// An ASCII letter, a digit or _, as names in sources have them; names of sources may hold - as well.
bool is_name_letter(char32_t letter);

// Reads settings, parameters and functions' heads; the functions' bodies are not looked at. Throws
// SourceError.
MapSource parse_map_source(const std::string& name, const std::string& text);

// The facts of kernel `phi` with this source.
KernelInfo info_of(const MapSource& source);

// ---- Known sources: texts that kernel specs refer to as NAME@HASH, HASH the first 16 digits of the text's
// SHA-256. They are never forgotten, so that a spec is a small value and means the same for ever.

// Remembers a source and returns its kernel `phi:map=NAME@HASH`. What the name may not hold becomes _. Throws
// SourceError for what parse_map_source() refuses.
KernelSpec kernel_of_source(const std::string& name, const std::string& text);
// The source of a kernel `phi`, the default one without `map`. Throws UsageError if it is not known.
const MapSource& source_of(const KernelSpec& spec);
// The text of a kernel `phi`; "" for other kernels and without `map`. Files that name kernels hold it beside
// KernelSpec::text().
std::string text_of_source(const KernelSpec& spec);
// The kernel of both. Throws UsageError, also where the text is not the one that `kernel` names.
KernelSpec kernel_with_source(const std::string& kernel, const std::string& text);

// What `map=VALUE` means: NAME@HASH as it is; else a file, or the name of one in the user's folder of maps or
// among the bundled ones, which is read. Throws Error.
KernelSpec resolved_map(const KernelSpec& spec);

// The user's folder of maps, and the names of those in it.
std::filesystem::path maps_folder(); // maps/ in data_folder()
std::vector<std::string> own_maps();

// The bundled maps by name: every kernel with a feature map as source, to start from.
std::vector<std::string> bundled_maps();
std::string bundled_map(const std::string& name); // its text; throws Error

} // namespace hydrascope
