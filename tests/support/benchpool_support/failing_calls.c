/* Lets one system call of one process fail, once.

   FAULT_FILE names a file that holds "who call number skip id" while a fault is armed. The process whose
   FAULT_WHO is `who` passes over `skip` of its calls of that name and lets the next one fail with
   errno `number`; the file is renamed to FAULT_FILE.done. Calls on files count only for files below
   FAULT_BELOW. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static long (*raw)(long, ...);
static const char *file, *who, *below;
static __thread int inside;
static long armed_id = -1, passed;

__attribute__((constructor)) static void begin(void) {
    raw = dlsym(RTLD_NEXT, "syscall");
    file = getenv("FAULT_FILE");
    who = getenv("FAULT_WHO");
    below = getenv("FAULT_BELOW");
}

static int concerns(const char *path, int fd) {
    char link[64], target[4096];
    if (path == NULL && fd == -1) return 1;
    if (path != NULL && path[0] == '/') return strstr(path, below) != NULL;
    if (path != NULL && fd < 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    long size = raw(SYS_readlinkat, AT_FDCWD, link, target, sizeof target - 1);
    if (size <= 0) return 0;
    target[size] = 0;
    return strstr(target, below) != NULL;
}

/* Returns the number of the error with which this call is to fail, 0 for none. */
static int due(const char *call, const char *path, int fd) {
    if (!raw || !file || !who || !below || inside) return 0;
    char text[256], its_who[32], its_call[32], done[4096];
    int number, saved = errno;
    long skip, id;
    inside = 1;
    int armed = (int)raw(SYS_openat, AT_FDCWD, file, O_RDONLY | O_CLOEXEC);
    int answer = 0;
    if (armed >= 0) {
        long size = raw(SYS_read, armed, text, sizeof text - 1);
        raw(SYS_close, armed);
        text[size > 0 ? size : 0] = 0;
        if (sscanf(text, "%31s %31s %d %ld %ld", its_who, its_call, &number, &skip, &id) == 5 &&
            !strcmp(its_who, who) && !strcmp(its_call, call) && concerns(path, fd)) {
            if (id != armed_id) {
                armed_id = id;
                passed = 0;
            }
            if (passed++ == skip) {
                snprintf(done, sizeof done, "%s.done", file);
                if (raw(SYS_renameat2, AT_FDCWD, file, AT_FDCWD, done, 0) == 0) answer = number;
            }
        }
    }
    inside = 0;
    errno = saved;
    return answer;
}

#define FAIL(call, path, fd) do { int e_ = due(call, path, fd); if (e_) { errno = e_; return -1; } } while (0)
#define REAL(type, name, ...) type (*real)(__VA_ARGS__) = dlsym(RTLD_NEXT, name)

