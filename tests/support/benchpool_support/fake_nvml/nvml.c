/* A driver's library that answers from a JSON file: libnvidia-ml.so.1 for tests.
 *
 * The file is the one of BENCHPOOL_FAKE_NVML, else fake-nvml.json beside the library; it is read
 * again whenever it changes. Its members are those of ScriptedGpu and ScriptedDriver
 * (benchpool_support/nvml.py). Layouts and names are those of NVIDIA's NVML API reference.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "json.h"

enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7,
       TIMEOUT = 10, NO_FUNCTION = 13, LOST = 15 };
#define MIB (1024ULL * 1024ULL)
#define MOST 256
typedef const char *device; /* a handle is its uuid: it stays, whatever becomes of the order */
typedef struct { char legacy[16]; unsigned domain, bus, slot, id, sub; char text[32]; } pci_info;
typedef struct { unsigned long long total, free, used; } memory_info;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_v2;
typedef struct { unsigned gpu, memory; } rates;
typedef struct { unsigned long long at; union { double d; unsigned ui; unsigned long long ull; } value; } sample;
typedef struct { unsigned pid; unsigned long long used; unsigned gi, ci; } process;
typedef struct { device of; unsigned long long type, data; unsigned gi, ci; } event_data;
typedef struct { unsigned id; int status; double value; const char *names[3]; } metric;
typedef struct { double active, sm; } gpm_sample;
typedef struct { unsigned version, count; gpm_sample *one, *two; metric metrics[]; } metrics_get;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static node *root;
static struct stat seen;
static int users;
static char *names[MOST];
static int told[MOST];

static const char *where(void) {
    static char path[4096];
    const char *given = getenv("BENCHPOOL_FAKE_NVML");
    if (given) return given;
    Dl_info about;
    if (!dladdr((void *)where, &about)) return "fake-nvml.json";
    snprintf(path, sizeof path, "%s", about.dli_fname);
    char *slash = strrchr(path, '/');
    snprintf(slash ? slash + 1 : path, sizeof path - (slash ? slash + 1 - path : 0), "fake-nvml.json");
    return path;
}

static void refresh(void) {
    struct stat now;
    if (stat(where(), &now)) return;
    if (root && now.st_ino == seen.st_ino && now.st_size == seen.st_size &&
        now.st_mtim.tv_sec == seen.st_mtim.tv_sec && now.st_mtim.tv_nsec == seen.st_mtim.tv_nsec)
        return;
    FILE *file = fopen(where(), "r");
    if (!file) return;
    char *text = calloc(1, now.st_size + 1);
    size_t got = fread(text, 1, now.st_size, file);
    fclose(file);
    text[got] = 0;
    json_free(root);
    json_value(text, &root);
    free(text);
    seen = now;
}

static int name_of(const char *uuid) {
    for (int i = 0; i < MOST; i++) {
        if (!names[i]) names[i] = strdup(uuid);
        if (!strcmp(names[i], uuid)) return i;
    }
    return MOST - 1;
}

static device handle_of(node *gpu) { return names[name_of(json_get(gpu, "uuid")->text)]; }

/* The GPU or slice of a uuid; for a slice ``above`` becomes the GPU that it is a slice of. */
static node *find(const char *uuid, node **above) {
    node *gpus = json_get(root, "gpus");
    for (node *gpu = gpus ? gpus->first : NULL; gpu; gpu = gpu->next) {
        if (above) *above = NULL;
        if (!strcmp(json_get(gpu, "uuid")->text, uuid)) return gpu;
        node *parts = json_get(gpu, "slices");
        for (node *part = parts ? parts->first : NULL; part; part = part->next)
            if (part->kind == '{' && !strcmp(json_get(part, "uuid")->text, uuid)) {
                if (above) *above = gpu;
                return part;
            }
    }
    return NULL;
}

