// A session saved, the program started anew, the session opened: the same document and the same pictures.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "app/document/edits.h"
#include "app/document/session.h"
#include "app/shell/session_export.h"
#include "app/shell/window.h"
#include "engine/base/paths.h"
#include "tests/support/checkout.h"
#include "tests/window/harness.h"
#include "tests/window/screenshot.h"

namespace hydrascope::app::window_tests {

namespace {

namespace fs = std::filesystem;

// What the program's loop draws until there is nothing left to do. A changed map fades in.
void settle_alone(Application& application) {
  for (int i = 0; i < 5; ++i) application.frame();
  while (!application.settled() || application.saving()) {
    application.frame();
    application.wait(0.02);
  }
  for (int i = 0; i < 20; ++i) application.frame();
}

void set_up(Application& application) {
  Editor& editor = application.editor();
  change_view(editor, "B", [](ViewOptions& view) { view.shown = Shown::b; });
  apply_preset(editor, Strategy::back, 1, {.name = "hydra-cosine", .parameters = {}});
  application.run("view.layout.compare");
  select_cell(editor, 11, 3);
  select_query(editor, 100);
  hide_tokens(editor, 60, 4, true);
  mute_head(editor, {9, 1}, true);
  settle_alone(application);
  editor.emit(BringToFront{"kl"}); // was behind another
  settle_alone(application);
}

struct Seen {
  Image image;
  std::map<std::string, std::array<int, 4>> places; // of the panels in front
  std::string document;
};

Seen look(Application& application) {
  settle_alone(application);
  Editor& editor = application.editor();
  dismiss_messages(editor);
  for (int i = 0; i < 5; ++i) {
    ImGui::GetIO().AddMousePosEvent(-1, -1); // over nothing
    application.frame();
  }
  Seen seen{application.read_frame(), {}, document_json(application.editor().document()).dump()};
  for (const PanelName& panel : application.panels()) {
    if (const auto place = application.panel_rectangle(panel.id)) seen.places[panel.id] = *place;
  }
  return seen;
}

// Letters lie in the font's texture in the order of their first use, which depends on what was drawn while a
// run was under way, and are sampled between its texels; the last bits of a number depend on what else its
// run computed. So a few pixels at letters' edges may differ, and by little, and any pixel by a shade. A
// digit or a cell of a map that is another one differs by more.
bool alike(const Image& left, const Image& right) {
  constexpr int most_light = 80, shade = 2;
  std::size_t differing = 0;
  for (std::size_t i = 0; i < left.rgb.size(); i += 3) {
    int most = 0;
    for (std::size_t channel = i; channel < i + 3; ++channel)
      most = std::max(most, std::abs(int{left.rgb[channel]} - int{right.rgb[channel]}));
    if (most > most_light) return false;
    differing += most > shade ? 1 : 0;
  }
  return differing * 1000 <= left.rgb.size() / 3;
}

// Empty if both show the same; otherwise what differs, and both pictures are kept beside the screenshots.
std::string difference(const Seen& before, const Seen& after) {
  if (before.document != after.document)
    return "another document:\n" + before.document + "\n" + after.document;
  if (before.places != after.places) return "the panels stand elsewhere";
  for (const auto& [panel, place] : before.places) {
    if (alike(cut_out(before.image, place), cut_out(after.image, place))) continue;
    const fs::path kept = test::program().parent_path() / "window_screenshots";
    fs::create_directories(kept);
    write_png(kept / "restart-before.png", before.image);
    write_png(kept / "restart-after.png", after.image);
    return "another picture in the panel " + panel;
  }
  if (before.places.size() < 5) return fmt::format("only {} panels are seen", before.places.size());
  return {};
}

// A program of its own, so that no control stands as other tests have left it.
std::unique_ptr<Application> start(const WindowOptions& options) {
  auto application = std::make_unique<Application>(options);
  application->editor().change_settings([](Settings& settings) {
    settings.scale = 1;
    settings.tour_seen = true;
  });
  application->overlays() = {};
  return application;
}

Seen save_and_look(const WindowOptions& options, const fs::path& file) {
  const auto first = start(options);
  set_up(*first);
  first->editor().emit(SaveSession{file});
  return look(*first);
}

std::string check_session(WindowOptions options, const fs::path& file) {
  options.settings_file = scratch_file("restart-first.json");
  const Seen before = save_and_look(options, file);
  if (!fs::exists(file)) return "the session was not saved";
  options.settings_file = scratch_file("restart-second.json"); // one that knows nothing of the first
  options.files = {file};
  auto opened = start(options);
  const Seen after = look(*opened);
  if (const std::string wrong = difference(before, after); !wrong.empty()) return "opened again: " + wrong;
  opened.reset();

  // Started without anything it goes on where it was left.
  options.files.clear();
  Application last(options);
  const Seen left = look(last);
  if (const std::string wrong = difference(after, left); !wrong.empty()) return "started again: " + wrong;
  if (last.editor().session().file != file) return "started again: the session's file is forgotten";
  return {};
}

// Two figures' numbers, row by row; the last digits of a number depend on what else its run was asked for.
bool same_numbers(const std::string& left, const std::string& right) {
  std::istringstream first(left), second(right);
  std::string one, other;
  while (std::getline(first, one)) {
    if (!std::getline(second, other)) return false;
    const auto comma = one.rfind(','), other_comma = other.rfind(',');
    if (one == other) continue;
    if (one.substr(0, comma) != other.substr(0, other_comma)) return false;
    const double value = std::strtod(one.c_str() + comma + 1, nullptr),
                 again = std::strtod(other.c_str() + other_comma + 1, nullptr);
    if (std::abs(value - again) > 1e-4 * std::max(1.0, std::abs(value))) return false;
  }
  return !std::getline(second, other);
}

// The session's figures without a window, and some of them drawn again from their own metadata.
std::string check_figures(const fs::path& file) {
  const fs::path folder = scratch_file("figures");
  export_session(file, folder);
  for (const char* const name : {"focus.csv", "kl.csv", "weights.csv", "entropy.csv"}) {
    if (!fs::exists(folder / name)) return fmt::format("exported without a window: {} is missing", name);
    const fs::path again = scratch_file(name);
    reproduce_view(folder / name, again);
    if (!same_numbers(read_text_file(folder / name), read_text_file(again)))
      return fmt::format("{} drawn again is another", name);
  }
  return {};
}

// Without a session to reopen the panels that were in front are in front again.
std::string check_front_panels(WindowOptions options) {
  options.settings_file = scratch_file("restart-front.json");
  std::set<std::string> before;
  {
    const auto first = start(options);
    first->editor().change_settings([](Settings& settings) { settings.reopen_last = false; });
    first->editor().emit(BringToFront{"kl"});
    settle_alone(*first);
    before = first->editor().status().panels_in_front;
  }
  Application again(options);
  settle_alone(again);
  if (!before.contains("kl") || again.editor().status().panels_in_front != before)
    return fmt::format("other panels are in front: {} and not {}",
                       fmt::join(again.editor().status().panels_in_front, ", "), fmt::join(before, ", "));
  return {};
}

// A new user sees the start page, until it is closed; not over what the command line opens.
std::string check_start_page(WindowOptions options) {
  options.settings_file = scratch_file("restart-page.json");
  const auto seen = [&] { return Application(options).overlays()[Overlay::gallery]; };
  options.files = {example("coffee")};
  if (seen()) return "the start page covers the picture of the command line";
  options.files.clear();
  {
    Application first(options);
    if (!first.overlays()[Overlay::gallery]) return "a new user does not see the start page";
    settle_alone(first);
    first.overlays()[Overlay::gallery] = false;
    for (int i = 0; i < 3; ++i) first.frame();
  }
  if (!seen()) return "the start page does not appear again, although no button, key or lesson closed it";
  return {};
}

} // namespace

std::string check_restart(const WindowOptions& options) {
  if (std::string wrong = check_front_panels(options); !wrong.empty()) return wrong;
  const fs::path file = scratch_file("restart.json");
  if (std::string wrong = check_session(options, file); !wrong.empty()) return wrong;
  if (std::string wrong = check_figures(file); !wrong.empty()) return wrong;
  return check_start_page(options);
}

} // namespace hydrascope::app::window_tests
