// The source of the selected layer's kernel `phi`, compiled while it is typed.
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <imgui_stdlib.h>

#include "app/document/edits.h"
#include "app/jobs/requests.h"
#include "app/panels/own_kernel/source_editor.h"
#include "app/panels/panel.h"
#include "app/ui/widgets.h"
#include "app/views/weights_view.h"
#include "engine/attention/own/map_source.h"
#include "engine/figures/scale.h"
#include "engine/run/quantities/weights.h"

namespace hydrascope::app {

namespace {

// Seconds without a key before the source is tried, and before the next key begins another undo step.
constexpr double source_pause = 0.05, step_pause = 1.0;
constexpr std::int64_t most_divergence_tokens = 600; // inputs whose KL is worth two matrices of weights

WeightsKey map_weights(const Document& document, const KernelSpec& kernel) {
  return {.layer = document.scene().layer, .kernel = kernel, .teacher_forced = document.view.teacher_forced};
}

const char* form_text(MapSource::Form form) {
  switch (form) {
    case MapSource::Form::normalised: return "normalised";
    case MapSource::Form::unnormalised: return "unnormalised";
    case MapSource::Form::hydra: return "Hydra";
    case MapSource::Form::score: return "weights";
  }
  return "";
}

std::string parameters_text(const MapFacts& facts) {
  if (facts.parameters == 0) return "no parameters";
  const std::string all = fmt::format("{} parameters", facts.parameters);
  if (facts.trained == 0) return all + ", none trainable";
  return fmt::format("{}, {} trainable (Training › distil)", all,
                     facts.trained == facts.parameters ? std::string("all") : std::to_string(facts.trained));
}

int only_name_letters(ImGuiInputTextCallbackData* data) {
  return is_name_letter(data->EventChar) || data->EventChar == '-' ? 0 : 1;
}

constexpr float list_width = 104;
constexpr const char* open_label = "Open…###open_map";

class OwnKernelPanel final : public Panel {
public:
  explicit OwnKernelPanel(PanelServices services) : Panel("own_kernel", "Your kernel", services) {}
  bool shows_results() const override { return false; }

  void request(const Document& document, Requested& requested) const override {
    const KernelSpec kernel = selected_kernel(document);
    if (kernel.name != "phi" || !can_run(document) || expected_tokens(document) > most_divergence_tokens)
      return;
    requested.first.add(map_weights(document, kernel));
    requested.first.add(map_weights(document, KernelSpec{}));
  }

  void prepare(const Snapshot& snapshot) override {
    const Document& now = *snapshot.document;
    if (now.scene().model == nullptr) return;
    follow(now);
    take_report();
    const Schedule& schedule = edited_schedule(now);
    alike_ = static_cast<int>(std::ranges::count(schedule.layers, kernel_));
    layers_ = static_cast<int>(schedule.layers.size());
    error_ = snapshot.shown().stale ? std::string() : snapshot.shown().error;
    divergence_.clear();
    const auto own = find(snapshot.shown(), map_weights(now, kernel_));
    const auto softmax = find(snapshot.shown(), map_weights(now, KernelSpec{}));
    if (!own || !softmax || kernel_.name != "phi") return;
    try {
      const auto nats = weights_divergence(*softmax.result, *own.result, now.scene().head);
      divergence_ = fmt::format("KL to softmax {}, {}", nats ? amount_text(*nats) + " nats" : "undefined",
                                now.scene().head.text());
    } catch (const UsageError&) {
      divergence_.clear(); // a Hydra form has other heads
    }
  }

  void draw() override {
    if (document().scene().model == nullptr)
      return empty_notice(graphics(), "The source of your own kernel, once a model is open.");
    take_offer();
    if (kernel_.name != "phi" && !typed_) return draw_invitation();
    draw_toolbar();
    const float room = ImGui::GetContentRegionAvail().y - below_height_ - ImGui::GetStyle().ItemSpacing.y;
    constexpr float least_height = 60;
    if (source_.draw(graphics(), {ImGui::GetContentRegionAvail().x, std::max(room, least_height)})) {
      const double clock = editor().clock();
      if (clock - last_key_ > step_pause) ++step_;
      last_key_ = clock;
      typed_ = waiting_ = true;
    }
    editor().typed_map = {name_, source_.text()};
    check_when_due();
    const float top = ImGui::GetCursorPosY();
    draw_facts();
    below_height_ = ImGui::GetCursorPosY() - top;
  }

private:
  struct Draft { // a source that is not the kernel of its layer
    KernelSpec kernel;
    MapText source;
  };

