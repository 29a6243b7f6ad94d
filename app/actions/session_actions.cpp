#include "app/actions/session_actions.h"

#include <string>
#include <utility>

namespace hydrascope::app {

void add_session_actions(std::vector<Action>& table) {
  const auto always = [](const Editor&) { return Availability{}; };
  const auto add = [&](const char* id, const char* label, const char* shortcut,
                       std::function<void(Editor&)> run, std::function<Availability(const Editor&)> enabled) {
    table.push_back({id, label, "File", shortcut, std::move(enabled), std::move(run)});
  };
  add(
      "file.new_session", "New session", "Ctrl+N", [](Editor& editor) { editor.emit(NewSession{}); }, always);
  add(
      "file.open_session", "Open session…", "",
      [](Editor& editor) { editor.emit(ShowDialog{Dialog::open_session}); }, always);
  add(
      "file.reopen_last", "Reopen last session", "", [](Editor& editor) { editor.emit(ReopenLastSession{}); },
      [](const Editor& editor) {
        return Availability{editor.status().has_last_session, "nothing is known of an earlier session"};
      });
  add(
      "file.save_session", "Save session", "Ctrl+S",
      [](Editor& editor) {
        if (editor.session().file.empty()) {
          editor.emit(ShowDialog{Dialog::save_session});
        } else {
          editor.emit(SaveSession{});
        }
      },
      always);
  add(
      "file.save_session_as", "Save session as…", "Ctrl+Shift+S",
      [](Editor& editor) { editor.emit(ShowDialog{Dialog::save_session}); }, always);
  add(
      "file.reopen_at_start", "Start where the last session ended", "",
      [](Editor& editor) {
        editor.change_settings([](Settings& settings) { settings.reopen_last = !settings.reopen_last; });
      },
      always);
  table.back().checked = [](const Editor& editor) { return editor.settings().reopen_last; };
}

} // namespace hydrascope::app
