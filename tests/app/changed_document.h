// A document that differs from a new one in every entry of a session.
#pragma once

#include <filesystem>
#include <memory>

#include "engine/base/image.h"
#include "tests/app/fixture.h"

namespace hydrascope::app::tests {

// Sets every field of the document to something other than its default.
inline Document changed_document(const std::filesystem::path& picture) {
  Document document = small_document();
  document.kind = InputKind::text;
  Scene& text = document.scene();
  text.input = TextInput{"Ein “Zitat”, und\nwhat follows.", "A second one."};
  text.hidden_tokens = {1, 3};
  text.muted_heads = {{0, 1}, {1, 2}};
  text.schedules[0].layers = {{.name = "performer", .parameters = {{"features", "32"}}}, {.name = "relu"}};
  text.schedules[1].layers = {{.name = "elu"}, {.name = "softmax"}};
  text.adapters.automatic = false;
  text.layer = 0;
  text.head = {.head = std::nullopt, .fusion = HeadFusion::max, .subset = {0, 2}};
  text.default_query = false;
  text.query = 2;
  text.key = 4;
  text.target = {.kind = Target::Kind::similarity, .index = 5, .text = "another sentence"};
  text.comparison = {KernelSpec{.name = "elu"}, std::nullopt, KernelSpec{.name = "relu"}};
  text.detail_kernel = KernelSpec{.name = "relu"};
  document.scene_of(InputKind::image).input =
      ImageInput{std::make_shared<const Image>(load_image(picture)), picture.filename().string(), picture};
  document.wrong_first = true;
  document.view = {
      .shown = Shown::difference,
      .maps = {MapKind::attention, MapKind::rollout},
      .discard = 0.9,
      .with_sign = true,
      .look = {.mode = OverlayMode::dimmed, .opacity = 0.35f, .interpolation = Interpolation::bicubic},
      .logarithmic = false,
      .percentile = true,
      .all_heads = true,
      .pairs = TokenPairs::b_to_a,
      .shared_scale = false,
      .cividis = true,
      .value_weighted = true,
      .teacher_forced = true,
      .change_measure = ChangeMeasure::cosine,
      .tokens = {.special = !TokenDisplay{}.special, .whole_words = !TokenDisplay{}.whole_words}};
  document.writing = {.temperature = 0.25, .top_p = 0.5, .seed = 7, .tokens = 3, .follow = true};
  document.execution.device = "cuda:1";
  document.execution.dtype = "bf16";
  document.execution.threads = 3;
  document.execution.seed = 18446744073709551615U;
  document.execution.image_size = 16;
  document.layout = "own:mine";
  document.closed_panels = {"focus", "kl"};
  return document;
}

} // namespace hydrascope::app::tests
