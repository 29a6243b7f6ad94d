#include "engine/training/distributed/rendezvous.h"

#include <array>
#include <csignal>
#include <exception>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <c10/util/Logging.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "engine/base/error.h"
#include "engine/base/process.h"
#include "engine/base/text.h"

namespace hydrascope::training {
namespace {

using Store = c10::intrusive_ptr<c10d::Store>;
using Clock = std::chrono::steady_clock;

// Time for the others to notice the failure: they fail one after another, as connections are closed.
constexpr std::chrono::milliseconds kGrace{3000};
constexpr std::chrono::milliseconds kPause{20};
// Time for which rank 0 keeps the store afterwards, for the others to read the reports.
constexpr std::chrono::milliseconds kLinger{500};

// c10d logs every failure with a stack trace before it throws. Switches the log off, as the error of this
// program is one line, unless the user has set a level.
void quieten_log() {
  if (environment("TORCH_CPP_LOG_LEVEL").empty()) FLAGS_caffe2_log_level = c10::GLOG_FATAL;
}

// Makes a write to a process that has ended an error, as in Python; by default it would end this process,
// since Gloo writes with writev.
void ignore_broken_pipes() { std::signal(SIGPIPE, SIG_IGN); }

std::string registration_key(int rank) { return fmt::format("hydrascope/rank/{}", rank); }
std::string failure_key(int rank) { return fmt::format("hydrascope/failed/{}", rank); }

std::string place(const WorldInfo& world) {
  return fmt::format("MASTER_ADDR={}, MASTER_PORT={}", world.address, world.port);
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown host";
}

// Connects a datagram socket, which sends nothing, to learn the address that the system chooses. The
// machine's own name often resolves to a loopback address.
std::string address_towards(const WorldInfo& world) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* list = nullptr;
  const int status = getaddrinfo(world.address.c_str(), std::to_string(world.port).c_str(), &hints, &list);
  if (status != 0)
    throw Error("MASTER_ADDR=" + world.address, gai_strerror(status),
                "name the machine of rank 0 as this machine knows it, or by its number");
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, &freeaddrinfo);
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    const int handle = socket(one->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (handle < 0) continue;
    sockaddr_storage own{};
    socklen_t length = sizeof own;
    auto* const generic = reinterpret_cast<sockaddr*>(&own);
    const bool known =
        ::connect(handle, one->ai_addr, one->ai_addrlen) == 0 && getsockname(handle, generic, &length) == 0;
    close(handle);
    std::array<char, NI_MAXHOST> text{};
    if (known && getnameinfo(generic, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) == 0)
      return text.data();
  }
  throw Error("MASTER_ADDR=" + world.address, "this machine has no route there",
              "see that both machines are on one network");
}

bool is_loopback(const std::string& address) { return address.starts_with("127.") || address == "::1"; }

// Reports this rank's failure and reads the others' reports; true for each rank that reported one.
std::vector<bool> collect_failures(const Store& store, const WorldInfo& world) {
  std::vector<bool> reported(static_cast<std::size_t>(world.size));
  const auto own = static_cast<std::size_t>(world.rank);
  reported[own] = true;
  try {
    store->set(failure_key(world.rank), std::string("1"));
    const auto deadline = Clock::now() + kGrace;
    for (std::size_t left = reported.size() - 1; left > 0 && Clock::now() < deadline;) {
      for (std::size_t rank = 0; rank < reported.size(); ++rank)
        if (!reported[rank] && store->check({failure_key(static_cast<int>(rank))})) {
          reported[rank] = true;
          --left;
        }
      if (left > 0) std::this_thread::sleep_for(kPause);
    }
    if (world.rank == 0 && !world.host_listens) std::this_thread::sleep_for(kLinger);
  } catch (const std::exception&) {
    // The store has ended. If rank 0 has reported before, it has waited long enough for the others; if not,
    // it is missing, and nothing is known of the others.
    if (reported.front() && !world.host_listens) return reported;
    reported.assign(reported.size(), true);
    reported.front() = world.host_listens;
  }
  return reported;
}

} // namespace

