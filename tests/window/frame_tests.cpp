// Frames are drawn where they changed only: what stands on the screen after many changes is what drawing all
// of it anew gives, pixel by pixel.
#include <cstdlib>

#include <fmt/format.h>

#include "app/document/edits.h"
#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

namespace {

Image shown(ImGuiTestContext* context) {
  Image image;
  between_frames(context, [&] { image = application().read_frame(); });
  return image;
}

void check_whole(ImGuiTestContext* context, const std::string& after) {
  settle(context);
  while (application().moved() && !context->IsError()) context->Yield(); // a changed map fades in
  context->Yield(2);
  const Image parts = shown(context);
  application().forget_frame();
  context->Yield();
  const Image whole = shown(context);
  std::size_t differing = 0;
  for (std::size_t i = 0; i < whole.rgb.size(); ++i)
    if (std::abs(int{parts.rgb[i]} - int{whole.rgb[i]}) > 0) ++differing;
  if (differing > 0) context->LogError("%zu bytes differ after %s", differing, after.c_str());
  IM_CHECK_NO_RET(differing == 0 && !whole.rgb.empty());
}

} // namespace

void register_frame_tests(ImGuiTestEngine* engine) {
  ImGuiTest* test = IM_REGISTER_TEST(engine, "frames", "the_parts_make_the_whole");
  test->TestFunc = [](ImGuiTestContext* context) {
    start_over(context);
    check_whole(context, "the start");
    for (const int layer : {11, 3}) {
      set_layer_kernel(editor(), layer, {.name = "hydra-cosine", .parameters = {}});
      select_layer(editor(), layer);
      check_whole(context, fmt::format("a kernel in layer {}", layer));
    }
    for (const ImVec2 place : {ImVec2{700, 300}, ImVec2{1300, 300}, ImVec2{120, 500}, ImVec2{800, 700}}) {
      context->MouseMoveToPos(place);
      check_whole(context, fmt::format("the pointer at {} {}", place.x, place.y));
    }
    context->MouseMoveToPos({2, 2}); // over nothing that later tests would find hovered
    open_text(editor(), "Only what has changed is drawn.");
    check_whole(context, "a sentence");
    editor().say(Severity::note, "A message lies over the panels.");
    check_whole(context, "a message");
    editor().undo();
    check_whole(context, "going back");
    editor().change_settings([](Settings& settings) { settings.scale = 1.25; });
    check_whole(context, "another scale");
    editor().change_settings([](Settings& settings) { settings.theme = ThemeChoice::light; });
    check_whole(context, "the light theme");
    start_over(context);
  };
}

} // namespace hydrascope::app::window_tests
