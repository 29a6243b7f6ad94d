// The Model menu: runs, measurements, training, models, adapters, kernels.
#include <string>
#include <system_error>
#include <utility>

#include "app/actions/action_table.h"
#include "app/document/edits.h"
#include "app/document/writing_edits.h"
#include "app/jobs/training_job.h"

namespace hydrascope::app {

std::string why_not_started(const Editor& editor) {
  if (editor.training.active()) return "a training runs already";
  return why_not_trained(editor.document(), editor.training_form);
}

std::string why_not_resumed(const Editor& editor, bool found) {
  if (std::string why = why_not_started(editor); !why.empty()) return why;
  return found ? std::string() : "there is no checkpoint beside the output";
}

namespace {

void add_run_actions(ActionTable& table) {
  add_action(
      table, "model.cancel", "Cancel what is running", "Model", "Ctrl+.",
      [](Editor& editor) {
        editor.emit(CancelRuns{});
        if (editor.scaling.running) editor.emit(StopScaling{});
        if (editor.folder.running) editor.emit(StopFolder{});
        if (editor.writing.running) editor.emit(StopWriting{});
      },
      [](const Editor& editor) {
        return Availability{editor.status().computing, "nothing is running"};
      });
  add_action(
      table, "model.run_again", "Run again", "Model", "F5", [](Editor& editor) { editor.emit(RunAgain{}); },
      [](const Editor& editor) {
        return Availability{editor.status().stopped, "nothing was cancelled, and nothing has failed"};
      });
  add_action(table, "model.free_memory", "Free memory", "Model", "",
             [](Editor& editor) { editor.emit(FreeMemory{}); });
}

void add_measuring_actions(ActionTable& table) {
  add_action(
      table, "model.time_passes", "Time 10 runs", "Model", "Shift+F5",
      [](Editor& editor) { editor.emit(TimePasses{}); }, with_model);
  add_action(
      table, "model.measure_scaling", "Measure scaling", "Model", "",
      [](Editor& editor) { editor.emit(MeasureScaling{}); }, with_model);
  add_action(
      table, "model.stop_scaling", "Stop measuring scaling", "Model", "",
      [](Editor& editor) { editor.emit(StopScaling{}); },
      [](const Editor& editor) {
        return Availability{editor.scaling.running, "it is not being measured"};
      });
}

void add_training_actions(ActionTable& table) {
  const auto add = [&](const char* id, const char* label, std::function<void(Editor&)> run,
                       std::function<std::string(const Editor&)> why_not) -> Action& {
    const auto enabled = [why_not = std::move(why_not)](const Editor& editor) {
      std::string why = why_not(editor);
      return Availability{why.empty(), std::move(why)};
    };
    return add_action(table, id, label, "Model/Training", "", std::move(run), enabled);
  };
  const auto none_runs = [](const Editor& editor) {
    return editor.training.state == TrainingState::running ? std::string() : "no training runs";
  };
  add(
      "training.examples", "Fill the training form with the bundled examples",
      [](Editor& editor) {
        TrainingForm& form = editor.training_form;
        form.kind = TrainingKind::distill;
        const TrainingData data = training_data(editor.document());
        TrainingPlan& plan = form.plan(form.kind, data);
        const std::string output = plan.get<std::string>("output");
        plan = bundled_plan(form.kind, data);
        plan.set("output", output);
        if (!editor.panel_open("training")) show_panel(editor, "training", "Training", true);
        editor.emit(BringToFront{"training"});
      },
      [](const Editor& editor) {
        return editor.training.active() ? std::string("a training runs already") : std::string();
      });
  add(
      "training.start", "Start training",
      [](Editor& editor) { editor.emit(StartTraining{TrainingStart::ask}); }, why_not_started);
  add(
      "training.resume", "Resume training from its checkpoint",
      [](Editor& editor) { editor.emit(StartTraining{TrainingStart::resume}); },
      [](const Editor& editor) {
        const std::string why = why_not_started(editor);
        if (!why.empty()) return why;
        std::error_code none;
        const auto output = training_output(editor.document(), editor.training_form);
        return why_not_resumed(editor, std::filesystem::exists(checkpoint_path(output), none));
      });
  add(
      "training.pause", "Pause or continue training", [](Editor& editor) { editor.emit(PauseTraining{}); },
      none_runs)
      .checked = [](const Editor& editor) { return editor.training.paused; };
  add(
      "training.stop", "Stop training, keeping a checkpoint",
      [](Editor& editor) { editor.emit(StopTraining{}); }, none_runs);
  add(
      "training.show", "Show the trained adapter", [](Editor& editor) { editor.emit(ShowTraining{}); },
      [](const Editor& editor) {
        const bool there = editor.training.active() || !editor.training.adapter.empty();
        return there ? std::string() : "nothing has been trained";
      })
      .checked = [](const Editor& editor) { return shows_training(editor); };
}

void add_writing_actions(ActionTable& table) {
  const auto add = [&](const std::string& id, const std::string& label, const char* shortcut,
                       std::function<void(Editor&)> run, std::function<std::string(const Editor&)> why_not) {
    add_action(table, id, label, "Model/Write", shortcut, std::move(run),
               [why_not = std::move(why_not)](const Editor& editor) {
                 std::string why = why_not(editor);
                 return Availability{why.empty(), std::move(why)};
               });
  };
  const auto show_and = [](bool anew) {
    return [anew](Editor& editor) {
      if (!editor.panel_open("write")) show_panel(editor, "write", "Write", true);
      editor.emit(BringToFront{"write"});
      editor.emit(StartWriting{anew});
    };
  };
  add("write.start", "Write after the text", "Ctrl+Enter", show_and(true),
      [](const Editor& editor) { return why_not_written(editor.document()); });
  add("write.go_on", "Go on writing", "", show_and(false), [](const Editor& editor) {
    if (editor.writing.running) return std::string("it is being written");
    const std::string why = why_not_written(editor.document());
    return why.empty() ? why_not_continued(editor) : why;
  });
  add(
      "write.stop", "Stop writing", "", [](Editor& editor) { editor.emit(StopWriting{}); },
      [](const Editor& editor) {
        return editor.writing.running ? std::string() : std::string("nothing is being written");
      });
  for (const Side side : {Side::a, Side::b})
    add(
        side == Side::a ? "write.take_a" : "write.take_b",
        std::string("Take ") + side_name(side) + "'s text over into the input", "",
        [side](Editor& editor) { take_over_writing(editor, side); },
        [side](const Editor& editor) { return why_not_taken_over(editor, side); });
}

Action& add_device(ActionTable& table, const std::string& device, const std::string& label,
                   std::function<Availability(const Editor&)> enabled) {
  Action& action = add_action(
      table, "model.device." + device, "Device: " + label, "Model/Device", "",
      [device](Editor& editor) { choose_device(editor, device); }, std::move(enabled));
  action.checked = [device](const Editor& editor) {
    const std::string& chosen = editor.document().execution.device;
    return chosen == device || (chosen != "auto" && listed_name(nullptr, chosen) == device);
  };
  return action;
}

void add_device_actions(ActionTable& table, const DeviceList* devices) {
  const auto cpu_computes = [](const Editor& editor) {
    return Availability{editor.document().execution.dtype != "float16",
                        "the CPU computes in float32 or bfloat16, and --dtype float16 was chosen"};
  };
  const std::string automatic = listed_name(devices, "auto");
  const auto always = [](const Editor&) { return Availability{}; };
  Action& choice = automatic == "cpu" ? add_device(table, "auto", "auto", cpu_computes)
                                      : add_device(table, "auto", "auto", always);
  choice.tip =
      "Leave the choice to the program: a GPU if kernels compute there what they compute on the CPU.\n" +
      (devices == nullptr   ? std::string("CUDA is being loaded")
       : automatic == "cpu" ? "Here it is the CPU: " + devices->why_cpu
                            : "Here it is " + automatic);
  add_device(table, "cpu", "CPU", cpu_computes).tip = "Run models on the CPU";
  const auto add_note = [&](const char* label, const std::string& reason) {
    add_action(
        table, "model.device.none", label, "Model/Device", "", [](Editor&) {},
        [reason](const Editor&) {
          return Availability{false, reason};
        });
  };
  if (devices == nullptr) return add_note("Looking for GPUs…", "CUDA is being loaded");
  for (const DeviceFacts& device : devices->accelerators) {
    const Availability availability{device.unusable.empty(), device.unusable};
    add_device(table, device.name, text_of(device), [availability](const Editor&) { return availability; })
        .tip = devices->no_fused_kernels.empty() || !device.name.starts_with("cuda")
                   ? "Run models on this GPU"
                   : "Run models on this GPU, without this program's own CUDA kernels:\n" +
                         devices->no_fused_kernels;
  }
  if (!devices->no_cuda.empty()) add_note("No CUDA device", devices->no_cuda);
}

} // namespace

void add_model_actions(ActionTable& table, const DeviceList* devices) {
  add_run_actions(table);
  add_measuring_actions(table);
  add_training_actions(table);
  add_writing_actions(table);
  for (const CatalogueEntry& entry : model_catalogue()) {
    add_action(table, "model.open." + entry.name, "Model: " + entry.name, "Model", "",
               [folder = entry.folder.string()](Editor& editor) { open_model(editor, folder); });
    table.back().begins_group = entry.name == model_catalogue().front().name;
  }
  add_action(
      table, "model.adapters.automatic", "Adapters: automatic", "Model/Adapters", "",
      [](Editor& editor) { choose_adapters(editor, {}); }, with_model);
  table.back().checked = [](const Editor& editor) { return editor.document().scene().adapters.automatic; };
  add_action(
      table, "model.adapters.none", "Adapters: none", "Model/Adapters", "",
      [](Editor& editor) { choose_adapters(editor, {.automatic = false, .files = {}}); }, with_model);
  table.back().checked = [](const Editor& editor) {
    const AdapterChoice& choice = editor.document().scene().adapters;
    return !choice.automatic && choice.files.empty();
  };
  add_action(
      table, "model.adapters.open", "Open adapter…", "Model/Adapters", "",
      [](Editor& editor) { editor.emit(ShowDialog{Dialog::open_adapter}); }, with_model);
  add_device_actions(table, devices);
  int number = 0;
  for (const KernelInfo& info : kernel_infos()) {
    const KernelSpec spec{.name = info.name, .parameters = {}};
    ++number;
    add_action(
        table, "kernels.layer." + info.name, "This layer: " + info.name, "Model/Selected layer", "",
        [spec](Editor& editor) { set_layer_kernel(editor, editor.document().scene().layer, spec); },
        with_model);
    add_action(
        table, "kernels.compare." + info.name, "Compare with " + info.name, "Model/Compare weights with",
        number <= 9 ? std::to_string(number) : "",
        [spec](Editor& editor) { compare_kernel(editor, 1, spec); }, with_model);
  }
  add_action(
      table, "kernels.compare.layer", "Compare with the layer's current kernel", "Model/Compare weights with",
      "0", [](Editor& editor) { compare_kernel(editor, 1, std::nullopt); }, with_model);
  add_action(
      table, "kernels.default_parameters", "This layer: default parameters", "Model", "",
      [](Editor& editor) { reset_kernel_parameters(editor, editor.document().scene().layer, false); },
      [](const Editor& editor) {
        const Document& document = editor.document();
        if (!document.scene().model) return Availability{false, "no model is open"};
        const auto layer = static_cast<std::size_t>(document.scene().layer);
        return Availability{!edited_schedule(document).layers.at(layer).parameters.empty(),
                            "its kernel already has them"};
      });
  for (const KernelInfo& info : kernel_infos()) {
    const KernelSpec spec{.name = info.name, .parameters = {}};
    add_action(
        table, "kernels.all." + info.name, "All layers: " + info.name, "Model/All layers", "",
        [spec](Editor& editor) { set_all_kernels(editor, spec); }, with_model);
    if (info.exact_softmax) continue;
    add_action(
        table, "kernels.back2." + info.name, "Last two layers: " + info.name, "Model/Last two layers", "",
        [spec](Editor& editor) { apply_preset(editor, Strategy::back, 2, spec); }, with_model);
  }
}

} // namespace hydrascope::app
