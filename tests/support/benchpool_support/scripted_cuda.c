/* A libcuda.so.1 without a GPU: what the driver knows of a process is a file.
 *
 * $SCRIPTED_CUDA/PID holds "STATE BYTES GPU". $SCRIPTED_CUDA/faults holds lines "CALL FAULT": a
 * number is answered by the call, "hang" never answers, "exits" ends who asks, "dies" kills the
 * process, "failed" makes its state failed and answers 999; "breaks" answers 2 and makes every later
 * restore answer 304.
 * Every argument structure is read as the driver's header lays it out; what must be zero and is
 * not is answered by 1 (CUDA_ERROR_INVALID_VALUE).
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { RUNNING, LOCKED, CHECKPOINTED, FAILED };
enum { OK = 0, INVALID = 1, MEMORY = 2, OS_CALL = 304, ILLEGAL_STATE = 401, UNKNOWN = 999 };

typedef struct { char bytes[16]; } Uuid;
typedef struct { unsigned int timeoutMs, reserved0; unsigned long long reserved1[7]; } LockArgs;
typedef struct { Uuid oldUuid, newUuid; } Pair;
typedef struct { Pair *gpuPairs; unsigned int gpuPairsCount; char reserved[52]; } RestoreArgs;

typedef struct { int state; unsigned long long bytes; char gpu[64]; } Known;

static const char *place(void) { return getenv("SCRIPTED_CUDA") ? getenv("SCRIPTED_CUDA") : "/nowhere"; }

static void file_of(int pid, char *path) { snprintf(path, 512, "%s/%d", place(), pid); }

static int known(int pid, Known *it) {
    char path[512];
    file_of(pid, path);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    int found = fscanf(file, "%d %llu %63s", &it->state, &it->bytes, it->gpu);
    fclose(file);
    return found == 3;
}

static void keep(int pid, const Known *it) {
    char path[512], next[528];
    file_of(pid, path);
    snprintf(next, sizeof next, "%s.next", path);
    FILE *file = fopen(next, "w");
    if (!file) return;
    fprintf(file, "%d %llu %s\n", it->state, it->bytes, it->gpu);
    fclose(file);
    rename(next, path);
}

/* Return what a call has to answer, -1 for nothing out of the way. */
static int fault(const char *call, int pid, Known *it) {
    char path[512], name[64], what[64];
    snprintf(path, sizeof path, "%s/faults", place());
    FILE *file = fopen(path, "r");
    if (!file) return -1;
    int answer = -1;
    while (fscanf(file, "%63s %63s", name, what) == 2) {
        if (strcmp(name, call)) continue;
        if (!strcmp(what, "hang")) for (;;) pause();
        if (!strcmp(what, "exits")) _exit(3);
        if (!strcmp(what, "dies")) { kill(pid, SIGKILL); answer = OS_CALL; continue; }
        if (!strcmp(what, "failed")) { it->state = FAILED; keep(pid, it); answer = UNKNOWN; continue; }
        if (!strcmp(what, "breaks")) {
            char broken[528];
            snprintf(broken, sizeof broken, "%s/%d.broken", place(), pid);
            answer = access(broken, F_OK) ? MEMORY : OS_CALL;
            FILE *mark = fopen(broken, "w");
            if (mark) fclose(mark);
            continue;
        }
        answer = atoi(what);
    }
    fclose(file);
    return answer;
}

static int step(const char *call, int pid, int from, int to) {
    Known it;
    if (!known(pid, &it)) return INVALID;
    int answer = fault(call, pid, &it);
    if (answer >= 0) return answer;
    if (it.state != from) return ILLEGAL_STATE;
    it.state = to;
    keep(pid, &it);
    return OK;
}

int cuInit(unsigned int flags) { return flags ? INVALID : OK; }
int cuDriverGetVersion(int *version) { *version = 13000; return OK; }

int cuGetErrorName(int code, const char **name) {
    switch (code) {
    case INVALID: *name = "CUDA_ERROR_INVALID_VALUE"; return OK;
    case MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; return OK;
    case OS_CALL: *name = "CUDA_ERROR_OPERATING_SYSTEM"; return OK;
    case ILLEGAL_STATE: *name = "CUDA_ERROR_ILLEGAL_STATE"; return OK;
    case 600: *name = "CUDA_ERROR_NOT_READY"; return OK;
    case 801: *name = "CUDA_ERROR_NOT_SUPPORTED"; return OK;
    case UNKNOWN: *name = "CUDA_ERROR_UNKNOWN"; return OK;
    }
    return INVALID;
}

int cuCheckpointProcessGetState(int pid, unsigned int *state) {
    Known it;
    if (!known(pid, &it)) return INVALID;
    int answer = fault("state", pid, &it);
    if (answer >= 0) return answer;
    *state = (unsigned int)it.state;
    return OK;
}

int cuCheckpointProcessLock(int pid, LockArgs *args) {
    if (!args || sizeof *args != 64 || !args->timeoutMs || args->reserved0) return INVALID;
    for (int i = 0; i < 7; i++) if (args->reserved1[i]) return INVALID;
    return step("lock", pid, RUNNING, LOCKED);
}

int cuCheckpointProcessCheckpoint(int pid, void *args) {
    return args ? INVALID : step("checkpoint", pid, LOCKED, CHECKPOINTED);
}

int cuCheckpointProcessRestore(int pid, RestoreArgs *args) {
    Known it;
    if (!known(pid, &it)) return INVALID;
    if (args) {
        if (sizeof *args != 64 || args->gpuPairsCount != 1 || !args->gpuPairs) return INVALID;
        for (int i = 0; i < 52; i++) if (args->reserved[i]) return INVALID;
        char was[64] = "GPU-", now[64] = "GPU-";
        for (int i = 0, at = 4; i < 16; i++) {
            if (i == 4 || i == 6 || i == 8 || i == 10) was[at] = now[at] = '-', at++;
            sprintf(was + at, "%02x", (unsigned char)args->gpuPairs->oldUuid.bytes[i]);
            sprintf(now + at, "%02x", (unsigned char)args->gpuPairs->newUuid.bytes[i]);
            at += 2;
        }
        if (strcmp(was, it.gpu)) return INVALID;
        snprintf(it.gpu, sizeof it.gpu, "%s", now);
    }
    int answer = step("restore", pid, CHECKPOINTED, LOCKED);
    if (answer == OK && args) { it.state = LOCKED; keep(pid, &it); }
    return answer;
}

int cuCheckpointProcessUnlock(int pid, void *args) {
    return args ? INVALID : step("unlock", pid, LOCKED, RUNNING);
}

/* What a process does that computes: it waits while its state is not running, as the driver's calls do. */
static void wait_until_running(void) {
    Known it;
    while (known(getpid(), &it) && it.state != RUNNING) usleep(20000);
}

int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return OK; }
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = (void *)&place; return device; }
int cuCtxSetCurrent(void *context) { return context ? OK : INVALID; }

int cuMemAlloc_v2(unsigned long long *memory, size_t bytes) {
    Known it = {RUNNING, bytes, ""};
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    snprintf(it.gpu, sizeof it.gpu, "%s", visible && *visible ? visible : "none");
    *memory = (unsigned long long)(size_t)malloc(bytes);
    keep(getpid(), &it);
    return OK;
}

int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t bytes) {
    wait_until_running();
    memcpy((void *)(size_t)to, from, bytes);
    return OK;
}

int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t bytes) {
    Known it;
    wait_until_running();
    memcpy(to, (void *)(size_t)from, bytes);
    if (fault("contents", getpid(), &it) >= 0) ((char *)to)[0] ^= 1;
    return OK;
}
