// Frames are drawn where they changed only: what stands on the screen after many changes is what drawing all
// of the same frame gives, pixel by pixel.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <glad/gl.h>

#include "app/document/edits.h"
#include "app/ui/graphics.h"
#include "tests/window/harness.h"
#include "tests/window/screenshot.h"

namespace hydrascope::app::window_tests {

namespace {

void check_whole(ImGuiTestContext* context, const std::string& after) {
  settle(context);
  Image parts, whole;
  between_frames(context, [&] {
    parts = application().read_frame();
    application().draw_whole();
    whole = application().read_frame();
  });
  const auto same = std::ranges::mismatch(parts.rgb, whole.rgb);
  if (same.in1 != parts.rgb.end()) {
    const auto pixel = (same.in1 - parts.rgb.begin()) / 3;
    context->LogError("pixel %td %td differs after %s", pixel % parts.width, pixel / parts.width,
                      after.c_str());
  }
  IM_CHECK_NO_RET(same.in1 == parts.rgb.end() && !whole.rgb.empty());
}

// Makes OpenGL give the name of a deleted texture to the next one, as drivers may; Mesa's does not.
class ReusedNames {
public:
  ReusedNames() {
    driver(); // before its functions are replaced
    glad_glGenTextures = take;
    glad_glDeleteTextures = give;
  }
  ~ReusedNames() {
    Driver& own = driver();
    glad_glGenTextures = own.take;
    glad_glDeleteTextures = own.give;
    glDeleteTextures(static_cast<GLsizei>(own.unused.size()), own.unused.data());
    own.unused.clear();
  }
  ReusedNames(const ReusedNames&) = delete;
  ReusedNames& operator=(const ReusedNames&) = delete;

private:
  struct Driver {
    PFNGLGENTEXTURESPROC take = glad_glGenTextures;
    PFNGLDELETETEXTURESPROC give = glad_glDeleteTextures;
    std::vector<GLuint> unused; // names
  };
  static Driver& driver() {
    static Driver own;
    return own;
  }
  static void GLAD_API_PTR take(GLsizei count, GLuint* names) {
    std::vector<GLuint>& unused = driver().unused;
    for (GLuint& name : std::span(names, static_cast<std::size_t>(count))) {
      if (unused.empty()) {
        driver().take(1, &name);
      } else {
        name = unused.back();
        unused.pop_back();
      }
    }
  }
  static void GLAD_API_PTR give(GLsizei count, const GLuint* names) {
    driver().unused.insert(driver().unused.end(), names, names + count);
  }
};

// A window with one texture, for a test that changes it.
struct TextureWindow {
  Texture texture;
  ImVec2 middle; // of the texture, on the screen

  void make(std::uint8_t grey) {
    texture = Texture(); // its name is free for the next
    texture = Graphics::texture_of({.width = 1, .height = 1, .rgba = {grey, grey, grey, 255}});
  }
  void draw() {
    ImGui::SetNextWindowPos({300, 200});
    ImGui::SetNextWindowSize({200, 200});
    if (ImGui::Begin("Texture", nullptr, ImGuiWindowFlags_NoSavedSettings) && texture)
      ImGui::Image(texture.reference(), {100, 100});
    middle = {ImGui::GetItemRectMin().x + 50, ImGui::GetItemRectMin().y + 50};
    ImGui::End();
  }
};

// On the screen; brings the window to the front.
std::uint8_t grey_at_the_middle(ImGuiTestContext* context) {
  context->WindowFocus("//Texture");
  settle(context);
  std::uint8_t grey = 0;
  between_frames(context, [&] {
    const ImVec2 middle = context->GetVars<TextureWindow>().middle;
    const std::array pixel{static_cast<int>(middle.x), static_cast<int>(middle.y), 1, 1};
    grey = cut_out(application().read_frame(), pixel).rgb.at(0);
  });
  return grey;
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

  test = IM_REGISTER_TEST(engine, "frames", "a_texture_in_place_of_another_is_drawn");
  test->SetVarsDataType<TextureWindow>();
  test->GuiFunc = [](ImGuiTestContext* context) { context->GetVars<TextureWindow>().draw(); };
  test->TestFunc = [](ImGuiTestContext* context) {
    auto& window = context->GetVars<TextureWindow>();
    start_over(context);
    std::optional<ReusedNames> reused;
    between_frames(context, [&] { reused.emplace(); });
    for (const std::uint8_t grey : {std::uint8_t{40}, std::uint8_t{200}, std::uint8_t{90}}) {
      between_frames(context, [&] { window.make(grey); });
      check_whole(context, fmt::format("a texture of grey {}", grey));
      IM_CHECK_EQ(grey_at_the_middle(context), grey);
    }
    between_frames(context, [&] { window.texture = Texture(); });
    context->Yield(2); // until its name is unused
    between_frames(context, [&] { reused.reset(); });
  };
}

} // namespace hydrascope::app::window_tests
