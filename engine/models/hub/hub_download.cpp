#include "engine/models/hub/hub_download.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "engine/base/encoding.h"
#include "engine/base/files.h"
#include "engine/base/temporary.h"
#include "engine/models/hub/hub_cache.h"

namespace hydrascope {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view hexadecimal = "0123456789abcdef";

bool is_hexadecimal(const std::string& text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of(hexadecimal) == std::string::npos;
}

// "W/"abc"" → abc.
std::string plain_tag(std::string tag) {
  if (tag.starts_with("W/")) tag.erase(0, 2);
  if (tag.size() >= 2 && tag.front() == '"' && tag.back() == '"') tag = tag.substr(1, tag.size() - 2);
  return tag;
}

std::optional<std::int64_t> number_of(const std::string& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

// TAG.incomplete while it is being downloaded.
class IncompleteFile {
public:
  explicit IncompleteFile(fs::path path) : path_(std::move(path)) {
    descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor_ < 0) fail();
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) fail();
    size_ = status.st_size;
  }
  ~IncompleteFile() { ::close(descriptor_); }
  IncompleteFile(const IncompleteFile&) = delete;
  IncompleteFile& operator=(const IncompleteFile&) = delete;

  std::int64_t size() const { return size_; }
  void start_over() {
    if (::ftruncate(descriptor_, 0) != 0) fail();
    size_ = 0;
  }
  void append(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::pwrite(descriptor_, bytes.data(), bytes.size(), size_);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail();
      bytes.remove_prefix(static_cast<std::size_t>(written));
      size_ += written;
    }
  }
  void add_to(Digest& digest, const std::stop_token& stop) const {
    std::string buffer(std::size_t{1} << 20, '\0');
    for (std::int64_t at = 0; at < size_;) {
      if (stop.stop_requested()) throw Cancelled();
      const ssize_t count = ::pread(descriptor_, buffer.data(), buffer.size(), at);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) throw Error(path_.string(), "cannot be read to its end", "check the disk");
      digest.add({buffer.data(), static_cast<std::size_t>(count)});
      at += count;
    }
  }
  void rename_to(const fs::path& name) {
    if (::fsync(descriptor_) != 0 || ::rename(path_.c_str(), name.c_str()) != 0) fail();
    flush_folder(name.parent_path());
  }
  void remove() const { ::unlink(path_.c_str()); }

private:
  [[noreturn]] void fail() const {
    const bool full = errno == ENOSPC || errno == EDQUOT;
    throw Error(path_.string(), fmt::format("cannot be written ({})", std::strerror(errno)),
                full ? "make room, or set HF_HOME to a folder on another disk"
                     : "check the folder, or set HF_HOME to another one");
  }

  fs::path path_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
};

std::string name_of(const HubCommit& commit, const RemoteFile& file) {
  return commit.repository + "/" + file.name;
}

void check_room(const fs::path& blob, const RemoteFile& file, std::int64_t present) {
  std::error_code error;
  const fs::space_info space = fs::space(blob.parent_path(), error);
  if (error || !file.size) return;
  const auto needed = static_cast<std::uintmax_t>(std::max<std::int64_t>(0, *file.size - present));
  if (space.available >= needed) return;
  constexpr double mega = 1e6;
  throw Error(
      blob.parent_path().string(),
      fmt::format("has {:.0f} MB free, and {} needs {:.0f} MB", static_cast<double>(space.available) / mega,
                  file.name, static_cast<double>(needed) / mega),
      "make room, or set HF_HOME to a folder on another disk");
}

