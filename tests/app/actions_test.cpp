// The action table, its shortcuts, layouts and the tour.
#include "app/actions/actions.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "app/actions/tour.h"
#include "app/document/edits.h"
#include "tests/app/fixture.h"

namespace hydrascope::app::tests {
namespace {

TEST(Actions, HaveALabelAMenuAndAUniqueId) {
  std::set<std::string> ids;
  const std::set<std::string> menus = {"File", "Edit", "View", "Model", "Help"};
  for (const Action& action : make_actions(some_panels())) {
    EXPECT_TRUE(ids.insert(action.id).second) << action.id;
    EXPECT_FALSE(action.label.empty()) << action.id;
    EXPECT_TRUE(menus.contains(action.menu.substr(0, action.menu.find('/'))))
        << action.id << ": " << action.menu;
  }
  EXPECT_GT(ids.size(), 100U);
}

TEST(Actions, ShareNoShortcut) {
  std::map<std::string, std::string> taken;
  for (const Action& action : make_actions(some_panels())) {
    if (action.shortcut.empty()) continue;
    const auto [other, unused] = taken.emplace(action.shortcut, action.id);
    EXPECT_TRUE(unused) << action.shortcut << ": " << other->second << " and " << action.id;
    EXPECT_EQ(action.shortcut, action.default_shortcut);
  }
}

TEST(Actions, SayWhyTheyAreDisabledAndThenChangeNothing) {
  Editor editor; // nothing is open
  int disabled = 0;
  const auto actions = make_actions(some_panels());
  for (const Action& action : actions) {
    const Availability availability = action.enabled(editor);
    if (availability.ok) continue;
    ++disabled;
    EXPECT_FALSE(availability.reason.empty()) << action.id;
    const std::uint64_t revision = editor.revision();
    EXPECT_FALSE(run_action(actions, action.id, editor)) << action.id;
    EXPECT_EQ(editor.messages().back().text, action.label + ": " + availability.reason);
    EXPECT_EQ(editor.revision(), revision) << action.id;
    EXPECT_TRUE(editor.commands().empty()) << action.id;
  }
  EXPECT_GT(disabled, 30);
}

TEST(Actions, WithACheckMarkSwitchWhatItShows) {
  const auto actions = make_actions(some_panels());
  for (const char* id : {"view.cividis", "view.special_tokens", "view.whole_words", "view.map.rollout",
                         "view.fade", "file.reopen_at_start"}) {
    Editor editor;
    editor.set_initial(small_document());
    const Action* action = find_action(actions, id);
    ASSERT_NE(action, nullptr) << id;
    const bool before = action->checked(editor);
    action->run(editor);
    EXPECT_NE(action->checked(editor), before) << id;
    action->run(editor);
    EXPECT_EQ(action->checked(editor), before) << id;
  }
}

TEST(Actions, NeverShowAClippedScaleThatIsLogarithmic) {
  const auto actions = make_actions(some_panels());
  Editor editor;
  editor.set_initial(small_document());
  change_view(editor, "Clip at 99 %", [](ViewOptions& view) { view.percentile = true; });
  EXPECT_TRUE(run_action(actions, "view.logarithmic", editor));
  EXPECT_TRUE(editor.document().view.logarithmic);
  EXPECT_FALSE(editor.document().view.percentile);
  change_view(editor, "Linear, clipped", [](ViewOptions& view) {
    view.logarithmic = false;
    view.percentile = true;
  });
  EXPECT_TRUE(run_action(actions, "view.shared_scale", editor));
  EXPECT_TRUE(editor.document().view.percentile);
}

TEST(Actions, ChooseADevice) {
  const DeviceList devices{
      .accelerators = {{.name = "cuda:0", .model = "NVIDIA H100 80GB HBM3", .bytes = 85'000'000'000},
                       {.name = "cuda:1", .model = "GeForce GTX 1080", .unusable = "LibTorch is too new"}}};
  const auto actions = make_actions(some_panels(), {}, &devices);
  Editor editor;
  editor.set_initial(small_document());
  const auto chosen = [&] {
    std::string ids;
    for (const Action& action : actions)
      if (action.id.starts_with("model.device.") && action.checked && action.checked(editor))
        ids += action.id.substr(13) + " ";
    return ids;
  };
  EXPECT_EQ(chosen(), "auto ");
  const Action* const gpu = find_action(actions, "model.device.cuda:0");
  ASSERT_NE(gpu, nullptr);
  EXPECT_EQ(gpu->menu, "Model/Device");
  EXPECT_EQ(gpu->label, "Device: cuda:0, NVIDIA H100 80GB HBM3, 85.0 GB");
  EXPECT_TRUE(run_action(actions, "model.device.cuda:0", editor));
  EXPECT_EQ(editor.document().execution.device, "cuda:0");
  EXPECT_EQ(chosen(), "cuda:0 ");
  EXPECT_TRUE(run_action(actions, "model.device.cpu", editor));
  EXPECT_EQ(chosen(), "cpu ");
  editor.undo();
  EXPECT_EQ(chosen(), "cuda:0 ");
  editor.redo();
  EXPECT_EQ(editor.document().execution.device, "cpu");
  EXPECT_FALSE(run_action(actions, "model.device.cuda:1", editor));
  EXPECT_EQ(editor.messages().back().text, "Device: cuda:1, GeForce GTX 1080: LibTorch is too new");
  EXPECT_EQ(find_action(actions, "model.device.none"), nullptr);

  editor.change("as on the command line", [](Document& document) { document.execution.device = "cuda"; });
  EXPECT_EQ(chosen(), "cuda:0 ");
  editor.change("half", [](Document& document) { document.execution.dtype = "float16"; });
  for (const char* id : {"model.device.auto", "model.device.cpu"}) {
    const Availability availability = find_action(actions, id)->enabled(editor);
    EXPECT_FALSE(availability.ok);
    EXPECT_NE(availability.reason.find("float16"), std::string::npos);
  }
}

TEST(Actions, SayWhyThereIsNoDevice) {
  Editor editor;
  const auto reason = [&](const DeviceList* devices) {
    const auto actions = make_actions(some_panels(), {}, devices);
    const Action* const none = find_action(actions, "model.device.none");
    return none == nullptr ? std::string() : none->label + ": " + none->enabled(editor).reason;
  };
  EXPECT_EQ(reason(nullptr), "Looking for GPUs…: CUDA is being loaded");
  const DeviceList none{.no_cuda = "no NVIDIA driver was found (libcuda.so.1)"};
  EXPECT_EQ(reason(&none), "No CUDA device: no NVIDIA driver was found (libcuda.so.1)");
  EXPECT_TRUE(find_action(make_actions(some_panels(), {}, &none), "model.device.cpu")->enabled(editor).ok);
  const DeviceList slow{.accelerators = {{.name = "cuda:0"}}, .no_fused_kernels = "the plug-in is not there"};
  const auto actions = make_actions(some_panels(), {}, &slow);
  EXPECT_NE(find_action(actions, "model.device.cuda:0")->tip.find("the plug-in is not there"),
            std::string::npos);
}

TEST(Actions, OpenAHiddenPanelRaiseACoveredOneAndCloseAVisibleOne) {
  const auto actions = make_actions(some_panels());
  Editor editor;
  const auto run = [&] {
    EXPECT_TRUE(run_action(actions, "view.panel.kl", editor));
    return editor.take_commands().size();
  };
  WindowStatus status;
  status.panels_in_front = {"kl"};
  editor.set_status(status);
  EXPECT_EQ(run(), 0U);
  EXPECT_FALSE(editor.panel_open("kl"));
  EXPECT_EQ(run(), 1U); // BringToFront
  EXPECT_TRUE(editor.panel_open("kl"));
  editor.set_status({});
  EXPECT_EQ(run(), 1U);
  EXPECT_TRUE(editor.panel_open("kl"));
}

TEST(Actions, MatchEveryWordOfAQuery) {
  const auto actions = make_actions(some_panels());
  const Action* action = find_action(actions, "kernels.all.relu");
  ASSERT_NE(action, nullptr); // "All layers: relu" in "Model/All layers"
  EXPECT_TRUE(matches(*action, "RELU all"));
  EXPECT_TRUE(matches(*action, "mod lay"));
  EXPECT_TRUE(matches(*action, ""));
  EXPECT_FALSE(matches(*action, "relu photograph"));
}

TEST(Shortcuts, MoveFromOneActionToAnother) {
  Editor editor;
  const auto table = [&] { return make_actions(some_panels(), editor.settings()); };
  const auto shortcut = [&](const char* id) { return find_action(table(), id)->shortcut; };
  ASSERT_EQ(shortcut("view.sign"), "S");
  EXPECT_EQ(action_with_shortcut(table(), "S", "view.fade")->id, "view.sign");
  EXPECT_EQ(action_with_shortcut(table(), "S", "view.sign"), nullptr);
  EXPECT_EQ(action_with_shortcut(table(), "", "view.sign"), nullptr);
  set_shortcut(editor, table(), "view.fade", "S");
  EXPECT_EQ(shortcut("view.fade"), "S");
  EXPECT_EQ(shortcut("view.sign"), "");
  set_shortcut(editor, table(), "view.sign",
               "S"); // its default: nothing remains in the settings but the other
  EXPECT_EQ(shortcut("view.fade"), "");
  EXPECT_TRUE(editor.settings().shortcuts.empty()); // "" is the default of view.fade
}

TEST(Layouts, CloseThePanelsThatTheyDoNotName) {
  const auto panels = some_panels();
  const Settings none;
  EXPECT_EQ(closed_in_layout("explore", panels, none), std::set<std::string>{});
  EXPECT_EQ(closed_in_layout("train", panels, none), std::set<std::string>{"input"});
  EXPECT_EQ(closed_in_layout("text", panels, none), (std::set<std::string>{"training", "kl"}));
  Settings settings;
  settings.layouts = {{.name = "explore", .arrangement = "", .closed = {"focus"}}};
  EXPECT_EQ(closed_in_layout("own:explore", panels, settings), std::set<std::string>{"focus"});
  EXPECT_EQ(closed_in_layout("own:missing", panels, settings), std::set<std::string>{});
}

TEST(Layouts, OfASessionMayBeUnknown) {
  const auto actions = make_actions(some_panels());
  for (const auto& [layout, title] : {std::pair{"new", "new"}, std::pair{"own:mine", "mine"}}) {
    Document document = small_document();
    document.layout = layout;
    document.closed_panels = {"kl"};
    Editor editor;
    editor.set_initial(document);
    EXPECT_TRUE(run_action(actions, "view.reset_layout", editor));
    EXPECT_EQ(editor.document().layout, layout);
    EXPECT_TRUE(editor.panel_open("kl"));
    EXPECT_EQ(editor.history().undo_label(), std::string("Layout ") + title);
  }
}

TEST(Layouts, CompareShowsAllSidesAndTheOthersOne) {
  Editor editor;
  const auto actions = make_actions(some_panels());
  run_action(actions, "view.layout.compare", editor);
  EXPECT_EQ(editor.document().view.shown, Shown::all);
  EXPECT_EQ(editor.history().undo_label(), "Layout Compare");
  run_action(actions, "view.layout.train", editor);
  EXPECT_EQ(editor.document().view.shown, Shown::a);
  EXPECT_FALSE(editor.panel_open("input"));
  editor.undo();
  EXPECT_EQ(editor.document().layout, "compare");
  EXPECT_EQ(editor.document().view.shown, Shown::all);
}

TEST(Tour, NamesOnlyActionsThatExist) {
  const auto actions = make_actions(some_panels());
  for (const TourStep& step : tour_steps()) {
    const std::string text = tour_text(step, InputKind::image, actions);
    EXPECT_EQ(text.find('{'), std::string::npos) << step.title;
    EXPECT_EQ(text.find("  "), std::string::npos) << step.title << ": an unknown action leaves a gap";
  }
}

TEST(Tour, NoticesACompletedStepAndEndsAfterTheLast) {
  Editor editor;
  editor.set_initial(small_document());
  std::optional<TourState> tour;
  go_to_tour_step(editor, tour, 2); // "Swap the kernel"
  ASSERT_TRUE(tour.has_value());
  const TourStep& step = tour_steps()[2];
  EXPECT_FALSE(step.done(*tour, editor));
  set_layer_kernel(editor, 1, {.name = "hydra-cosine", .parameters = {}}); // alone it runs untrained
  EXPECT_FALSE(step.done(*tour, editor));
  ASSERT_TRUE(step.shortcut.has_value());
  step.shortcut->run(editor); // on a sentence, whose model has trained maps for all layers
  EXPECT_TRUE(step.done(*tour, editor));
  for (const KernelSpec& kernel : editor.document().scene().schedules[0].layers)
    EXPECT_EQ(kernel.text(), "hedgehog");
  Document picture = small_document();
  picture.kind = InputKind::image;
  editor.set_initial(picture);
  go_to_tour_step(editor, tour, 2);
  step.shortcut->run(editor);
  const auto& layers = editor.document().scene().schedules[0].layers;
  for (std::size_t last = layers.size() - 2; last < layers.size(); ++last)
    EXPECT_EQ(layers[last].text(), "hydra-cosine");
  go_to_tour_step(editor, tour, tour_steps().size());
  EXPECT_FALSE(tour.has_value());
  EXPECT_TRUE(editor.settings().tour_seen);
}

TEST(Tour, ExplainsTheMapsOfPatchesWhereTheyAreNotEmpty) {
  Editor editor;
  editor.set_initial(small_document());
  select_layer(editor, 1); // the last
  std::optional<TourState> tour;
  go_to_tour_step(editor, tour, 1); // "See what counts"
  EXPECT_EQ(editor.document().scene().layer, 0);
  const TourStep& step = tour_steps()[1];
  select_query(editor, 1);
  EXPECT_FALSE(step.done(*tour, editor)); // no map is seen yet
  WindowStatus status;
  status.focus_map_seen = editor.revision();
  editor.set_status(status);
  EXPECT_TRUE(step.done(*tour, editor));
}

TEST(Tour, WritingIsDoneWithTheFirstToken) {
  Editor editor;
  editor.set_initial(decoder_document());
  editor.writing.sides[0].tokens.resize(3); // before the tour
  std::optional<TourState> tour;
  constexpr std::size_t number = 6;
  go_to_tour_step(editor, tour, number);
  const TourStep& step = tour_steps()[number];
  EXPECT_STREQ(step.panel, "write");
  EXPECT_FALSE(step.done(*tour, editor));
  editor.writing.sides[0].tokens.clear();
  ++editor.writing.edition; // the text is being read
  EXPECT_FALSE(step.done(*tour, editor));
  editor.writing.sides[0].tokens.resize(1);
  EXPECT_TRUE(step.done(*tour, editor));
  const auto actions = make_actions(some_panels());
  EXPECT_NE(tour_text(step, InputKind::text, actions, true), tour_text(step, InputKind::text, actions));
}

TEST(Tour, TrainingIsDoneOnceStepsWereTrained) {
  Editor editor;
  editor.set_initial(small_document());
  std::optional<TourState> tour;
  constexpr std::size_t number = 7;
  go_to_tour_step(editor, tour, number);
  const TourStep& step = tour_steps()[number];
  EXPECT_STREQ(step.panel, "training");
  EXPECT_FALSE(step.done(*tour, editor));
  editor.training.state = TrainingState::running;
  EXPECT_FALSE(step.done(*tour, editor)); // the model is loaded
  editor.training.progress.total_step = 1;
  EXPECT_FALSE(step.done(*tour, editor)); // it has not ended
  editor.training.seconds = 12;
  editor.training.state = TrainingState::failed;
  EXPECT_FALSE(step.done(*tour, editor));
  editor.training.state = TrainingState::finished;
  EXPECT_TRUE(step.done(*tour, editor));
  go_to_tour_step(editor, tour, number); // once more: that training was of the step before
  EXPECT_FALSE(step.done(*tour, editor));
}

TEST(Tour, ExportIsDoneOnceAFigureIsWritten) {
  Editor editor;
  editor.set_initial(small_document());
  WindowStatus status;
  status.written_figures = 1;
  editor.set_status(status); // before the tour
  std::optional<TourState> tour;
  constexpr std::size_t number = 8;
  go_to_tour_step(editor, tour, number);
  const TourStep& step = tour_steps()[number];
  EXPECT_STREQ(step.title, "Export a figure");
  EXPECT_FALSE(step.done(*tour, editor));
  status.written_figures = 2;
  editor.set_status(status);
  EXPECT_TRUE(step.done(*tour, editor));
}

TEST(Undo, NamesTheStep) {
  Editor editor;
  editor.set_initial(small_document());
  const auto actions = make_actions(some_panels());
  set_layer_kernel(editor, 1, {.name = "hydra-cosine", .parameters = {}});
  swap_sides(editor);
  EXPECT_TRUE(run_action(actions, "edit.undo", editor));
  EXPECT_EQ(editor.messages().back().text, "Undone: swap A and B");
  EXPECT_TRUE(run_action(actions, "edit.undo", editor));
  EXPECT_EQ(editor.messages().back().text, "Undone: layer 1 to hydra-cosine");
  EXPECT_TRUE(run_action(actions, "edit.redo", editor));
  EXPECT_EQ(editor.messages().back().text, "Redone: layer 1 to hydra-cosine");
  EXPECT_EQ(editor.messages().size(), 1U); // only the last step is named
}

} // namespace
} // namespace hydrascope::app::tests
