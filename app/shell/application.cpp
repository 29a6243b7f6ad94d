#include <glad/gl.h>

#include "app/shell/application.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include <imgui.h>
#include <imgui_impl_opengl3.h>

#include "app/actions/tour.h"
#include "app/document/edits.h"
#include "app/document/session_edits.h"
#include "app/document/writing_edits.h"
#include "app/shell/apply_command.h"
#include "app/shell/window.h"
#include "app/ui/draw_data.h"
#include "app/ui/theme.h"
#include "app/views/provenance.h"
#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/base/process.h"
#include "engine/run/quantities/focus_map.h"

namespace hydrascope::app {

namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::int64_t shown_tokens_count(const SideResults& results) {
  return results.any() == nullptr ? 0 : std::ssize(results.any()->tokens);
}

std::unique_ptr<Display> open_display(const WindowOptions& options) {
  if (!options.hidden) return open_window_display(options.width, options.height, true);
  const double scale = options.scale.value_or(1);
  try {
    return open_offscreen_display(static_cast<int>(std::lround(options.width * scale)),
                                  static_cast<int>(std::lround(options.height * scale)));
  } catch (const Error&) {
    // Where OpenGL works through X only: an invisible window.
    return open_window_display(options.width, options.height, false);
  }
}

} // namespace

Application::Gui::Gui() {
  IMGUI_CHECKVERSION();
  context_ = ImGui::CreateContext();
  ImGuiIO& io = ImGui::GetIO();
  io.ConfigFlags |= ImGuiConfigFlags_DockingEnable;
  io.ConfigWindowsMoveFromTitleBarOnly = true;
  io.IniFilename = nullptr; // the arrangement is stored in the settings
}

Application::Gui::~Gui() { ImGui::DestroyContext(context_); }

Application::Application(const WindowOptions& options) { start(options); }

Application::~Application() {
  jobs_->shut_down(*editor_);
  exports_->shut_down();
  everything_->shut_down();
  sessions_->shut_down(*editor_);
  store_arrangement();
  settings_file_->shut_down(*editor_);
}

void Application::start(const WindowOptions& options) {
  editor_ = std::make_unique<Editor>();
  show_figure_ = options.show_figure;
  editor_->set_clock(seconds_now());
  std::filesystem::path file = options.settings_file;
  if (file.empty() && !options.hidden) file = config_folder() / "settings.json";
  settings_file_ = std::make_unique<SettingsFile>(file, *editor_);
  if (!settings_file_->exists()) {
    editor_->change_settings([&](Settings& settings) {
      settings.scale = options.scale;
      settings.theme = options.theme;
    });
  }
  const auto models = make_model_store(); // shared by the worker and all jobs
  preload_ = std::make_unique<Preload>(models);
  const double begin = seconds_now();
  display_ = open_display(options);
  const double opened = seconds_now();
  const theme::Fonts fonts = theme::load_fonts();
  graphics_ = std::make_unique<Graphics>(fonts);
  start_times_ = {.display_ms = 1e3 * (opened - begin), .graphics_ms = 1e3 * (seconds_now() - opened)};
  exports_ = std::make_unique<Exports>(*display_);
  everything_ = std::make_unique<EverythingExport>(*display_);
  sessions_ = std::make_unique<SessionStore>(
      settings_file_->exists() ? file.parent_path() : std::filesystem::path(), *display_);
  if (!fonts.note.empty())
    editor_->say(Severity::note, fonts.note + "; install fonts-inter and fonts-jetbrains-mono");
  const auto wake = [display = display_.get()] { display->wake(); };
  worker_ = std::make_unique<Worker>(wake, std::make_unique<Runner>(default_cache_bytes, models));
  clipboard_ = std::make_unique<Clipboard>(display_->window_system(), wake);
  jobs_ = std::make_unique<Jobs>(wake, models);
  if (!options.socket.empty()) {
    listener_ = std::make_unique<Listener>(
        Listener::Settings{.socket = options.socket, .folder = cache_folder() / "received"}, wake);
    editor_->say(Severity::note, "Waits for captures: hydrascope_show in tools/capture.py sends them");
  }
  editor_->training_form = parse_training(editor_->settings().training);
  coordinator_ = std::make_unique<Coordinator>(*worker_);
  panels_ = std::make_unique<PanelWindows>(PanelServices{editor_.get(), graphics_.get()});
  start_document(*editor_, *sessions_, options);
  preload_->load_model(editor_->document());
  for (const std::string& problem : gallery().problems) editor_->say(Severity::error, problem);
  // Not over what the command line opens.
  overlays_[Overlay::gallery] = settings_file_->exists() && !editor_->settings().tour_seen &&
                                options.files.empty() && options.text.empty();
  const bool knows_it = editor_->settings().tour_seen || editor_->settings().hint_seen;
  if (settings_file_->exists() && !knows_it && !overlays_[Overlay::gallery]) {
    editor_->say(Severity::note,
                 "New here? Help › Guided tour explains the window, Help › Gallery has lessons.");
    editor_->change_settings([](Settings& settings) { settings.hint_seen = true; });
  }
  apply_settings();
  report_status();
}

