// Opening pictures and sentences, by clicking and by typing, and what happens to files that are neither.
#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "app/actions/actions.h"
#include "app/document/edits.h"
#include "engine/run/quantities/focus_map.h"
#include "tests/window/harness.h"
#include "tests/window/screenshot.h"

namespace hydrascope::app::window_tests {

void register_input_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "input", "click_example")->TestFunc = [](ImGuiTestContext* context) {
    start_over(context);
    context->SetRef("//###input");
    context->ItemClick("rocket");
    settle(context);
    IM_CHECK(document().kind == InputKind::image);
    IM_CHECK_STR_EQ(input_name(*document().scene().input).c_str(), "rocket.jpg");
    IM_CHECK(results().any() != nullptr);
    IM_CHECK(find(results(), FocusKey{document().scene().layer}).result != nullptr);
    IM_CHECK(!results().stale);
  };

  IM_REGISTER_TEST(engine, "input", "type_sentence")->TestFunc = [](ImGuiTestContext* context) {
    start_over(context);
    context->SetRef("//###input");
    context->ItemClick("kind/Sentence");
    settle(context);
    IM_CHECK(document().kind == InputKind::text);
    context->ItemClick("##text");
    context->KeyCharsReplace("Two owls");
    while (std::get<TextInput>(*document().scene().input).text != "Two owls" && !context->IsError())
      context->Yield();
    settle(context);
    const RunResult* run = results().any();
    IM_CHECK(run != nullptr);
    IM_CHECK(run->rows == 0);
    IM_CHECK_STR_EQ(run->tokens.front().text.c_str(), "[CLS]");
    bool owl = false;
    for (const TokenInfo& token : run->tokens) owl |= token.text.starts_with("ow");
    IM_CHECK(owl);
    // The whole stretch of typing is one step.
    context->KeyPress(ImGuiKey_Escape);
    editor().undo();
    IM_CHECK(std::get<TextInput>(*document().scene_of(InputKind::text).input).text ==
             example_sentences().front());
  };

  // Columns of red and blue in turn, of odd numbers: each pixel on the screen is the mean of several.
  IM_REGISTER_TEST(engine, "input", "a_minified_picture_shows_means")
      ->TestFunc = [](ImGuiTestContext* context) {
    start_over(context);
    Image stripes{1501, 1001, {}};
    for (int i = 0; i < stripes.width * stripes.height; ++i) {
      const bool red = i % stripes.width % 2 == 0;
      stripes.rgb.insert(stripes.rgb.end(), {std::uint8_t(red ? 200 : 0), 0, std::uint8_t(red ? 0 : 200)});
    }
    const std::filesystem::path file = scratch_file("stripes.png");
    write_png(file, stripes);
    IM_CHECK(open_path(editor(), file));
    settle(context);
    Image panel;
    between_frames(context, [&] {
      const auto place = application().panel_rectangle("input");
      if (place && application().display().description().starts_with("off screen"))
        panel = cut_out(application().read_frame(), *place);
    });
    if (panel.rgb.empty()) return start_over(context); // on a display it cannot be read back
    int means = 0, stripe_colours = 0;
    for (std::size_t i = 0; i < panel.rgb.size(); i += 3) {
      const auto near = [&](int red, int blue) {
        constexpr int tolerance = 12;
        return std::abs(panel.rgb[i] - red) < tolerance && panel.rgb[i + 1] < tolerance &&
               std::abs(panel.rgb[i + 2] - blue) < tolerance;
      };
      if (near(100, 100)) ++means;
      if (near(200, 0) || near(0, 200)) ++stripe_colours;
    }
    IM_CHECK_GT(means, 2000);
    IM_CHECK_EQ(stripe_colours, 0);
    start_over(context);
  };

  // The text goes into the document some time after the last key.
  IM_REGISTER_TEST(engine, "input", "what_was_typed_stays_when_the_picture_is_shown")->TestFunc =
      [](ImGuiTestContext* context) {
        start_over(context);
        show_kind(editor(), InputKind::text);
        settle(context);
        context->SetRef("//###input");
        context->ItemClick("##text");
        context->KeyCharsReplace("Two owls");
        context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_1);
        context->Yield(2);
        IM_CHECK(document().kind == InputKind::image);
        IM_CHECK_STR_EQ(input_name(*document().scene_of(InputKind::text).input).c_str(), "Two owls");
        settle(context);
        IM_CHECK(document().kind == InputKind::image);
        start_over(context);
      };

  IM_REGISTER_TEST(engine, "input", "a_text_that_is_cut_says_so")->TestFunc = [](ImGuiTestContext* context) {
    start_over(context);
    std::string words;
    for (int i = 0; i < 600; ++i) words += "owl ";
    open_text(editor(), words);
    settle(context);
    const std::string said = editor().messages().empty() ? "" : editor().messages().back().text;
    IM_CHECK(said.starts_with("text cut at 512 of 602 tokens"));
    open_text(editor(), "Two owls");
    settle(context);
    IM_CHECK_EQ(results().any()->notes.size(), 0U);
    start_over(context);
  };

  IM_REGISTER_TEST(engine, "input", "bursts_of_typing_are_steps")->TestFunc = [](ImGuiTestContext* context) {
    start_over(context);
    show_kind(editor(), InputKind::text);
    settle(context);
    const auto text = [] { return std::get<TextInput>(*document().scene().input).text; };
    const auto type = [&](const char* letters, const std::string& wanted) {
      context->KeyChars(letters);
      while (text() != wanted && !context->IsError()) context->Yield();
    };
    context->SetRef("//###input");
    context->ItemClick("##text");
    context->KeyCharsReplace("Owls");
    while (text() != "Owls" && !context->IsError()) context->Yield();
    const double later = editor().clock() + 1.2; // longer than what parts two bursts
    while (editor().clock() < later && !context->IsError()) context->Yield();
    type(" sat", "Owls sat");
    type(" there", "Owls sat there"); // on the heels of the last: the same burst, unless this machine is slow
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(2);
    while (text() != "Owls" && editor().history().can_undo()) editor().undo();
    IM_CHECK_STR_EQ(text().c_str(), "Owls"); // the first burst is a step of its own
    editor().undo();
    IM_CHECK_STR_EQ(text().c_str(), example_sentences().front().c_str());
  };

  IM_REGISTER_TEST(engine, "input", "pair_goes_in_together")->TestFunc = [](ImGuiTestContext* context) {
    start_over(context);
    show_kind(editor(), InputKind::text);
    settle(context);
    const auto separators = [] {
      const auto& tokens = results().any()->tokens;
      return std::ranges::count_if(tokens, [](const TokenInfo& token) { return token.text == "[SEP]"; });
    };
    IM_CHECK_EQ(separators(), 1);
    context->SetRef("//###input");
    context->ItemClick("###pair");
    context->Yield(2);
    context->ItemClick("##pair");
    context->KeyCharsReplace("It slept");
    while (std::get<TextInput>(*document().scene().input).pair != "It slept" && !context->IsError())
      context->Yield();
    settle(context);
    IM_CHECK_EQ(separators(), 2);
    context->ItemClick("###pair");
    settle(context);
    IM_CHECK_EQ(separators(), 1);
    IM_CHECK(!std::get<TextInput>(*document().scene().input).pair.has_value());
  };

  IM_REGISTER_TEST(engine, "input", "bad_file_keeps_what_was_open")->TestFunc =
      [](ImGuiTestContext* context) {
        start_over(context);
        const Document before = copy_of_document();
        const auto broken = scratch_file("broken.png");
        std::ofstream(broken, std::ios::binary) << "\x89PNG\r\n\x1a\n" << std::string(20, '\0');
        IM_CHECK(!open_path(editor(), broken));
        IM_CHECK(last_error().find("broken.png") != std::string::npos);
        IM_CHECK(document() == before);
        IM_CHECK(!open_path(editor(), "/nowhere/missing.png"));
        IM_CHECK(last_error().find("missing.png") != std::string::npos);
        const auto folder = scratch_file("no-model");
        std::filesystem::create_directories(folder);
        IM_CHECK(!open_path(editor(), folder));
        IM_CHECK(document() == before);
        settle(context);
        IM_CHECK(find(results(), FocusKey{document().scene().layer}).result != nullptr);
      };
}

} // namespace hydrascope::app::window_tests
