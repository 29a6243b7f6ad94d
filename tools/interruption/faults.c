// Preloaded into a program by tools/interrupt: counts its changes below a folder and, at one of them, kills the
// program, or from there on fails as a full or a read-only disk does. Of the write at which it happens the first
// half of the bytes reaches the file.
//
//   INTERRUPT_FOLDER     absolute, without links
//   INTERRUPT_MODE       kill, full or read-only; else changes are only noted
//   INTERRUPT_AT         the number of the change, from 1
//   INTERRUPT_LOG        file to which a line for each change is added; it ends in "refused" where the disk fails
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum mode { note, kill_it, full, read_only };
enum kind { grows, moves, removes }; // a full disk refuses the first alone

static atomic_long changes;

static enum mode mode_of(void) {
  const char* text = getenv("INTERRUPT_MODE");
  if (text == NULL) return note;
  if (strcmp(text, "kill") == 0) return kill_it;
  if (strcmp(text, "full") == 0) return full;
  return strcmp(text, "read-only") == 0 ? read_only : note;
}

static int below(const char* path) {
  const char* folder = getenv("INTERRUPT_FOLDER");
  if (folder == NULL || path == NULL) return 0;
  const size_t length = strlen(folder);
  return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == 0);
}

static void absolute(int folder, const char* path, char* to) {
  char base[PATH_MAX] = "";
  if (path[0] != '/') {
    char link[64];
    snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
    const ssize_t length = readlink(link, base, sizeof base - 1);
    base[length > 0 ? length : 0] = 0;
  }
  snprintf(to, PATH_MAX, "%s%s%.2000s", base, base[0] != 0 ? "/" : "", path);
}

static void of_descriptor(int descriptor, char* to) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t length = readlink(link, to, PATH_MAX - 1);
  to[length > 0 ? length : 0] = 0;
}

enum answer { go_on, half, refuse };

// Counts a change of this path and says what becomes of it. Sets errno where it is refused.
static enum answer change(const char* what, const char* path, enum kind kind) {
  if (!below(path)) return go_on;
  const long number = atomic_fetch_add(&changes, 1) + 1;
  const char* text = getenv("INTERRUPT_AT");
  const long at = text != NULL ? atol(text) : 1;
  enum answer answer = go_on;
  int error = errno;
  const char* outcome = "";
  switch (mode_of()) {
    case kill_it:
      if (number == at) answer = half;
      break;
    case full:
      if (kind != grows || number < at) break;
      answer = number == at ? half : refuse;
      error = ENOSPC;
      outcome = " refused";
      break;
    case read_only:
      answer = refuse;
      error = EROFS;
      outcome = " refused";
      break;
    default: break;
  }
  const char* log = getenv("INTERRUPT_LOG");
  if (log != NULL) {
    char line[PATH_MAX + 64];
    const int length = snprintf(line, sizeof line, "%ld %s %.3000s%s\n", number, what, path, outcome);
    const int to = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    syscall(SYS_write, to, line, (size_t)length);
    syscall(SYS_close, to);
  }
  errno = error;
  return answer;
}

