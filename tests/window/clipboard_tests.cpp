// The clipboard, against xclip or wl-clipboard: pictures of a few kilobytes and of several megabytes, and
// text, both ways.
#include <cstdlib>
#include <fstream>
#include <random>

#include "app/document/edits.h"
#include "app/shell/clipboard.h"
#include "engine/base/image.h"
#include "engine/base/paths.h"
#include "engine/base/process.h"
#include "engine/run/quantities/focus_map.h"
#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

namespace {

namespace fs = std::filesystem;

bool shell_command(const std::string& command) { return std::system(command.c_str()) == 0; }

std::string quoted(const fs::path& file) { return "'" + file.string() + "'"; }

// Noise does not compress: the second one is far longer than a request to the X server may be.
Image noise(int width, int height) {
  Image image{width, height, {}};
  std::mt19937 random(7);
  image.rgb.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3);
  for (std::uint8_t& value : image.rgb) value = static_cast<std::uint8_t>(random());
  return image;
}
const Image& small_picture() {
  static const Image image = noise(40, 30);
  return image;
}
const Image& large_picture() {
  static const Image image = noise(1600, 1200);
  return image;
}

const ImageInput* shown_image() {
  const auto& input = document().scene_of(InputKind::image).input;
  return input ? std::get_if<ImageInput>(&*input) : nullptr;
}

// The test engine puts a clipboard of its own in the place of GLFW's; this one is meant here.
struct TextClipboard {
  const char* (*get)(ImGuiContext*) = nullptr;
  void (*set)(ImGuiContext*, const char*) = nullptr;
  void* user_data = nullptr;

  static TextClipboard present() {
    const ImGuiPlatformIO& io = ImGui::GetPlatformIO();
    return {io.Platform_GetClipboardTextFn, io.Platform_SetClipboardTextFn, io.Platform_ClipboardUserData};
  }
  void install() const {
    ImGuiPlatformIO& io = ImGui::GetPlatformIO();
    io.Platform_GetClipboardTextFn = get;
    io.Platform_SetClipboardTextFn = set;
    io.Platform_ClipboardUserData = user_data;
  }
};
TextClipboard the_windows_own; // as it was before the test engine ran

class WithTextClipboard {
public:
  WithTextClipboard() { the_windows_own.install(); }
  ~WithTextClipboard() { before_.install(); }
  WithTextClipboard(const WithTextClipboard&) = delete;
  WithTextClipboard& operator=(const WithTextClipboard&) = delete;

private:
  TextClipboard before_ = TextClipboard::present();
};

std::string last_message() { return editor().messages().empty() ? "" : editor().messages().back().text; }

// Without waiting for it here: this thread keeps the frames from being drawn, which GLFW's clipboard is
// served by.
std::string output_of(ImGuiTestContext* context, const std::string& command) {
  const fs::path file = scratch_file("pasted"), done = scratch_file("pasted-done");
  shell_command("(" + command + " >" + quoted(file) + " 2>/dev/null; touch " + quoted(done) + ") &");
  while (!fs::exists(done) && !context->IsError()) context->Yield();
  return read_text_file(file);
}

bool on_wayland() { return application().display().window_system() == WindowSystem::wayland; }

// What another program pastes: xclip on X11, wl-paste on Wayland.
std::string pasted_elsewhere(ImGuiTestContext* context, const std::string& type) {
  if (on_wayland()) return output_of(context, "wl-paste --no-newline --type '" + type + "'");
  return output_of(context, "xclip -selection clipboard -o -t '" + type + "'");
}
std::string types_elsewhere(ImGuiTestContext* context) {
  return on_wayland() ? output_of(context, "wl-paste --list-types") : pasted_elsewhere(context, "TARGETS");
}
const char* text_type() { return on_wayland() ? "text/plain;charset=utf-8" : "UTF8_STRING"; }