/* What stands before every answer: faults of the whole driver, and how slow it is. */
static int before(const char *function) {
    refresh();
    double slow_ms = json_number(json_get(root, "slow_ms"), function, 0);
    if (slow_ms > 0) {
        pthread_mutex_unlock(&lock);
        usleep(slow_ms * 1000);
        pthread_mutex_lock(&lock);
        refresh();
    }
    node *missing = json_get(root, "missing");
    for (node *it = missing ? missing->first : NULL; it; it = it->next)
        if (it->text && !strcmp(it->text, function)) return NO_FUNCTION;
    return json_number(json_get(root, "fails"), function, OK);
}

#define BEGIN(function)                                   \
    pthread_mutex_lock(&lock);                            \
    const char *me = function;                            \
    int code = before(me);                                \
    if (code) goto end;
#define END                                               \
    end:                                                  \
    (void)me;                                             \
    pthread_mutex_unlock(&lock);                          \
    return code;
#define FAIL(with) { code = with; goto end; }
/* The GPU that a call is about, and what it answers instead, where it does. */
#define GPU(of)                                           \
    node *gpu = of ? find(of, NULL) : NULL;               \
    if (!gpu) FAIL(INVALID)                               \
    code = json_number(json_get(gpu, "fails"), me, OK);   \
    if (code) goto end;

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    BEGIN("nvmlInitWithFlags")
    code = json_number(root, "init_result", OK);
    if (!code) users++;
    END
}
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) {
    BEGIN("nvmlShutdown")
    if (!users) FAIL(UNINITIALIZED)
    users--;
    END
}
const char *nvmlErrorString(int code) { return code == LOST ? "GPU is lost" : "an error of the driver"; }

static int copied(const char *text, char *into, unsigned room) {
    if (strlen(text) + 1 > room) return TOO_SMALL;
    strcpy(into, text);
    return OK;
}
int nvmlSystemGetDriverVersion(char *into, unsigned room) {
    BEGIN("nvmlSystemGetDriverVersion")
    code = copied("999.0-fake", into, room);
    END
}
int nvmlSystemGetNVMLVersion(char *into, unsigned room) {
    BEGIN("nvmlSystemGetNVMLVersion")
    code = copied("13.999.0-fake", into, room);
    END
}
int nvmlSystemGetCudaDriverVersion_v2(int *version) {
    BEGIN("nvmlSystemGetCudaDriverVersion_v2")
    *version = 13000;
    END
}
int nvmlDeviceGetCount_v2(unsigned *count) {
    BEGIN("nvmlDeviceGetCount_v2")
    *count = json_count(json_get(root, "gpus"));
    END
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, device *out) {
    BEGIN("nvmlDeviceGetHandleByIndex_v2")
    node *gpu = json_at(json_get(root, "gpus"), index);
    if (!gpu) FAIL(INVALID)
    *out = handle_of(gpu);
    code = json_number(json_get(gpu, "fails"), me, OK);
    END
}
int nvmlDeviceGetHandleByUUID(const char *uuid, device *out) {
    BEGIN("nvmlDeviceGetHandleByUUID")
    node *gpu = find(uuid, NULL);
    if (!gpu) FAIL(NOT_FOUND)
    *out = handle_of(gpu);
    code = json_number(json_get(gpu, "fails"), me, OK);
    END
}
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, device *out) {
    BEGIN("nvmlDeviceGetHandleByPciBusId_v2")
    node *gpu = strncmp(bus, "0000:", 5) ? NULL : find(bus + 5, NULL);
    if (!gpu) FAIL(NOT_FOUND)
    *out = handle_of(gpu);
    END
}
int nvmlDeviceGetUUID(device of, char *into, unsigned room) {
    BEGIN("nvmlDeviceGetUUID") GPU(of)
    code = copied(json_get(gpu, "uuid")->text, into, room);
    END
}
int nvmlDeviceGetName(device of, char *into, unsigned room) {
    BEGIN("nvmlDeviceGetName") GPU(of)
    code = copied(json_get(gpu, "model")->text, into, room);
    END
}
int nvmlDeviceGetIndex(device of, unsigned *index) {
    BEGIN("nvmlDeviceGetIndex") GPU(of)
    *index = 0;
    node *gpus = json_get(root, "gpus");
    for (node *it = gpus->first; it && it != gpu; it = it->next) ++*index;
    END
}
static void pci_of(const char *uuid, pci_info *pci) {
    memset(pci, 0, sizeof *pci);
    snprintf(pci->text, sizeof pci->text, "0000:%s", uuid);
}
int nvmlDeviceGetPciInfo_v3(device of, pci_info *pci) {
    BEGIN("nvmlDeviceGetPciInfo_v3") GPU(of)
    pci_of(of, pci);
    END
}

