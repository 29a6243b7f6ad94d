// Captures that come over a socket: good ones are taken up, malformed messages are answered with an error.
#include "app/jobs/listener.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/capture.h"
#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/base/paths.h"
#include "tests/support/checkout.h"

namespace hydrascope::app {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre, testing::HasSubstr, testing::StartsWith, testing::UnorderedElementsAre,
    testing::UnorderedElementsAreArray;

class ListenerTest : public testing::Test {
protected:
  ListenerTest() { fs::remove_all(folder_); }
  ~ListenerTest() override { fs::remove_all(folder_); }

  Listener::Settings settings() const {
    return {
        .socket = folder_ / "socket", .folder = folder_ / "received", .most_bytes = 1 << 20, .patience = 0.3};
  }
  std::string answer_to(const std::string& message, bool ended = true) const {
    const int number = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, (folder_ / "socket").c_str()); // NOLINT: short enough
    EXPECT_EQ(connect(number, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0); // NOLINT
    for (std::size_t at = 0; at < message.size();) {
      const ssize_t sent = send(number, message.data() + at, message.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) break; // refused early
      at += static_cast<std::size_t>(sent);
    }
    if (ended) shutdown(number, SHUT_WR);
    std::string answer(4096, '\0');
    const ssize_t got = read(number, answer.data(), answer.size());
    answer.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    close(number);
    return answer;
  }
  // What another user's process gets when it sends a message: the answer, or why it cannot connect.
  std::string answer_to_another_user(const std::string& message) const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, (folder_ / "socket").c_str()); // NOLINT: short enough
    int ends[2] = {};
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const pid_t child = fork();
    if (child == 0) { // system calls alone: other threads held who knows which locks
      constexpr int nobody = 65534;
      std::string_view failed;
      const int number = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (syscall(SYS_setgroups, 0, nullptr) != 0 || syscall(SYS_setresgid, nobody, nobody, nobody) != 0 ||
          syscall(SYS_setresuid, nobody, nobody, nobody) != 0)
        failed = "is still root";
      else if (connect(number, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) // NOLINT
        failed = errno == EACCES ? "permission denied" : "another reason";
      char answer[4096];
      ssize_t size = 0;
      if (failed.empty()) {
        send(number, message.data(), message.size(), MSG_NOSIGNAL);
        size = read(number, answer, sizeof answer);
      }
      const ssize_t told = failed.empty()
                               ? write(ends[1], answer, size > 0 ? static_cast<std::size_t>(size) : 0)
                               : write(ends[1], failed.data(), failed.size());
      _exit(told >= 0 ? 0 : 1);
    }
    close(ends[1]);
    std::string answer(4096, '\0');
    const ssize_t got = read(ends[0], answer.data(), answer.size());
    answer.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    close(ends[0]);
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    return answer;
  }
  static std::string message_of(const std::string& capture) {
    std::string size;
    for (std::size_t i = 0; i < 8; ++i) size.push_back(static_cast<char>(capture.size() >> (8 * i) & 255));
    return "HYDRASCOPE\n" + size + capture;
  }
  static std::string capture_named(const char* name) {
    return read_text_file(test::source_folder() / "tests/golden/captures" / name);
  }

  // The captures that lie in the folders of all windows.
  std::vector<fs::path> received() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "received"))
      if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
    return files;
  }

  fs::path folder_ = fs::temp_directory_path() / ("hydrascope-listener-" + std::to_string(getpid()));
};