  // Shows the source of the document's kernel, unless that is what was typed here.
  void follow(const Document& now) {
    const std::string place = map_place(now);
    const KernelSpec kernel = selected_kernel(now);
    if (place == place_ && kernel == kernel_) return;
    const MapReport& report = editor().map_report;
    const bool own_change =
        place == place_ && report.number > seen_ && !report.result.problem && report.result.kernel == kernel;
    if (own_change) {
      kernel_ = kernel;
      name_ = source_of(kernel).name;
      typed_ = source_.text() != report.source.text;
      return;
    }
    if (place != place_ && typed_) drafts_[place_] = {kernel_, {name_, source_.text()}};
    place_ = place;
    kernel_ = kernel;
    facts_.reset();
    const auto draft = drafts_.find(place);
    typed_ = waiting_ = draft != drafts_.end() && draft->second.kernel == kernel;
    show(typed_ ? draft->second.source : first_map(now));
    if (draft != drafts_.end()) drafts_.erase(draft);
    ++step_;
    unknown_ = kernel.name == "phi" && !typed_;
  }

  void show(const MapText& source) {
    name_ = source.name;
    source_.set_text(source.text);
    problem_.reset();
  }

  void take_report() {
    const MapReport& report = editor().map_report;
    if (report.number == seen_) return;
    seen_ = report.number;
    if (report.place != place_ || report.source.text != source_.text()) return;
    source_.set_problem(report.result.problem);
    problem_ = report.result.problem;
    if (problem_) return;
    facts_ = report.result.facts;
    if (report.result.kernel == kernel_) typed_ = false;
  }

  void take_offer() {
    std::optional<MapText>& offered = editor().offered_map;
    if (!offered) return;
    show(*offered);
    offered.reset();
    typed_ = waiting_ = true;
    last_key_ = -source_pause; // at once
    ++step_;
  }

  void check_when_due() {
    if (unknown_ && !waiting_) {
      unknown_ = false;
      editor().emit(CheckMap{.name = name_, .text = source_.text()});
      editor().draw_now();
    }
    if (!waiting_) return;
    if (editor().clock() - last_key_ < source_pause) return editor().draw_at(last_key_ + source_pause);
    waiting_ = unknown_ = false;
    editor().emit(CheckMap{.name = name_,
                           .text = source_.text(),
                           .apply = true,
                           .everywhere = everywhere_ && alike_ > 1 && kernel_.name == "phi",
                           .gesture = fmt::format("map {} {}", place_, step_)});
    editor().draw_now();
  }

  void draw_invitation() {
    const Scene& scene = document().scene();
    wrapped_small_text(
        graphics(),
        fmt::format("Layer {} runs {}. Type a feature map, or a score, in its place: a few lines of "
                    "PyTorch, which run as they are typed.",
                    scene.layer, kernel_.label()));
    if (ImGui::Button(fmt::format("Type a map for layer {}###type", scene.layer).c_str()))
      offer_map(editor(), first_map(document()));
    if (ImGui::IsItemHovered())
      text_tooltip(
          "Run the kernel phi in this layer, starting from the source of its present kernel, if there "
          "is one");
    same_line_if_fits(list_width, theme::grid);
    draw_templates();
    same_line_if_fits(button_width(open_label), theme::grid);
    draw_open();
  }

  void draw_toolbar() {
    Toolbar toolbar;
    constexpr float name_width = 120;
    toolbar.add(name_width + 52, [this] {
      field_label("Name", 44);
      ImGui::SetNextItemWidth(name_width);
      std::string name = name_;
      ImGui::InputText("##name", &name, ImGuiInputTextFlags_CallbackCharFilter, only_name_letters);
      if (ImGui::IsItemHovered())
        text_tooltip("Name the kernel: it is shown as phi NAME and saved as NAME.py");
      if (ImGui::IsItemEdited() && !name.empty()) {
        name_ = name;
        typed_ = waiting_ = true;
        last_key_ = editor().clock();
      }
    });
    toolbar.add(list_width, [this] { draw_templates(); });
    toolbar.add(button_width(open_label), [this] { draw_open(); });
    toolbar.add(64, [this] {
      if (ImGui::Button("Save…")) editor().emit(ShowDialog{Dialog::save_map});
      if (ImGui::IsItemHovered())
        text_tooltip(
            fmt::format("Save the source as {}.py, which runs in PyTorch as it is.\nIn {} the command "
                        "line finds it by its name: --kernel phi:{}",
                        name_, maps_folder().string(), name_));
    });
    toolbar.add(112, [this] { draw_layers(); });
    toolbar.draw();
  }

