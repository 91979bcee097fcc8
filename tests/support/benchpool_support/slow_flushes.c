/* A disk whose flushes are slow: fsync and fdatasync of files below $SLOW_BELOW take $SLOW_S seconds.
 * Each adds a byte to $SLOW_SEEN as it begins. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void delay(int descriptor) {
  const char *below = getenv("SLOW_BELOW"), *seen = getenv("SLOW_SEEN"), *seconds = getenv("SLOW_S");
  char link[64], path[PATH_MAX];
  if (!below || !seen || !seconds) return;
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return;
  path[length] = 0;
  if (strncmp(path, below, strlen(below))) return;
  int file = open(seen, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (file >= 0) {
    if (write(file, ".", 1) < 0) { /* the test sees no flush then */ }
    close(file);
  }
  struct timespec pause = {atoi(seconds), 0};
  nanosleep(&pause, NULL);
}

int fsync(int descriptor) {
  delay(descriptor);
  return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(descriptor);
}

int fdatasync(int descriptor) {
  delay(descriptor);
  return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(descriptor);
}