static void end(void) {
  if (mode_of() == kill_it) kill(getpid(), SIGKILL);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
// What is not done in halves.
#define GUARD(what, path, kind, failed)                  \
  do {                                                   \
    const enum answer answer_ = change(what, path, kind); \
    if (answer_ != go_on) {                              \
      end();                                             \
      return failed;                                     \
    }                                                    \
  } while (0)

// ---- Creating ----

static int opening(int folder, const char* path, int flags, mode_t mode) {
  char name[PATH_MAX];
  absolute(folder, path, name);
  struct stat status;
  const int there = fstatat(folder, path, &status, 0) == 0;
  if ((flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0)
    GUARD("open", name, there && (flags & O_TMPFILE) != O_TMPFILE ? moves : grows, -1);
  return (int)syscall(SYS_openat, folder, path, flags, mode);
}

#define MODE_OF(flags)                                     \
  mode_t mode = 0;                                         \
  if (((flags) & (O_CREAT | O_TMPFILE)) != 0) {            \
    va_list list;                                          \
    va_start(list, flags);                                 \
    mode = va_arg(list, mode_t);                           \
    va_end(list);                                          \
  }

int open(const char* path, int flags, ...) { MODE_OF(flags) return opening(AT_FDCWD, path, flags, mode); }
int open64(const char* path, int flags, ...) { MODE_OF(flags) return opening(AT_FDCWD, path, flags, mode); }
int openat(int folder, const char* path, int flags, ...) { MODE_OF(flags) return opening(folder, path, flags, mode); }
int openat64(int folder, const char* path, int flags, ...) { MODE_OF(flags) return opening(folder, path, flags, mode); }
int creat(const char* path, mode_t mode) { return opening(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

static int writes(const char* mode) { return strpbrk(mode, "wa+") != NULL; }
FILE* fopen(const char* path, const char* mode) {
  char name[PATH_MAX];
  absolute(AT_FDCWD, path, name);
  if (writes(mode)) GUARD("open", name, access(path, F_OK) == 0 ? moves : grows, NULL);
  return NEXT(fopen)(path, mode);
}
FILE* fopen64(const char* path, const char* mode) {
  char name[PATH_MAX];
  absolute(AT_FDCWD, path, name);
  if (writes(mode)) GUARD("open", name, access(path, F_OK) == 0 ? moves : grows, NULL);
  return NEXT(fopen64)(path, mode);
}

#define NAMED(type, name, parameters, arguments, what, kind, failed) \
  type name parameters {                                             \
    char full_name[PATH_MAX];                                        \
    absolute(AT_FDCWD, path, full_name);                             \
    GUARD(what, full_name, kind, failed);                            \
    return NEXT(name) arguments;                                     \
  }

NAMED(int, mkostemp, (char* path, int flags), (path, flags), "open", grows, -1)
NAMED(int, mkstemp, (char* path), (path), "open", grows, -1)
NAMED(char*, mkdtemp, (char* path), (path), "mkdir", grows, NULL)
NAMED(int, mkdir, (const char* path, mode_t mode), (path, mode), "mkdir", grows, -1)
NAMED(int, rmdir, (const char* path), (path), "rmdir", removes, -1)
NAMED(int, unlink, (const char* path), (path), "unlink", removes, -1)
NAMED(int, remove, (const char* path), (path), "unlink", removes, -1)
NAMED(int, symlink, (const char* to, const char* path), (to, path), "symlink", grows, -1)
NAMED(int, link, (const char* from, const char* path), (from, path), "link", grows, -1)
NAMED(int, rename, (const char* from, const char* path), (from, path), "rename", moves, -1)
NAMED(int, truncate, (const char* path, off_t size), (path, size), "truncate", moves, -1)

#define NAMED_AT(name, parameters, arguments, what, kind) \
  int name parameters {                                   \
    char full_name[PATH_MAX];                             \
    absolute(folder, path, full_name);                    \
    GUARD(what, full_name, kind, -1);                     \
    return NEXT(name) arguments;                          \
  }

NAMED_AT(mkdirat, (int folder, const char* path, mode_t mode), (folder, path, mode), "mkdir", grows)
NAMED_AT(unlinkat, (int folder, const char* path, int flags), (folder, path, flags), "unlink", removes)
NAMED_AT(symlinkat, (const char* to, int folder, const char* path), (to, folder, path), "symlink", grows)
NAMED_AT(linkat, (int old, const char* from, int folder, const char* path, int flags), (old, from, folder, path, flags), "link", grows)
NAMED_AT(renameat, (int old, const char* from, int folder, const char* path), (old, from, folder, path), "rename", moves)
NAMED_AT(renameat2, (int old, const char* from, int folder, const char* path, unsigned flags), (old, from, folder, path, flags), "rename", moves)

// ---- Writing ----

// As `full` bytes at once, or half of them and then the end.
#define WRITING(descriptor, bytes, all, some)                        \
  char name_[PATH_MAX];                                              \
  of_descriptor(descriptor, name_);                                  \
  switch (change("write", name_, grows)) {                           \
    case go_on: return all;                                          \
    case refuse: return -1;                                          \
    default: break;                                                  \
  }                                                                  \
  if ((bytes) < 2 && mode_of() == full) return -1;                   \
  const ssize_t written_ = (bytes) < 2 ? 0 : some;                   \
  end();                                                             \
  return written_;

ssize_t write(int descriptor, const void* from, size_t bytes) {
  WRITING(descriptor, bytes, syscall(SYS_write, descriptor, from, bytes), syscall(SYS_write, descriptor, from, bytes / 2))
}
ssize_t pwrite(int descriptor, const void* from, size_t bytes, off_t at) {
  WRITING(descriptor, bytes, syscall(SYS_pwrite64, descriptor, from, bytes, at), syscall(SYS_pwrite64, descriptor, from, bytes / 2, at))
}
ssize_t pwrite64(int descriptor, const void* from, size_t bytes, off_t at) { return pwrite(descriptor, from, bytes, at); }
ssize_t writev(int descriptor, const struct iovec* from, int count) {
  WRITING(descriptor, from[0].iov_len, syscall(SYS_writev, descriptor, from, count), syscall(SYS_write, descriptor, from[0].iov_base, from[0].iov_len / 2))
}
ssize_t sendfile(int to, int from, off_t* at, size_t bytes) {
  WRITING(to, bytes, NEXT(sendfile)(to, from, at, bytes), NEXT(sendfile)(to, from, at, bytes / 2))
}
ssize_t sendfile64(int to, int from, off_t* at, size_t bytes) { return sendfile(to, from, at, bytes); }
ssize_t copy_file_range(int from, off_t* at, int to, off_t* to_at, size_t bytes, unsigned flags) {
  WRITING(to, bytes, NEXT(copy_file_range)(from, at, to, to_at, bytes, flags), NEXT(copy_file_range)(from, at, to, to_at, bytes / 2, flags))
}

#define OPENED(name, parameters, arguments, what, kind, failed) \
  int name parameters {                                         \
    char full_name[PATH_MAX];                                   \
    of_descriptor(descriptor, full_name);                       \
    GUARD(what, full_name, kind, failed);                       \
    return NEXT(name) arguments;                                \
  }

OPENED(ftruncate, (int descriptor, off_t size), (descriptor, size), "truncate", moves, -1)
OPENED(ftruncate64, (int descriptor, off_t size), (descriptor, size), "truncate", moves, -1)
OPENED(fallocate, (int descriptor, int flags, off_t at, off_t bytes), (descriptor, flags, at, bytes), "allocate", grows, -1)
OPENED(posix_fallocate, (int descriptor, off_t at, off_t bytes), (descriptor, at, bytes), "allocate", grows, errno)
OPENED(posix_fallocate64, (int descriptor, off_t at, off_t bytes), (descriptor, at, bytes), "allocate", grows, errno)
OPENED(fsync, (int descriptor), (descriptor), "flush", moves, -1)
OPENED(fdatasync, (int descriptor), (descriptor), "flush", moves, -1)
