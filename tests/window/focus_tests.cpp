// The Focus panel and the small multiples beside it: A, B and A − B.
#include <glad/gl.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/document/edits.h"
#include "app/ui/graphics.h"
#include "engine/figures/panel_drawing.h"
#include "tests/support/checkout.h"
#include "tests/window/harness.h"
#include "tests/window/screenshot.h"

namespace hydrascope::app::window_tests {

namespace {

// A: this kernel in the selected layer; B: softmax.
void compare_with_softmax(ImGuiTestContext* context, const KernelSpec& kernel, bool sentence) {
  start_over(context);
  if (sentence) open_text(editor(), "The cat sat on the mat because it was tired.");
  set_layer_kernel(editor(), document().scene().layer, kernel);
  change_view(editor(), "Show all", [](ViewOptions& view) { view.shown = Shown::all; });
  context->WindowFocus("//###focus");
  settle(context);
}

// The window as it is now, for the eye: in the build folder, where pictures can be read back.
void keep_picture(ImGuiTestContext* context, const std::string& name) {
  context->MouseMoveToPos(ImVec2(1, 1));
  settle(context);
  between_frames(context, [&] {
    if (!application().display().description().starts_with("off screen")) return;
    const auto folder = test::program().parent_path() / "window_screenshots" / "focus";
    std::filesystem::create_directories(folder);
    write_png(folder / (name + ".png"), application().read_frame());
  });
}

double largest(const Array& values) {
  double most = 0;
  for (const float value : values.values)
    if (!std::isnan(value)) most = std::max(most, std::abs(static_cast<double>(value)));
  return most;
}

// In every panel that exports, the values drawn of A, B and their difference.
void check_difference(const Figure& figure, std::size_t maps) {
  IM_CHECK_EQ(figure.panels.size(), maps * 3);
  double most = 0;
  for (std::size_t i = 0; i < maps; ++i) {
    const auto values = [&](std::size_t side) {
      const FigurePanel& panel = figure.panels[side * maps + i];
      if (const auto* overlay = std::get_if<OverlayPanel>(&panel)) return overlay->values;
      const auto& words = std::get<TokensPanel>(panel).values;
      return Array{{1, static_cast<std::int64_t>(words.size())}, {words.begin(), words.end()}};
    };
    const Array a = values(0), b = values(1), difference = values(2);
    most = std::max(most, largest(difference));
    for (std::size_t cell = 0; cell < difference.values.size(); ++cell) {
      const auto drawn = [&](const Array& side) { // nothing is drawn as zero
        return side.empty() || std::isnan(side.values[cell]) ? 0.0f : side.values[cell];
      };
      IM_CHECK_LT_NO_RET(std::abs(drawn(a) - drawn(b) - drawn(difference)), 1e-6f);
    }
  }
  IM_CHECK_GT(most, 0.05);
}

const std::vector<float>& values_of(const FigurePanel& panel) {
  return std::get<OverlayPanel>(panel).values.values;
}

// Each side alone is what it is beside the others, whatever was shown before it.
void one_side_after_another(ImGuiTestContext* context) {
  compare_with_softmax(context, elu, false);
  const std::map<std::string, Figure> all = {{"focus", application().figure_of("focus").value()},
                                             {"layers", application().figure_of("layers").value()}};
  const std::vector<std::pair<Shown, std::string>> sides = {
      {Shown::difference, "A − B, "}, {Shown::b, "B, "}, {Shown::difference, "A − B, "}, {Shown::a, "A, "}};
  for (const auto& [shown, name] : sides) {
    change_view(editor(), "One side", [&](ViewOptions& view) { view.shown = shown; });
    settle(context);
    for (const auto& [panel, three] : all) {
      const Figure one = application().figure_of(panel).value();
      const std::size_t maps = one.panels.size(), first = static_cast<std::size_t>(shown) * maps;
      IM_CHECK_EQ(three.panels.size(), maps * 3);
      for (std::size_t i = 0; i < maps; ++i) {
        IM_CHECK(values_of(one.panels[i]) == values_of(three.panels[first + i]));
        IM_CHECK_STR_EQ((name + title_of(one.panels[i])).c_str(), title_of(three.panels[first + i]).c_str());
      }
    }
  }
  start_over(context);
}

// How often each photograph is drawn in the last frame, by its texture.
std::map<ImTextureID, int> drawn_photographs(const ImDrawData& data) {
  std::map<ImTextureID, int> count;
  for (const ImDrawList* const list : data.CmdLists) {
    bool photograph = false; // they alone keep the sampler of their texture
    for (const ImDrawCmd& command : list->CmdBuffer) {
      if (photograph && command.ElemCount > 0) ++count[command.GetTexID()];
      if (command.UserCallback != nullptr)
        photograph = command.UserCallback == ImGui::GetPlatformIO().DrawCallback_SetSamplerFromTex;
    }
  }
  return count;
}

// A photograph of 12 megapixels takes 64 MB as a texture.
void one_texture_for_all_maps(ImGuiTestContext* context) {
  compare_with_softmax(context, {.name = "hydra-cosine", .parameters = {}}, /*sentence=*/false);
  std::map<ImTextureID, int> count;
  between_frames(context, [&] { count = drawn_photographs(*ImGui::GetDrawData()); });
  constexpr int views = 4; // the input, A, B, A − B
  IM_CHECK_EQ(std::ranges::count(std::views::values(count), views), 1);
  IM_CHECK(
      std::ranges::all_of(std::views::values(count), [](int times) { return times == 1 || times == views; }));
  start_over(context);
}

void register_side_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "focus", "one_side_after_another")->TestFunc = one_side_after_another;
  IM_REGISTER_TEST(engine, "focus", "one_texture_for_all_maps")->TestFunc = one_texture_for_all_maps;
  IM_REGISTER_TEST(engine, "focus", "three_maps_of_a_photograph")->TestFunc = [](ImGuiTestContext* context) {
    compare_with_softmax(context, elu, false);
    check_difference(application().figure_of("focus").value(), 1);
    check_difference(application().figure_of("layers").value(),
                     static_cast<std::size_t>(document().scene().model->layers));
    context->ItemClick("//###layers/$$3/thumbnail");
    settle(context);
    IM_CHECK_EQ(document().scene().layer, 3);
    start_over(context);
  };

