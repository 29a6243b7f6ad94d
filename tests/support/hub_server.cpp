#include "tests/support/hub_server.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/base/encoding.h"

namespace hydrascope::test {

namespace {

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool is_large(const std::string& name) { return name.ends_with(".safetensors"); }

std::string tag_of(const std::string& name, const std::string& bytes) {
  return is_large(name) ? sha256_of(bytes) : git_hash_of(bytes);
}

void send_all(int connection, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return; // the other side has had enough
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

// Up to the empty line after the headers; empty if there is none.
std::string read_head(int connection) {
  std::string head;
  char byte = 0;
  while (!head.ends_with("\r\n\r\n") && ::recv(connection, &byte, 1, 0) == 1) head += byte;
  return head;
}

HubRequest parsed(const std::string& head) {
  HubRequest request;
  std::istringstream lines(head);
  lines >> request.method >> request.path;
  const std::string_view scheme = "http://";
  if (request.path.starts_with(scheme)) {
    const std::size_t path = std::min(request.path.find('/', scheme.size()), request.path.size());
    request.origin = request.path.substr(0, path);
    request.path.erase(0, path);
  }
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line) && line.find(':') != std::string::npos) {
    const std::size_t colon = line.find(':');
    std::string value = line.substr(colon + 1);
    value.erase(value.find_last_not_of(" \r") + 1);
    value.erase(0, value.find_first_not_of(' '));
    request.headers[lower(line.substr(0, colon))] = value;
  }
  return request;
}

} // namespace

struct HubServer::Answer {
  int status = 200;
  std::map<std::string, std::string> headers;
  std::string body;
  std::size_t sent = std::string::npos; // bytes of the body, then the connection is cut
  bool held = false;                    // in the middle, until released
};

std::string HubRequest::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

std::string sha256_of(const std::string& bytes) {
  Digest digest(DigestKind::sha256);
  digest.add(bytes);
  return digest.hexadecimal();
}

std::string git_hash_of(const std::string& bytes) {
  Digest digest(DigestKind::sha1);
  digest.add("blob " + std::to_string(bytes.size()) + '\0');
  digest.add(bytes);
  return digest.hexadecimal();
}

HubServer::HubServer() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (socket_ < 0 || ::bind(socket_, generic, size) != 0 || ::listen(socket_, 16) != 0 ||
      ::getsockname(socket_, generic, &size) != 0)
    throw std::runtime_error("no port of 127.0.0.1 can be listened on");
  port_ = ntohs(address.sin_port);
  listener_ = std::thread([this] { listen(); });
}

HubServer::~HubServer() {
  {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
    faults_.holds = false;
  }
  released_.notify_all();
  ::shutdown(socket_, SHUT_RDWR);
  listener_.join();
  ::close(socket_);
  for (std::thread& connection : connections_) connection.join();
}

std::string HubServer::url() const { return fmt::format("http://127.0.0.1:{}", port_); }

void HubServer::add(const std::string& repository, std::map<std::string, std::string> files) {
  const std::scoped_lock lock(mutex_);
  repositories_[repository].files = std::move(files);
}

void HubServer::add_folder(const std::string& repository, const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream stream(entry.path(), std::ios::binary);
    std::ostringstream bytes;
    bytes << stream.rdbuf();
    files[entry.path().filename().string()] = bytes.str();
  }
  add(repository, std::move(files));
}

void HubServer::rename(const std::string& from, const std::string& to) {
  const std::scoped_lock lock(mutex_);
  renamed_[from] = to;
}

void HubServer::misbehave(HubFaults faults) {
  const std::scoped_lock lock(mutex_);
  faults_ = std::move(faults);
}

void HubServer::release() {
  {
    const std::scoped_lock lock(mutex_);
    faults_.holds = false;
  }
  released_.notify_all();
}

std::vector<HubRequest> HubServer::requests() const {
  const std::scoped_lock lock(mutex_);
  return requests_;
}

void HubServer::forget_requests() {
  const std::scoped_lock lock(mutex_);
  requests_.clear();
}

