// Every action of the table is run, and what it is for is looked up in the document and the settings as JSON,
// or in the window.
#include <algorithm>
#include <random>
#include <set>

#include "app/document/session.h"
#include "app/document/session_edits.h"
#include "tests/window/action_expectations.h"
#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

namespace {

Json editor_json(const Editor& editor) {
  return {{"document", document_json(editor.document())},
          {"settings", Json::parse(settings_text(editor.settings()))}};
}

// An action that is not listed has at least to change something.
Expectation expectation_of(const std::vector<Expectation>& all, const std::string& id) {
  Expectation found{"", [](const Seen& seen) { return seen.before != seen.after; }};
  for (const Expectation& each : all) {
    const bool whole = each.prefix.back() == '.' ? id.starts_with(each.prefix) : id == each.prefix;
    if (whole && each.prefix.size() > found.prefix.size()) found = each;
  }
  return found;
}

std::vector<std::string> action_ids() {
  std::vector<std::string> ids;
  for (const Action& action : application().actions()) ids.push_back(action.id);
  return ids;
}

bool opens_dialog(const std::string& id) {
  return id == "file.quit" || id == "file.open" || id == "file.open_session" ||
         id.starts_with("file.save_session") || id == "file.reopen_last" || id == "file.open_folder" ||
         id == "file.open_model" || id == "model.adapters.open" || id == "file.export_everything" ||
         id.starts_with("file.export.");
}

// Runs the action as menus and shortcuts do, and says what was wrong; empty if nothing was.
std::string try_action(ImGuiTestContext* context, const std::string& id, const Expectation& expectation) {
  if (expectation.prepare) expectation.prepare(editor());
  const Json before = editor_json(editor());
  if (!application().run(id)) return id + " did not run: " + last_error();
  const Json after = editor_json(editor());
  const std::string rest = id.substr(expectation.prefix.size());
  bool good = !expectation.effect || expectation.effect({before, after, rest});
  if (expectation.emitted)
    good &= std::ranges::any_of(editor().take_commands(),
                                [&](const Command& command) { return expectation.emitted(command, rest); });
  if (expectation.shown) {
    bool seen = false;
    constexpr int patience = 100; // frames
    for (int i = 0; i < patience && !seen; ++i) {
      context->Yield();
      seen = expectation.shown(context, rest);
    }
    good &= seen;
  }
  return good ? std::string() : id + " has not the effect that it is for";
}

void every_action(ImGuiTestContext* context) {
  context->MouseMoveToPos({2, 2}); // some act on the token that is hovered
  start_over(context);
  const auto expectations = all_expectations();
  const auto ids = action_ids();
  IM_CHECK_GT(static_cast<int>(ids.size()), 50);
  IM_CHECK_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), ids.size());
  for (const std::string& id : ids) {
    if (id == "model.device.none") continue; // only says why there is no CUDA device
    start_over_at_once();
    const std::string wrong = try_action(context, id, expectation_of(expectations, id));
    IM_CHECK_STR_EQ(wrong.c_str(), "");
    editor().training = {};
    context->Yield(2); // the window draws what has come of it
    IM_CHECK_STR_EQ(last_error().c_str(), "");
  }
  start_over(context);
}

void random_actions(ImGuiTestContext* context) {
  start_over(context);
  const Json first = document_json(document());
  std::vector<std::string> ids = action_ids();
  std::erase_if(ids, opens_dialog);
  std::erase(ids, "training.start");      // changes the document whenever its thread has got on
  std::erase(ids, "training.resume");     // the same, of a checkpoint that the user has
  std::erase(ids, "model.device.fake:0"); // whose runs take long; device_tests.cpp has some
  std::mt19937 random(20);
  int ran = 0;
  for (int i = 0; i < 500; ++i) {
    const std::string& id = ids[random() % ids.size()];
    const Action* action = find_action(application().actions(), id);
    if (action != nullptr && action->enabled(editor()).ok) {
      action->run(editor());
      ++ran;
    }
    context->Yield();
    IM_CHECK_STR_EQ(last_error().c_str(), "");
  }
  IM_CHECK_GT(ran, 400);
  application().overlays() = {};
  IM_CHECK(document_json(document()) != first);
  written_session(scratch_file("random.json"));
  while (editor().history().can_undo()) editor().undo();
  IM_CHECK_STR_EQ(document_json(document()).dump().c_str(), first.dump().c_str());
  settle(context);
  IM_CHECK_STR_EQ(last_error().c_str(), "");
  start_over(context);
}

} // namespace

void register_action_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "actions", "each_has_its_effect")->TestFunc = every_action;
  IM_REGISTER_TEST(engine, "actions", "random_and_all_undone")->TestFunc = random_actions;
}

} // namespace hydrascope::app::window_tests