  IM_REGISTER_TEST(engine, "focus", "three_maps_of_a_sentence")->TestFunc = [](ImGuiTestContext* context) {
    compare_with_softmax(context, elu, true);
    check_difference(application().figure_of("focus").value(), 1);
    check_difference(application().figure_of("layers").value(),
                     static_cast<std::size_t>(document().scene().model->layers));
    keep_picture(context, "sentence-sides");
    for (const char* map : {"rows", "$$1/rows", "$$2/rows"})
      IM_CHECK(context->ItemExists((std::string("//###layers/") + map).c_str()));
    start_over(context);
  };

  IM_REGISTER_TEST(engine, "focus", "all_three_edits_a")->TestFunc = [](ImGuiTestContext* context) {
    compare_with_softmax(context, elu, false);
    set_layer_kernel(editor(), 2, hydra);
    IM_CHECK(document().scene().schedules[0].layers[2] == hydra);
    IM_CHECK(document().scene().schedules[1].layers[2] == KernelSpec{});
    start_over(context);
  };
}

// The shader and the exports' rasteriser colour the same values alike, at every pixel.
void check_colours(Interpolation interpolation) {
  Array values{{5, 8}, {}};
  for (int cell = 0; cell < 40; ++cell)
    values.values.push_back(static_cast<float>(std::abs(std::sin(cell * 2.3))));
  const Scale scale{ColourMap::magma, 0, 0.9, false, false, {}};
  const bool growing = interpolation == Interpolation::bilinear;
  const Pixels expected =
      map_pixels(values, scale,
                 {.colours = colour_table(scale.map), .interpolation = interpolation, .growing = growing});
  std::vector<std::uint8_t> drawn(expected.rgba.size());
  {
    Graphics graphics{theme::Fonts{}};
    Texture texture;
    graphics.bake(values, scale,
                  {.backdrop = growing ? Backdrop::photograph_by_value : Backdrop::photograph,
                   .interpolation = interpolation},
                  expected.width, expected.height, texture);
    glBindTexture(GL_TEXTURE_2D, texture.id());
    glPixelStorei(GL_PACK_ALIGNMENT, 1);
    glGetTexImage(GL_TEXTURE_2D, 0, GL_RGBA, GL_UNSIGNED_BYTE, drawn.data());
  }
  int worst = 0;
  for (std::size_t i = 0; i < drawn.size(); ++i)
    worst = std::max(worst, std::abs(static_cast<int>(drawn[i]) - static_cast<int>(expected.rgba[i])));
  IM_CHECK_LE(worst, 6); // neighbouring entries of the colour table, where a value lies between them
}

void register_interpolation_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "focus", "export_has_the_windows_colours")->TestFunc =
      [](ImGuiTestContext* context) {
        between_frames(context, [] {
          for (const Interpolation each :
               {Interpolation::nearest, Interpolation::bilinear, Interpolation::bicubic})
            check_colours(each);
        });
      };

  IM_REGISTER_TEST(engine, "focus", "interpolation_is_chosen")->TestFunc = [](ImGuiTestContext* context) {
    start_over(context);
    context->SetRef("//###focus");
    for (const char* name : {"bicubic", "bilinear", "nearest"}) {
      context->ItemClick("##interpolation");
      const std::string label =
          "smoothing: " + std::string(std::string(name) == "bicubic"   ? "bicubic (Catmull-Rom)"
                                      : std::string(name) == "nearest" ? "none"
                                                                       : name);
      context->ItemClick(("//$FOCUSED/" + label).c_str());
      context->Yield(2);
      IM_CHECK_STR_EQ(interpolation_name(document().view.look.interpolation), name);
      const Figure figure = application().figure_of("focus").value();
      IM_CHECK(std::get<OverlayPanel>(figure.panels.front()).interpolation ==
               document().view.look.interpolation);
      if (std::string(name) == "bicubic") keep_picture(context, "bicubic");
    }
    for (int step = 0; step < 3; ++step) editor().undo();
    IM_CHECK(document().view.look.interpolation == Interpolation::nearest);
    start_over(context);
  };
}

} // namespace

void register_focus_tests(ImGuiTestEngine* engine) {
  register_side_tests(engine);
  register_interpolation_tests(engine);
}

} // namespace hydrascope::app::window_tests
