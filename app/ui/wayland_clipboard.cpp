// Pictures on a Wayland compositor's clipboard, through the programs wl-copy and wl-paste: compositors give
// the clipboard to windows with the keyboard's focus only, and these two know how to get it.
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "app/ui/picture_clipboard.h"
#include "engine/base/error.h"
#include "engine/base/error_message.h"
#include "engine/base/program.h"

namespace hydrascope::app {

namespace {

constexpr std::chrono::seconds answer_limit{5};

// Throws Error with what it says if it fails.
std::string output_of(const std::vector<std::string>& command, std::string_view input,
                      const std::stop_token& stop) {
  ProgramResult result = run_program(command, input, answer_limit, stop);
  if (result.status == 0) return std::move(result.output);
  const std::string reason = result.errors.substr(0, result.errors.find('\n'));
  throw Error(command.front(), reason.empty() ? "failed" : reason);
}

Pasted fetched(const std::stop_token& stop) {
  std::istringstream lines(output_of({"wl-paste", "--list-types"}, {}, stop));
  std::vector<std::string> types;
  for (std::string type; std::getline(lines, type);) types.push_back(type);
  const auto content = [&](std::string_view type) -> std::optional<std::string> {
    if (std::ranges::count(types, type) == 0) return std::nullopt;
    return output_of({"wl-paste", "--no-newline", "--type", std::string(type)}, {}, stop);
  };
  for (const std::string_view type : picture_types)
    if (const auto bytes = content(type)) return pasted_picture(*bytes);
  // GLFW would read the first of these only, and only once the focus is back from wl-paste.
  for (const char* const type : {"text/plain;charset=utf-8", "UTF8_STRING", "text/plain", "text/uri-list"})
    if (auto text = content(type)) return {.picture = nullptr, .text = std::move(text), .problem = {}};
  return {.picture = nullptr, .text = {}, .problem = "it holds neither a picture nor text"};
}

class WaylandClipboard final : public PictureClipboard {
public:
  explicit WaylandClipboard(std::function<void()> wake)
      : wake_(std::move(wake)), thread_([this](const std::stop_token& stopping) { loop(stopping); }) {}

  void offer(std::string png) override {
    {
      const std::scoped_lock lock(mutex_);
      to_offer_ = std::move(png);
    }
    changed_.notify_one();
  }
  std::string take_failure() override {
    const std::scoped_lock lock(mutex_);
    return std::exchange(failure_, {});
  }
  void request() override {
    {
      const std::scoped_lock lock(mutex_);
      requested_ = true;
    }
    changed_.notify_one();
  }
  std::optional<Pasted> take() override {
    const std::scoped_lock lock(mutex_);
    return std::exchange(pasted_, std::nullopt);
  }

private:
  void loop(const std::stop_token& stopping) {
    try {
      while (work(stopping))
        if (wake_) wake_();
    } catch (const Cancelled&) {
      return; // the window is closed
    }
  }

  // Waits for an offer or a request and carries it out. Returns whether there was one before the end.
  bool work(const std::stop_token& stopping) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stopping, [this] { return to_offer_ || requested_; })) return false;
    if (const auto offered = std::exchange(to_offer_, std::nullopt)) {
      lock.unlock();
      std::string failure = why_not_copied(*offered, stopping);
      lock.lock();
      failure_ = std::move(failure);
      return true;
    }
    requested_ = false;
    lock.unlock();
    Pasted pasted;
    try {
      pasted = fetched(stopping);
    } catch (const Cancelled&) {
      throw;
    } catch (const std::exception& error) { // memory may run out, too
      pasted.problem = error_message(error);
    }
    lock.lock();
    pasted_ = std::move(pasted);
    return true;
  }

  static std::string why_not_copied(const std::string& png, const std::stop_token& stopping) {
    try {
      output_of({"wl-copy", "--type", "image/png"}, png, stopping);
      return {};
    } catch (const Cancelled&) {
      throw;
    } catch (const std::exception& error) {
      return error_message(error);
    }
  }

  std::function<void()> wake_;
  std::mutex mutex_; // guards the following
  std::condition_variable_any changed_;
  std::optional<std::string> to_offer_;
  std::string failure_;
  bool requested_ = false;
  std::optional<Pasted> pasted_;
  std::jthread thread_;
};

} // namespace

std::unique_ptr<PictureClipboard> open_wayland_clipboard(std::function<void()> wake) {
  return std::make_unique<WaylandClipboard>(std::move(wake));
}

} // namespace hydrascope::app
