// The dialog that gets a model, against a hub on the loopback.
#include <fstream>

#include "app/document/edits.h"
#include "tests/support/checkout.h"
#include "tests/support/hub_server.h"
#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

namespace {

const char* const tiny = "org/tiny";

const ModelFetch& fetch() { return application().model_fetch(); }

// A hub that has a small model by two names, and nothing in the cache.
struct Hub {
  test::HubServer server;
  test::ScopedEnvironment environment{test::hub_environment(server, scratch_file("hf"))};

  Hub() {
    const auto folder = test::source_folder() / "tests/golden/models/deit";
    server.add_folder(tiny, folder);
    server.add_folder("facebook/deit-tiny-patch16-224", folder);
  }
};

void open_dialog(ImGuiTestContext* context) {
  IM_CHECK(application().run("file.get_model"));
  context->Yield(3);
  context->SetRef("//###get_model");
}

void type_name(ImGuiTestContext* context, const char* name) {
  context->ItemClick("##repository");
  context->KeyCharsReplace(name);
  context->Yield(2);
}

void wait_for_end(ImGuiTestContext* context) {
  while (fetch().running() && !context->IsError()) context->Yield();
  context->Yield(2);
}

std::string model_name() { return document().scene().model ? document().scene().model->name : ""; }

void got_and_opened(ImGuiTestContext* context) {
  start_over(context);
  const std::string before = model_name();
  Hub hub;
  open_dialog(context);
  type_name(context, tiny);
  context->ItemClick("###go");
  wait_for_end(context);
  IM_CHECK(!is_shown("get_model"));
  IM_CHECK_STR_EQ(model_name().c_str(), tiny);
  settle(context);
  IM_CHECK_STR_EQ(last_error().c_str(), "");
  IM_CHECK(results().any() != nullptr);
  editor().undo();
  IM_CHECK_STR_EQ(model_name().c_str(), before.c_str());
  settle(context);

  // It is in the cache now, and is opened from there without a question to anybody.
  hub.server.forget_requests();
  open_dialog(context);
  type_name(context, tiny);
  context->ItemClick("###go");
  context->Yield(2);
  IM_CHECK(hub.server.requests().empty());
  IM_CHECK_STR_EQ(model_name().c_str(), tiny);
  IM_CHECK(!is_shown("get_model"));
  start_over(context);
}

void suggested(ImGuiTestContext* context) {
  start_over(context);
  Hub hub;
  context->SetRef("//###kernels");
  context->ComboClick("##model/Get a model…");
  context->Yield(3);
  IM_CHECK(is_shown("get_model"));
  context->SetRef("//###get_model");
  context->ItemDoubleClick("facebook\\/deit-tiny-patch16-224");
  wait_for_end(context);
  IM_CHECK_STR_EQ(model_name().c_str(), "facebook/deit-tiny-patch16-224");
  IM_CHECK(hub.server.count("GET", "model.safetensors") == 1);
  start_over(context);
}

void fetch_cancelled(ImGuiTestContext* context) {
  start_over(context);
  const std::string before = model_name();
  Hub hub;
  hub.server.misbehave({.holds = true});
  open_dialog(context);
  type_name(context, tiny);
  context->ItemClick("###go");
  while (fetch().running() && fetch().progress().received < 10'000 && !context->IsError()) context->Yield();
  IM_CHECK(fetch().running());
  IM_CHECK_GT(fetch().progress().total, fetch().progress().bytes);
  context->KeyPress(ImGuiKey_Escape); // closes nothing while it runs
  context->Yield(2);
  IM_CHECK(fetch().running());
  IM_CHECK(is_shown("get_model"));
  context->ItemClick("###stop");
  context->Yield(2);
  IM_CHECK(!fetch().running());
  IM_CHECK(is_shown("get_model"));
  IM_CHECK_STR_EQ(fetch().problem().c_str(), "");
  IM_CHECK_STR_EQ(model_name().c_str(), before.c_str());
  hub.server.release();
  context->ItemClick("###go"); // goes on where it was
  wait_for_end(context);
  IM_CHECK_STR_EQ(model_name().c_str(), tiny);
  IM_CHECK(hub.server.requests().back().header("range").starts_with("bytes="));
  start_over(context);
}

void refused(ImGuiTestContext* context) {
  start_over(context);
  const std::string before = model_name();
  Hub hub;
  open_dialog(context);
  type_name(context, "no name");
  context->ItemClick("###go"); // cannot be pressed
  context->Yield(2);
  IM_CHECK(!fetch().running());
  type_name(context, "org/absent");
  context->ItemClick("###go");
  wait_for_end(context);
  IM_CHECK(fetch().problem().find("HF_TOKEN") != std::string::npos);
  IM_CHECK(is_shown("get_model"));
  IM_CHECK_STR_EQ(model_name().c_str(), before.c_str());
  IM_CHECK_STR_EQ(last_error().c_str(), ""); // said in the dialog
  type_name(context, "org/other");
  IM_CHECK_STR_EQ(fetch().problem().c_str(), "");
  context->KeyPress(ImGuiKey_Escape, 2); // leaves the text field, then the dialog
  context->Yield(2);
  IM_CHECK(!is_shown("get_model"));
  start_over(context);
}

} // namespace

void register_get_model_tests(ImGuiTestEngine* engine) {
  IM_REGISTER_TEST(engine, "get_model", "got_and_opened")->TestFunc = got_and_opened;
  IM_REGISTER_TEST(engine, "get_model", "suggested")->TestFunc = suggested;
  IM_REGISTER_TEST(engine, "get_model", "cancelled")->TestFunc = fetch_cancelled;
  IM_REGISTER_TEST(engine, "get_model", "refused")->TestFunc = refused;
}

} // namespace hydrascope::app::window_tests