// The other program stays in the background until something else is copied. It owns the selection only some
// time after its command has returned.
bool copied_elsewhere(ImGuiTestContext* context, const std::string& bytes, const std::string& type) {
  const fs::path file = scratch_file("to-copy");
  std::ofstream(file, std::ios::binary) << bytes;
  const std::string program = on_wayland() ? "wl-copy --type '" : "xclip -selection clipboard -i -t '";
  if (!shell_command(program + type + "' <" + quoted(file) + " >/dev/null 2>&1")) return false;
  while (pasted_elsewhere(context, type) != bytes)
    if (context->IsError()) return false;
  return true;
}

void paste(ImGuiTestContext* context) {
  const std::uint64_t before = editor().revision();
  const std::size_t messages = editor().messages().size();
  context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_V);
  while (editor().revision() == before && editor().messages().size() == messages && !context->IsError())
    context->Yield();
}

void pastes(ImGuiTestContext* context, const Image& picture) {
  start_over(context);
  show_kind(editor(), InputKind::text);
  IM_CHECK(copied_elsewhere(context, encode_png(picture), "image/png"));
  paste(context);
  IM_CHECK(document().kind == InputKind::image);
  IM_CHECK(shown_image() != nullptr);
  IM_CHECK_EQ(shown_image()->image->width, picture.width);
  IM_CHECK(shown_image()->image->rgb == picture.rgb);
  IM_CHECK(shown_image()->path.empty());
  settle(context);
  IM_CHECK(find(results(), FocusKey{document().scene().layer}).result != nullptr);
}

void copies(ImGuiTestContext* context, const Image& picture) {
  const WithTextClipboard text_clipboard;
  start_over(context);
  IM_CHECK(copied_elsewhere(context, "an owl", text_type())); // in place of a picture of an earlier test
  open_image(editor(), {std::make_shared<const Image>(picture), "noise", {}});
  context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_C);
  context->Yield(3);
  std::string targets;
  while (targets.find("image/png") == std::string::npos && !context->IsError())
    targets = types_elsewhere(context);
  const std::string bytes = pasted_elsewhere(context, "image/png");
  const std::span span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  const Image pasted = decode_image(span, "pasted");
  IM_CHECK_EQ(pasted.width, picture.width);
  IM_CHECK(pasted.rgb == picture.rgb);
  // Twice, and to this program itself.
  IM_CHECK(pasted_elsewhere(context, "image/png") == bytes);
  open_path(editor(), example_pictures().front());
  paste(context);
  IM_CHECK(shown_image()->image->rgb == picture.rgb);
  // What is copied elsewhere takes its place.
  IM_CHECK(copied_elsewhere(context, "an owl", text_type()));
  paste(context);
  IM_CHECK(document().kind == InputKind::text);
}

void text_both_ways(ImGuiTestContext* context) {
  const WithTextClipboard text_clipboard;
  start_over(context);
  IM_CHECK(copied_elsewhere(context, "Two owls\nsat there.\n", text_type()));
  paste(context);
  IM_CHECK(document().kind == InputKind::text);
  IM_CHECK_STR_EQ(std::get<TextInput>(*document().scene().input).text.c_str(), "Two owls sat there.");
  open_text(editor(), "One owl", "Two owls");
  context->Yield(2);
  context->KeyPress(ImGuiMod_Ctrl | ImGuiKey_C);
  context->Yield(3);
  IM_CHECK_STR_EQ(pasted_elsewhere(context, text_type()).c_str(), "One owl\tTwo owls");
  open_text(editor(), "something else");
  paste(context); // our own text, asked for through the other connection
  IM_CHECK(std::get<TextInput>(*document().scene().input).pair == "Two owls");
}

void nothing_to_paste(ImGuiTestContext* context) {
  start_over(context);
  const Document before = copy_of_document();
  IM_CHECK(copied_elsewhere(context, "\x89PNG\r\n\x1a\nbroken", "image/png"));
  paste(context);
  IM_CHECK(document() == before);
  IM_CHECK(last_message().starts_with("paste: nothing came from the clipboard"));
  IM_CHECK(copied_elsewhere(context, "bytes", "application/x-unknown"));
  paste(context);
  IM_CHECK(document() == before);
  IM_CHECK(last_message().find("neither a picture nor text") != std::string::npos);
}

