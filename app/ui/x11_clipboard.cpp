// Pictures on the clipboard of an X server: a second connection beside GLFW's, with a thread that serves
// other programs independently of the frame loop. Implements the Inter-Client Communication Conventions
// Manual, section 2 (large pictures: 2.7.2, INCR).
#include <array>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <imgui.h>
#include <poll.h>
#include <unistd.h>
#include <xcb/xcb.h>

#include "app/ui/picture_clipboard.h"
#include "app/ui/x11_selection.h"
#include "engine/base/error.h"

namespace hydrascope::app {

namespace {

class X11Clipboard final : public PictureClipboard {
public:
  explicit X11Clipboard(std::function<void()> wake) : wake_(std::move(wake)), selection_(open_display()) {
    if (pipe2(ends_.data(), O_CLOEXEC | O_NONBLOCK) != 0) throw Error("clipboard", "no pipe can be made");
    thread_ = std::jthread([this](const std::stop_token& stopping) { loop(stopping); });
  }
  ~X11Clipboard() override {
    thread_.request_stop();
    notify();
    thread_.join();
    for (const int end : ends_) close(end);
  }
  X11Clipboard(const X11Clipboard&) = delete;
  X11Clipboard& operator=(const X11Clipboard&) = delete;

  void offer(std::string png) override {
    {
      const std::scoped_lock lock(mutex_);
      to_offer_ = std::make_shared<const std::string>(std::move(png));
    }
    notify();
  }
  void request() override {
    {
      const std::scoped_lock lock(mutex_);
      requested_ = true;
    }
    notify();
  }
  std::optional<Pasted> take() override {
    std::optional<Pasted> pasted;
    {
      const std::scoped_lock lock(mutex_);
      pasted = std::exchange(pasted_, std::nullopt);
    }
    if (pasted && pasted->text) { // GLFW reads it
      const char* const text = ImGui::GetClipboardText();
      pasted->text = text == nullptr ? "" : text;
    }
    return pasted;
  }

private:
  static X11Connection open_display() { return X11Connection(std::getenv("DISPLAY")); }

  void notify() const {
    const char byte = 0;
    // A full pipe wakes the thread as well.
    [[maybe_unused]] const auto written = write(ends_[1], &byte, 1);
  }

  void loop(const std::stop_token& stopping) {
    while (!stopping.stop_requested() && selection_.alive()) {
      take_requests();
      selection_.handle_events();
      if (auto fetched = selection_.take_fetched()) deliver(std::move(*fetched));
      std::array<pollfd, 2> waiting = {{{.fd = selection_.descriptor(), .events = POLLIN, .revents = 0},
                                        {.fd = ends_[0], .events = POLLIN, .revents = 0}}};
      // A time limit matters only during a transfer, whose other end may disappear.
      poll(waiting.data(), waiting.size(), selection_.busy() ? 250 : -1);
      std::array<char, 64> bytes{};
      while (read(ends_[0], bytes.data(), bytes.size()) > 0) {
      }
    }
    if (!stopping.stop_requested()) deliver({.bytes = {}, .text = false, .problem = "the X server has gone"});
  }

  void take_requests() {
    std::shared_ptr<const std::string> offered;
    bool requested = false;
    {
      const std::scoped_lock lock(mutex_);
      offered = std::exchange(to_offer_, nullptr);
      requested = std::exchange(requested_, false);
    }
    if (offered) selection_.offer(std::move(offered));
    if (requested) selection_.fetch();
  }

  void deliver(X11Selection::Fetched fetched) {
    Pasted pasted{.picture = nullptr, .text = {}, .problem = std::move(fetched.problem)};
    if (fetched.text) pasted.text.emplace();
    if (!fetched.bytes.empty()) pasted = pasted_picture(fetched.bytes);
    {
      const std::scoped_lock lock(mutex_);
      pasted_ = std::move(pasted);
    }
    if (wake_) wake_();
  }

  std::function<void()> wake_;
  X11Selection selection_; // used by the thread only
  std::array<int, 2> ends_{-1, -1};
  std::mutex mutex_; // guards the following
  std::shared_ptr<const std::string> to_offer_;
  bool requested_ = false;
  std::optional<Pasted> pasted_;
  std::jthread thread_;
};

} // namespace

std::unique_ptr<PictureClipboard> open_x11_clipboard(std::function<void()> wake) {
  return std::make_unique<X11Clipboard>(std::move(wake));
}

} // namespace hydrascope::app
