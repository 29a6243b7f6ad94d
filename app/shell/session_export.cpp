#include "app/shell/session_export.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include <nlohmann/json.hpp>

#include "app/document/edits.h"
#include "app/document/session_edits.h"
#include "app/document/writing_edits.h"
#include "app/jobs/coordinator.h"
#include "app/panels/panel.h"
#include "app/shell/export_folder.h"
#include "app/views/provenance.h"
#include "engine/base/error.h"
#include "engine/base/json_text.h"
#include "engine/figures/figure.h"
#include "engine/run/quantities/focus_map.h"

namespace hydrascope::app {

namespace {

using nlohmann::ordered_json;

// Calls use(name, value) for each value of a style.
template <typename Style, typename Use>
void visit_style(Style& style, const Use& use) {
  use("width_mm", style.width_mm);
  use("font_points", style.font_points);
  use("dpi", style.dpi);
  use("transparent", style.transparent);
  use("dark", style.dark);
}

ordered_json style_json(const FigureStyle& style) {
  ordered_json json;
  visit_style(style, [&](const char* name, const auto& value) { json[name] = value; });
  return json;
}

// Adds the look that a view was drawn with to its provenance, if it is not the usual one.
std::string with_style(const std::string& provenance, const FigureStyle& style) {
  const ordered_json own = style_json(style);
  if (provenance.empty() || own == style_json({})) return provenance;
  ordered_json json = ordered_json::parse(provenance);
  json["style"] = own;
  return text_of_json(json);
}

// The usual look where the provenance has none, as before it was stored.
FigureStyle style_of(const std::string& provenance) {
  FigureStyle style;
  const ordered_json json = ordered_json::parse(provenance, nullptr, false);
  const ordered_json own = json.is_object() ? json.value("style", ordered_json()) : ordered_json();
  visit_style(style, [&]<typename Value>(const char* name, Value& value) {
    if (!own.is_object() || !own.contains(name)) return;
    const ordered_json& found = own[name];
    if (std::is_same_v<Value, bool> ? found.is_boolean() : found.is_number()) value = found.get<Value>();
  });
  return style;
}

// Waits for the worker's deliveries.
class Signal {
public:
  void raise() {
    const std::lock_guard lock(mutex_);
    raised_ = true;
    condition_.notify_one();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    condition_.wait_for(lock, std::chrono::seconds(1), [&] { return raised_; });
    raised_ = false;
  }

private:
  std::mutex mutex_;
  std::condition_variable condition_;
  bool raised_ = false;
};

// A session with its panels and results, which are prepared and never drawn.
class OffscreenSession {
public:
  // A session file, or a figure that holds one.
  explicit OffscreenSession(const std::filesystem::path& file)
      : file_(file), worker_([this] { signal_.raise(); }), coordinator_(worker_) {
    std::vector<std::string> problems;
    ExecutionOptions execution;
    execution.threads = usual_threads();
    editor_.set_initial(new_document(execution, problems));
    open_path(editor_, file);
    if (const auto& waiting = editor_.incomplete_session)
      throw Error(file.string(), "lacks " + missing_text(*waiting),
                  "open it in the window, which lets you locate what is missing");
    if (editor_.document().session == 0) {
      const auto& messages = editor_.messages();
      throw Error(file.string(), messages.empty() ? "is no session" : messages.back().text);
    }
    for (const Command& command : editor_.take_commands())
      if (const auto* restore = std::get_if<RestoreArrangement>(&command))
        arrangement_ = restore->arrangement;
    panels_ = make_panels({&editor_, nullptr});
  }

  const Editor& editor() const { return editor_; }
  const std::string& arrangement() const { return arrangement_; }
  const std::vector<std::unique_ptr<Panel>>& panels() const { return panels_; }
  const std::string& error() const { return coordinator_.results(Side::a).error; }

