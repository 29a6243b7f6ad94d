#include "app/shell/window.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "app/document/edits.h"
#include "app/document/session_edits.h"
#include "app/shell/application.h"
#include "engine/base/animation.h"
#include "engine/base/error.h"
#include "engine/base/image.h"
#include "engine/base/paths.h"
#include "engine/base/text.h"

namespace hydrascope::app {

namespace {

WindowOptions off_screen(WindowOptions options) {
  options.hidden = true;
  return options;
}

void check_complete(Application& application) {
  if (const auto& session = application.editor().incomplete_session)
    throw Error(session->file.string(), "lacks " + missing_text(*session),
                "open it in the window, which lets you locate what is missing");
}

// Draws by `frame` until every panel has its results. Throws Error after five minutes.
void settle(Application& application, const std::string& subject, const std::function<void()>& frame) {
  const auto draw = [&](int count) {
    for (int i = 0; i < count; ++i) frame();
  };
  draw(3); // requests the results
  const auto start = std::chrono::steady_clock::now();
  while (!application.settled()) {
    if (std::chrono::steady_clock::now() - start > std::chrono::minutes(5))
      throw Error(subject, "the model did not finish within five minutes", "choose a smaller model or input");
    application.wait(0.02);
    frame();
  }
  draw(3);
}

void run_named(Application& application, const std::string& name, const std::string& subject) {
  if (find_action(application.actions(), name) == nullptr) {
    std::vector<std::string> names;
    for (const Action& action : application.actions()) names.push_back(action.id);
    throw UsageError(subject, "there is no action " + name,
                     "did you mean " + nearest_name(name, names) + "?");
  }
  if (!application.run(name)) throw Error(subject + " " + name, application.editor().messages().back().text);
}

// Throws Error if the window shows no result.
void check_shown(const Application& application, Editor& editor, const std::string& subject) {
  const SideResults& results = application.coordinator().results(Side::a);
  if (!results.error.empty()) throw Error(subject, results.error);
  if (results.any() != nullptr) return;
  const auto& messages = editor.messages();
  throw Error(subject, messages.empty() ? "there is nothing to show" : messages.back().text);
}

// ---- Scripts ----

// A line of a script: a verb and what follows it.
struct ScriptLine {
  int number = 0; // in the file, from 1
  std::string verb, rest;
};

constexpr int frame_ms = 40; // of pointer and keys, which move in frames of one length
constexpr int key_ms = 90;

// Performs a script's lines in the window and adds each frame to the animation.
class ScriptPlayer {
public:
  ScriptPlayer(const WindowOptions& options, std::string file)
      : application_(off_screen(options)),
        file_(std::move(file)),
        animation_(application_.display().width(), application_.display().height()) {
    ImGui::GetIO().MouseDrawCursor = true;
    check_complete(application_);
    settle(application_, "--record", [this] { application_.frame(); }); // starting is not part of it
    check_shown(application_, application_.editor(), "--record");
  }

  void perform(const ScriptLine& line);
  // The steps.
  void run(const ScriptLine& line) { run_named(application_, line.rest, place_of(line)); }
  void open(const ScriptLine& line) {
    if (!open_path(application_.editor(), line.rest))
      throw Error(place_of(line), application_.editor().messages().back().text);
  }
  void press(const ScriptLine& line);
  void type(const ScriptLine& line);
  void point(const ScriptLine& line);
  void click(const ScriptLine& line);
  void caption(const ScriptLine& line) { application_.overlays().caption = line.rest; }
  void hold(const ScriptLine& line);

  std::string finish() { return animation_.finish(); }

private:
  using Clock = std::chrono::steady_clock;

  // Draws a frame that is shown for so long.
  void show(int milliseconds) {
    application_.frame();
    animation_.add(application_.read_frame(), milliseconds);
  }

  // Shows what happens until the results are there, at the pace at which it happens.
  void settle_shown() {
    auto before = Clock::now();
    settle(application_, "--record", [&] {
      application_.frame();
      const auto taken = std::chrono::round<std::chrono::milliseconds>(Clock::now() - before);
      animation_.add(application_.read_frame(), std::max(1, static_cast<int>(taken.count())));
      before = Clock::now(); // encoding takes no time in the recording
    });
  }

  std::string place_of(const ScriptLine& line) const { return fmt::format("{}:{}", file_, line.number); }
  UsageError wrong(const ScriptLine& line, std::string_view reason, std::string_view remedy) const {
    return {place_of(line), reason, remedy};
  }

