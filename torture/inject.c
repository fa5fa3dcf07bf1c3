/* Count the file operations of a process, and kill it or fail one of them on purpose.
 *
 * Built on the spot and loaded with LD_PRELOAD. Nothing happens until `inject_arm` is called, and
 * only in the process that called it. Only operations that change something below one folder
 * count; they are numbered from 1, and each writes one line to a trace before it happens.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { COUNT, KILL_BEFORE, KILL_MIDDLE, KILL_AFTER, FAIL_ONCE, FAIL_ON };
enum { GO_ON, HALF, DIE, FAIL };
#define LONGEST 8192

static char root[PATH_MAX];
static size_t root_length;
static atomic_long counted;
static long at;
static int mode, failure, trace = -1;
static pid_t armed; /* children of the process inherit the memory, not the fault */

void inject_arm(const char *folder, long number, int how, int error, int trace_to)
{
    snprintf(root, sizeof root, "%s", folder);
    root_length = strlen(root);
    counted = 0;
    at = number;
    mode = how;
    failure = error;
    trace = trace_to;
    armed = getpid();
}

void inject_disarm(void) { armed = 0; }

long inject_count(void) { return counted; }

/* ---- where an operation takes place */

static void path_of(int fd, char *into)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, into, LONGEST - 1);
    into[n > 0 ? n : 0] = 0;
}

static void path_at(int folder, const char *path, char *into)
{
    char parent[LONGEST] = "";
    if (path[0] == '/') {
        snprintf(into, LONGEST, "%s", path);
        return;
    }
    if (folder != AT_FDCWD)
        path_of(folder, parent);
    else if (getcwd(parent, sizeof parent) == NULL)
        parent[0] = 0;
    while (path[0] == '.' && path[1] == '/')
        path += 2;
    if (strlen(parent) + strlen(path) + 2 > LONGEST)
        path = "";
    strcpy(into, parent);
    strcat(into, "/");
    strcat(into, path);
}

static int is_below(const char *path)
{
    return strncmp(path, root, root_length) == 0 &&
           (path[root_length] == '/' || path[root_length] == 0);
}

/* ---- what happens to it */

