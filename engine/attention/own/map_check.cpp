#include "engine/attention/own/map_check.h"

#include <algorithm>

#include "engine/attention/own/map_script.h"

namespace hydrascope {

namespace {

MapFacts facts_of(const MapScript& script, const LayerShape& shape) {
  MapFacts facts{.form = script.source().form};
  if (facts.form == MapSource::Form::hydra)
    facts.features = shape.width();
  else if (facts.form != MapSource::Form::score)
    facts.features = script.width(shape.head_width);
  constexpr int layer = 0; // the layer decides random numbers, not shapes
  const std::vector<std::string> fixed = script.fixed_parameters();
  for (const auto& [name, tensor] : script.initial_parameters({shape.heads, shape.head_width}, layer)) {
    facts.parameters += tensor.numel();
    if (std::ranges::find(fixed, name) == fixed.end()) facts.trained += tensor.numel();
  }
  return facts;
}

// The last line that is not blank, from 1.
int last_line(const std::string& text) {
  const std::size_t end = std::min(text.find_last_not_of(" \t\r\n"), text.size());
  return 1 +
         static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
}

} // namespace

CheckedMap check_map(const std::string& name, const std::string& text, const LayerShape& shape) {
  try {
    const std::shared_ptr<const MapScript> script = MapScript::of(parse_map_source(name, text));
    if (const auto found = script->problem(shape.heads, shape.head_width)) throw SourceError(*found);
    // Known from here on: sources are never forgotten, so that those that do not run are not made known.
    return {.problem = {}, .kernel = kernel_of_source(name, text), .facts = facts_of(*script, shape)};
  } catch (const SourceError& error) {
    const int line = std::min(error.line(), last_line(text)); // the end of the text lies behind it
    return {.problem = MapProblem{line, error.reason()}, .kernel = {}, .facts = {}};
  }
}

bool is_tried(const KernelSpec& kernel, const LayerShape& shape) {
  if (text_of_source(kernel).empty()) return true;
  try {
    const auto script = MapScript::compiled_before(source_of(kernel));
    return script && script->is_tried(shape.heads, shape.head_width);
  } catch (const SourceError&) { // it does not compile
    return true;
  }
}

} // namespace hydrascope