// One attempt: appends the rest of the file. Returns the reply if its body was not the file's.
std::optional<HttpReply> receive(HttpSession& session, const HubCommit& commit, const RemoteFile& file,
                                 IncompleteFile& incomplete, const ReceiveObserver& observer,
                                 const std::stop_token& stop) {
  const std::int64_t from = incomplete.size();
  bool taken = false;
  const BodySink sink{.begin =
                          [&](const HttpReply& reply) {
                            const std::string start = fmt::format("bytes {}-", from);
                            taken = reply.status == 200 ||
                                    (reply.status == 206 && reply.header("content-range").starts_with(start));
                            // The range was ignored or is invalid: start from the beginning.
                            if (reply.status == 200 || reply.status == 206 || reply.status == 416)
                              if (reply.status != 206 || !taken) incomplete.start_over();
                            return taken;
                          },
                      .receive =
                          [&](std::string_view bytes) {
                            const auto count = static_cast<std::int64_t>(bytes.size());
                            if (file.size && incomplete.size() + count > *file.size) {
                              incomplete.remove();
                              throw Error(name_of(commit, file),
                                          fmt::format("is longer than the announced {} bytes", *file.size),
                                          "fetch it again");
                            }
                            incomplete.append(bytes);
                            observer(incomplete.size(), count, false);
                          }};
  HttpReply reply = session.download(file.url, from, sink, stop);
  if (taken) return std::nullopt;
  return reply;
}

void check(const HubCommit& commit, const RemoteFile& file, const IncompleteFile& incomplete,
           const std::stop_token& stop) {
  const std::string name = name_of(commit, file);
  if (file.size && incomplete.size() != *file.size) {
    incomplete.remove();
    throw Error(name, fmt::format("has {} bytes instead of {}", incomplete.size(), *file.size),
                "fetch it again");
  }
  const bool sha256 = file.has_sha256();
  if (!sha256 && !is_hexadecimal(file.tag, 40)) return; // a mirror's own tag is not a digest
  Digest digest(sha256 ? DigestKind::sha256 : DigestKind::sha1);
  // git's hash of a file
  if (!sha256) digest.add(fmt::format("blob {}", incomplete.size()) + '\0');
  incomplete.add_to(digest, stop);
  const std::string found = digest.hexadecimal();
  if (found == file.tag) return;
  incomplete.remove();
  throw Error(name,
              fmt::format("arrived damaged: its {} is {} instead of {}", sha256 ? "SHA-256" : "git hash",
                          found, file.tag),
              "fetch it again");
}

// Repeats attempts until the file is complete; attempts without progress are limited and paused.
void receive_all(HttpSession& session, const HubSettings& settings, const HubCommit& commit,
                 const RemoteFile& file, IncompleteFile& incomplete, const ReceiveObserver& observer,
                 const std::stop_token& stop) {
  std::int64_t furthest = incomplete.size();
  for (RetryBackoff backoff(settings.retry_pause);;) {
    std::optional<HttpReply> reply;
    try {
      reply = receive(session, commit, file, incomplete, observer, stop);
      if (!reply) return;
      if (!reply->is_retryable() && reply->status != 206 && reply->status != 416)
        throw status_error(*reply, settings, commit, file.name);
      if (!backoff.wait(&*reply, stop)) throw status_error(*reply, settings, commit, file.name);
    } catch (const TransferFailure& failure) {
      if (incomplete.size() > furthest) backoff.reset();
      furthest = std::max(furthest, incomplete.size());
      if (!failure.transient() || !backoff.wait(nullptr, stop)) throw;
    }
  }
}

bool is_whole(const fs::path& blob, const RemoteFile& file) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(blob, error);
  return !error && (!file.size || static_cast<std::int64_t>(size) == *file.size);
}

} // namespace

bool RemoteFile::has_sha256() const { return is_hexadecimal(tag, 64); }

