// What each action of the table is for: where its effect shows in the document, the settings or the window.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/document/editor.h"

struct ImGuiTestContext;

namespace hydrascope::app::window_tests {

using Json = nlohmann::ordered_json;
using Pointer = Json::json_pointer;

// What is looked at: the JSON before and after, and the end of the id after the entry's prefix.
struct Seen {
  const Json& before;
  const Json& after;
  std::string rest;

  const Json& scene() const {
    const std::string kind = after.at(Pointer("/document/kind"));
    return after.at("document").at("scenes").at(kind);
  }
  const Json& view() const { return after.at(Pointer("/document/view")); }
  const Json& settings() const { return after.at("settings"); }
  bool flipped(const char* pointer) const {
    return after.at(Pointer(pointer)).get<bool>() != before.at(Pointer(pointer)).get<bool>();
  }
};

struct Expectation {
  std::string prefix; // of the action's id; the longest one that fits counts
  std::function<bool(const Seen&)> effect;
  std::function<void(Editor&)> prepare = {}; // so that the action has something to do
  // What the user sees within some frames; `rest` as in Seen.
  std::function<bool(ImGuiTestContext*, const std::string& rest)> shown = {};
  // Of what a test of its own sees the effect, as it needs a run, a clipboard or another program: the
  // command, which is not applied.
  std::function<bool(const Command&, const std::string& rest)> emitted = {};
};

std::vector<Expectation> all_expectations();

} // namespace hydrascope::app::window_tests