Rendezvous::Rendezvous(WorldInfo world, std::chrono::milliseconds limit)
    : world_(std::move(world)), own_address_(address_towards(world_)) {
  quieten_log();
  ignore_broken_pipes();
  const auto deadline = Clock::now() + limit;
  connect(limit);
  wait_for_all(
      std::max(kPause, std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now())));
  check_addresses();
}

void Rendezvous::connect(std::chrono::milliseconds limit) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(world_.port);
  options.isServer = world_.rank == 0 && !world_.host_listens;
  options.waitWorkers = false; // wait_for_all names the missing ranks
  options.timeout = limit;
  try {
    store_ = c10::make_intrusive<c10d::TCPStore>(world_.address, options);
  } catch (const std::exception& error) {
    if (options.isServer)
      throw Error(place(world_), "rank 0 cannot listen there: " + first_line(error.what()),
                  "choose another port and see that MASTER_ADDR is the machine of rank 0");
    throw Error(place(world_),
                fmt::format("rank {} found nobody there within {:.3g} s", world_.rank,
                            std::chrono::duration<double>(limit).count()),
                "see that rank 0 runs there and that no firewall shuts the port");
  }
  if (!world_.attempt.empty())
    store_ = c10::make_intrusive<c10d::PrefixStore>("attempt/" + world_.attempt, store_);
}

void Rendezvous::wait_for_all(std::chrono::milliseconds limit) {
  std::vector<std::string> keys;
  for (int rank = 0; rank < world_.size; ++rank) keys.push_back(registration_key(rank));
  const auto registered = [&](const std::string& key) { return store_->check({key}); };
  try {
    store_->set(registration_key(world_.rank),
                fmt::format("{}\n{}\n{}", host_name(), getpid(), own_address_));
    const auto deadline = Clock::now() + limit;
    while (!store_->check(keys) && Clock::now() < deadline) std::this_thread::sleep_for(kPause);
    std::vector<int> absent;
    for (int rank = 0; rank < world_.size; ++rank)
      if (!registered(registration_key(rank))) absent.push_back(rank);
    if (!absent.empty())
      throw Error(place(world_),
                  fmt::format("rank {} of {} did not come in time", fmt::join(absent, ", "), world_.size),
                  "start all processes together");
    for (const std::string& key : keys) {
      const std::string text = store_->get_to_str(key);
      const std::size_t first = text.find('\n'), second = text.rfind('\n');
      processes_.push_back(
          {text.substr(0, first), text.substr(first + 1, second - first - 1), text.substr(second + 1)});
    }
  } catch (const Error&) {
    throw;
  } catch (const std::exception&) {
    throw Error(place(world_), "rank 0 has ended before all processes had come",
                "see what it says, and start all again");
  }
}

void Rendezvous::check_addresses() const {
  int local = -1, remote = -1;
  for (int rank = 0; rank < world_.size; ++rank)
    (is_loopback(processes_[static_cast<std::size_t>(rank)].address) ? local : remote) = rank;
  if (local < 0 || remote < 0) return;
  throw Error("MASTER_ADDR=" + world_.address,
              fmt::format("{} knows it as its own loopback address, by which {} cannot reach it",
                          name_of(local), name_of(remote)),
              "give the machine's number in the network instead");
}

std::string Rendezvous::name_of(int rank) const {
  const Process& process = processes_[static_cast<std::size_t>(rank)];
  return fmt::format("rank {} on {} (process {})", rank, process.host, process.id);
}

std::string Rendezvous::missing_ranks() const {
  // The store's process may be the one that does not answer: it is read on a thread that can be abandoned.
  auto answer = std::make_shared<std::promise<std::vector<bool>>>();
  std::future<std::vector<bool>> future = answer->get_future();
  std::thread([answer, store = store_, world = world_] {
    answer->set_value(collect_failures(store, world));
  }).detach();
  std::vector<std::string> missing;
  if (future.wait_for(2 * kGrace) == std::future_status::ready) {
    const std::vector<bool> reported = future.get();
    for (std::size_t rank = 0; rank < reported.size(); ++rank)
      if (!reported[rank]) missing.push_back(name_of(static_cast<int>(rank)));
  } else if (!world_.host_listens) {
    missing.push_back(name_of(0));
  }
  return fmt::format("{}", fmt::join(missing, ", "));
}

} // namespace hydrascope::training