void figure_is_copied(ImGuiTestContext* context) {
  start_over(context);
  IM_CHECK(application().run("file.copy.focus"));
  context->Yield(3);
  std::string bytes;
  while (bytes.empty() && !context->IsError()) bytes = pasted_elsewhere(context, "image/png");
  const std::span span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  IM_CHECK_GT(decode_image(span, "figure").width, 400);
}

void files_of_a_file_manager(ImGuiTestContext* context) {
  start_over(context);
  const fs::path file = scratch_file("an owl.png");
  fs::copy_file(example_pictures().front(), file);
  std::string address = "file://" + file.string();
  address.replace(address.find(' '), 1, "%20");
  open_pasted_text(editor(), address + "\r\n");
  IM_CHECK(shown_image()->path == file);
  open_pasted_text(editor(), "/no/such file");
  IM_CHECK_STR_EQ(std::get<TextInput>(*document().scene().input).text.c_str(), "/no/such file");
}

void says_why_not(ImGuiTestContext* context) {
  start_over(context);
  IM_CHECK(!editor().status().no_picture_clipboard.empty());
  IM_CHECK(!application().run("edit.copy"));
  IM_CHECK(!application().run("file.copy.focus"));
  IM_CHECK(last_message().find("no display") != std::string::npos);
  show_kind(editor(), InputKind::text);
  IM_CHECK(application().run("edit.copy")); // text needs none of it
  context->Yield(2);
  open_text(editor(), "another");
  IM_CHECK(application().run("edit.paste"));
  context->Yield(2);
  IM_CHECK_STR_EQ(std::get<TextInput>(*document().scene().input).text.c_str(),
                  example_sentences().front().c_str());
}

void wayland_needs_both_programs(ImGuiTestContext* /*context*/) {
  const std::string before = environment("PATH");
  const fs::path folder = fresh_folder("programs");
  setenv("PATH", folder.c_str(), 1);
  for (const char* const program : {"wl-copy", "wl-paste"}) {
    IM_CHECK_NO_RET(picture_clipboard_obstacle(WindowSystem::wayland).find("wl-clipboard") !=
                    std::string::npos);
    std::ofstream(folder / program) << "#!/bin/sh\n";
    fs::permissions(folder / program, fs::perms::owner_all);
  }
  IM_CHECK_NO_RET(picture_clipboard_obstacle(WindowSystem::wayland).empty());
  setenv("PATH", before.c_str(), 1);
}

} // namespace

void register_clipboard_tests(ImGuiTestEngine* engine) {
  the_windows_own = TextClipboard::present();
  IM_REGISTER_TEST(engine, "clipboard", "files_of_a_file_manager")->TestFunc = files_of_a_file_manager;
  IM_REGISTER_TEST(engine, "clipboard", "wayland_needs_both_programs")->TestFunc =
      wayland_needs_both_programs;
  if (application().display().window_system() == WindowSystem::none) {
    IM_REGISTER_TEST(engine, "clipboard", "says_why_not")->TestFunc = says_why_not;
    return;
  }
  IM_REGISTER_TEST(engine, "clipboard", "pastes_small")->TestFunc = [](ImGuiTestContext* context) {
    pastes(context, small_picture());
  };
  IM_REGISTER_TEST(engine, "clipboard", "pastes_large")->TestFunc = [](ImGuiTestContext* context) {
    pastes(context, large_picture());
  };
  IM_REGISTER_TEST(engine, "clipboard", "copies_small")->TestFunc = [](ImGuiTestContext* context) {
    copies(context, small_picture());
  };
  IM_REGISTER_TEST(engine, "clipboard", "copies_large")->TestFunc = [](ImGuiTestContext* context) {
    copies(context, large_picture());
  };
  IM_REGISTER_TEST(engine, "clipboard", "text_both_ways")->TestFunc = text_both_ways;
  IM_REGISTER_TEST(engine, "clipboard", "nothing_to_paste")->TestFunc = nothing_to_paste;
  IM_REGISTER_TEST(engine, "clipboard", "figure_is_copied")->TestFunc = figure_is_copied;
}

} // namespace hydrascope::app::window_tests
