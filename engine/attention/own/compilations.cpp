// What sources compiled to, or why they did not: kernels are made of the same few again and again.
#include <algorithm>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "engine/attention/own/map_script.h"

namespace hydrascope {
namespace {

struct Compilations {
  struct One {
    std::string name, text;
    std::shared_ptr<const MapScript> script; // null: `error` says why
    std::optional<SourceError> error;
  };
  std::mutex mutex;
  std::list<One> all; // the last one used first

  // Null if it is not known. Call it with the mutex locked.
  const One* find(const MapSource& source) {
    const auto found = std::ranges::find_if(
        all, [&](const One& one) { return one.text == source.text && one.name == source.name; });
    if (found == all.end()) return nullptr;
    all.splice(all.begin(), all, found);
    return &all.front();
  }
  void add(One one) {
    constexpr std::size_t kept = 64;
    const std::lock_guard lock(mutex);
    all.push_front(std::move(one));
    if (all.size() > kept) all.pop_back();
  }
};

Compilations& compilations() {
  static Compilations known;
  return known;
}

} // namespace

std::shared_ptr<const MapScript> MapScript::of(const MapSource& source) {
  Compilations& known = compilations();
  {
    const std::lock_guard lock(known.mutex);
    if (const Compilations::One* const one = known.find(source)) {
      if (one->error) throw SourceError(*one->error);
      return one->script;
    }
  }
  try {
    const std::shared_ptr<const MapScript> script(new MapScript(source));
    known.add({source.name, source.text, script, std::nullopt});
    return script;
  } catch (const SourceError& error) {
    known.add({source.name, source.text, nullptr, error});
    throw;
  }
}

std::shared_ptr<const MapScript> MapScript::compiled_before(const MapSource& source) {
  Compilations& known = compilations();
  const std::lock_guard lock(known.mutex);
  const Compilations::One* const one = known.find(source);
  if (one == nullptr) return nullptr;
  if (one->error) throw SourceError(*one->error);
  return one->script;
}

} // namespace hydrascope