  // What the panel shows once it has what it requests; nullopt: nothing. Results of other panels are dropped:
  // a run for this one alone knows the target and the query, and its metadata name what this panel used, and
  // the look that it will be drawn with.
  std::optional<Figure> figure_of(Panel& panel, const FigureStyle& style) {
    coordinator_.drop_results();
    const std::optional<Document> followed = followed_document(editor_);
    const Document& document = followed ? *followed : editor_.document();
    Snapshot snapshot;
    snapshot.document = &document;
    snapshot.results = {&coordinator_.results(Side::a), &coordinator_.results(Side::b)};
    snapshot.times = &coordinator_.times();
    const auto start = std::chrono::steady_clock::now();
    constexpr std::chrono::minutes patience{60};
    for (int settled = 0; settled < 2;) { // once more after prepare(), which may request more
      editor_.set_clock(
          std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count());
      std::vector<std::string> errors;
      if (coordinator_.drain(errors))
        for (const Side side : {Side::a, Side::b})
          if (const RunResult* run = coordinator_.results(side).any()) check_model_hash(editor_, *run);
      Requested requested;
      requested.first.add(FocusKey{document.scene().layer}); // with it come target and query
      panel.request(document, requested);
      requested = of_model(document, std::move(requested));
      coordinator_.update(document, requested, editor_.clock());
      snapshot.stamp = ++stamp_;
      panel.prepare(snapshot);
      settled = coordinator_.settled() ? settled + 1 : 0;
      if (settled > 0) continue;
      signal_.wait();
      if (std::chrono::steady_clock::now() - start > patience)
        throw Error(file_.string(), "the runs of " + panel.title() + " did not finish within an hour",
                    "close panels that take long, and save it again");
    }
    std::optional<Figure> figure = panel.figure();
    if (!figure || figure->panels.empty()) return std::nullopt;
    figure = with_session(std::move(*figure), panel.id(), editor_, snapshot.present(), *hashes_);
    figure->provenance = with_style(figure->provenance, style);
    return figure;
  }

private:
  std::filesystem::path file_;
  Signal signal_; // outlives the worker that raises it
  Editor editor_;
  Worker worker_;
  Coordinator coordinator_;
  std::shared_ptr<FileHashes> hashes_ = std::make_shared<FileHashes>();
  std::string arrangement_; // of the panels in the window, as Dear ImGui writes it
  std::vector<std::unique_ptr<Panel>> panels_;
  std::uint64_t stamp_ = 0;
};

} // namespace

std::vector<std::string> export_session(const std::filesystem::path& session_file,
                                        const std::filesystem::path& folder, const FigureStyle& style) {
  check_export_folder(folder);
  OffscreenSession session(session_file);
  ExportFolder content = new_export(session.editor(), session.arrangement());
  for (const auto& panel : session.panels()) {
    if (!panel->exports() || !session.editor().panel_open(panel->id())) continue;
    if (std::optional<Figure> figure = session.figure_of(*panel, style))
      content.panels.push_back({panel->id(), panel->title(), std::move(*figure)});
    else
      content.empty.push_back(panel->title());
  }
  if (content.panels.empty())
    throw Error(session_file.string(),
                session.error().empty() ? "no open panel shows anything" : session.error());
  write_export_folder(content, folder, style);
  return content.empty;
}

void reproduce_view(const std::filesystem::path& figure, const std::filesystem::path& output) {
  const std::string provenance = read_provenance(figure), id = view_of(provenance).panel;
  const FigureStyle style = style_of(provenance);
  OffscreenSession session(figure);
  for (const auto& panel : session.panels()) {
    if (panel->id() != id) continue;
    const auto drawn = session.figure_of(*panel, style);
    if (!drawn)
      throw Error(figure.string(), session.error().empty() ? "its panel shows nothing" : session.error());
    return write_figure(*drawn, output, style);
  }
  throw Error(figure.string(), "was made by a panel that does not exist: " + id);
}

} // namespace hydrascope::app