int HubServer::count(const std::string& method, const std::string& part_of_path) const {
  const std::vector<HubRequest> all = requests();
  return static_cast<int>(std::ranges::count_if(all, [&](const HubRequest& request) {
    return request.method == method && request.path.find(part_of_path) != std::string::npos;
  }));
}

std::string HubServer::commit_of(const std::string& repository) { return git_hash_of(repository); }

void HubServer::listen() {
  for (;;) {
    const int connection = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) return;
    connections_.emplace_back([this, connection] {
      serve(connection);
      ::close(connection);
    });
  }
}

void HubServer::serve(int connection) {
  const std::string head = read_head(connection);
  if (head.empty()) return;
  const HubRequest request = parsed(head);
  Answer reply;
  {
    const std::scoped_lock lock(mutex_);
    requests_.push_back(request);
    reply = answer(request);
  }
  send(connection, request, reply);
}

void HubServer::send(int connection, const HubRequest& request, const Answer& answer) {
  std::string head = fmt::format("HTTP/1.1 {} Answer\r\nConnection: close\r\n", answer.status);
  for (const auto& [name, value] : answer.headers)
    head.append(name).append(": ").append(value).append("\r\n");
  if (!answer.headers.contains("Content-Length"))
    head += fmt::format("Content-Length: {}\r\n", answer.body.size());
  send_all(connection, head + "\r\n");
  if (request.method == "HEAD") return;
  const std::string_view body = std::string_view(answer.body).substr(0, answer.sent);
  const std::size_t middle = answer.held ? body.size() / 2 : body.size();
  send_all(connection, body.substr(0, middle));
  if (answer.held) {
    std::unique_lock lock(mutex_);
    released_.wait(lock, [this] { return !faults_.holds; });
  }
  send_all(connection, body.substr(middle));
}

HubServer::Answer HubServer::answer(const HubRequest& request) {
  // A proxy's tunnel is granted, and leads nowhere; to one host it is not.
  if (request.method == "CONNECT")
    return {.status = request.path == "refused.invalid:443" ? 407 : 200, .headers = {}, .body = {}};
  if (faults_.busy > 0) {
    --faults_.busy;
    return {.status = 503, .headers = {}, .body = "busy"};
  }
  for (const auto& [part, refusal] : faults_.refusals) {
    if (request.path.find(part) == std::string::npos) continue;
    Answer refused{.status = refusal.first, .headers = {}, .body = "refused"};
    if (!refusal.second.empty()) refused.headers["X-Error-Code"] = refusal.second;
    return refused;
  }
  if (!faults_.needs_token.empty() && request.header("authorization") != "Bearer " + faults_.needs_token)
    return {.status = 401, .headers = {}, .body = "Invalid username or password."};
  for (const auto& [from, to] : renamed_) {
    const std::size_t at = request.path.find("/" + from + "/");
    if (at == std::string::npos) continue;
    std::string path = request.path;
    path.replace(at + 1, from.size(), to);
    return {.status = 307, .headers = {{"Location", path}}, .body = {}};
  }
  if (request.path.starts_with("/content/")) { // where `elsewhere` leads to
    for (const auto& [name, repository] : repositories_)
      for (const auto& [file, bytes] : repository.files)
        if (request.path == "/content/" + tag_of(file, bytes)) return content(request, bytes, is_large(file));
    return {.status = 404, .headers = {}, .body = {}};
  }
  const std::string listing = "/api/models/";
  if (request.path.starts_with(listing)) {
    const std::size_t end = request.path.find("/revision/");
    return answer_listing(request.path.substr(listing.size(), end - listing.size()));
  }
  return answer_file(request, request.path.substr(1));
}

HubServer::Answer HubServer::answer_listing(const std::string& repository) const {
  const auto found = repositories_.find(repository);
  if (found == repositories_.end())
    return {.status = 404, .headers = {{"X-Error-Code", "RepoNotFound"}}, .body = "{}"};
  nlohmann::json json;
  json["sha"] = faults_.commit.empty() ? commit_of(repository) : faults_.commit;
  json["siblings"] = nlohmann::json::array();
  for (const auto& [name, bytes] : found->second.files) json["siblings"].push_back({{"rfilename", name}});
  return {.status = 200, .headers = {{"Content-Type", "application/json"}}, .body = json.dump()};
}