/* A number that a GPU has, or that its driver does not support. */
#define NUMBER(function, type, member)                    \
    int function(device of, type *out) {                  \
        BEGIN(#function) GPU(of)                          \
        node *known = json_get(gpu, member);              \
        *out = known ? (type)known->number : 0;           \
        if (!known) code = NOT_SUPPORTED;                 \
        END                                               \
    }
NUMBER(nvmlDeviceGetMinorNumber, unsigned, "minor")
NUMBER(nvmlDeviceGetPowerUsage, unsigned, "power_mw")
NUMBER(nvmlDeviceGetTotalEnergyConsumption, unsigned long long, "energy_mj")
NUMBER(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, "clock_reasons")
NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, "clock_reasons")
NUMBER(nvmlDeviceGetNumaNodeId, unsigned, "numa")
NUMBER(nvmlDeviceGetPersistenceMode, unsigned, "persistence")
NUMBER(nvmlDeviceGetComputeMode, unsigned, "compute_mode")

int nvmlDeviceGetTemperature(device of, unsigned sensor, unsigned *out) {
    (void)sensor;
    BEGIN("nvmlDeviceGetTemperature") GPU(of)
    node *known = json_get(gpu, "celsius");
    *out = known ? known->number : 0;
    if (!known) code = NOT_SUPPORTED;
    END
}
int nvmlDeviceGetMemoryInfo(device of, memory_info *out) {
    BEGIN("nvmlDeviceGetMemoryInfo") GPU(of)
    out->total = json_number(gpu, "memory_mib", 0) * MIB;
    out->used = (json_number(gpu, "used_mib", 0) + json_number(root, "reserved_mib", 0)) * MIB;
    out->free = out->total - out->used;
    END
}
int nvmlDeviceGetMemoryInfo_v2(device of, memory_v2 *out) {
    BEGIN("nvmlDeviceGetMemoryInfo_v2") GPU(of)
    if (out->version != 0x02000028) FAIL(25) /* argument version mismatch */
    out->total = json_number(gpu, "memory_mib", 0) * MIB;
    out->used = json_number(gpu, "used_mib", 0) * MIB;
    out->reserved = json_number(root, "reserved_mib", 0) * MIB;
    out->free = out->total - out->used - out->reserved;
    END
}
int nvmlDeviceGetUtilizationRates(device of, rates *out) {
    BEGIN("nvmlDeviceGetUtilizationRates") GPU(of)
    node *known = json_get(gpu, "percent_now");
    if (!known) FAIL(NOT_SUPPORTED)
    out->gpu = known->number;
    out->memory = 0;
    END
}
int nvmlDeviceGetSamples(device of, int kind, unsigned long long after, int *type, unsigned *count, sample *out) {
    (void)kind;
    BEGIN("nvmlDeviceGetSamples") GPU(of)
    node *known = json_get(gpu, "utilisation");
    if (!known) FAIL(NOT_SUPPORTED)
    unsigned found = 0;
    for (node *it = known->first; it; it = it->next) {
        if ((unsigned long long)it->first->number <= after) continue;
        if (out && found < *count) {
            out[found].at = it->first->number;
            out[found].value.ui = it->first->next->number;
        }
        found++;
    }
    if (!found) FAIL(NOT_FOUND)
    *type = 1;
    *count = found;
    END
}
static int processes(const char *function, device of, unsigned *count, process *out) {
    BEGIN(function) GPU(of)
    node *pids = json_get(gpu, "pids");
    unsigned room = *count, known = json_count(pids);
    /* Between being asked how many there are and which, some more come. */
    unsigned there = known + (room ? json_number(gpu, "grows", 0) : 0);
    *count = there;
    if (room < there) FAIL(TOO_SMALL)
    for (unsigned i = 0; i < there; i++) {
        memset(&out[i], 0, sizeof out[i]);
        out[i].pid = i < known ? json_at(pids, i)->number : 90000 + i;
        out[i].used = ~0ULL; /* not available, as in a container */
    }
    END
}
int nvmlDeviceGetComputeRunningProcesses_v2(device of, unsigned *count, process *out) {
    return processes("nvmlDeviceGetComputeRunningProcesses_v2", of, count, out);
}
int nvmlDeviceGetComputeRunningProcesses_v3(device of, unsigned *count, process *out) {
    return processes("nvmlDeviceGetComputeRunningProcesses_v3", of, count, out);
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(device of, unsigned *count, process *out) {
    (void)out;
    BEGIN("nvmlDeviceGetGraphicsRunningProcesses_v3") GPU(of)
    *count = 0;
    END
}

int nvmlDeviceGetMigMode(device of, unsigned *current, unsigned *pending) {
    BEGIN("nvmlDeviceGetMigMode") GPU(of)
    *current = *pending = json_number(gpu, "mig_mode", json_get(gpu, "slices") ? 1 : 0);
    END
}
int nvmlDeviceGetMaxMigDeviceCount(device of, unsigned *count) {
    BEGIN("nvmlDeviceGetMaxMigDeviceCount") GPU(of)
    *count = json_count(json_get(gpu, "slices"));
    END
}
int nvmlDeviceGetMigDeviceHandleByIndex(device of, unsigned index, device *out) {
    BEGIN("nvmlDeviceGetMigDeviceHandleByIndex") GPU(of)
    node *part = json_at(json_get(gpu, "slices"), index);
    if (!part || part->kind != '{') FAIL(NOT_FOUND)
    *out = handle_of(part);
    END
}
int nvmlDeviceIsMigDeviceHandle(device of, unsigned *is) {
    BEGIN("nvmlDeviceIsMigDeviceHandle") GPU(of)
    node *above;
    find(of, &above);
    *is = above != NULL;
    END
}
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device of, device *out) {
    BEGIN("nvmlDeviceGetDeviceHandleFromMigDeviceHandle") GPU(of)
    node *above;
    find(of, &above);
    if (!above) FAIL(INVALID)
    *out = handle_of(above);
    END
}
static int instance(const char *function, device of, int which, unsigned *out) {
    BEGIN(function) GPU(of)
    node *known = json_at(json_get(gpu, "instances"), which);
    *out = known ? known->number : 0;
    if (!known) code = NOT_SUPPORTED;
    END
}
int nvmlDeviceGetGpuInstanceId(device of, unsigned *out) {
    return instance("nvmlDeviceGetGpuInstanceId", of, 0, out);
}
int nvmlDeviceGetComputeInstanceId(device of, unsigned *out) {
    return instance("nvmlDeviceGetComputeInstanceId", of, 1, out);
}