_Noreturn static void die(void)
{
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

static int can_be_full(const char *name)
{
    return strcmp(name, "unlink") && strcmp(name, "rmdir") && strcmp(name, "chmod") &&
           strcmp(name, "utime");
}

/* Count an operation and decide: GO_ON, HALF (write half, then die), DIE (afterwards) or FAIL. */
static int decide(const char *name, const char *path, const char *second, size_t size)
{
    char line[3 * LONGEST];
    if (armed == 0 || armed != getpid())
        return GO_ON;
    if (!is_below(path) && !(second && is_below(second)))
        return GO_ON;
    long number = ++counted;
    if (trace >= 0) {
        int length = snprintf(line, sizeof line, "%ld\t%s\t%zu\t%s%s%s", number, name, size, path,
                              second ? "\t" : "", second ? second : "");
        for (int i = 0; i < length; i++)
            if ((unsigned char)line[i] < ' ' && line[i] != '\t')
                line[i] = '?';
        line[length++] = '\n';
        syscall(SYS_write, trace, line, length);
    }
    if (mode == FAIL_ON && number >= at) {
        if (failure != ENOSPC || can_be_full(name)) {
            errno = failure;
            return FAIL;
        }
        return GO_ON;
    }
    if (number != at)
        return GO_ON;
    switch (mode) {
    case KILL_BEFORE:
        die();
    case KILL_MIDDLE:
        return HALF;
    case KILL_AFTER:
        return DIE;
    case FAIL_ONCE:
        if (failure == ENOSPC && !can_be_full(name))
            return GO_ON;
        errno = failure;
        return FAIL;
    }
    return GO_ON;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define DONE(decision, result)          \
    do {                                \
        if ((decision) != GO_ON) die(); \
        return (result);                \
    } while (0)

/* ---- opening and creating */

static int open_any(int folder, const char *path, int flags, mode_t mode_bits)
{
    char where[LONGEST];
    int decision = GO_ON;
    if (armed && (flags & (O_CREAT | O_TRUNC))) {
        path_at(folder, path, where);
        decision = decide("create", where, NULL, 0);
    }
    if (decision == FAIL)
        return -1;
    int fd = (int)syscall(SYS_openat, folder, path, flags, mode_bits);
    DONE(decision, fd);
}

#define MODE_BITS(flags)                          \
    mode_t mode_bits = 0;                         \
    if ((flags) & (O_CREAT | O_TMPFILE)) {        \
        va_list rest;                             \
        va_start(rest, flags);                    \
        mode_bits = va_arg(rest, mode_t);         \
        va_end(rest);                             \
    }

int open(const char *path, int flags, ...)
{
    MODE_BITS(flags)
    return open_any(AT_FDCWD, path, flags, mode_bits);
}

int open64(const char *path, int flags, ...)
{
    MODE_BITS(flags)
    return open_any(AT_FDCWD, path, flags, mode_bits);
}

int openat(int folder, const char *path, int flags, ...)
{
    MODE_BITS(flags)
    return open_any(folder, path, flags, mode_bits);
}

int openat64(int folder, const char *path, int flags, ...)
{
    MODE_BITS(flags)
    return open_any(folder, path, flags, mode_bits);
}

int creat(const char *path, mode_t bits)
{
    return open_any(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, bits);
}

int creat64(const char *path, mode_t bits) { return creat(path, bits); }

/* ---- writing */

static int decide_fd(const char *name, int fd, size_t size)
{
    char where[LONGEST];
    if (!armed)
        return GO_ON;
    path_of(fd, where);
    return decide(name, where, NULL, size);
}

ssize_t write(int fd, const void *bytes, size_t size)
{
    int decision = decide_fd("write", fd, size);
    if (decision == FAIL)
        return -1;
    ssize_t n = syscall(SYS_write, fd, bytes, decision == HALF ? size / 2 : size);
    DONE(decision, n);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t offset)
{
    int decision = decide_fd("write", fd, size);
    if (decision == FAIL)
        return -1;
    ssize_t n = syscall(SYS_pwrite64, fd, bytes, decision == HALF ? size / 2 : size, offset);
    DONE(decision, n);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    return pwrite64(fd, bytes, size, offset);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    size_t size = 0;
    for (int i = 0; i < count; i++)
        size += parts[i].iov_len;
    int decision = decide_fd("write", fd, size);
    if (decision == FAIL)
        return -1;
    ssize_t n = syscall(SYS_writev, fd, parts, decision == HALF ? count / 2 : count);
    DONE(decision, n);
}

ssize_t sendfile64(int out, int in, off64_t *offset, size_t size)
{
    int decision = decide_fd("write", out, size);
    if (decision == FAIL)
        return -1;
    ssize_t n = syscall(SYS_sendfile, out, in, offset, decision == HALF ? size / 2 : size);
    DONE(decision, n);
}

ssize_t sendfile(int out, int in, off_t *offset, size_t size)
{
    return sendfile64(out, in, (off64_t *)offset, size);
}

ssize_t copy_file_range(int in, off64_t *in_at, int out, off64_t *out_at, size_t size,
                        unsigned int flags)
{
    int decision = decide_fd("write", out, size);
    if (decision == FAIL)
        return -1;
    size_t part = decision == HALF ? size / 2 : size;
    ssize_t n = syscall(SYS_copy_file_range, in, in_at, out, out_at, part, flags);
    DONE(decision, n);
}

#define ON_FD(name, word, declaration, arguments)       \
    int name declaration                                \
    {                                                   \
        int decision = decide_fd(word, fd, 0);          \
        if (decision == FAIL)                           \
            return -1;                                  \
        int result = REAL(name) arguments;              \
        DONE(decision, result);                         \
    }

ON_FD(fsync, "fsync", (int fd), (fd))
ON_FD(fdatasync, "fsync", (int fd), (fd))
ON_FD(ftruncate, "truncate", (int fd, off_t size), (fd, size))
ON_FD(ftruncate64, "truncate", (int fd, off64_t size), (fd, size))
ON_FD(fchmod, "chmod", (int fd, mode_t bits), (fd, bits))
ON_FD(futimens, "utime", (int fd, const struct timespec times[2]), (fd, times))

/* ---- names */

#define ON_PATH(name, word, folder, declaration, arguments)     \
    int name declaration                                        \
    {                                                           \
        char where[LONGEST];                                    \
        int decision = GO_ON;                                   \
        if (armed) {                                            \
            path_at(folder, path, where);                       \
            decision = decide(word, where, NULL, 0);            \
        }                                                       \
        if (decision == FAIL)                                   \
            return -1;                                          \
        int result = REAL(name) arguments;                      \
        DONE(decision, result);                                 \
    }

ON_PATH(unlink, "unlink", AT_FDCWD, (const char *path), (path))
ON_PATH(unlinkat, flags & AT_REMOVEDIR ? "rmdir" : "unlink", folder,
        (int folder, const char *path, int flags), (folder, path, flags))
ON_PATH(rmdir, "rmdir", AT_FDCWD, (const char *path), (path))
ON_PATH(mkdir, "mkdir", AT_FDCWD, (const char *path, mode_t bits), (path, bits))
ON_PATH(mkdirat, "mkdir", folder, (int folder, const char *path, mode_t bits),
        (folder, path, bits))
ON_PATH(truncate, "truncate", AT_FDCWD, (const char *path, off_t size), (path, size))
ON_PATH(truncate64, "truncate", AT_FDCWD, (const char *path, off64_t size), (path, size))
ON_PATH(chmod, "chmod", AT_FDCWD, (const char *path, mode_t bits), (path, bits))
ON_PATH(fchmodat, "chmod", folder, (int folder, const char *path, mode_t bits, int flags),
        (folder, path, bits, flags))
ON_PATH(symlink, "symlink", AT_FDCWD, (const char *target, const char *path), (target, path))
ON_PATH(symlinkat, "symlink", folder, (const char *target, int folder, const char *path),
        (target, folder, path))

ON_PATH(utimensat, "utime", folder,
        (int folder, const char *path, const struct timespec times[2], int flags),
        (folder, path, times, flags))

#define ON_TWO(name, word, from_folder, to_folder, declaration, arguments)      \
    int name declaration                                                        \
    {                                                                           \
        char from[LONGEST], to[LONGEST];                                        \
        int decision = GO_ON;                                                   \
        if (armed) {                                                            \
            path_at(from_folder, old, from);                                    \
            path_at(to_folder, new, to);                                        \
            decision = decide(word, from, to, 0);                               \
        }                                                                       \
        if (decision == FAIL)                                                   \
            return -1;                                                          \
        int result = REAL(name) arguments;                                      \
        DONE(decision, result);                                                 \
    }

ON_TWO(rename, "rename", AT_FDCWD, AT_FDCWD, (const char *old, const char *new), (old, new))
ON_TWO(renameat, "rename", here, there, (int here, const char *old, int there, const char *new),
       (here, old, there, new))
ON_TWO(renameat2, "rename", here, there,
       (int here, const char *old, int there, const char *new, unsigned int flags),
       (here, old, there, new, flags))
ON_TWO(link, "link", AT_FDCWD, AT_FDCWD, (const char *old, const char *new), (old, new))
ON_TWO(linkat, "link", here, there,
       (int here, const char *old, int there, const char *new, int flags),
       (here, old, there, new, flags))
