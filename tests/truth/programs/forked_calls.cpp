// Forks while XRay records: parent and child each write a log, and each prints how often it called `leaf` itself.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "xray/xray_interface.h"
#include "xray/xray_log_interface.h"

#define TRACED [[clang::xray_always_instrument]] __attribute__((noinline))

static volatile long sink;
static int leafs;

TRACED void leaf() {
    sink = sink + 1;
    ++leafs;
}

TRACED void before() {
    for (int i = 0; i < 40; ++i) leaf();
}

TRACED void of_child() {
    for (int i = 0; i < 7; ++i) leaf();
}

TRACED void of_parent() {
    for (int i = 0; i < 11; ++i) leaf();
}

static int finish(const char *name) {
    std::printf("%s %d\n", name, leafs);
    std::fflush(stdout);
    __xray_log_finalize();
    return __xray_log_flushLog() == XRAY_LOG_FLUSHED ? 0 : 1;
}

TRACED int serve() {
    before();
    leaf();
    const pid_t child = fork();
    leafs = child == 0 ? 0 : leafs;
    if (child == 0) {
        of_child();
        return 0;
    }
    int status = 1;
    waitpid(child, &status, 0);
    of_parent();
    return status == 0 ? 1 : 2;
}

int main() {
    if (__xray_log_select_mode("xray-fdr") != XRAY_REGISTRATION_OK) return 2;
    if (__xray_log_init_mode("xray-fdr", "func_duration_threshold_us=0:buffer_size=512:buffer_max=100") != XRAY_LOG_INITIALIZED) return 2;
    __xray_patch();
    const int whose = serve();
    return whose == 2 ? 2 : finish(whose == 1 ? "parent" : "child");
}