#define OPEN(name, label) int name(const char *path, int flags, ...) { \
    va_list more; va_start(more, flags); mode_t mode = va_arg(more, mode_t); va_end(more); \
    FAIL(label, path, AT_FDCWD); REAL(int, #name, const char *, int, ...); return real(path, flags, mode); }
OPEN(open, "open")
OPEN(open64, "open")

#define OPENAT(name) int name(int where, const char *path, int flags, ...) { \
    va_list more; va_start(more, flags); mode_t mode = va_arg(more, mode_t); va_end(more); \
    FAIL("open", path, where); REAL(int, #name, int, const char *, int, ...); return real(where, path, flags, mode); }
OPENAT(openat)
OPENAT(openat64)

ssize_t write(int fd, const void *data, size_t size) {
    FAIL("write", NULL, fd); REAL(ssize_t, "write", int, const void *, size_t); return real(fd, data, size); }
#define PWRITE(name) ssize_t name(int fd, const void *data, size_t size, off_t at) { \
    FAIL("pwrite", NULL, fd); REAL(ssize_t, #name, int, const void *, size_t, off_t); return real(fd, data, size, at); }
PWRITE(pwrite)
PWRITE(pwrite64)
ssize_t read(int fd, void *data, size_t size) {
    FAIL("read", NULL, fd); REAL(ssize_t, "read", int, void *, size_t); return real(fd, data, size); }
#define PREAD(name) ssize_t name(int fd, void *data, size_t size, off_t at) { \
    FAIL("pread", NULL, fd); REAL(ssize_t, #name, int, void *, size_t, off_t); return real(fd, data, size, at); }
PREAD(pread)
PREAD(pread64)
int unlink(const char *path) {
    FAIL("unlink", path, AT_FDCWD); REAL(int, "unlink", const char *); return real(path); }
int unlinkat(int where, const char *path, int flags) {
    FAIL("unlink", path, where); REAL(int, "unlinkat", int, const char *, int); return real(where, path, flags); }
#define BY_FD(name, label) int name(int fd) { FAIL(label, NULL, fd); REAL(int, #name, int); return real(fd); }
BY_FD(fsync, "fsync")
BY_FD(fdatasync, "fsync")
#define TRUNCATE(name) int name(int fd, off_t size) { FAIL("ftruncate", NULL, fd); REAL(int, #name, int, off_t); return real(fd, size); }
TRUNCATE(ftruncate)
TRUNCATE(ftruncate64)
int mkdir(const char *path, mode_t mode) {
    FAIL("mkdir", path, AT_FDCWD); REAL(int, "mkdir", const char *, mode_t); return real(path, mode); }
int mkdirat(int where, const char *path, mode_t mode) {
    FAIL("mkdir", path, where); REAL(int, "mkdirat", int, const char *, mode_t); return real(where, path, mode); }
int rename(const char *from, const char *to) {
    FAIL("rename", from, AT_FDCWD); REAL(int, "rename", const char *, const char *); return real(from, to); }
int renameat(int there, const char *from, int here, const char *to) {
    FAIL("rename", from, there); REAL(int, "renameat", int, const char *, int, const char *); return real(there, from, here, to); }
int pipe2(int fds[2], int flags) { FAIL("pipe", NULL, -1); REAL(int, "pipe2", int *, int); return real(fds, flags); }
int memfd_create(const char *name, unsigned flags) {
    FAIL("memfd_create", NULL, -1); REAL(int, "memfd_create", const char *, unsigned); return real(name, flags); }
int flock(int fd, int how) {
    FAIL("flock", NULL, fd); REAL(int, "flock", int, int); return real(fd, how); }
pid_t fork(void) { FAIL("fork", NULL, -1); REAL(pid_t, "fork", void); return real(); }
int epoll_ctl(int poll, int what, int fd, struct epoll_event *event) {
    if (what == EPOLL_CTL_ADD) FAIL("epoll_ctl", NULL, -1);
    REAL(int, "epoll_ctl", int, int, int, struct epoll_event *); return real(poll, what, fd, event); }
int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const argv[], char *const env[]) {
    int number = due("posix_spawn", NULL, -1);
    if (number) return number;
    REAL(int, "posix_spawn", pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[], char *const[]);
    return real(pid, path, actions, attributes, argv, env); }
#define FCNTL(name) int name(int fd, int what, ...) { \
    va_list more; va_start(more, what); void *value = va_arg(more, void *); va_end(more); \
    if (what == F_DUPFD_CLOEXEC || what == F_DUPFD) FAIL("dup", NULL, -1); \
    REAL(int, #name, int, int, ...); return real(fd, what, value); }
FCNTL(fcntl)
FCNTL(fcntl64)
long syscall(long number, ...) {
    va_list more; va_start(more, number);
    long a = va_arg(more, long), b = va_arg(more, long), c = va_arg(more, long);
    long d = va_arg(more, long), e = va_arg(more, long), f = va_arg(more, long);
    va_end(more);
    if (!raw) begin();  /* the allocator of Python 3.13 calls before our constructor has run */
    if (number == SYS_pidfd_open) FAIL("pidfd_open", NULL, -1);
    return raw(number, a, b, c, d, e, f); }
