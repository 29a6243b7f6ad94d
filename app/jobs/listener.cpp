#include "app/jobs/listener.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <fstream>
#include <mutex>
#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "app/jobs/process_folder.h"
#include "engine/base/capture.h"
#include "engine/base/error.h"
#include "engine/base/error_message.h"
#include "engine/base/files.h"
#include "engine/base/process.h"
#include "engine/base/text.h"

namespace hydrascope::app {

// Of an open file; closed at the end.
class Descriptor {
public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  int number() const { return number_; }

private:
  int number_;
};

namespace {

namespace fs = std::filesystem;

constexpr std::string_view greeting = "HYDRASCOPE\n";

std::string system_reason() { return std::strerror(errno); } // NOLINT(concurrency-mt-unsafe): glibc's is safe

sockaddr_un address_of(const fs::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string text = path.string();
  if (text.size() >= sizeof address.sun_path)
    throw UsageError("--socket " + text, "the path of a socket has at most 107 bytes",
                     "choose a shorter one");
  std::memcpy(address.sun_path, text.c_str(), text.size() + 1);
  return address;
}

const sockaddr* as_address(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address); // NOLINT: what the system calls take
}

Descriptor new_socket() { return Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

// The folder of the usual socket lies where everybody may write: another user's would hand over what is sent.
void require_own(const fs::path& folder) {
  struct stat facts {};
  if (lstat(folder.c_str(), &facts) != 0)
    throw Error(folder.string(), system_reason(), "choose another place with --socket");
  if (!S_ISDIR(facts.st_mode) || facts.st_uid != geteuid() || (facts.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    throw Error(folder.string(), "is not a folder that you alone may write to",
                "remove it, or choose another place with --socket");
}

// A socket that only this user's processes can connect to.
Descriptor listening_socket(const fs::path& path) {
  const sockaddr_un address = address_of(path);
  std::error_code failure;
  if (fs::create_directories(path.parent_path(), failure))
    fs::permissions(path.parent_path(), fs::perms::owner_all, failure);
  if (path == usual_socket()) require_own(path.parent_path());
  if (fs::exists(fs::symlink_status(path, failure))) {
    const Descriptor probe = new_socket();
    if (connect(probe.number(), as_address(address), sizeof address) == 0)
      throw Error(path.string(), "another window listens there", "close it, or choose another --socket");
    if (!fs::is_socket(path, failure))
      throw Error(path.string(), "there is a file of this name", "choose another --socket");
    fs::remove(path, failure); // left by a window that has ended
  }
  Descriptor made = new_socket();
  // The file is made with the socket's mode; a umask would be that of all threads.
  if (fchmod(made.number(), S_IRUSR | S_IWUSR) != 0 ||
      bind(made.number(), as_address(address), sizeof address) != 0)
    throw Error(path.string(), "no socket can be made there: " + system_reason(), "choose another --socket");
  constexpr int waiting = 8;
  if (listen(made.number(), waiting) != 0) throw Error(path.string(), system_reason());
  return made;
}

// Whether the socket has something to read, or a sender that has gone; false after `seconds` or at a stop.
bool readable(const int number, const double seconds, const std::stop_token& stop) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  constexpr int step = 100; // milliseconds until a stop is looked for
  while (!stop.stop_requested() && Clock::now() < end) {
    pollfd waited{.fd = number, .events = POLLIN, .revents = 0};
    if (poll(&waited, 1, step) > 0) return true;
  }
  return false;
}

} // namespace

fs::path usual_socket() {
  const std::string folder = environment("XDG_RUNTIME_DIR");
  if (!folder.empty()) return fs::path(folder) / "hydrascope.sock";
  return fs::path(fmt::format("/tmp/hydrascope-{}", getuid())) / "hydrascope.sock";
}

struct Listener::State {
  Settings settings;
  std::function<void()> wake;
  Descriptor socket;
  std::optional<ProcessFolder> folder;
  std::mutex mutex;
  std::optional<fs::path> newest; // not yet taken
  std::deque<fs::path> taken;     // the oldest first
  std::uint64_t count = 0;
  std::jthread thread;

  void run(const std::stop_token& stop) {
    constexpr double day = 86400;
    while (!stop.stop_requested()) {
      if (!readable(socket.number(), day, stop)) continue;
      const Descriptor sender(accept4(socket.number(), nullptr, nullptr, SOCK_CLOEXEC));
      if (sender.number() < 0) { // as with too many open files: it stays readable
        sleep_for(std::chrono::milliseconds(100), stop);
        continue;
      }
      std::string answer = "ok\n";
      try {
        receive(sender.number(), stop);
      } catch (const Cancelled&) {
        return;
      } catch (const std::exception& error) {
        answer = fmt::format("error: {}\n", error_message(error));
      }
      // A sender that has gone is no reason for SIGPIPE.
      send(sender.number(), answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
  }

  void receive(const int sender, const std::stop_token& stop) {
    ucred peer{};
    socklen_t size = sizeof peer;
    if (getsockopt(sender, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != geteuid())
      throw Error("socket", "only the user's own programs may send");
    std::array<char, greeting.size() + sizeof(std::uint64_t)> head{};
    read_all(sender, head.data(), head.size(), stop);
    if (std::string_view(head.data(), greeting.size()) != greeting)
      throw Error("message", "does not begin as one of hydrascope_show",
                  "use tools/capture.py of this version");
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < sizeof bytes; ++i)
      bytes |= static_cast<std::uint64_t>(static_cast<unsigned char>(head[greeting.size() + i])) << (8 * i);
    if (bytes > static_cast<std::uint64_t>(settings.most_bytes))
      throw Error("message",
                  fmt::format("holds {}, and at most {} are taken", bytes_text(static_cast<double>(bytes)),
                              bytes_text(static_cast<double>(settings.most_bytes))),
                  "send fewer layers or tokens");
    const fs::path file = folder->path() / fmt::format("received-{}.safetensors", ++count);
    try {
      store(sender, file, bytes, stop);
      const Capture capture = Capture::open(file);
      for (std::size_t layer = 0; layer < capture.layers().size(); ++layer)
        for (std::int64_t item = 0; item < capture.layers()[layer].batch; ++item)
          capture.check_numbers(layer, item);
    } catch (const Error& error) {
      std::error_code failure;
      fs::remove(file, failure);
      // The file's name is not the sender's.
      std::string reason = error.what();
      const std::string name = file.string() + ": ";
      if (reason.starts_with(name)) reason.erase(0, name.size());
      throw Error("capture", reason);
    } catch (...) {
      std::error_code failure;
      fs::remove(file, failure);
      throw;
    }
    std::optional<fs::path> unseen;
    {
      const std::scoped_lock lock(mutex);
      unseen = std::exchange(newest, file);
    }
    std::error_code failure;
    if (unseen) fs::remove(*unseen, failure);
    if (wake) wake();
  }

  void remove_beyond_budget() {
    std::error_code failure;
    std::uintmax_t bytes = 0;
    for (const fs::path& file : taken)
      if (const std::uintmax_t size = fs::file_size(file, failure); !failure) bytes += size;
    while (taken.size() > 2 && bytes > static_cast<std::uintmax_t>(settings.kept_bytes)) {
      if (const std::uintmax_t size = fs::file_size(taken.front(), failure); !failure) bytes -= size;
      fs::remove(taken.front(), failure);
      taken.pop_front();
    }
  }

  void read_all(const int sender, char* to, std::size_t bytes, const std::stop_token& stop) const {
    while (bytes > 0) {
      if (!readable(sender, settings.patience, stop)) {
        if (stop.stop_requested()) throw Cancelled();
        throw Error("message", fmt::format("nothing came for {:.0f} seconds", settings.patience));
      }
      const ssize_t got = read(sender, to, bytes);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) throw Error("message", "ends early");
      to += got;
      bytes -= static_cast<std::size_t>(got);
    }
  }

  void store(const int sender, const fs::path& file, std::uint64_t bytes, const std::stop_token& stop) const {
    std::error_code failure;
    fs::create_directories(file.parent_path(), failure);
    std::ofstream stream(file, std::ios::binary);
    std::vector<char> piece(std::size_t{1} << 20);
    while (bytes > 0 && stream) {
      const auto now = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, piece.size()));
      read_all(sender, piece.data(), now, stop);
      stream.write(piece.data(), static_cast<std::streamsize>(now));
      bytes -= now;
    }
    stream.close();
    if (!stream)
      throw Error(settings.folder.string(), "cannot be written", "free some space, or make it writable");
  }
};

Listener::Listener(Settings settings, std::function<void()> wake) : state_(std::make_unique<State>()) {
  state_->settings = std::move(settings);
  state_->wake = std::move(wake);
  state_->socket = listening_socket(state_->settings.socket);
  state_->folder.emplace(state_->settings.folder);
  state_->thread = std::jthread([state = state_.get()](const std::stop_token& stop) { state->run(stop); });
}

Listener::~Listener() {
  state_->thread.request_stop();
  state_->thread.join();
  std::error_code failure;
  fs::remove(state_->settings.socket, failure);
}

std::optional<fs::path> Listener::take() {
  std::optional<fs::path> file;
  {
    const std::scoped_lock lock(state_->mutex);
    file = std::exchange(state_->newest, std::nullopt);
  }
  if (!file) return std::nullopt;
  state_->taken.push_back(*file);
  state_->remove_beyond_budget();
  return file;
}

} // namespace hydrascope::app