Error status_error(const HttpReply& reply, const HubSettings& settings, const HubCommit& commit,
                   const std::string& file) {
  const std::string code = reply.header("x-error-code");
  const std::string page = settings.endpoint + "/" + commit.repository;
  const std::string subject = file.empty() ? commit.repository : commit.repository + "/" + file;
  const bool token = !settings.token.empty();
  if (code == "GatedRepo" || reply.status == 403)
    return {subject, token ? "is gated, and this token has no access to it" : "is gated",
            fmt::format("accept its licence at {} {}", page,
                        token ? "with the account that HF_TOKEN belongs to" : "and set HF_TOKEN")};
  if (code == "RevisionNotFound")
    return {subject, "has no revision " + commit.revision, "look at " + page + "/tree/main"};
  if (code == "EntryNotFound") return {subject, "does not exist", "look at " + page + "/tree/main"};
  if (code == "RepoNotFound" || reply.status == 404)
    return {subject, settings.endpoint + " has no such repository, or it is private",
            token ? "check the name, and which account HF_TOKEN belongs to"
                  : "check the name; for a private one set HF_TOKEN"};
  if (reply.status == 401 && token)
    return {subject, settings.endpoint + " does not accept the token",
            "check HF_TOKEN, or unset it for what is public"};
  if (reply.status == 401)
    return {subject,
            settings.endpoint + " does not show it without a token: it is private, gated or misspelt",
            fmt::format("check the name; set HF_TOKEN, and accept the licence at {} if it has one", page)};
  if (reply.status == 429)
    return {subject, settings.endpoint + " received too many requests (429)",
            "try again later: what has arrived is kept"};
  if (reply.is_retryable())
    return {subject, fmt::format("{} replied with the error {}", settings.endpoint, reply.status),
            "try again later: what has arrived is kept"};
  return {subject, fmt::format("{} replied with the status {}", settings.endpoint, reply.status),
          "check HF_ENDPOINT"};
}

RemoteFile query_file(HttpSession& session, const HubSettings& settings, const HubCommit& commit,
                      const std::string& name, const std::stop_token& stop) {
  RemoteFile file{.name = name, .url = {}, .tag = {}, .size = {}};
  file.url = fmt::format("{}/{}/resolve/{}/{}", settings.endpoint, commit.repository, commit.commit,
                         url_encoded(name, true));
  const HttpReply reply = session.head(file.url, stop);
  const bool here = reply.status == 200, elsewhere = reply.status >= 300 && reply.status < 400;
  if (!here && !elsewhere) throw status_error(reply, settings, commit, name);
  // Of a redirect, only the headers about its target are valid.
  std::string tag = reply.header("x-linked-etag");
  if (tag.empty() && here) tag = reply.header("etag");
  file.tag = plain_tag(tag);
  file.size = number_of(reply.header("x-linked-size"));
  if (!file.size && here) file.size = number_of(reply.header("content-length"));
  if (!is_cache_name(file.tag))
    throw Error(name_of(commit, file), settings.endpoint + " sent no valid ETag for it", "check HF_ENDPOINT");
  const std::string answered = reply.header("x-repo-commit");
  if (!answered.empty() && answered != commit.commit)
    throw Error(name_of(commit, file), fmt::format("the reply is about commit {}", answered),
                "fetch it again");
  return file;
}

fs::path download_blob(HttpSession& session, const HubSettings& settings, const HubCommit& commit,
                       const RemoteFile& file, const fs::path& repository, const ReceiveObserver& observer,
                       const std::stop_token& stop) {
  fs::path blob = repository / "blobs" / file.tag;
  if (is_whole(blob, file)) return blob; // of another revision
  make_folders(blob.parent_path());
  const FileLock lock(blob_lock_file(repository, file.tag), stop,
                      "check the folder, or set HF_HOME to another one");
  if (is_whole(blob, file)) return blob; // downloaded by another process meanwhile
  IncompleteFile incomplete(blob.string() + ".incomplete");
  if (file.size && incomplete.size() > *file.size) incomplete.start_over();
  observer(incomplete.size(), 0, false);
  if (!file.size || incomplete.size() != *file.size) {
    check_room(blob, file, incomplete.size());
    receive_all(session, settings, commit, file, incomplete, observer, stop);
  }
  observer(incomplete.size(), 0, true);
  check(commit, file, incomplete, stop);
  incomplete.rename_to(blob);
  return blob;
}

} // namespace hydrascope
