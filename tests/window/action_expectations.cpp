#include "tests/window/action_expectations.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "app/document/edits.h"
#include "app/document/writing_edits.h"
#include "tests/window/harness.h"

namespace hydrascope::app::window_tests {

namespace {

bool all_are(const Json& schedule, const std::string& kernel) {
  return std::ranges::all_of(schedule, [&](const Json& layer) { return layer == kernel; });
}

// What none of the kernels in the table is.
void other_kernels(Editor& editor) {
  set_all_kernels(editor, {.name = "softmax", .parameters = {{"heads", "2"}}});
}

using Prepare = std::function<void(Editor&)>;

Expectation shows(const char* prefix, std::function<bool(const std::string& rest)> what,
                  Prepare prepare = {}) {
  return {
      prefix, {}, std::move(prepare), [what = std::move(what)](ImGuiTestContext*, const std::string& rest) {
        return what(rest);
      }};
}

// A window over the panels.
Expectation opens(const char* id, const char* window) {
  return shows(id, [window](const std::string&) { return is_shown(window); });
}

// A dialog of the desktop.
Expectation asks(const char* prefix, const char* title) {
  return {prefix, {}, {}, [title](ImGuiTestContext* context, const std::string&) {
            return title_of_dialog(context) == title;
          }};
}

// A note that begins so.
Expectation says(const char* prefix, const char* done, const char* refused, Prepare prepare = {}) {
  return shows(
      prefix,
      [=](const std::string&) {
        return std::ranges::any_of(editor().messages(), [&](const Message& message) {
          return message.text.starts_with(done) || message.text.starts_with(refused);
        });
      },
      std::move(prepare));
}

template <typename Kind>
Expectation emits(const char* id, Prepare prepare = {}) {
  return {id, {}, std::move(prepare), {}, [](const Command& command, const std::string&) {
            return std::holds_alternative<Kind>(command);
          }};
}

// Of the panel that the rest of the id names. Drawing the figure of every panel would take minutes.
template <typename Kind>
Expectation emits_of_panel(const char* prefix, Prepare prepare = {}) {
  return {prefix, {}, std::move(prepare), {}, [](const Command& command, const std::string& rest) {
            const Kind* const found = std::get_if<Kind>(&command);
            return found != nullptr && found->panel == rest;
          }};
}

// As if the window had reported so.
Prepare with_status(std::function<void(WindowStatus&)> edit) {
  return [edit = std::move(edit)](Editor& editor) {
    WindowStatus status = editor.status();
    edit(status);
    editor.set_status(std::move(status));
  };
}

std::vector<Expectation> file_and_edit() {
  const auto shows_picture = [](const char* name) {
    return [name](const Seen& seen) {
      return seen.after.at(Pointer("/document/scenes/image/input/name")) == name &&
             seen.after["document"]["folder"] == example_pictures().front().parent_path().string();
    };
  };
  const auto labelled_folder = [](Editor& editor) {
    editor.change("Folder of a test", [](Document& document) {
      PictureFolder folder{.path = "/nowhere", .pictures = {{"/nowhere/cat/a.png", "cat"}}, .labelled = true};
      document.folder = std::make_shared<const PictureFolder>(std::move(folder));
    });
  };
  // Off screen there is none, and the actions say so.
  const Prepare some_clipboard =
      with_status([](WindowStatus& status) { status.no_picture_clipboard.clear(); });
  const auto some_change = [](Editor& editor) { set_layer_kernel(editor, 1, elu); };
  const auto query = [](const char* wanted) {
    return [wanted](const Seen& seen) { return seen.scene().at("query") == wanted; };
  };
  return {
      asks("file.open", "Open picture, text or capture"),
      shows("file.new_session",
            [](const std::string&) { return editor().history().undo_label() == "New session"; }),
      asks("file.open_session", "Open session"),
      asks("file.save_session", "Save session"),
      asks("file.save_session_as", "Save session"),
      emits<ReopenLastSession>("file.reopen_last",
                               with_status([](WindowStatus& status) { status.has_last_session = true; })),
      {"file.reopen_at_start", [](const Seen& seen) { return seen.flipped("/settings/reopen_last"); }},
      asks("file.open_model", "Open model folder"),
      opens("file.get_model", "get_model"),
      asks("file.open_folder", "Open folder of pictures"),
      {"file.next_picture", shows_picture("coffee.png")},
      {"file.previous_picture", shows_picture("astronaut.png")},
      {"file.wrong_first", [](const Seen& seen) { return seen.flipped("/document/wrong_first"); },
       labelled_folder},
      {"file.close_folder", [](const Seen& seen) { return seen.after["document"]["folder"].is_null(); },
       labelled_folder},
      {"file.forget_recent", [](const Seen& seen) { return seen.settings().at("recent").empty(); },
       [](Editor& editor) {
         remember(editor, {"a sentence", true});
       }},
      emits_of_panel<CopyFigure>("file.copy.", some_clipboard),
      emits_of_panel<CopyNumbers>("file.copy_numbers."),
      asks("file.export_everything", "Export everything open into this folder"),
      says("edit.copy", "Copied: ", "copy: ", some_clipboard),
      emits<Paste>("edit.paste"),
      {"edit.hide_token",
       [](const Seen& seen) { return seen.scene().at("hidden_tokens") == Json::array({7}); },
       [](Editor& editor) { select_query(editor, 7); }},
      {"edit.show_all_tokens", [](const Seen& seen) { return seen.scene().at("hidden_tokens").empty(); },
       [](Editor& editor) { hide_tokens(editor, 7, 2, true); }},
      {"edit.mute_head",
       [](const Seen& seen) {
         return seen.scene().at("muted_heads") == Json::array({{3, 2}});
       },
       [](Editor& editor) { select_cell(editor, 3, 2); }},
      {"edit.mute_layer",
       [](const Seen& seen) {
         const Json& muted = seen.scene().at("muted_heads");
         return muted.size() > 1 && std::ranges::all_of(muted, [&](const Json& each) {
                  return each[0] == seen.scene().at("layer");
                });
       }},
      {"edit.unmute_all", [](const Seen& seen) { return seen.scene().at("muted_heads").empty(); },
       [](Editor& editor) { mute_layer(editor, 1, true); }},
      {"file.example.",
       [](const Seen& seen) {
         const std::string path = seen.after.at(Pointer("/document/scenes/image/input/path"));
         return std::filesystem::path(path).stem() == seen.rest && seen.after["document"]["kind"] == "image";
       }},
      {"file.sentence.",
       [](const Seen& seen) {
         const auto number = static_cast<std::size_t>(std::stoi(seen.rest));
         return seen.after.at(Pointer("/document/scenes/text/input/text")) ==
                    example_sentences().at(number) &&
                seen.after["document"]["kind"] == "text";
       }},
      emits_of_panel<ExportFigure>("file.export."),
      shows("file.quit", [](const std::string&) { return !application().running(); }),
      {"edit.undo", [](const Seen& seen) { return seen.scene().at("schedules")[0][1] == "softmax"; },
       some_change},
      {"edit.redo", [](const Seen& seen) { return seen.scene().at("schedules")[0][1] == "elu"; },
       [some_change](Editor& editor) {
         some_change(editor);
         editor.undo();
       }},
      {"edit.show_image", [](const Seen& seen) { return seen.after["document"]["kind"] == "image"; },
       [](Editor& editor) { show_kind(editor, InputKind::text); }},
      {"edit.show_text", [](const Seen& seen) { return seen.after["document"]["kind"] == "text"; }},
      {"edit.query_default", query("default"), [](Editor& editor) { select_query(editor, 3); }},
      {"edit.query_all", query("all")},
  };
}

std::vector<Expectation> view() {
  const auto flips = [](const char* name) {
    return [pointer = std::string("/document/view/") + name](const Seen& seen) {
      return seen.flipped(pointer.c_str());
    };
  };
  const auto shows = [](const char* side) {
    return [side](const Seen& seen) { return seen.view().at("shown") == side; };
  };
  const auto show_b = [](Editor& editor) {
    change_view(editor, "B", [](ViewOptions& options) { options.shown = Shown::b; });
  };
  const auto layer = [](int wanted) {
    return [wanted](const Seen& seen) { return seen.scene().at("layer") == wanted; };
  };
  const auto head = [](const Json& wanted) {
    return [wanted](const Seen& seen) { return seen.scene().at("head").at("head") == wanted; };
  };
  const auto at_layer_5 = [](Editor& editor) { select_layer(editor, 5); };
  const auto at_head_2 = [](Editor& editor) { select_head(editor, {.head = 2, .fusion = HeadFusion::mean}); };
  return {
      {"view.layer_up", layer(4), at_layer_5},
      {"view.layer_down", layer(6), at_layer_5},
      {"view.head_left", head(1), at_head_2},
      {"view.head_right", head(3), at_head_2},
      {"view.head_mean", head(nullptr), at_head_2},
      {"view.sign", flips("with_sign")},
      {"view.map.",
       [](const Seen& seen) {
         const auto shows_it = [&](const Json& json) {
           return json.at(Pointer("/document/view/maps")).get<std::set<std::string>>().contains(seen.rest);
         };
         return shows_it(seen.after) != shows_it(seen.before);
       },
       [](Editor& editor) {
         change_view(editor, "Maps", [](ViewOptions& view) {
           view.maps = {MapKind::focus, MapKind::rollout};
         });
       }},
      {"view.interpolation", [](const Seen& seen) { return seen.view().at("interpolation") == "bilinear"; }},
      {"view.special_tokens", flips("special_tokens")},
      {"view.whole_words", flips("whole_words")},
      {"view.logarithmic", flips("logarithmic")},
      {"view.shared_scale", flips("shared_scale")},
      {"view.value_weighted", flips("value_weighted")},
      {"view.teacher_forced", flips("teacher_forced")},
      {"view.side_a", shows("a"), show_b},
      {"view.side_b", shows("b")},
      {"view.difference", shows("difference")},
      {"view.cividis", [](const Seen& seen) { return seen.flipped("/document/view/cividis"); }},
      {"view.all_sides", shows("all")},
      {"view.swap",
       [](const Seen& seen) {
         return all_are(seen.scene().at("schedules")[1], "elu") &&
                all_are(seen.scene().at("schedules")[0], "softmax");
       },
       [](Editor& editor) { set_all_kernels(editor, elu); }},
      // What was seen goes; all else comes to the front.
      {"view.panel.",
       {},
       {},
       [](ImGuiTestContext*, const std::string& rest) {
         return editor().panel_open(rest) == application().panel_rectangle(rest).has_value();
       }},
  };
}

std::vector<Expectation> window() {
  const auto theme_is_rest = [](const Seen& seen) { return seen.settings().at("theme") == seen.rest; };
  return {
      {"view.layout.", [](const Seen& seen) { return seen.after["document"]["layout"] == seen.rest; },
       [](Editor& editor) {
         editor.change("Layout of a test", [](Document& document) { document.layout = "none"; });
       }},
      opens("view.save_layout", "save_layout"),
      shows(
          "view.reset_layout",
          [](const std::string&) { return application().panel_rectangle("weights").has_value(); },
          [](Editor& editor) { show_panel(editor, "weights", "Weights", false); }),
      {"view.theme.", theme_is_rest,
       [](Editor& editor) {
         editor.change_settings([](Settings& settings) { settings.theme = ThemeChoice::dark; });
       }},
      {"view.larger", [](const Seen& seen) { return seen.settings().at("scale") == 1.1; }},
      {"view.smaller", [](const Seen& seen) { return seen.settings().at("scale") == 0.9; }},
      {"view.reset_scale", [](const Seen& seen) { return seen.settings().at("scale").is_null(); }},
      {"view.fade", [](const Seen& seen) { return seen.flipped("/settings/fade"); }},
      opens("view.palette", "palette"),
      opens("help.sheet", "help"),
      opens("help.about", "about"),
      opens("help.tour", "tour"),
      opens("help.gallery", "gallery"),
      opens("help.shortcuts", "shortcuts"),
      emits<CancelRuns>("model.cancel", with_status([](WindowStatus& status) { status.computing = true; })),
      emits<FreeMemory>("model.free_memory"),
      emits<RunAgain>("model.run_again", with_status([](WindowStatus& status) { status.stopped = true; })),
      emits<TimePasses>("model.time_passes"),
      shows("model.measure_scaling", [](const std::string&) { return editor().scaling.running; }),
      shows(
          "model.stop_scaling", [](const std::string&) { return !editor().scaling.running; },
          [](Editor& editor) { editor.scaling.running = true; }),
  };
}

std::vector<Expectation> training() {
  const auto some_data = [](Editor& editor) {
    const auto output = scratch_file("stopped.safetensors");
    std::ofstream(checkpoint_path(output)) << "some steps";
    TrainingPlan& plan = editor.training_form.plan(TrainingKind::distill, editor.document().kind);
    plan.set("data", std::string("/nowhere"));
    plan.set("output", output.string());
  };
  const auto running = [](Editor& editor) { editor.training.state = TrainingState::running; };
  return {
      shows(
          "training.examples",
          [](const std::string&) {
            const TrainingForm& form = editor().training_form;
            return uses_bundled_data(form.plan(form.kind, document().kind), form.kind) &&
                   application().panel_rectangle("training").has_value();
          },
          some_data),
      shows(
          "training.start",
          [](const std::string&) { return editor().training.question == TrainingQuestion::found_checkpoint; },
          some_data),
      emits<StartTraining>("training.resume", some_data),
      emits<PauseTraining>("training.pause", running),
      emits<StopTraining>("training.stop", running),
      emits<ShowTraining>("training.show", running)};
}

std::vector<Expectation> writing() {
  const auto decoder = [](Editor& editor) {
    open_text(editor, "the cat");
    open_model(editor, golden_decoder().string());
  };
  const auto some_text = [decoder](Editor& editor) {
    decoder(editor);
    editor.writing.prompt = "the cat";
    for (const Side side : {Side::a, Side::b}) {
      WrittenSide& written = editor.writing.sides[static_cast<std::size_t>(side)];
      written.text = side == Side::a ? " sat" : " ate";
      written.tokens = {{.id = 3, .name = written.text, .text = written.text}};
      editor.writing.setups[static_cast<std::size_t>(side)] = writing_setup(editor.document(), side);
    }
  };
  const auto text_is = [](const char* wanted) {
    return [wanted](const Seen& seen) { return seen.scene().at(Pointer("/input/text")) == wanted; };
  };
  return {emits<StartWriting>("write.start", decoder),
          emits<StartWriting>("write.go_on", some_text),
          emits<StopWriting>("write.stop", [](Editor& editor) { editor.writing.running = true; }),
          {"write.take_a", text_is("the cat sat"), some_text},
          {"write.take_b", text_is("the cat ate"), some_text}};
}

std::vector<Expectation> kernels() {
  return {
      {"model.open.",
       [](const Seen& seen) {
         const std::string folder = seen.scene().at("model").at("folder");
         return std::filesystem::path(folder).filename() == seen.rest ||
                seen.scene().at("model").at("name") == seen.rest;
       }},
      {"kernels.layer.",
       [](const Seen& seen) {
         const auto layer = seen.scene().at("layer").get<std::size_t>();
         return seen.scene().at("schedules")[0][layer] == seen.rest;
       },
       other_kernels},
      {"kernels.compare.", [](const Seen& seen) { return seen.scene().at("comparison")[1] == seen.rest; }},
      {"kernels.compare.layer", [](const Seen& seen) { return seen.scene().at("comparison")[1].is_null(); },
       [](Editor& editor) { compare_kernel(editor, 1, elu); }},
      {"kernels.all.", [](const Seen& seen) { return all_are(seen.scene().at("schedules")[0], seen.rest); },
       other_kernels},
      {"kernels.default_parameters",
       [](const Seen& seen) {
         const auto layer = seen.scene().at("layer").get<std::size_t>();
         return seen.scene().at("schedules")[0][layer] == "softmax";
       },
       other_kernels},
      {"model.adapters.automatic",
       [](const Seen& seen) { return seen.scene().at("adapters").at("automatic") == true; },
       [](Editor& editor) { choose_adapters(editor, {.automatic = false, .files = {}}); }},
      {"model.adapters.none",
       [](const Seen& seen) {
         const Json& adapters = seen.scene().at("adapters");
         return adapters.at("automatic") == false && adapters.at("files").empty();
       },
       [](Editor& editor) { choose_adapters(editor, {}); }},
      asks("model.adapters.open", "Open adapter"),
      {"model.device.",
       [](const Seen& seen) { return seen.after.at("document").at("execution").at("device") == seen.rest; },
       [](Editor& editor) { choose_device(editor, "cuda:9"); }},
      {"kernels.back2.",
       [](const Seen& seen) {
         const Json& schedule = seen.scene().at("schedules")[0];
         const std::size_t count = schedule.size();
         return schedule[count - 1] == seen.rest && schedule[count - 2] == seen.rest &&
                schedule[count - 3] == "softmax";
       },
       other_kernels},
  };
}

} // namespace

std::vector<Expectation> all_expectations() {
  std::vector<Expectation> all;
  for (const auto& group : {file_and_edit(), view(), window(), training(), writing(), kernels()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

} // namespace hydrascope::app::window_tests
