// A model hub on this machine's loopback, as far as fetching a model asks for one, with the faults that real
// ones have. As a proxy it answers in the place of every server.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace hydrascope::test {

struct HubRequest {
  std::string method, path;
  std::string origin; // "http://HOST" of a request to a proxy, which names the server; else empty
  std::map<std::string, std::string> headers; // names in lower case

  std::string header(const std::string& name) const;
};

// What a server does otherwise than it should. Set before what is to suffer from it asks.
struct HubFaults {
  int cuts = 0;                    // so many downloads end after …
  std::size_t cut_after = 0;       // … so many bytes
  bool ignores_ranges = false;     // answers with the whole file
  bool damages = false;            // changes a byte of the weights on the way
  std::int64_t announces_more = 0; // bytes than it sends
  bool holds = false;              // sends half of the weights, and the rest when released
  int busy = 0;                    // so many requests are answered with 503
  std::map<std::string, std::pair<int, std::string>> refusals =
      {};                            // part of the path → status and X-Error-Code
  std::string needs_token = {};      // all others are answered with 401
  std::string elsewhere = {};        // large files are elsewhere: the URL of another server
  std::string commit = {}, tag = {}; // said in place of the true ones
};

class HubServer {
public:
  HubServer(); // listens on a free port of 127.0.0.1
  ~HubServer();
  HubServer(const HubServer&) = delete;
  HubServer& operator=(const HubServer&) = delete;

  std::string url() const; // http://127.0.0.1:PORT

  // Files by name; those ending in .safetensors are large ones, known by their SHA-256.
  void add(const std::string& repository, std::map<std::string, std::string> files);
  // … all files of a folder.
  void add_folder(const std::string& repository, const std::filesystem::path& folder);
  void rename(const std::string& from, const std::string& to); // the old name leads to the new one

  void misbehave(HubFaults faults);
  void release(); // what it holds
  std::vector<HubRequest> requests() const;
  void forget_requests();
  int count(const std::string& method, const std::string& part_of_path) const;

  static std::string commit_of(const std::string& repository); // 40 hexadecimal digits

private:
  struct Repository {
    std::map<std::string, std::string> files;
  };
  struct Answer;

  void listen();
  void serve(int connection);
  Answer answer(const HubRequest& request);
  Answer answer_listing(const std::string& repository) const;
  Answer answer_file(const HubRequest& request, const std::string& rest);
  Answer content(const HubRequest& request, const std::string& bytes, bool large) const;
  void send(int connection, const HubRequest& request, const Answer& answer);

  int socket_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_; // of what follows
  std::condition_variable released_;
  std::map<std::string, Repository> repositories_;
  std::map<std::string, std::string> renamed_;
  HubFaults faults_;
  std::vector<HubRequest> requests_;
  bool closing_ = false;
  std::vector<std::thread> connections_;
  std::thread listener_; // last: it uses all of the above
};

std::string sha256_of(const std::string& bytes);
std::string git_hash_of(const std::string& bytes); // as git names a file's content

// Sets variables of the environment, and puts them back.
class ScopedEnvironment {
public:
  explicit ScopedEnvironment(const std::map<std::string, std::string>& values); // empty: unset
  ScopedEnvironment(const std::string& name, const std::string& value)
      : ScopedEnvironment(std::map<std::string, std::string>{{name, value}}) {}
  ~ScopedEnvironment();
  ScopedEnvironment(const ScopedEnvironment&) = delete;
  ScopedEnvironment& operator=(const ScopedEnvironment&) = delete;

private:
  std::vector<std::string> unset_;
  std::map<std::string, std::string> before_;
};

// What makes the program ask this server and nobody else, with its cache below `home`.
std::map<std::string, std::string> hub_environment(const HubServer& server,
                                                   const std::filesystem::path& home);

} // namespace hydrascope::test