  Application application_;
  std::string file_;
  Animation animation_;
  ImVec2 pointer_{0, 0}; // points
};

void ScriptPlayer::press(const ScriptLine& line) {
  const ImGuiKeyChord chord = chord_of(line.rest);
  if (chord == 0) throw wrong(line, "there is no key " + line.rest, "as in: press Ctrl+P");
  ImGuiIO& io = ImGui::GetIO();
  const auto send = [&](bool down) {
    for (const ImGuiKey modifier : {ImGuiMod_Ctrl, ImGuiMod_Shift, ImGuiMod_Alt, ImGuiMod_Super})
      if ((chord & modifier) != 0) io.AddKeyEvent(modifier, down);
    io.AddKeyEvent(static_cast<ImGuiKey>(chord & ~ImGuiMod_Mask_), down);
  };
  send(true);
  show(frame_ms);
  send(false);
  show(frame_ms);
}

void ScriptPlayer::type(const ScriptLine& line) {
  const std::string& text = line.rest;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    ImGui::GetIO().AddInputCharacter(point.value);
    show(key_ms);
    at += point.length;
  }
}

void ScriptPlayer::point(const ScriptLine& line) {
  const std::vector<std::string_view> words = hydrascope::split(line.rest, ' ');
  const auto x = words.size() == 3 ? decimal_number(words[1]) : std::nullopt;
  const auto y = words.size() == 3 ? decimal_number(words[2]) : std::nullopt;
  if (!x || !y) throw wrong(line, "takes a panel and two shares of its size", "as in: point focus 0.5 0.4");
  const auto panel = application_.panel_rectangle(words[0]);
  if (!panel)
    throw wrong(line, fmt::format("the panel {} is not visible", words[0]),
                "bring it to the front by an action such as view.panel.focus");
  const float density = ImGui::GetIO().DisplayFramebufferScale.x;
  const auto [left, top, width, height] = *panel;
  const ImVec2 from = pointer_;
  const ImVec2 to{(static_cast<float>(left) + static_cast<float>(*x) * static_cast<float>(width)) / density,
                  (static_cast<float>(top) + static_cast<float>(*y) * static_cast<float>(height)) / density};
  constexpr int frames = 12;
  for (int i = 1; i <= frames; ++i) {
    const float t = static_cast<float>(i) / frames;
    const float eased = t * t * (3 - 2 * t);
    pointer_ = {from.x + eased * (to.x - from.x), from.y + eased * (to.y - from.y)};
    ImGui::GetIO().AddMousePosEvent(pointer_.x, pointer_.y);
    show(frame_ms);
  }
}

void ScriptPlayer::click(const ScriptLine& /*line*/) {
  ImGui::GetIO().AddMouseButtonEvent(ImGuiMouseButton_Left, true);
  show(frame_ms);
  ImGui::GetIO().AddMouseButtonEvent(ImGuiMouseButton_Left, false);
  show(frame_ms);
}

void ScriptPlayer::hold(const ScriptLine& line) {
  const auto seconds = decimal_number(line.rest);
  if (!seconds || !(*seconds > 0 && *seconds <= 60))
    throw wrong(line, "takes seconds, above 0 and up to 60", "as in: hold 1.5");
  show(static_cast<int>(std::lround(*seconds * 1e3)));
}

// Whether a verb needs an argument, may have one, or takes none.
enum class Argument { needed, optional, none };
struct Verb {
  const char* name;
  Argument argument;
  void (ScriptPlayer::*step)(const ScriptLine&);
};
constexpr std::array<Verb, 8> verbs = {{{"action", Argument::needed, &ScriptPlayer::run},
                                        {"open", Argument::needed, &ScriptPlayer::open},
                                        {"press", Argument::needed, &ScriptPlayer::press},
                                        {"type", Argument::needed, &ScriptPlayer::type},
                                        {"point", Argument::needed, &ScriptPlayer::point},
                                        {"click", Argument::none, &ScriptPlayer::click},
                                        {"caption", Argument::optional, &ScriptPlayer::caption},
                                        {"hold", Argument::needed, &ScriptPlayer::hold}}};

const Verb* find_verb(std::string_view name) {
  const auto* const found =
      std::ranges::find(verbs, name, [](const Verb& verb) { return std::string_view(verb.name); });
  return found == verbs.end() ? nullptr : found;
}

void ScriptPlayer::perform(const ScriptLine& line) {
  (this->*find_verb(line.verb)->step)(line);
  settle_shown();
}

// Leaves out empty lines and those that begin with #. Throws UsageError with `file` and line for an unknown
// verb, and for a verb without the argument that it needs.
std::vector<ScriptLine> parse_script(std::string_view text, const std::string& file) {
  std::vector<ScriptLine> lines;
  int number = 0;
  for (const std::string_view written : hydrascope::split(text, '\n')) {
    ++number;
    const std::string_view line = trimmed(written);
    if (line.empty() || line.front() == '#') continue;
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string verb(line.substr(0, space)), rest(trimmed(line.substr(space)));
    const std::string subject = fmt::format("{}:{}", file, number);
    const Verb* const known = find_verb(verb);
    if (known == nullptr) {
      std::vector<std::string> names;
      for (const Verb& name : verbs) names.emplace_back(name.name);
      throw UsageError(subject, "there is no step " + verb,
                       "did you mean " + nearest_name(verb, names) + "?");
    }
    if (known->argument == Argument::needed && rest.empty())
      throw UsageError(subject, verb + " lacks its argument", "see docs/figures.md");
    if (known->argument == Argument::none && !rest.empty())
      throw UsageError(subject, verb + " takes no argument", "write " + verb + " alone");
    lines.push_back({number, verb, rest});
  }
  if (lines.empty()) throw UsageError(file, "has no step", "see docs/figures.md");
  return lines;
}

} // namespace

void write_screenshot(const WindowOptions& options) {
  Application application(off_screen(options));
  check_complete(application);
  const auto frame = [&] { application.frame(); };
  settle(application, "--screenshot", frame);
  for (const std::string& action : options.actions) {
    run_named(application, action, "--action");
    settle(application, "--screenshot", frame);
  }
  check_shown(application, application.editor(), "--screenshot");
  write_file_atomically(options.screenshot, encode_png(application.read_frame()));
}

void write_recording(const WindowOptions& options) {
  const std::string file = options.script.string();
  const std::vector<ScriptLine> lines = parse_script(read_text_file(options.script), file);
  ScriptPlayer player(options, file);
  for (const ScriptLine& line : lines) player.perform(line);
  write_file_atomically(options.recording, player.finish());
}

} // namespace hydrascope::app
