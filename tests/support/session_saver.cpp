// Saves sessions, the automatic copy and the settings as the window does, without one, for tools/interrupt:
//
//     session_saver FOLDER ROUNDS
//
// Two contents take turns, that of round 1 and that of round 2. Prints the errors that the window would show,
// and ends with 1 if there were any.
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <fmt/format.h>
#include <imgui.h>

#include "app/document/editor.h"
#include "app/document/session_edits.h"
#include "app/shell/storage.h"
#include "app/ui/display.h"

namespace {

using namespace hydrascope;
using namespace hydrascope::app;
namespace fs = std::filesystem;

class NoDisplay : public Display {
public:
  void begin_frame(float) override {}
  void bind() override {}
  void swap() override {}
  bool wait(double) override { return false; }
  void wake() override {}
  bool close_requested() const override { return false; }
  void set_title(const std::string&) override {}
  std::vector<fs::path> take_dropped() override { return {}; }
  int width() const override { return 1; }
  int height() const override { return 1; }
  void resize(int, int) override {}
  float content_scale() const override { return 1; }
  std::string description() const override { return "none"; }
  WindowSystem window_system() const override { return WindowSystem::none; }
};

void wait_for(SessionStore& store, Editor& editor) {
  while (store.busy()) {
    store.update(editor);
    std::this_thread::yield();
  }
}

// Returns whether no error was shown. The window goes on after one, and so does this.
bool save(const fs::path& folder, const int round) {
  Editor editor;
  NoDisplay display;
  const int index = round % 2;
  Document document;
  document.kind = InputKind::text;
  // A thousand words and more, so that there is a middle at which to be killed.
  std::string text;
  for (int word = 0; word < 20'000; ++word) text += index == 0 ? "even " : "strange ";
  document.scene().input = TextInput{text, std::nullopt};
  editor.set_initial(std::move(document));

  SettingsFile settings(folder / "settings.json", editor);
  SessionStore store(folder, display);
  editor.change_settings([&](Settings& changed) {
    changed.fade = index == 0;
    changed.recent = {{text, true}};
  });
  settings.save(editor);
  store.save(editor, folder / "session.json");
  wait_for(store, editor);
  store.shut_down(editor); // the automatic copy
  bool good = true;
  for (const auto& message : editor.messages()) {
    if (message.severity != Severity::error) continue;
    fmt::print(stderr, "error: {}\n", message.text);
    good = false;
  }
  return good;
}

} // namespace

int main(int count, char** words) {
  int rounds = 0;
  if (count == 3) std::from_chars(words[2], words[2] + std::strlen(words[2]), rounds);
  if (rounds < 1) {
    std::fputs("usage: session_saver FOLDER ROUNDS\n", stderr);
    return 2;
  }
  ImGui::CreateContext();
  ImGui::GetIO().IniFilename = nullptr;
  bool good = true;
  for (int round = 1; round <= rounds; ++round) good = save(words[1], round) && good;
  ImGui::DestroyContext();
  return good ? 0 : 1;
}
