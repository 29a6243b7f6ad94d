#include "app/views/focus_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include <fmt/format.h>

#include "engine/figures/scale.h"
#include "engine/plain/error.h"

namespace hydrascope::app {
namespace {

std::string scale_label(const FocusOptions& options) {
  const std::string signed_text = options.with_sign ? "signed contribution" : "contribution";
  switch (options.normalise) {
    case Normalisation::max: return signed_text + ", 1 = largest";
    case Normalisation::l1: return signed_text + ", share of the sum";
    case Normalisation::l2: return signed_text + ", L2 norm 1";
    case Normalisation::none: return signed_text + " to the target";
  }
  return signed_text;
}

Scale focus_scale(const Array& values, const FocusOptions& options) {
  Scale scale;
  scale.map = options.with_sign ? ColourMap::blue_white_red : ColourMap::magma;
  scale.label = scale_label(options);
  scale.shared = options.normalise == Normalisation::max;
  double high = 1;
  if (options.normalise != Normalisation::max) {
    high = 0;
    for (const float value : values.values) high = std::max(high, std::abs(static_cast<double>(value)));
  }
  scale.high = high > 0 ? high : 1;
  scale.low = options.with_sign ? -scale.high : 0;
  return scale;
}

double divisor_of(const std::vector<double>& drawn, Normalisation normalise) {
  double largest = 0, sum = 0, squares = 0;
  for (const double value : drawn) {
    largest = std::max(largest, std::abs(value));
    sum += std::abs(value);
    squares += value * value;
  }
  switch (normalise) {
    case Normalisation::max: return largest;
    case Normalisation::l1: return sum;
    case Normalisation::l2: return std::sqrt(squares);
    case Normalisation::none: return 1;
  }
  return 1;
}

std::string prefix_name(const RunResult& run, std::size_t index) {
  if (index == 0) return "class token";
  return index < run.tokens.size() ? run.tokens[index].text : fmt::format("token {}", index);
}

std::string note_of(const RunResult& run, const FocusResult& focus, const FocusMap& map) {
  std::vector<std::string> parts;
  if (focus.zero_gradient) {
    parts.emplace_back("the gradient is zero: this query cannot influence the target in this layer");
  } else if (map.empty) {
    parts.emplace_back("no contribution is positive: the map is empty");
  }
  for (std::size_t index = 0; !focus.zero_gradient && index < map.prefix.size(); ++index) {
    parts.push_back(prefix_name(run, index) + " itself " + number_text(map.prefix[index], 2));
  }
  if (run.query && std::isfinite(focus.share) && std::abs(focus.share - 1) > 0.005) {
    parts.push_back(fmt::format("this query carries {} % of the target's sum over all queries",
                                number_text(focus.share * 100, 2)));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string query_text(const RunResult& run) {
  if (!run.query) return "all queries";
  const auto index = static_cast<std::size_t>(*run.query);
  if (*run.query == 0 && run.rows > 0) return "query: class token";
  return "query: " +
         (index < run.tokens.size() ? run.tokens[index].text : fmt::format("token {}", *run.query));
}

// What the reader must know of the layer beside its kernel's name.
std::string layer_flags(const RunResult& run, int layer) {
  const auto& ran = run.layers.at(static_cast<std::size_t>(layer));
  std::string flags = ran.untrained ? "untrained" : "";
  if (ran.other_resolution) flags += flags.empty() ? "other resolution" : ", other resolution";
  return flags;
}

std::string item_title(const FocusItem& item) {
  const std::string flags = layer_flags(*item.run, item.layer);
  if (item.title.empty()) {
    const auto kernel_of = [&](const RunResult& run) {
      return run.layers.at(static_cast<std::size_t>(item.layer)).kernel.text();
    };
    const std::string kernel =
        kernel_of(*item.run) + (item.minus == nullptr ? "" : " − " + kernel_of(*item.minus));
    return fmt::format("layer {}\n{}{}{}", item.layer, kernel, flags.empty() ? "" : ", ", flags);
  }
  if (flags.empty()) return item.title;
  return item.title + (item.title.find('\n') == std::string::npos ? "\n" : ", ") + flags;
}

OverlayPanel photograph_panel(const RunResult& run, const ImageInput& image) {
  OverlayPanel panel;
  panel.image = image.image;
  panel.crop_x = run.crop_x;
  panel.crop_y = run.crop_y;
  panel.crop_width = run.crop_width;
  panel.crop_height = run.crop_height;
  panel.title = image.name.empty() ? "input" : image.name;
  return panel;
}

OverlayPanel overlay_panel(const FocusItem& item, const ImageInput& image, FocusMap map,
                           const FocusOptions& options) {
  OverlayPanel panel = photograph_panel(*item.run, image);
  panel.title = item_title(item);
  panel.values = std::move(map.values);
  panel.scale = std::move(map.scale);
  panel.note = std::move(map.note);
  panel.opacity = options.opacity;
  panel.interpolation = options.interpolation;
  if (item.run->query && *item.run->query >= item.run->prefix_tokens && item.run->columns > 0) {
    const auto patch = static_cast<int>(*item.run->query) - item.run->prefix_tokens;
    panel.query_row = patch / item.run->columns;
    panel.query_column = patch % item.run->columns;
  }
  return panel;
}

TokensPanel tokens_panel(const FocusItem& item, FocusMap map) {
  TokensPanel panel;
  panel.title = item_title(item);
  for (const ShownToken& token : map.shown) panel.tokens.push_back(token.text);
  panel.values.assign(map.values.values.begin(), map.values.values.end());
  if (panel.values.empty())
    panel.values.assign(panel.tokens.size(), std::numeric_limits<double>::quiet_NaN());
  panel.scale = std::move(map.scale);
  panel.note = std::move(map.note);
  panel.query = shown_index(map.shown, item.run->query);
  for (std::size_t index = 0; index < map.shown.size(); ++index) {
    if (any_of_them(map.shown[index], item.run->hidden_tokens))
      panel.values[index] = std::numeric_limits<double>::quiet_NaN(); // it took no part
  }
  return panel;
}

std::string figure_title(std::span<const FocusItem> items, const ImageInput* image) {
  const auto& run = *items.front().run;
  std::string title = run.model.name;
  if (image != nullptr && !image->name.empty()) title += " · " + image->name;
  const bool one_layer = std::all_of(
      items.begin(), items.end(), [&](const FocusItem& item) { return item.layer == items.front().layer; });
  return one_layer ? fmt::format("{} · layer {}", title, items.front().layer) : title;
}

std::string figure_subtitle(const RunResult& run) {
  const std::string target = run.target.empty() ? "the target" : "the target (" + run.target + ")";
  std::string subtitle = "Focus map: each token's contribution to " + target + "; " + query_text(run) + "; " +
                         run.schedule.summary();
  for (const auto& note : run.notes) subtitle += "; " + note;
  return subtitle;
}

} // namespace

Normalisation parse_normalisation(std::string_view text) {
  if (text == "max") return Normalisation::max;
  if (text == "l1") return Normalisation::l1;
  if (text == "l2") return Normalisation::l2;
  if (text == "none") return Normalisation::none;
  throw UsageError("--normalise", "unknown value '" + std::string(text) + "'", "use max, l1, l2 or none");
}

Interpolation parse_interpolation(std::string_view text) {
  for (const Interpolation each : {Interpolation::nearest, Interpolation::bilinear, Interpolation::bicubic}) {
    if (text == interpolation_name(each)) return each;
  }
  throw UsageError("--interpolation", "unknown value '" + std::string(text) + "'",
                   "use nearest, bilinear or bicubic");
}

const char* interpolation_name(Interpolation interpolation) {
  switch (interpolation) {
    case Interpolation::bilinear: return "bilinear";
    case Interpolation::bicubic: return "bicubic";
    case Interpolation::nearest: break;
  }
  return "nearest";
}

FocusMap focus_map(const RunResult& run, const FocusResult& focus, const FocusOptions& options) {
  FocusMap map;
  const auto& contributions = focus.contributions.values;
  const bool image = run.rows > 0;
  const auto first = std::min(contributions.size(), image ? static_cast<std::size_t>(run.prefix_tokens) : 0);
  std::vector<double> drawn;
  if (image) {
    drawn.assign(contributions.begin() + static_cast<std::ptrdiff_t>(first), contributions.end());
  } else {
    map.shown = shown_tokens(run, options.tokens);
    drawn = shown_sums(map.shown, contributions);
  }
  if (!options.with_sign) {
    for (double& value : drawn) value = std::max(0.0, value);
  }
  const bool something = std::any_of(drawn.begin(), drawn.end(), [](double value) { return value != 0; });
  map.empty = focus.zero_gradient || !something;
  map.divisor = map.empty ? 1 : divisor_of(drawn, options.normalise);
  for (std::size_t index = 0; index < first; ++index) {
    map.prefix.push_back(static_cast<double>(contributions[index]) / map.divisor);
  }
  if (!map.empty) {
    map.values.shape = image ? std::vector<std::int64_t>{run.rows, run.columns}
                             : std::vector<std::int64_t>{1, static_cast<std::int64_t>(drawn.size())};
    for (const double value : drawn) map.values.values.push_back(static_cast<float>(value / map.divisor));
  }
  map.scale = focus_scale(map.values, options);
  map.note = note_of(run, focus, map);
  return map;
}

FocusMap focus_difference(FocusMap a, const FocusMap& b) {
  // A map that shows nothing is zero everywhere.
  if (a.empty) {
    a.values.shape = b.values.shape;
    a.values.values.assign(b.values.values.size(), 0.0f);
  }
  if (!b.empty && a.values.shape != b.values.shape) a.values = {};
  if (!b.empty)
    std::ranges::transform(a.values.values, b.values.values, a.values.values.begin(), std::minus{});
  a.empty = a.values.empty();
  const double high = std::max(a.scale.high, b.scale.high) * (a.scale.low < 0 ? 2 : 1);
  a.scale = {.map = ColourMap::blue_white_red,
             .low = -high,
             .high = high,
             .logarithmic = false,
             .shared = a.scale.shared,
             .label = "A − B, each of its own maximum"};
  if (!a.empty) a.note = "A − B: red where A looks more, blue where B does";
  a.prefix.clear();
  return a;
}

PaintedPicture::PaintedPicture(const ImageInput& image, const RunResult& run)
    : original_(image.image),
      painted_(image),
      hidden_(run.hidden_tokens),
      rows_(run.rows),
      columns_(run.columns) {
  if (hidden_.empty() || !original_ || rows_ < 1 || columns_ < 1) return;
  Image copy = *original_;
  // ImageNet's mean; a model that was normalised by another one saw a grey close to it.
  constexpr std::array<std::uint8_t, 3> mean = {124, 116, 104};
  const auto pixel = [](double position, int limit) {
    return std::clamp(static_cast<int>(std::lround(position)), 0, limit);
  };
  for (const std::int64_t token : hidden_) {
    const auto patch = static_cast<int>(token) - run.prefix_tokens;
    const double height = run.crop_height / rows_, width = run.crop_width / columns_;
    const int row = patch / columns_, column = patch % columns_;
    const int top = pixel(run.crop_y + row * height, copy.height);
    const int bottom = pixel(run.crop_y + (row + 1) * height, copy.height);
    const int left = pixel(run.crop_x + column * width, copy.width);
    const int right = pixel(run.crop_x + (column + 1) * width, copy.width);
    for (int y = top; y < bottom; ++y) {
      for (int x = left; x < right; ++x) {
        const auto at = (static_cast<std::size_t>(y) * static_cast<std::size_t>(copy.width) +
                         static_cast<std::size_t>(x)) *
                        3;
        std::ranges::copy(mean, copy.rgb.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
  }
  painted_.image = std::make_shared<const Image>(std::move(copy));
}

bool PaintedPicture::shows(const ImageInput& image, const RunResult& run) const {
  return original_ != nullptr && image.image == original_ && image.name == painted_.name &&
         run.hidden_tokens == hidden_ && run.rows == rows_ && run.columns == columns_;
}

const FocusResult* find_focus(const RunResult& run, int layer) {
  const auto found = std::find_if(run.focus.begin(), run.focus.end(),
                                  [&](const FocusResult& focus) { return focus.layer == layer; });
  return found == run.focus.end() ? nullptr : &*found;
}

Figure focus_figure(std::span<const FocusItem> items, const ImageInput* image, const FocusOptions& options) {
  Figure figure;
  if (items.empty() || items.front().run == nullptr) return figure;
  const auto& run = *items.front().run;
  figure.title = figure_title(items, image);
  figure.subtitle = figure_subtitle(run);
  if (image != nullptr && options.photograph) figure.panels.emplace_back(photograph_panel(run, *image));
  for (const auto& item : items) {
    const FocusResult* const focus = find_focus(*item.run, item.layer);
    if (focus == nullptr) continue;
    FocusMap map = focus_map(*item.run, *focus, options);
    if (item.minus != nullptr) {
      const FocusResult* const other = find_focus(*item.minus, item.layer);
      if (other == nullptr) continue;
      map = focus_difference(std::move(map), focus_map(*item.minus, *other, options));
    }
    if (image != nullptr) {
      figure.panels.emplace_back(overlay_panel(item, *image, std::move(map), options));
    } else {
      figure.panels.emplace_back(tokens_panel(item, std::move(map)));
    }
  }
  figure.columns = image == nullptr ? 1 : figure.panels.size() > 5 ? 4 : 0;
  return figure;
}

Figure focus_figure(const RunResult& run, const ImageInput* image, const std::vector<int>& layers,
                    const FocusOptions& options) {
  std::vector<FocusItem> items;
  if (layers.empty()) {
    for (const auto& focus : run.focus) items.push_back({&run, focus.layer, {}});
    std::sort(items.begin(), items.end(), [](const auto& a, const auto& b) { return a.layer < b.layer; });
  }
  for (const int layer : layers) items.push_back({&run, layer, {}});
  return focus_figure(items, image, options);
}

} // namespace hydrascope::app