int nvmlDeviceGetNvLinkState(device of, unsigned link, unsigned *active) {
    BEGIN("nvmlDeviceGetNvLinkState") GPU(of)
    if (!json_at(json_get(gpu, "nvlinks"), link)) FAIL(INVALID)
    *active = 1;
    END
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(device of, unsigned link, pci_info *pci) {
    BEGIN("nvmlDeviceGetNvLinkRemotePciInfo_v2") GPU(of)
    node *end_of = json_at(json_get(gpu, "nvlinks"), link);
    if (!end_of) FAIL(INVALID)
    memset(pci, 0, sizeof *pci);
    for (int i = 0; end_of->text[i] && i < 31; i++) pci->text[i] = toupper((unsigned char)end_of->text[i]);
    END
}
int nvmlDeviceGetTopologyCommonAncestor(device one, device other, unsigned *level) {
    BEGIN("nvmlDeviceGetTopologyCommonAncestor") GPU(one)
    node *known = json_get(json_get(gpu, "ancestors"), other);
    *level = known ? known->number : 0;
    if (!known) code = NOT_SUPPORTED;
    END
}
int nvmlDeviceGetCpuAffinity(device of, unsigned words, unsigned long *mask) {
    BEGIN("nvmlDeviceGetCpuAffinity") GPU(of)
    uint64_t cores = json_number(gpu, "cores", 0);
    for (unsigned i = 0; i < words; i++) mask[i] = i ? 0 : cores;
    if (!cores) code = NOT_SUPPORTED;
    END
}

int nvmlGpmQueryDeviceSupport(device of, unsigned *support) {
    BEGIN("nvmlGpmQueryDeviceSupport") GPU(of)
    support[1] = json_get(gpu, "gpm") != NULL;
    END
}
int nvmlGpmSampleAlloc(gpm_sample **out) {
    BEGIN("nvmlGpmSampleAlloc")
    *out = calloc(1, sizeof **out);
    END
}
int nvmlGpmSampleFree(gpm_sample *it) {
    BEGIN("nvmlGpmSampleFree")
    free(it);
    END
}
static void gpm_from(node *gpu, gpm_sample *out) {
    out->sm = json_number(gpu, "gpm", 0);
    out->active = json_number(gpu, "gpm_active", out->sm);
}
int nvmlGpmSampleGet(device of, gpm_sample *out) {
    BEGIN("nvmlGpmSampleGet") GPU(of)
    gpm_from(gpu, out);
    END
}
int nvmlGpmMigSampleGet(device of, unsigned gi, gpm_sample *out) {
    BEGIN("nvmlGpmMigSampleGet") GPU(of)
    node *parts = json_get(gpu, "slices");
    code = NOT_FOUND;
    for (node *part = parts ? parts->first : NULL; part; part = part->next) {
        node *known = part->kind == '{' ? json_at(json_get(part, "instances"), 0) : NULL;
        if (code && known && known->number == gi) {
            gpm_from(part, out);
            code = OK;
        }
    }
    END
}
int nvmlGpmMetricsGet(metrics_get *both) {
    BEGIN("nvmlGpmMetricsGet")
    if (both->version != 1 || !both->one || !both->two) FAIL(INVALID)
    for (unsigned i = 0; i < both->count; i++) {
        unsigned id = both->metrics[i].id;
        both->metrics[i].status = id == 1 || id == 2 ? OK : NOT_SUPPORTED;
        both->metrics[i].value = 100.0 * (id == 1 ? both->two->active : both->two->sm);
    }
    END
}

int nvmlEventSetCreate(void **out) {
    BEGIN("nvmlEventSetCreate")
    *out = calloc(1, 1);
    END
}
int nvmlEventSetFree(void *it) {
    BEGIN("nvmlEventSetFree")
    free(it);
    END
}
int nvmlDeviceRegisterEvents(device of, unsigned long long kinds, void *set) {
    (void)kinds, (void)set;
    BEGIN("nvmlDeviceRegisterEvents") GPU(of)
    END
}
/* Each error is told once; without one, time is over after a moment. */
int nvmlEventSetWait_v2(void *set, event_data *out, unsigned timeout_ms) {
    (void)set, (void)timeout_ms;
    BEGIN("nvmlEventSetWait_v2")
    node *gpus = json_get(root, "gpus");
    for (node *gpu = gpus ? gpus->first : NULL; gpu; gpu = gpu->next) {
        node *xids = json_get(gpu, "xids");
        int it = name_of(json_get(gpu, "uuid")->text);
        if (told[it] >= json_count(xids)) continue;
        memset(out, 0, sizeof *out);
        out->of = names[it];
        out->type = json_number(gpu, "event_type", 8);
        out->data = json_at(xids, told[it]++)->number;
        goto end;
    }
    code = TIMEOUT;
    pthread_mutex_unlock(&lock);
    usleep(10000);
    pthread_mutex_lock(&lock);
    END
}
