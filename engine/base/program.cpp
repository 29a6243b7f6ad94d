#include "engine/base/program.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>

#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/error.h"
#include "engine/base/process.h"

namespace hydrascope {

namespace {

// A file in memory. One for each of a program's streams: unlike a pipe, it never blocks either end.
class StreamFile {
public:
  explicit StreamFile(const std::string& program) : file_(memfd_create("stream", MFD_CLOEXEC)) {
    if (file_ < 0)
      throw Error(program, std::string("no file in memory can be made: ") + std::strerror(errno));
  }
  ~StreamFile() { close(file_); }
  StreamFile(const StreamFile&) = delete;
  StreamFile& operator=(const StreamFile&) = delete;

  int descriptor() const { return file_; }

  void fill(std::string_view bytes, const std::string& program) const {
    while (!bytes.empty()) {
      const ssize_t count = write(file_, bytes.data(), bytes.size());
      if (count < 0) throw Error(program, std::string("its input cannot be stored: ") + std::strerror(errno));
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    lseek(file_, 0, SEEK_SET);
  }
  std::string content() const {
    std::string bytes(static_cast<std::size_t>(std::max<off_t>(lseek(file_, 0, SEEK_END), 0)), '\0');
    const ssize_t count = pread(file_, bytes.data(), bytes.size(), 0);
    bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    return bytes;
  }

private:
  int file_;
};

using Streams = std::array<const StreamFile*, 3>; // standard input, output and error

pid_t started(const std::vector<std::string>& command, const Streams& streams) {
  posix_spawn_file_actions_t actions{};
  posix_spawn_file_actions_init(&actions);
  for (std::size_t i = 0; i < streams.size(); ++i)
    posix_spawn_file_actions_adddup2(&actions, streams[i]->descriptor(), static_cast<int>(i));
  posix_spawn_file_actions_addclosefrom_np(&actions, static_cast<int>(streams.size()));
  // A group of its own: an interrupt at the terminal does not end what it leaves in the background.
  posix_spawnattr_t attributes{};
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_t process = 0;
  const int failure = posix_spawnp(&process, words.front(), &actions, &attributes, words.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) throw Error(command.front(), std::string("cannot be started: ") + std::strerror(failure));
  return process;
}

void kill_group(pid_t process) {
  kill(-process, SIGKILL);
  waitpid(process, nullptr, 0);
}

} // namespace

std::filesystem::path find_program(std::string_view name) {
  const std::string path = environment("PATH");
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    std::filesystem::path program = std::filesystem::path(path.substr(begin, end - begin)) / name;
    std::error_code none;
    if (std::filesystem::is_regular_file(program, none) && access(program.c_str(), X_OK) == 0) return program;
    begin = end + 1;
  }
  return {};
}

ProgramResult run_program(const std::vector<std::string>& command, std::string_view input,
                          std::chrono::milliseconds limit, const std::stop_token& stop) {
  const std::string& name = command.front();
  const StreamFile in(name), out(name), err(name);
  in.fill(input, name);
  const pid_t process = started(command, {&in, &out, &err});
  const auto until = std::chrono::steady_clock::now() + limit;
  int state = 0;
  while (waitpid(process, &state, WNOHANG) == 0) {
    if (stop.stop_requested()) {
      kill_group(process);
      throw Cancelled();
    }
    if (std::chrono::steady_clock::now() >= until) {
      kill_group(process);
      throw Error(
          name, fmt::format("gave no answer within {:.0f} s", std::chrono::duration<double>(limit).count()));
    }
    constexpr std::chrono::milliseconds pause{2};
    sleep_for(pause, stop);
  }
  constexpr int signalled = 128;
  return {.status = WIFEXITED(state) ? WEXITSTATUS(state) : signalled + WTERMSIG(state),
          .output = out.content(),
          .errors = err.content()};
}

} // namespace hydrascope
