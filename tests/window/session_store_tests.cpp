// Saving in the window, the way back by undo, and the automatic copy.
#include "app/document/edits.h"
#include "app/document/session_edits.h"
#include "app/shell/storage.h"
#include "engine/base/paths.h"
#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

namespace {

namespace fs = std::filesystem;

void wait_until_saved(ImGuiTestContext* context) {
  context->Yield(2);
  while (application().saving() && !context->IsError()) context->Yield();
  context->Yield(2);
}

void saved_and_opened_in_the_window(ImGuiTestContext* context) {
  start_over(context);
  const fs::path file = scratch_file("owl.json");
  IM_CHECK_STR_EQ(window_title(editor()).c_str(), "Hydrascope");
  answer_dialog(file);
  IM_CHECK(application().run("file.save_session"));
  IM_CHECK_STR_EQ(title_of_dialog(context).c_str(), "Save session"); // it has no file yet
  while (!editor().commands().empty() || editor().session().file.empty()) context->Yield();
  wait_until_saved(context);
  IM_CHECK(fs::exists(file));
  IM_CHECK_STR_EQ(window_title(editor()).c_str(), "owl – Hydrascope");
  IM_CHECK(editor().settings().recent.front() == (RecentInput{file.string(), false}));
  set_layer_kernel(editor(), 3, {.name = "elu", .parameters = {}});
  IM_CHECK_STR_EQ(window_title(editor()).c_str(), "• owl – Hydrascope");
  IM_CHECK(application().run("file.save_session"));
  wait_until_saved(context);
  IM_CHECK(!session_changed(editor()));
  const Document saved = copy_of_document();

  // Another session, and back by undo: to its own file, too.
  IM_CHECK(application().run("file.new_session"));
  context->Yield(2);
  IM_CHECK_STR_EQ(window_title(editor()).c_str(), "Hydrascope");
  IM_CHECK(document().scene().schedules[0].all_exact_softmax());
  IM_CHECK(open_path(editor(), file));
  context->Yield(2);
  IM_CHECK_STR_EQ(window_title(editor()).c_str(), "owl – Hydrascope");
  IM_CHECK(same_content(saved, document()));
  editor().undo();
  IM_CHECK_STR_EQ(window_title(editor()).c_str(), "Hydrascope");
  editor().undo();
  IM_CHECK_STR_EQ(window_title(editor()).c_str(), "owl – Hydrascope");
  IM_CHECK(document() == saved);

  editor().emit(SaveSession{"/proc/none/owl.json"});
  wait_until_saved(context);
  IM_CHECK(last_error().find("/proc/none/owl.json") != std::string::npos);
  IM_CHECK(editor().session().file == file); // as it was
  start_over(context);
}

// By itself, with a clock of the test's.
void copies_itself(ImGuiTestContext* context) {
  start_over(context);
  const fs::path folder = scratch_file("state") / "below", copy = folder / "autosave.json";
  between_frames(context, [&] {
    SessionStore store(folder, application().display());
    store.update(editor());
    const double now = editor().clock();
    store.update_copy(editor(), now); // at once: nothing
    IM_CHECK(!store.busy());
    IM_CHECK_GT(store.due(), now + 1);
    store.update_copy(editor(), now + 10);
    IM_CHECK(store.busy());
    while (store.busy()) store.update_copy(editor(), now + 10);
    IM_CHECK(same_content(document(), read_session(read_text_file(copy), copy).session.document));
    IM_CHECK_GT(store.due(), now + 1e9); // until something changes
    set_layer_kernel(editor(), 5, {.name = "elu", .parameters = {}});
    store.shut_down(editor());
  });
  IM_CHECK(same_content(document(), read_session(read_text_file(copy), copy).session.document));
  const Document left = copy_of_document();
  start_over_at_once();
  between_frames(context, [&] {
    SessionStore store(folder, application().display());
    IM_CHECK(!fs::exists(copy)); // it is the last session's now
    IM_CHECK(store.reopen_last(editor()));
  });
  IM_CHECK(same_content(left, document()));
  IM_CHECK(editor().session().file.empty()); // it had none: the copy is no session's file
  start_over(context);
}

// What was there when it was asked for is saved, also if a copy is being written and the program ends.
void saves_in_turn(ImGuiTestContext* context) {
  start_over(context);
  const fs::path folder = scratch_file("in turn"), one = scratch_file("one.json"),
                 two = scratch_file("two.json");
  Document saved, last;
  between_frames(context, [&] {
    SessionStore store(folder, application().display());
    store.update(editor());
    store.update_copy(editor(), editor().clock() + 10);
    IM_CHECK(store.busy());
    set_layer_kernel(editor(), 5, {.name = "elu", .parameters = {}});
    saved = copy_of_document();
    store.save(editor(), one);
    store.save(editor(), two);
    set_layer_kernel(editor(), 6, {.name = "elu", .parameters = {}});
    last = copy_of_document();
    store.save(editor(), std::nullopt); // into the second, which is the session's by then
    start_over_at_once();
    store.shut_down(editor());
  });
  IM_CHECK(same_content(saved, read_session(read_text_file(one), one).session.document));
  IM_CHECK(same_content(last, read_session(read_text_file(two), two).session.document));
  start_over(context);
}

// Two windows at once: neither takes the other's copy for the last session, nor overwrites it.
void has_a_copy_for_each_window(ImGuiTestContext* context) {
  start_over(context);
  const fs::path folder = scratch_file("two windows");
  const auto layer_of = [&](const char* name) {
    const fs::path file = folder / name;
    const Document copy = read_session(read_text_file(file), file).session.document;
    return copy.scene().schedules[0].layers[5].name;
  };
  between_frames(context, [&] {
    SessionStore first(folder, application().display());
    set_layer_kernel(editor(), 5, {.name = "elu", .parameters = {}});
    first.shut_down(editor()); // writes its copy; it goes on afterwards
    {
      SessionStore second(folder, application().display());
      IM_CHECK(!second.has_last());
      IM_CHECK(fs::exists(folder / "autosave.json"));
      second.shut_down(editor());
    }
    set_layer_kernel(editor(), 5, {.name = "relu", .parameters = {}});
    first.shut_down(editor());
  });
  IM_CHECK_STR_EQ(layer_of("autosave.json").c_str(), "relu");
  IM_CHECK_STR_EQ(layer_of("autosave-2.json").c_str(), "elu");
  between_frames(context, [&] {
    SessionStore first(folder, application().display()), second(folder, application().display());
    IM_CHECK(first.has_last());
    IM_CHECK(second.has_last());
  });
  IM_CHECK_STR_EQ(layer_of("last-session.json").c_str(), "relu");
  IM_CHECK_STR_EQ(layer_of("last-session-2.json").c_str(), "elu");
  start_over(context);
}

} // namespace

void register_session_store_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "sessions", "saved_and_opened_in_the_window")->TestFunc =
      saved_and_opened_in_the_window;
  IM_REGISTER_TEST(engine, "sessions", "copies_itself")->TestFunc = copies_itself;
  IM_REGISTER_TEST(engine, "sessions", "saves_in_turn")->TestFunc = saves_in_turn;
  IM_REGISTER_TEST(engine, "sessions", "has_a_copy_for_each_window")->TestFunc = has_a_copy_for_each_window;
}

} // namespace hydrascope::app::window_tests