bool Application::running() const { return !quit_ && !display_->close_requested(); }

bool Application::settled() const {
  return coordinator_->settled() && !coordinator_->freeing_memory() && !jobs_->maps.running() &&
         !jobs_->writing.running() && redraw_ == 0;
}

bool Application::wait(double seconds) {
  // Draws thirty frames per second during runs, writing and animations, otherwise only on events.
  const bool model_runs = coordinator_->computing() || editor_->writing.running;
  const bool moving = model_runs || exports_->busy() || everything_->busy() || dialogs_.polls() ||
                      editor_->frame_requests().soon;
  constexpr double blink = 0.3; // of the cursor in a text field
  double next = editor_->frame_requests().at;
  if (ImGui::GetIO().WantTextInput) next = std::min(next, drawn_at_ + blink);
  if (moving) next = std::min(next, drawn_at_ + 1.0 / 30);
  // What changed after the last frame began, or between frames.
  const auto changed = [this] {
    return editor_->frame_requests().now || !editor_->commands().empty() ||
           editor_->revision() != drawn_revision_;
  };
  // While the model runs or writes, thirty frames per second are enough: more would slow it.
  if ((redraw_ > 0 && !model_runs) || changed()) next = 0;
  const double now = seconds_now();
  double until = next;
  constexpr double long_rest = 30;
  if (moving) give_back_at_ = now + long_rest;
  if (!moving && redraw_ == 0) { // idle: this may take some time
    if (std::exchange(ImGui::GetIO().WantSaveIniSettings, false)) {
      store_arrangement();
      sessions_->arrangement_changed(now);
    }
    settings_file_->save(*editor_);
    sessions_->update_copy(*editor_, now);
    if (now >= give_back_at_) {
      release_freed_memory();
      give_back_at_ = std::numeric_limits<double>::infinity();
    }
    if (changed()) next = 0;
    until = std::min({next, sessions_->due(), give_back_at_});
  }
  const bool event = display_->wait(std::clamp(until - now, 0.0, seconds));
  if (event) redraw_ = std::max(redraw_, 3);
  // An event may have been handled in the last moment, which display_->wait() does not report.
  return event || seconds_now() >= until;
}

void Application::store_arrangement() {
  if (!settings_file_->exists()) return;
  const Document& document = editor_->document();
  editor_->change_settings([&](Settings& settings) {
    settings.last = SavedLayout{.name = document.layout,
                                .arrangement = present_arrangement(),
                                .closed = {document.closed_panels.begin(), document.closed_panels.end()}};
  });
}

void Application::apply_settings() {
  const Settings& settings = editor_->settings();
  const double scale =
      settings.scale.value_or(static_cast<double>(display_->content_scale())); // may change with the monitor
  scale_ = std::clamp(scale, least_scale, greatest_scale);
  if (applied_ == settings) return;
  const ThemeChoice choice =
      settings.theme == ThemeChoice::follow ? desktop_theme().value_or(ThemeChoice::dark) : settings.theme;
  theme::apply(theme_, choice == ThemeChoice::light ? theme::Mode::light : theme::Mode::dark);
  graphics_->set_fade(settings.fade);
  actions_ = make_actions(panels(), settings, devices_.get());
  applied_ = settings;
  redraw_ = std::max(redraw_, 3);
}

void Application::update_state() {
  editor_->set_clock(seconds_now());
  editor_->clear_frame_requests();
  const bool applied = apply_commands({.editor = *editor_,
                                       .runs = *coordinator_,
                                       .jobs = *jobs_,
                                       .exports = *exports_,
                                       .everything = *everything_,
                                       .clipboard = *clipboard_,
                                       .sessions = *sessions_,
                                       .dialogs = dialogs_,
                                       .arrangement = panels_->arrangement(),
                                       .overlays = overlays_,
                                       .quit = quit_,
                                       .figure_of = [this](const std::string& id) { return figure_of(id); },
                                       .show_figure = show_figure_});
  apply_settings();
  for (const auto& path : display_->take_dropped()) open_path(*editor_, path);
  sessions_->update(*editor_);
  clipboard_->poll(*editor_);
  if (listener_)
    if (const auto received = listener_->take()) show_received(*editor_, *received);
  const bool known = take_devices();
  // Jobs wait for the devices, too: list_devices() precedes every backward pass.
  const bool found = jobs_->update(*editor_, coordinator_->computing() || !devices_);
  const bool delivered = take_results();
  followed_ = followed_document(*editor_);
  const std::optional<Requested> requested = panels_->requested(shown_document());
  if (requested)
    coordinator_->update(shown_document(), *requested, editor_->clock(),
                         followed_ ? &editor_->document() : nullptr);
  const bool changed = applied || delivered || found || known || editor_->revision() != drawn_revision_;
  drawn_revision_ = editor_->revision();
  update_snapshot(requested.value_or(Requested{}));
  report_status();
  if (changed) ++snapshot_.stamp;
  if (changed) redraw_ = std::max(redraw_, 2);
}

