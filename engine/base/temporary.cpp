#include "engine/base/temporary.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/error.h"

namespace hydrascope {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_to_replace(const fs::path& target, const int error) {
  throw Error(target.string(), std::string("cannot be written (") + std::strerror(error) + ")",
              remedy_of_writing(error));
}

// The file that a symbolic link leads to, over others too, whether it is there or not. A link of another user
// is not followed: in a folder of many users it could lead to any file.
fs::path file_behind(fs::path file) {
  constexpr int most_links = 40; // as the kernel
  for (int i = 0; i < most_links; ++i) {
    struct stat status {};
    if (::lstat(file.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) return file;
    if (status.st_uid != ::geteuid() && status.st_uid != 0) return file;
    std::error_code failed;
    const fs::path next = fs::read_symlink(file, failed);
    if (failed) fail_to_replace(file, failed.value());
    file = file.parent_path() / next;
  }
  fail_to_replace(file, ELOOP);
}

struct Permissions {
  mode_t mode = 0;
  gid_t group = 0;
};

// Who may read and write the file; nullopt if there is none.
std::optional<Permissions> permissions_of(const fs::path& file) {
  struct stat status {};
  if (::lstat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return Permissions{status.st_mode & 0777U, status.st_gid};
}

enum class TemporaryKind { file, folder };

struct TemporaryName {
  fs::path path;
  int descriptor = -1; // which holds the lock
};

struct Opened {
  int descriptor = -1;
  bool is_new = false;
};

// Whether the name still stands for what was opened.
bool is_named(const fs::path& name, const int descriptor) {
  struct stat opened {
  }, named{};
  return ::fstat(descriptor, &opened) == 0 && ::lstat(name.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

// Whether what a killed process left is nothing that others could write into.
bool is_own(const int descriptor, const TemporaryKind kind) {
  struct stat opened {};
  return ::fstat(descriptor, &opened) == 0 && opened.st_uid == ::geteuid() &&
         (kind == TemporaryKind::folder || (S_ISREG(opened.st_mode) && opened.st_nlink == 1));
}

Opened open_temporary(const fs::path& name, const TemporaryKind kind, const mode_t mode) {
  constexpr int common = O_CLOEXEC | O_NOFOLLOW;
  if (kind == TemporaryKind::file) {
    for (;;) {
      const int made = ::open(name.c_str(), common | O_WRONLY | O_CREAT | O_EXCL, mode);
      if (made >= 0 || errno != EEXIST) return {made, made >= 0};
      const int found = ::open(name.c_str(), common | O_WRONLY | O_NONBLOCK);
      if (found >= 0 || errno != ENOENT) return {found, false};
      // Another writer has given it its name between the two.
    }
  }
  for (;;) {
    const bool is_new = ::mkdir(name.c_str(), mode) == 0;
    if (!is_new && errno != EEXIST) return {};
    const int found = ::open(name.c_str(), common | O_RDONLY | O_DIRECTORY);
    if (found >= 0 || errno != ENOENT) return {found, is_new};
  }
}

void remove_temporary(const fs::path& name, const TemporaryKind kind) {
  if (kind == TemporaryKind::file)
    ::unlink(name.c_str());
  else
    ::rmdir(name.c_str());
}

// For file systems without locks.
TemporaryName unique_name(const fs::path& target, const TemporaryKind kind, const mode_t mode) {
  std::string name = target.string() + ".XXXXXX";
  const bool is_file = kind == TemporaryKind::file;
  const int descriptor = is_file ? ::mkostemp(name.data(), O_CLOEXEC) : -1;
  if (is_file ? descriptor < 0 : ::mkdtemp(name.data()) == nullptr) fail_to_replace(target, errno);
  // Those functions make private ones.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::chmod(name.c_str(), mode & ~mask);
  return {name, descriptor};
}

// One attempt; nullopt if another process has the name. Allocates nothing once the file is there, which
// would stay if memory ran out.
std::optional<TemporaryName> take_temporary(const fs::path& target, fs::path name, const TemporaryKind kind,
                                            const mode_t mode) {
  const auto [descriptor, is_new] = open_temporary(name, kind, mode);
  if (descriptor < 0) {
    const int error = errno;
    if (is_new) remove_temporary(name, kind);
    struct stat status {};
    if (::lstat(name.c_str(), &status) == 0) return std::nullopt; // another user's
    fail_to_replace(target, error);
  }
  const bool locked = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0;
  const int error = errno;
  if (locked && is_named(name, descriptor) && (is_new || is_own(descriptor, kind)))
    return TemporaryName{std::move(name), descriptor};
  const bool taken = locked || error == EWOULDBLOCK || error == EINTR;
  if (is_new && !taken) remove_temporary(name, kind); // no locks here
  ::close(descriptor);
  if (taken) return std::nullopt;
  return unique_name(target, kind, mode);
}

// `mode`: of a new file or folder, less what the process masks.
TemporaryName take_temporary(const fs::path& target, const TemporaryKind kind, const mode_t mode) {
  constexpr int most = 1000; // processes that write the same target at once
  for (int number = 1; number < most; ++number) {
    fs::path name = target.string() + ".hydrascope-part";
    if (number > 1) name += "-" + std::to_string(number);
    if (auto taken = take_temporary(target, std::move(name), kind, mode)) return *std::move(taken);
  }
  return unique_name(target, kind, mode);
}

} // namespace

const char* remedy_of_writing(const int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT: return "free some space, or write to another disk";
    case EFBIG: return "raise the limit of a file's size (ulimit -f), or write to another disk";
    case EROFS: return "write to another folder: this disk is read-only";
    case ENAMETOOLONG: return "choose a shorter name";
    case EACCES:
    case EPERM: return "write to another folder, or change its permissions";
    default: return "check the folder, its permissions and the free space";
  }
}

void create_folders(const fs::path& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed)
    throw Error(folder.string(), "cannot be made (" + failed.message() + ")",
                remedy_of_writing(failed.value()));
}

void flush_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

void flush_file_system(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool flushed = descriptor >= 0 && ::syncfs(descriptor) == 0;
  const int error = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (!flushed) fail_to_replace(folder, error);
}

TemporaryFile::TemporaryFile(const fs::path& target) : target_(file_behind(target)) {
  const std::optional<Permissions> old = permissions_of(target_);
  // Writable, so that the next writing can take over what a killed process leaves of a read-only file.
  // Not for a group yet: the file is not of the old one's before fchown().
  constexpr mode_t of_group = S_IRWXG;
  const mode_t mode = old ? (old->mode & ~of_group) | S_IWUSR : 0666U;
  TemporaryName taken = take_temporary(target_, TemporaryKind::file, mode);
  name_ = std::move(taken.path);
  descriptor_ = taken.descriptor;
  // Before anything is written: others must not read a private file while it is written. Ignored where the
  // file system has no modes.
  if (old) {
    // Of a group that this user is not in it fails: the user's own then gets what all have.
    const bool kept = ::fchown(descriptor_, static_cast<uid_t>(-1), old->group) == 0;
    const mode_t final_mode = kept ? old->mode : (old->mode & ~of_group) | ((old->mode & S_IRWXO) << 3U);
    ::fchmod(descriptor_, final_mode | S_IWUSR);
    if ((final_mode & S_IWUSR) == 0) read_only_mode_ = final_mode;
  }
  if (::ftruncate(descriptor_, 0) == 0) return;
  const int error = errno;
  ::close(descriptor_);
  fail_to_replace(target_, error);
}

TemporaryFile::~TemporaryFile() {
  if (!committed_) ::unlink(name_.c_str()); // before the lock ends
  ::close(descriptor_);
}

void TemporaryFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_to_replace(target_, errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void TemporaryFile::commit() {
  if (::fsync(descriptor_) != 0) fail_to_replace(target_, errno);
  commit_unflushed();
  flush_folder(target_.parent_path());
}

void TemporaryFile::commit_unflushed() {
  if (read_only_mode_) ::fchmod(descriptor_, *read_only_mode_);
  if (::rename(name_.c_str(), target_.c_str()) != 0) fail_to_replace(target_, errno);
  committed_ = true;
}

TemporaryFolder::TemporaryFolder(const fs::path& target) : target_(target) {
  TemporaryName taken = take_temporary(target, TemporaryKind::folder, 0777U);
  name_ = std::move(taken.path);
  descriptor_ = taken.descriptor;
  std::error_code failed;
  for (fs::directory_iterator entry(name_, failed), end; !failed && entry != end; entry.increment(failed)) {
    fs::remove_all(entry->path(), failed);
    if (failed) break;
  }
  if (!failed) return;
  if (descriptor_ >= 0) ::close(descriptor_);
  fail_to_replace(target_, failed.value());
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code none;
  if (!committed_) fs::remove_all(name_, none);
  if (descriptor_ >= 0) ::close(descriptor_);
}

void TemporaryFolder::commit() {
  if (::rename(name_.c_str(), target_.c_str()) != 0) fail_to_replace(target_, errno);
  committed_ = true;
  flush_folder(target_.parent_path());
}

} // namespace hydrascope