TEST_F(ListenerTest, TakesCapturesAndKeepsThemForUndo) {
  std::atomic<int> woken = 0;
  fs::path first, second;
  {
    Listener listener(settings(), [&] { ++woken; });
    struct stat info {};
    ASSERT_EQ(stat((folder_ / "socket").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0600U);
    EXPECT_FALSE(listener.take());
    EXPECT_EQ(answer_to(message_of(capture_named("bert.safetensors"))), "ok\n");
    first = listener.take().value();
    EXPECT_EQ(
        Capture::open(first).layers().size(),
        Capture::open(test::source_folder() / "tests/golden/captures/bert.safetensors").layers().size());
    EXPECT_FALSE(listener.take());
    for (const char* name : {"gpt2.safetensors", "whisper.safetensors"})
      EXPECT_EQ(answer_to(message_of(capture_named(name))), "ok\n");
    second = listener.take().value();
    EXPECT_EQ(read_text_file(first), capture_named("bert.safetensors"));
    EXPECT_EQ(read_text_file(second), capture_named("whisper.safetensors"));
    EXPECT_EQ(woken, 3);
    EXPECT_THAT(received(), UnorderedElementsAre(first, second)); // gpt2's was never shown
    EXPECT_THROW(Listener(settings(), {}), Error);                // there is one already
  }
  EXPECT_TRUE(fs::is_empty(folder_ / "received"));
  EXPECT_FALSE(fs::exists(folder_ / "socket"));
}

TEST_F(ListenerTest, RemovesTheOldestBeyondItsBudgetButNeverTheNewestTwo) {
  for (const auto& [budget, kept] : {std::pair{std::int64_t{1}, 2U}, std::pair{std::int64_t{65'000}, 3U}}) {
    Listener::Settings small = settings();
    small.kept_bytes = budget;
    Listener listener(small, {});
    std::vector<fs::path> taken;
    for (const char* name :
         {"bert.safetensors", "gpt2.safetensors", "llama.safetensors", "gpt2.safetensors"}) {
      ASSERT_EQ(answer_to(message_of(capture_named(name))), "ok\n");
      taken.push_back(listener.take().value());
    }
    taken.erase(taken.begin(), taken.end() - kept);
    EXPECT_THAT(received(), UnorderedElementsAreArray(taken)) << budget;
  }
}

TEST_F(ListenerTest, RemovesWhatACrashedWindowHasLeft) {
  const fs::path crashed = folder_ / "received" / "1-0", running = folder_ / "received" / "1-1";
  for (const fs::path& folder : {crashed, running}) {
    fs::create_directories(folder);
    std::ofstream(folder / "received-1.safetensors") << "numbers";
  }
  ItemLock::take(crashed / "lock", 0, "").reset(); // as when its process ends
  const auto held = ItemLock::take(running / "lock", 0, "");
  const Listener listener(settings(), {});
  EXPECT_FALSE(fs::exists(crashed));
  EXPECT_THAT(received(), ElementsAre(running / "received-1.safetensors"));
}

// Its folder, its socket and its answer each refuse another user by themselves.
TEST_F(ListenerTest, RefusesOtherUsers) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  Listener listener(settings(), {});
  const std::string good = message_of(capture_named("bert.safetensors"));
  EXPECT_EQ(answer_to_another_user(good), "permission denied");
  fs::permissions(folder_, fs::perms::all);
  EXPECT_EQ(answer_to_another_user(good), "permission denied");
  fs::permissions(folder_ / "socket", fs::perms::all);
  EXPECT_THAT(answer_to_another_user(good),
              StartsWith("error: socket: only the user's own programs may send"));
  EXPECT_FALSE(listener.take());
  EXPECT_THAT(received(), testing::IsEmpty());
  EXPECT_EQ(answer_to(good), "ok\n");
  EXPECT_TRUE(listener.take());
}

// Nor can they read what was sent.
TEST_F(ListenerTest, KeepsWhatCameWhereItsUserAloneCanRead) {
  Listener listener(settings(), {});
  EXPECT_EQ(answer_to(message_of(capture_named("bert.safetensors"))), "ok\n");
  const fs::path file = listener.take().value();
  EXPECT_EQ(fs::status(file.parent_path()).permissions(), fs::perms::owner_all) << file.parent_path();
}

// Where no connection can be accepted it waits, and takes what is sent as soon as it can.
TEST_F(ListenerTest, WaitsWhileThereAreTooManyOpenFiles) {
  Listener listener(settings(), {});
  const int number = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 3;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, (folder_ / "socket").c_str()); // NOLINT: short enough
  EXPECT_EQ(connect(number, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0); // NOLINT
  const auto processor_time = [] {
    timespec used{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
  };
  const double start = processor_time();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  EXPECT_LT(processor_time() - start, 0.1);
  setrlimit(RLIMIT_NOFILE, &before);
  close(number);
  EXPECT_EQ(answer_to(message_of(capture_named("bert.safetensors"))), "ok\n");
}

// Below /tmp anybody may make the folder of the usual socket before its owner does.
TEST_F(ListenerTest, ListensInNoFolderThatOthersMayWriteTo) {
  const char* const before = std::getenv("XDG_RUNTIME_DIR");
  const std::string kept = before == nullptr ? "" : before;
  setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
  fs::create_directories(folder_);
  Listener::Settings usual = settings();
  usual.socket = usual_socket();
  fs::permissions(folder_, fs::perms::all);
  EXPECT_THROW(Listener(usual, {}), Error);
  EXPECT_FALSE(fs::exists(usual.socket));
  fs::permissions(folder_, fs::perms::owner_all);
  EXPECT_NO_THROW(Listener(usual, {}));
  if (before == nullptr)
    unsetenv("XDG_RUNTIME_DIR");
  else
    setenv("XDG_RUNTIME_DIR", kept.c_str(), 1);
}

TEST_F(ListenerTest, SaysWhatIsWrong) {
  const Listener listener(settings(), {});
  const std::string good = message_of(capture_named("bert.safetensors"));
  EXPECT_THAT(answer_to("GET / HTTP/1.1\r\nHost: here\r\n\r\n"), HasSubstr("does not begin as one"));
  EXPECT_THAT(answer_to(good.substr(0, 15)), HasSubstr("ends early"));
  EXPECT_THAT(answer_to(good.substr(0, good.size() - 1)), HasSubstr("ends early"));
  EXPECT_THAT(answer_to(good.substr(0, 100), /*ended=*/false), HasSubstr("nothing came for"));
  EXPECT_THAT(answer_to("HYDRASCOPE\n" + std::string(8, '\xff')), HasSubstr("at most 1 MB are taken"));
  EXPECT_THAT(answer_to(message_of("no capture")), StartsWith("error: capture: "));
  std::string nan = good;
  constexpr std::size_t before_header = 11 + 8; // greeting, size
  std::uint64_t header = 0;
  std::memcpy(&header, nan.data() + before_header, sizeof header);
  std::memset(nan.data() + before_header + sizeof header + header, 0xff, 64); // numbers of the first tensor
  EXPECT_THAT(answer_to(nan), StartsWith("error: "));
}

// A thousand, seeded: bytes of a good message changed, left out, repeated, or sizes made absurd.
TEST_F(ListenerTest, AnswersAThousandMalformedMessagesAndGoesOn) {
  Listener listener(settings(), {});
  const std::string good = message_of(capture_named("gpt2.safetensors"));
  std::mt19937 random(7);
  const auto below = [&](std::size_t end) { return static_cast<std::size_t>(random()) % end; };
  const auto resident = [] {
    std::ifstream statm("/proc/self/statm");
    std::int64_t size = 0, pages = 0;
    statm >> size >> pages;
    return pages * sysconf(_SC_PAGESIZE);
  };
  int refused = 0;
  std::int64_t before = 0;
  for (int i = 0; i < 1000; ++i) {
    if (i == 100) before = resident();
    std::string bad = good;
    switch (i % 5) {
      case 0: bad.resize(below(good.size())); break;
      case 1: bad[below(27)] ^= static_cast<char>(1 + below(255)); break; // greeting, size, header's size
      case 2: bad.erase(27 + below(300), 1 + below(20)); break;           // header
      case 3: bad[27 + below(200)] = '"'; break;
      default: bad.insert(19 + below(8), 1 + below(9), static_cast<char>(below(256)));
    }
    const std::string answer = answer_to(bad);
    EXPECT_TRUE(answer == "ok\n" || answer.starts_with("error: ")) << i << ": " << answer;
    refused += answer.starts_with("error: ") ? 1 : 0;
    listener.take();
  }
  EXPECT_GT(refused, 950);
  constexpr std::int64_t most_growth = 8 << 20;
  EXPECT_LT(resident() - before, most_growth);
  EXPECT_EQ(answer_to(good), "ok\n");
  EXPECT_TRUE(listener.take());
}

} // namespace
} // namespace hydrascope::app