// Whether they have just been found.
bool Application::take_devices() {
  if (devices_) return false;
  devices_ = worker_->devices();
  if (!devices_) return false;
  actions_ = make_actions(panels(), editor_->settings(), devices_.get());
  return true;
}

bool Application::take_results() {
  coordinator_->follow(jobs_->training.live_file(), jobs_->training.edition());
  std::vector<std::string> errors;
  const bool delivered = coordinator_->drain(errors);
  for (std::string& error : errors) editor_->say(Severity::error, std::move(error));
  const RunResult* shown = coordinator_->results(edited_side(editor_->document().view)).any();
  if (delivered && shown != nullptr) {
    const std::string cut = cut_note(*shown);
    if (std::exchange(cut_note_, cut) != cut && !cut.empty())
      editor_->say(Severity::note, cut + ": the model takes no more, and the rest has no effect", "cut text");
  }
  for (const Side side : {Side::a, Side::b}) {
    if (const RunResult* run = coordinator_->results(side).any(); delivered && run != nullptr)
      check_model_hash(*editor_, *run);
  }
  return delivered;
}

void Application::update_snapshot(const Requested& requested) {
  snapshot_.document = &shown_document();
  snapshot_.results = pair_.choose(shown_document().view.shown, coordinator_->results(Side::a),
                                   coordinator_->results(Side::b));
  snapshot_.computing = coordinator_->computing();
  snapshot_.progress = coordinator_->progress();
  snapshot_.computing_seconds = snapshot_.computing ? editor_->clock() - coordinator_->computing_since() : 0;
  snapshot_.times = &coordinator_->times();
  snapshot_.expected_bytes = expected_bytes(shown_document(), requested);
  snapshot_.writing = everything_->busy() ? everything_->state() : exports_->writing();
  snapshot_.writing_seconds = everything_->busy() ? 1 : exports_->seconds(editor_->clock());
}

void Application::report_status() {
  editor_->set_status(
      {.computing = coordinator_->computing() || exports_->busy() || everything_->busy() ||
                    editor_->scaling.running || editor_->folder.running || editor_->writing.running ||
                    jobs_->fetch.running(),
       .timing = coordinator_->timing(),
       .progress = coordinator_->progress(),
       .stopped = coordinator_->stopped(),
       .scale = scale_,
       .written_figures = exports_->written() + everything_->folders_written(),
       .focus_map_seen = overlays_.tour && focus_map_seen() ? editor_->revision() : 0,
       .tokens = shown_tokens_count(coordinator_->results(edited_side(editor_->document().view))),
       .panels_in_front = panels_->in_front(),
       .has_last_session = sessions_->has_last(),
       .no_picture_clipboard = clipboard_->picture_obstacle(),
       .devices = devices_});
}

bool Application::focus_map_seen() const {
  const Document& document = editor_->document();
  const SideResults& results = coordinator_->results(edited_side(document.view));
  if (results.stale || !panels_->in_front().contains("focus")) return false;
  if (!document.view.maps.contains(MapKind::focus)) return results.any() != nullptr;
  const auto focus = find(results, FocusKey{document.scene().layer});
  const auto positive = [](float contribution) { return contribution > 0; };
  return focus && !focus.result->zero_gradient &&
         std::ranges::any_of(focus.result->contributions.values, positive);
}

FrameTime Application::frame(const std::function<void()>& before_swap) {
  const double begin = seconds_now();
  update_state();
  panels_->before_frame();
  display_->begin_frame(static_cast<float>(scale_));
  ImGui::NewFrame();
  draw_frame();
  ImGui::Render();
  snap_text_rows(*ImGui::GetDrawData());
  const std::vector<ScreenBox> changed = damage_.update(*ImGui::GetDrawData());
  const double handed = seconds_now();
  draw_inside(changed);
  Texture::delete_unused();
  if (before_swap) before_swap();
  if (const bool exposed = display_->take_exposed(); exposed || !changed.empty()) display_->swap();
  const double end = seconds_now();
  drawn_at_ = end;
  if (redraw_ > 0) --redraw_;
  moved_ = graphics_->take_moving();
  if (moved_) redraw_ = std::max(redraw_, 1);
  return {(handed - begin) * 1e3, (end - begin) * 1e3};
}

