// What lies around the panels: palette, menus, export, layout.
#include <fstream>

#include <imgui_internal.h>

#include "app/document/edits.h"
#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

namespace {

std::string first_bytes(const std::filesystem::path& file, std::size_t count) {
  std::ifstream stream(file, std::ios::binary);
  std::string bytes(count, '\0');
  stream.read(bytes.data(), static_cast<std::streamsize>(count));
  bytes.resize(static_cast<std::size_t>(stream.gcount()));
  return bytes;
}

void export_to(ImGuiTestContext* context, const std::string& panel, const std::filesystem::path& file) {
  editor().emit(ExportFigure{.panel = panel, .file = file});
  context->Yield(2);
  while (application().exporting()) context->Yield();
  context->Yield(2);
}

} // namespace

void register_shell_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "shell", "palette_runs_action")->TestFunc = [](ImGuiTestContext* context) {
    start_over(context);
    const bool before = document().view.with_sign;
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_P);
    context->Yield(3);
    IM_CHECK(is_shown("palette"));
    context->KeyChars("signed focus");
    context->Yield(2);
    context->KeyPress(ImGuiKey_Enter);
    context->Yield(2);
    IM_CHECK(!is_shown("palette"));
    IM_CHECK(document().view.with_sign != before);
  };

  IM_REGISTER_TEST(engine, "shell", "menu_undoes")->TestFunc = [](ImGuiTestContext* context) {
    start_over(context);
    const Document before = copy_of_document();
    set_all_kernels(editor(), {.name = "elu", .parameters = {}});
    context->MenuClick("//##MainMenuBar/Edit/###edit.undo");
    context->Yield(2);
    IM_CHECK(document() == before);
  };

  IM_REGISTER_TEST(engine, "shell", "open_lists_take_the_keys")->TestFunc = [](ImGuiTestContext* context) {
    start_over(context);
    const Document before = copy_of_document();
    context->ItemClick("//###kernels/##model");
    context->Yield(2);
    IM_CHECK(ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopup));
    for (const ImGuiKey key : {ImGuiKey_L, ImGuiKey_Y, ImGuiKey_N, ImGuiKey_X}) context->KeyPress(key);
    context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_P);
    IM_CHECK(!is_shown("palette"));
    select_query(editor(), 3);
    context->KeyPress(ImGuiKey_Escape); // closes the list, and does nothing else
    context->Yield(2);
    IM_CHECK(!ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopup));
    IM_CHECK(!document().scene().default_query);
    context->KeyPress(ImGuiKey_Escape);
    context->Yield(2);
    IM_CHECK(document() == before);
    context->KeyPress(ImGuiKey_L);
    context->Yield(2);
    IM_CHECK(document().view.logarithmic != before.view.logarithmic);
  };

  IM_REGISTER_TEST(engine, "shell", "menus_open_after_escape")->TestFunc = [](ImGuiTestContext* context) {
    start_over(context);
    const auto open_menus = [] { return ImGui::GetCurrentContext()->OpenPopupStack.Size; };
    for (const char* menu : {"File", "Edit", "Edit"}) {
      context->MouseMove((std::string("//##MainMenuBar/##MenuBar/") + menu).c_str());
      context->MouseClick();
      context->Yield(2);
      IM_CHECK_EQ(open_menus(), 1);
      context->KeyPress(ImGuiKey_Escape);
      context->Yield(2);
      IM_CHECK_EQ(open_menus(), 0);
    }
  };

  IM_REGISTER_TEST(engine, "shell", "panels_export")->TestFunc = [](ImGuiTestContext* context) {
    start_over(context);
    settle(context);
    const auto pdf = scratch_file("focus.pdf"), svg = scratch_file("weights.svg"),
               png = scratch_file("layers.png");
    export_to(context, "focus", pdf);
    IM_CHECK_STR_EQ(first_bytes(pdf, 5).c_str(), "%PDF-");
    export_to(context, "weights", svg);
    IM_CHECK(first_bytes(svg, 200).find("<svg") != std::string::npos);
    export_to(context, "layers", png);
    IM_CHECK_STR_EQ(first_bytes(png, 4).c_str(), "\x89PNG");
    export_to(context, "focus", "/nowhere/focus.pdf");
    IM_CHECK(!last_error().empty());
  };

  IM_REGISTER_TEST(engine, "shell", "panels_behind_others_export")->TestFunc = [](ImGuiTestContext* context) {
    start_over(context);
    context->WindowFocus("//###entropy");
    settle(context);
    select_layer(editor(), 5);
    IM_CHECK(!application().panel_rectangle("kl").has_value());
    const auto csv = scratch_file("kl.csv");
    export_to(context, "kl", csv);
    IM_CHECK_STR_EQ(last_error().c_str(), "");
    IM_CHECK_GT(std::filesystem::file_size(csv), static_cast<std::uintmax_t>(100));
    IM_CHECK(application().panel_rectangle("kl").has_value());
    // One that is closed is opened.
    show_panel(editor(), "weights", "Weights", false);
    context->Yield(2);
    const auto svg = scratch_file("closed.svg");
    export_to(context, "weights", svg);
    IM_CHECK(std::filesystem::exists(svg));
    IM_CHECK(editor().panel_open("weights"));
    context->WindowFocus("//###entropy"); // as other tests expect it
    start_over(context);
  };

  IM_REGISTER_TEST(engine, "shell", "own_file_dialog_saves_and_opens")->TestFunc =
      [](ImGuiTestContext* context) {
        start_over(context);
        application().dialogs().use_desktop(false); // as without zenity and kdialog
        const auto folder = fresh_folder("own dialog");
        std::filesystem::create_directory(folder / "inside");
        const auto type = [&](const std::filesystem::path& path) {
          context->ItemClick("//###file_dialog/##path");
          context->KeyCharsReplaceEnter(path.c_str());
          context->Yield(3);
        };
        IM_CHECK(application().run("file.export.focus"));
        context->Yield(3);
        IM_CHECK(is_shown("file_dialog"));
        IM_CHECK(editor().messages().empty());
        type(folder / "missing" / "focus.svg");
        IM_CHECK(is_shown("file_dialog"));
        IM_CHECK(application().dialogs().own().problem().find("missing") != std::string::npos);
        type(folder / "inside" / "focus.svg");
        while (application().exporting()) context->Yield();
        IM_CHECK(!is_shown("file_dialog"));
        IM_CHECK(std::filesystem::exists(folder / "inside" / "focus.svg"));
        context->Yield(10);
        IM_CHECK(!is_shown("file_dialog")); // it asks once

        // It opens by clicks, beginning with the last folder; what exists is not written over at once.
        std::ofstream(folder / "words.txt") << "Two owls";
        std::ofstream(folder / "words.bin") << "?";
        std::ofstream(folder / "drawing.psd") << "?";
        IM_CHECK(application().run("file.open"));
        context->Yield(3);
        context->ItemClick("//###file_dialog/**/..\\/");
        context->Yield(2);
        IM_CHECK(!context->ItemExists("//###file_dialog/**/words.bin"));
        IM_CHECK(context->ItemExists("//###file_dialog/**/drawing.psd"));
        context->ItemDoubleClick("//###file_dialog/**/words.txt");
        context->Yield(3);
        IM_CHECK(!is_shown("file_dialog"));
        IM_CHECK_STR_EQ(std::get<TextInput>(*document().scene().input).text.c_str(), "Two owls");
        IM_CHECK(application().run("file.export.focus"));
        context->Yield(3);
        type(folder / "words.txt");
        IM_CHECK(is_shown("file_dialog"));
        IM_CHECK(!application().dialogs().own().problem().empty());
        context->KeyPress(ImGuiKey_Escape); // cancels
        context->Yield(3);
        IM_CHECK(!is_shown("file_dialog"));
        IM_CHECK_STR_EQ(first_bytes(folder / "words.txt", 8).c_str(), "Two owls");
        start_over(context);
      };

  IM_REGISTER_TEST(engine, "shell", "repeated_messages_are_counted")->TestFunc =
      [](ImGuiTestContext* context) {
        start_over(context);
        for (int i = 0; i < 3; ++i) editor().say(Severity::error, "the same again");
        editor().say(Severity::error, "another");
        context->Yield(2);
        IM_CHECK_EQ(editor().messages().size(), static_cast<std::size_t>(2));
        IM_CHECK_EQ(editor().messages().front().count, 3);
        context->WindowFocus("//###message0");
        context->MouseMoveToPos(context->GetWindowByRef("//###message0")->Rect().GetCenter());
        context->MouseClick(); // takes it away
        context->Yield(2);
        IM_CHECK_EQ(editor().messages().size(), static_cast<std::size_t>(1));
        IM_CHECK_STR_EQ(editor().messages().front().text.c_str(), "another");
      };
}

} // namespace hydrascope::app::window_tests