  void draw_open() {
    if (ImGui::Button(open_label)) editor().emit(ShowDialog{Dialog::open_map});
    if (ImGui::IsItemHovered()) text_tooltip("Open the source of a kernel: a file of Python");
  }

  void draw_templates() {
    ImGui::SetNextItemWidth(list_width);
    const bool open = ImGui::BeginCombo("##templates", "Start from", ImGuiComboFlags_HeightLarge);
    if (!open && ImGui::IsItemHovered())
      text_tooltip("Begin with the source of a kernel that there is, or with one of your own");
    if (!open) {
      own_maps_.reset();
      return;
    }
    if (!own_maps_) own_maps_ = own_maps();
    ImGui::TextColored(theme::quiet, "Every fixed map as source");
    for (const std::string& name : bundled_maps())
      if (ImGui::Selectable(name.c_str())) offer_map(editor(), {name, bundled_map(name)});
    ImGui::TextColored(theme::quiet, "%s", maps_folder().string().c_str());
    for (const std::string& name : *own_maps_)
      if (ImGui::Selectable(fmt::format("{}##own", name).c_str()))
        open_map(editor(), maps_folder() / (name + ".py"));
    if (own_maps_->empty()) ImGui::TextColored(theme::faint, "none yet: Save… puts one there");
    ImGui::EndCombo();
  }

  void draw_layers() {
    const bool compiles = kernel_.name == "phi"; // else the layers run what was there before
    if (compiles && alike_ > 1) {
      check_box("##everywhere", &everywhere_);
      const bool hovered = ImGui::IsItemHovered();
      ImGui::SameLine(0, 4);
      ImGui::AlignTextToFramePadding();
      ImGui::TextColored(theme::quiet, "%s", fmt::format("all {} layers", alike_).c_str());
      if (hovered || ImGui::IsItemHovered())
        text_tooltip(fmt::format("Change all {} layers that run this map at once", alike_));
      if (alike_ < layers_) ImGui::SameLine(0, theme::grid);
    }
    if (alike_ == layers_) return;
    ImGui::BeginDisabled(!compiles);
    if (ImGui::Button("Every layer###every_layer")) set_all_kernels(editor(), kernel_);
    ImGui::EndDisabled();
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
      text_tooltip(compiles ? "Run this map in every layer of the model"
                            : "Run this map in every layer of the model, once it compiles");
  }

  void draw_facts() {
    if (problem_) {
      const std::string where = problem_->line > 0 ? fmt::format("line {}: ", problem_->line) : std::string();
      wrapped_small_text(graphics(), where + problem_->reason, theme::red);
      if (kernel_.name == "phi" && kernel_.parameters.contains("map"))
        wrapped_small_text(graphics(), "The last source without an error stays in force.");
      return;
    }
    if (!error_.empty()) wrapped_small_text(graphics(), error_, theme::red);
    if (!facts_) return wrapped_small_text(graphics(), "compiling…");
    std::string text = parameters_text(*facts_) + " · " + form_text(facts_->form);
    if (facts_->features > 0) text += fmt::format(" · d′ = {}", facts_->features);
    if (!divergence_.empty()) text += " · " + divergence_;
    wrapped_small_text(graphics(), text);
  }

  SourceEditor source_;
  std::string name_;
  std::string place_;      // whose source is shown
  KernelSpec kernel_;      // of that layer
  bool typed_ = false;     // the text is not the kernel's, or not yet
  bool waiting_ = false;   // for the pause after a key
  bool unknown_ = false;   // the facts of a kernel that was not typed here are to be found
  double last_key_ = 0;    // on the window's clock
  int step_ = 0;           // of undo
  std::uint64_t seen_ = 0; // number of the last report
  std::map<std::string, Draft> drafts_;
  std::optional<MapProblem> problem_;
  std::optional<MapFacts> facts_;
  std::string divergence_, error_;
  std::optional<std::vector<std::string>> own_maps_; // while their list is open
  bool everywhere_ = true;
  int alike_ = 0, layers_ = 0; // layers with this kernel, and all
  float below_height_ = 24;    // of the lines below the editor, in the last frame
};

} // namespace

std::unique_ptr<Panel> make_own_kernel_panel(PanelServices services) {
  return std::make_unique<OwnKernelPanel>(services);
}

} // namespace hydrascope::app
