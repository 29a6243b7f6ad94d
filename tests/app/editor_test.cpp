// The editor: history, messages, the pointer, commands, sessions.
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <utility>

#include "app/document/edits.h"
#include "app/document/session_edits.h"
#include "app/jobs/requests.h"
#include "engine/base/paths.h"
#include "tests/app/fixture.h"

namespace hydrascope::app::tests {
namespace {

namespace fs = std::filesystem;

Document with_layer(const Document& from, int layer) {
  Document document = from;
  document.scene().layer = layer;
  return document;
}

TEST(History, JoinsTheChangesOfAGestureIntoOneStep) {
  History history;
  for (const int layer : {1, 2, 3}) history.change(with_layer(history.present(), layer), "slider", "drag");
  history.undo();
  EXPECT_EQ(history.present().scene().layer, 0);
  EXPECT_FALSE(history.can_undo());
  history.redo();
  EXPECT_EQ(history.present().scene().layer, 3);
}

TEST(History, SeparatesGesturesThatEndedOrDiffer) {
  History history;
  history.change(with_layer(history.present(), 1), "first", "drag");
  history.end_gesture();
  history.change(with_layer(history.present(), 2), "second", "drag");
  history.change(with_layer(history.present(), 3), "third", "other drag");
  history.change(with_layer(history.present(), 4), "fourth");
  history.change(with_layer(history.present(), 5), "fifth");
  for (const int layer : {4, 3, 2, 1, 0}) {
    history.undo();
    EXPECT_EQ(history.present().scene().layer, layer);
  }
  EXPECT_FALSE(history.can_undo());
}

TEST(History, AddsNoStepForAnEqualDocumentAndDropsRedoAfterAChange) {
  History history;
  const std::uint64_t revision = history.revision();
  history.change(history.present(), "nothing");
  EXPECT_FALSE(history.can_undo());
  EXPECT_EQ(history.revision(), revision);
  history.change(with_layer(history.present(), 1), "one");
  history.undo();
  EXPECT_EQ(history.redo_label(), "one");
  history.change(with_layer(history.present(), 2), "two");
  EXPECT_FALSE(history.can_redo());
  EXPECT_EQ(history.undo_label(), "two");
  EXPECT_GT(history.revision(), revision);
}

TEST(History, KeepsAtMostFiveHundredSteps) {
  History history;
  for (int layer = 1; layer <= 600; ++layer) history.change(with_layer(history.present(), layer), "step");
  int steps = 0;
  for (; history.can_undo(); ++steps) history.undo();
  EXPECT_EQ(steps, 500);
  EXPECT_EQ(history.present().scene().layer, 100);
}

TEST(History, AmendRemovesStepsWithoutEffect) {
  History history;
  for (const int layer : {1, 2, 3, 4})
    history.change(with_layer(history.present(), layer), "layer " + std::to_string(layer));
  history.undo();
  history.amend([](Document& document) { // layers 2 and 4 cease to exist
    int& layer = document.scene().layer;
    if (layer == 2) layer = 1;
    if (layer == 4) layer = 3;
  });
  EXPECT_EQ(history.present().scene().layer, 3);
  EXPECT_FALSE(history.can_redo());
  history.undo();
  EXPECT_EQ(history.present().scene().layer, 1);
  history.undo();
  EXPECT_EQ(history.present().scene().layer, 0);
  EXPECT_FALSE(history.can_undo());
}

TEST(Editor, TypingIsOneStepPerBurst) {
  Editor editor;
  editor.set_initial(small_document());
  type_text(editor, "a", std::nullopt, 1);
  type_text(editor, "a c", std::nullopt, 1);
  type_text(editor, "a cat", std::nullopt, 2);
  editor.undo();
  EXPECT_EQ(input_name(*editor.document().scene().input), "a c");
  editor.undo();
  EXPECT_EQ(input_name(*editor.document().scene().input), "the cat");
  EXPECT_FALSE(editor.history().can_undo());
}

TEST(Editor, TypingIsNotLostWhereThePictureIsShownMeanwhile) {
  Editor editor;
  editor.set_initial(small_document());
  show_kind(editor, InputKind::image);
  type_text(editor, "a cat", std::nullopt, 1);
  EXPECT_EQ(editor.document().kind, InputKind::image);
  EXPECT_EQ(input_name(*editor.document().scene_of(InputKind::text).input), "a cat");
}

TEST(Messages, CountsRepeatsAndMovesThemToTheEnd) {
  Editor editor;
  editor.set_clock(1);
  editor.say(Severity::error, "disk full");
  editor.say(Severity::note, "disk full"); // another severity is another message
  editor.set_clock(5);
  editor.say(Severity::error, "disk full");
  ASSERT_EQ(editor.messages().size(), 2U);
  EXPECT_EQ(editor.messages().back().severity, Severity::error);
  EXPECT_EQ(editor.messages().back().count, 2);
  EXPECT_EQ(editor.messages().back().seconds, 5);
  editor.dismiss_message(7); // out of range: no effect
  editor.dismiss_message(0);
  EXPECT_EQ(editor.messages().size(), 1U);
  for (int i = 0; i < 150; ++i) editor.say(Severity::note, std::to_string(i));
  EXPECT_EQ(editor.messages().size(), 100U);
  EXPECT_EQ(editor.messages().back().text, "149");
}

TEST(Hover, IsSeenInTheNextFrameOnly) {
  Editor editor;
  editor.hover(3, 2);
  editor.hover_head({1, 0});
  EXPECT_FALSE(editor.hovered_token().has_value());
  editor.next_frame();
  EXPECT_EQ(editor.hovered_token(), 3);
  EXPECT_EQ(editor.hovered_count(), 2);
  EXPECT_EQ(editor.hovered_head(), (HeadIndex{1, 0}));
  editor.next_frame();
  EXPECT_FALSE(editor.hovered_token().has_value());
  EXPECT_FALSE(editor.hovered_head().has_value());
}

TEST(Editor, UndoReturnsToThePreviousSessionAndItsFile) {
  Editor editor;
  editor.set_initial(small_document());
  session_saved(editor, editor.document(), "first.json");
  EXPECT_FALSE(session_changed(editor));
  EXPECT_EQ(window_title(editor), "first – Hydrascope");
  select_layer(editor, 0);
  EXPECT_TRUE(session_changed(editor));
  EXPECT_EQ(window_title(editor), "• first – Hydrascope");
  const std::size_t id = editor.add_session({});
  editor.change("New session", [&](Document& document) { document.session = id; });
  EXPECT_EQ(window_title(editor), "Hydrascope");
  editor.undo();
  editor.undo();
  EXPECT_EQ(editor.session().file, "first.json");
  EXPECT_FALSE(session_changed(editor));
}

TEST(Editor, KeepsTheSessionsThatUndoReaches) {
  Editor editor;
  editor.set_initial(small_document());
  const auto open = [&](const char* const file) {
    Document document = editor.document();
    document.session = editor.add_session({.file = file, .saved = document, .lesson = std::nullopt});
    editor.change("Open", [&](Document& present) { present = document; });
    return document;
  };
  const Document first = open("first.json"), second = open("second.json");
  ASSERT_NE(editor.session_of(first), nullptr);
  EXPECT_TRUE(editor.session_of(first)->saved.has_value());
  editor.undo();
  EXPECT_EQ(editor.session().file, "first.json");
  ASSERT_NE(editor.session_of(second), nullptr); // by redo
  open("third.json");                            // no redo
  Document fresh = small_document();
  fresh.session = editor.add_session({});
  EXPECT_EQ(editor.session_of(second), nullptr);
  ASSERT_NE(editor.session_of(first), nullptr);
  editor.set_initial(fresh); // removes all steps
  EXPECT_EQ(editor.session_of(first), nullptr);
  session_saved(editor, second, "second.json"); // in the background, which has just ended
  EXPECT_EQ(editor.session().file, "");
}

TEST(Edits, ClampTheSelectionToTheModel) {
  Editor editor;
  editor.set_initial(small_document()); // two layers, three heads
  select_layer(editor, 99);
  EXPECT_EQ(editor.document().scene().layer, 1);
  select_cell(editor, -3, 99);
  EXPECT_EQ(editor.document().scene().layer, 0);
  EXPECT_EQ(editor.document().scene().head.head, 2);
}

TEST(Edits, LeaveNoAdaptersOfAnotherModel) {
  Editor editor;
  editor.set_initial(small_document());
  const AdapterChoice chosen{.automatic = false, .files = {"maps-of-bert.safetensors"}};
  editor.change("Adapters", [&](Document& document) { document.scene().adapters = chosen; });
  ASSERT_TRUE(open_model(editor, golden_model("bert").string())); // it is open already
  EXPECT_EQ(editor.document().scene().adapters, chosen);
  ASSERT_TRUE(open_model(editor, golden_decoder().string()));
  EXPECT_EQ(editor.document().scene().adapters, AdapterChoice());
  editor.undo();
  EXPECT_EQ(editor.document().scene().adapters, chosen);
}

// An adapter may have been trained on pictures of another size, which have other patches.
TEST(Edits, LeaveNoPatchesToOtherAdapters) {
  Document document = small_document();
  document.kind = InputKind::image;
  for (Scene& scene : document.scenes) {
    scene.hidden_tokens = {3};
    scene.default_query = false;
    scene.query = 4;
    scene.key = 2;
  }
  Editor editor;
  editor.set_initial(document);
  const AdapterChoice none{.automatic = false, .files = {}};
  choose_adapters(editor, {}); // as it is
  EXPECT_TRUE(editor.document() == document);
  choose_adapters(editor, none);
  const Scene& scene = editor.document().scene();
  EXPECT_TRUE(scene.hidden_tokens.empty());
  EXPECT_TRUE(scene.default_query);
  EXPECT_FALSE(scene.query.has_value());
  EXPECT_FALSE(scene.key.has_value());
  editor.undo();
  EXPECT_TRUE(editor.document() == document);
  // They stay where the size is a choice of the user's own, and a text has the same tokens.
  editor.change("Size", [](Document& sized) { sized.execution.image_size = 64; });
  choose_adapters(editor, none);
  EXPECT_EQ(editor.document().scene().hidden_tokens, std::vector<std::int64_t>{3});
  show_kind(editor, InputKind::text);
  editor.change("Size", [](Document& sized) { sized.execution.image_size.reset(); });
  choose_adapters(editor, none);
  EXPECT_EQ(editor.document().scene().hidden_tokens, std::vector<std::int64_t>{3});
  EXPECT_EQ(editor.document().scene().query, 4);
}

TEST(Edits, OpenAModelAgainThatHasBeenWrittenAgain) {
  const ScratchFolder folder;
  fs::copy(golden_model("bert"), folder / "bert");
  const fs::path config = folder / "bert/config.json";
  Editor editor;
  editor.set_initial(small_document());
  ASSERT_TRUE(open_model(editor, (folder / "bert").string()));
  const std::string request = request_key(editor.document(), Side::a),
                    subject = subject_key(editor.document());
  std::string text = read_text_file(config);
  const std::string layers = "\"num_hidden_layers\": ";
  text.replace(text.find(layers + "2"), layers.size() + 1, layers + "1");
  write_file_atomically(config, text);
  ASSERT_TRUE(open_model(editor, (folder / "bert").string()));
  EXPECT_EQ(editor.document().scene().model->layers, 1);
  EXPECT_EQ(editor.document().scene().schedules[0].layers.size(), 1U);
  // What has been computed is of the other one.
  EXPECT_NE(request_key(editor.document(), Side::a), request);
  EXPECT_NE(subject_key(editor.document()), subject);
}

TEST(Edits, NeverRemoveTheLastHeadMapOrComparedKernel) {
  Editor editor;
  editor.set_initial(small_document());
  select_head(editor, {.head = 0, .fusion = HeadFusion::mean});
  toggle_head(editor, 0);
  EXPECT_EQ(editor.document().scene().head.head, 0);
  toggle_head(editor, 2);
  EXPECT_EQ(editor.document().scene().head.subset, (std::vector<int>{0, 2}));
  toggle_head(editor, 1); // all of them: no subset
  EXPECT_FALSE(editor.document().scene().head.head.has_value());
  EXPECT_TRUE(editor.document().scene().head.subset.empty());
  toggle_map(editor, MapKind::focus);
  EXPECT_EQ(editor.document().view.maps, std::set{MapKind::focus});
  for (int i = 0; i < 5; ++i) drop_compared_kernel(editor, 0);
  EXPECT_EQ(editor.document().scene().comparison.size(), 1U);
}

TEST(Edits, HideAllTokensOfARangeThatCanBeHidden) {
  Editor editor;
  editor.set_initial(small_document());
  hide_tokens(editor, 0, 4, true); // token 0 is [CLS], which the result is read from
  EXPECT_EQ(editor.document().scene().hidden_tokens, (std::vector<std::int64_t>{1, 2, 3}));
  hide_tokens(editor, 2, 1, false);
  EXPECT_EQ(editor.document().scene().hidden_tokens, (std::vector<std::int64_t>{1, 3}));
  EXPECT_NE(why_not_hidden(editor, 0), "");
  open_text(editor, "a mouse"); // another input has other tokens
  EXPECT_TRUE(editor.document().scene().hidden_tokens.empty());
}

TEST(Edits, MuteHeadsAndLayers) {
  Editor editor;
  editor.set_initial(small_document());
  mute_head(editor, {1, 0}, true);
  mute_head(editor, {0, 1}, true);
  mute_head(editor, {7, 0}, true); // no such layer
  EXPECT_EQ(editor.document().scene().muted_heads, (std::vector<HeadIndex>{{0, 1}, {1, 0}}));
  EXPECT_EQ(muted_words(editor.document(), 1), "1 of 3 heads muted");
  mute_layer(editor, 1, true);
  EXPECT_TRUE(layer_is_muted(editor.document(), 1));
  EXPECT_EQ(muted_words(editor.document(), 1), "muted");
  unmute_all(editor);
  EXPECT_EQ(muted_words(editor.document(), 1), "");
}

TEST(Edits, SetAParameterInEveryLayerWithTheSameKernel) {
  Editor editor;
  editor.set_initial(small_document());
  set_all_kernels(editor, {.name = "performer", .parameters = {}});
  set_layer_kernel(editor, 0, {.name = "relu", .parameters = {}});
  set_kernel_parameter(editor, 1, "seed", "7", true);
  const auto& layers = edited_schedule(editor.document()).layers;
  EXPECT_TRUE(layers[0].parameters.empty());
  EXPECT_EQ(layers[1].parameters.at("seed"), "7");
  reset_kernel_parameters(editor, 1, false);
  EXPECT_TRUE(edited_schedule(editor.document()).layers[1].parameters.empty());
  const auto softmax = KernelSpec{};
  apply_preset(editor, Strategy::back, 1, {.name = "relu", .parameters = {}});
  EXPECT_EQ(edited_schedule(editor.document()).layers[0], softmax);
  EXPECT_EQ(edited_schedule(editor.document()).layers[1].name, "relu");
}

TEST(Edits, ChangeTheSideThatIsShown) {
  Editor editor;
  editor.set_initial(small_document());
  change_view(editor, "Show B", [](ViewOptions& view) { view.shown = Shown::b; });
  set_all_kernels(editor, {.name = "relu", .parameters = {}});
  EXPECT_EQ(editor.document().scene().schedules[0].layers[0].name, "softmax");
  EXPECT_EQ(editor.document().scene().schedules[1].layers[0].name, "relu");
  swap_sides(editor);
  EXPECT_EQ(editor.document().scene().schedules[0].layers[0].name, "relu");
}

TEST(Edits, KeepTwelveRecentInputsWithoutRepeats) {
  Editor editor;
  for (int i = 0; i < 15; ++i) remember(editor, {"sentence " + std::to_string(i), true});
  remember(editor, {"sentence 10", true});
  const auto& recent = editor.settings().recent;
  ASSERT_EQ(recent.size(), 12U);
  EXPECT_EQ(recent[0].value, "sentence 10");
  EXPECT_EQ(recent[1].value, "sentence 14");
  EXPECT_EQ(std::ranges::count(recent, RecentInput{"sentence 10", true}), 1);
}

TEST(Messages, ReplaceThoseOfTheirTopic) {
  Editor editor;
  editor.say(Severity::note, "first", "topic");
  editor.say(Severity::note, "other");
  editor.say(Severity::note, "second", "topic");
  ASSERT_EQ(editor.messages().size(), 2U);
  EXPECT_EQ(editor.messages().front().text, "other");
  EXPECT_EQ(editor.messages().back().text, "second");
}

TEST(TextFiles, ThatAreNotUtf8AreReadAsLatin1) {
  const ScratchFolder folder;
  std::ofstream(folder / "latin.txt", std::ios::binary) << "a caf\xe9 at noon";
  std::ofstream(folder / "utf8.txt", std::ios::binary) << "a caf\xc3\xa9 at dawn";
  Editor editor;
  editor.set_initial(small_document());
  const auto text = [&] { return std::get<TextInput>(*editor.document().scene().input).text; };
  EXPECT_TRUE(open_path(editor, folder / "latin.txt"));
  EXPECT_EQ(text(), "a caf\xc3\xa9 at noon");
  ASSERT_EQ(editor.messages().size(), 1U);
  EXPECT_EQ(editor.messages().back().text, "latin.txt: byte 6 (0xe9) is not UTF-8: it was read as Latin-1");
  EXPECT_TRUE(open_path(editor, folder / "utf8.txt"));
  EXPECT_EQ(text(), "a caf\xc3\xa9 at dawn");
  EXPECT_EQ(editor.messages().size(), 1U);
}

TEST(OddFiles, AreRefusedAtOnceWithAReason) {
  const ScratchFolder folder;
  const auto sparse = [&](const char* name, const std::uintmax_t bytes, const std::string& begin = "") {
    std::ofstream(folder / name, std::ios::binary) << begin;
    fs::resize_file(folder / name, bytes);
  };
  constexpr std::uintmax_t huge = std::uintmax_t{1} << 36; // more than memory
  sparse("huge.json", huge, "{");
  sparse("huge.png", huge, "\x89PNG");
  sparse("huge", huge);
  sparse("huge.txt", huge);
  sparse("huge.pth", huge, "PK");
  std::ofstream(folder / "words.png") << "an error page in place of a picture";
  std::ofstream(folder / "long.txt") << std::string(1'100'000, 'a');
  ASSERT_EQ(::mkfifo((folder / "pipe.json").c_str(), 0600), 0);
  fs::create_symlink("loop.png", folder / "loop.png");
  const std::pair<fs::path, const char*> refused[] = {
      {folder / "huge.json", "at most 1073741824 are read"},
      {folder / "huge.png", "at most 1073741824 are read"},
      {folder / "huge", "at most 1073741824 are read"},
      {folder / "huge.txt", "is neither a picture nor text"},
      {folder / "huge.pth", "convert it to safetensors"},
      {folder / "long.txt", "is longer than 1 MB of text"},
      {folder / "words.png", "is not a picture that can be read"},
      {folder / "pipe.json", "is not a regular file"},
      {"/dev/zero", "is not a regular file"},
      {folder / "loop.png", "symbolic links"},
  };
  for (const auto& [file, reason] : refused) {
    Editor editor;
    editor.set_initial(small_document());
    EXPECT_FALSE(open_path(editor, file));
    ASSERT_EQ(editor.messages().size(), 1U) << file;
    EXPECT_NE(editor.messages().back().text.find(file.string()), std::string::npos)
        << editor.messages().back().text;
    EXPECT_NE(editor.messages().back().text.find(reason), std::string::npos) << editor.messages().back().text;
  }
}

} // namespace
} // namespace hydrascope::app::tests