// REPOSITORY/resolve/COMMIT/FILE
HubServer::Answer HubServer::answer_file(const HubRequest& request, const std::string& rest) {
  const std::size_t end = rest.find("/resolve/");
  const auto repository = repositories_.find(rest.substr(0, end));
  if (end == std::string::npos || repository == repositories_.end())
    return {.status = 404, .headers = {{"X-Error-Code", "RepoNotFound"}}, .body = {}};
  const std::string below = rest.substr(end + std::string("/resolve/").size());
  const auto file = repository->second.files.find(below.substr(below.find('/') + 1));
  if (file == repository->second.files.end() || !below.starts_with(commit_of(repository->first) + "/"))
    return {.status = 404, .headers = {{"X-Error-Code", "EntryNotFound"}}, .body = {}};
  const auto& [name, bytes] = *file;
  const std::string tag = '"' + (faults_.tag.empty() ? tag_of(name, bytes) : faults_.tag) + '"';
  const std::string size = std::to_string(static_cast<std::int64_t>(bytes.size()) + faults_.announces_more);
  if (is_large(name) && !faults_.elsewhere.empty())
    return {.status = 302,
            .headers = {{"Location", faults_.elsewhere + "/content/" + tag_of(name, bytes)},
                        {"X-Linked-Etag", tag},
                        {"X-Linked-Size", size},
                        {"X-Repo-Commit", commit_of(repository->first)}},
            .body = "somewhere else"};
  Answer answer = content(request, bytes, is_large(name));
  answer.headers["ETag"] = tag;
  answer.headers["X-Repo-Commit"] = commit_of(repository->first);
  if (is_large(name)) answer.headers["X-Linked-Size"] = size;
  if (is_large(name) && request.method == "GET" && faults_.cuts > 0) {
    --faults_.cuts;
    answer.sent = faults_.cut_after;
  }
  return answer;
}

HubServer::Answer HubServer::content(const HubRequest& request, const std::string& bytes, bool large) const {
  Answer answer{.status = 200, .headers = {}, .body = bytes};
  if (large && faults_.damages) answer.body[bytes.size() / 3] ^= 1;
  answer.held = large && faults_.holds && request.method == "GET";
  const std::string range = request.header("range");
  if (range.empty() || faults_.ignores_ranges) return answer;
  const std::size_t from = std::stoul(range.substr(std::string("bytes=").size()));
  if (from >= bytes.size()) return {.status = 416, .headers = {}, .body = {}};
  answer.status = 206;
  answer.body.erase(0, from);
  answer.headers["Content-Range"] = fmt::format("bytes {}-{}/{}", from, bytes.size() - 1, bytes.size());
  return answer;
}

ScopedEnvironment::ScopedEnvironment(const std::map<std::string, std::string>& values) {
  for (const auto& [name, value] : values) {
    if (const char* before = std::getenv(name.c_str())) {
      before_[name] = before;
    } else {
      unset_.push_back(name);
    }
    if (value.empty()) {
      ::unsetenv(name.c_str());
    } else {
      ::setenv(name.c_str(), value.c_str(), 1);
    }
  }
}

ScopedEnvironment::~ScopedEnvironment() {
  for (const auto& [name, value] : before_) ::setenv(name.c_str(), value.c_str(), 1);
  for (const std::string& name : unset_) ::unsetenv(name.c_str());
}

std::map<std::string, std::string> hub_environment(const HubServer& server,
                                                   const std::filesystem::path& home) {
  std::map<std::string, std::string> values{{"HF_ENDPOINT", server.url()}, {"HF_HOME", home.string()}};
  // What the machine has set otherwise; a proxy would be asked in the server's place.
  for (const char* name :
       {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH",
        "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_IMPLICIT_TOKEN", "SSL_CERT_FILE",
        "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY",
        "ALL_PROXY", "no_proxy", "NO_PROXY"})
    values[name] = "";
  return values;
}

} // namespace hydrascope::test
