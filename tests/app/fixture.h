// A scratch folder and small models for tests of the application's state.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "app/document/editor.h"
#include "app/document/layouts.h"
#include "tests/support/checkout.h"
#include "tests/support/scratch_folder.h"

namespace hydrascope::app::tests {

using test::ScratchFolder;

// Two layers with three heads each: "deit" takes pictures, "bert" text.
inline std::filesystem::path golden_model(const std::string& name) {
  return test::source_folder() / "tests/golden/models" / name;
}

// Three layers, four heads of queries and two of keys and values, 512 positions, a byte-level tokenizer.
inline std::filesystem::path golden_decoder() {
  return test::source_folder() / "tests/golden/decoders/written";
}

// A document with both models open and a sentence.
inline Document small_document() {
  Document document;
  document.kind = InputKind::text;
  set_model(document.scene_of(InputKind::image), golden_model("deit"), read_model_info(golden_model("deit")));
  set_model(document.scene_of(InputKind::text), golden_model("bert"), read_model_info(golden_model("bert")));
  document.scene().input = TextInput{"the cat", std::nullopt};
  document.execution.threads = usual_threads();
  return document;
}

// A document whose text model is the tiny decoder.
inline Document decoder_document() {
  Document document = small_document();
  set_model(document.scene(), golden_decoder(), read_model_info(golden_decoder()));
  document.scene().input = TextInput{"the cat sat on the mat", std::nullopt};
  document.execution.threads = 1;
  return document;
}

// The panels that the tests' action table knows.
inline std::vector<PanelName> some_panels() {
  return {{"input", "Input", false},    {"kernels", "Kernels", false},  {"focus", "Focus", true},
          {"weights", "Weights", true}, {"training", "Training", true}, {"kl", "KL", true}};
}

} // namespace hydrascope::app::tests