Application::LastTextures::~LastTextures() {
  Texture::delete_unused();
  Texture::delete_unused();
}

void Application::draw_whole() {
  const ImVec2 size = ImGui::GetDrawData()->DisplaySize;
  draw_inside(std::array{ScreenBox{{0, 0}, size}});
}

void Application::draw_inside(std::span<const ScreenBox> boxes) {
  display_->bind();
  glViewport(0, 0, display_->width(), display_->height());
  draw_boxes(*ImGui::GetDrawData(), boxes, display_->height(), theme::ground);
}

void Application::draw_frame() {
  ImGui::PushFont(graphics_->fonts().regular, theme::size_text);
  const bool with_held_key = ImGui::GetIO().KeyCtrl || ImGui::GetIO().KeyAlt;
  if (!overlays_[Overlay::palette] && !shortcuts_dialog_.capturing() && !dialogs_.own().shown() &&
      (!gallery_.has_keys() || with_held_key))
    run_shortcuts(actions_, *editor_);
  draw_menu_bar(actions_, *editor_, *graphics_);
  draw_status_bar(snapshot_, actions_, *editor_, *graphics_);
  if (panels_->draw(snapshot_, *coordinator_)) redraw_ = std::max(redraw_, 5);
  lesson_card_.draw(gallery().entries, *editor_, *graphics_, overlays_);
  gallery_.draw(gallery().entries, *editor_, *graphics_, overlays_);
  palette_.draw(actions_, *editor_, *graphics_, overlays_[Overlay::palette]);
  draw_help_sheet(actions_, *graphics_, overlays_[Overlay::help]);
  shortcuts_dialog_.draw(actions_, *editor_, *graphics_, overlays_[Overlay::shortcuts]);
  layout_dialog_.draw(*editor_, *graphics_, overlays_[Overlay::save_layout]);
  get_model_dialog_.draw(*editor_, *graphics_, jobs_->fetch, overlays_[Overlay::get_model]);
  about_.draw(snapshot_.shown().any(), devices_.get(), *graphics_, overlays_[Overlay::about]);
  draw_session_dialog(*editor_, *graphics_);
  draw_tour(actions_, *editor_, *graphics_, overlays_.tour);
  dialogs_.poll(*editor_, *graphics_);
  draw_dim();
  draw_messages(*editor_, *graphics_);
  draw_caption(overlays_.caption, *graphics_);
  ImGui::PopFont();
  const FigureOf figure = [this](const std::string& id) { return figure_of(id); };
  exports_->update(*editor_, coordinator_->settled() && !everything_->busy(), figure);
  everything_->update(*editor_, panels(), coordinator_->settled(), figure);
  if (windows_.changed()) redraw_ = std::max(redraw_, 3);
  // A source editor is no item of Dear ImGui.
  if (!ImGui::IsAnyItemActive() && !ImGui::GetIO().WantTextInput) editor_->end_gesture();
  const ImGuiIO& io = ImGui::GetIO();
  const bool input = io.MouseDelta.x != 0 || io.MouseDelta.y != 0 || io.MouseWheel != 0 ||
                     io.InputQueueCharacters.Size > 0 || ImGui::IsAnyMouseDown();
  if (input) redraw_ = std::max(redraw_, 3);
}

std::optional<Figure> Application::figure_of(const std::string& id) const {
  std::optional<Figure> figure = panels_->figure(id, snapshot_);
  if (!figure) return std::nullopt;
  return with_session(std::move(*figure), id, *editor_, snapshot_.present(), *hashes_);
}

Image Application::read_frame() {
  Image image{display_->width(), display_->height(), {}};
  const auto width = static_cast<std::size_t>(image.width), height = static_cast<std::size_t>(image.height);
  std::vector<std::uint8_t> rows(width * height * 3);
  display_->bind();
  glPixelStorei(GL_PACK_ALIGNMENT, 1);
  glReadPixels(0, 0, image.width, image.height, GL_RGB, GL_UNSIGNED_BYTE, rows.data());
  image.rgb.resize(rows.size());
  for (std::size_t row = 0; row < height; ++row) { // OpenGL's first row is at the bottom
    std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>((height - 1 - row) * width * 3), width * 3,
                image.rgb.begin() + static_cast<std::ptrdiff_t>(row * width * 3));
  }
  return image;
}

} // namespace hydrascope::app
