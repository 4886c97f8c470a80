/* Functions that sleep and measure themselves: the program prints the number of calls, the self time and the total time of each.
 * With "throw" calls are also left by longjmp: their time is that of the catcher. With "open" the recording ends before main does.
 * Callers measure the calls from outside, too: the sum of the differences limits what the recorder's own work and pauses of the
 * machine add to the times of the log. */
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TRACED __attribute__((noinline, xray_always_instrument))
#define SILENT __attribute__((noinline, xray_never_instrument))

enum { LEAF, MID, TOP, RECURSIVE, IN_THREAD, THREAD, THROWER, OUTER, CATCHER, MAIN, NUM };
static const char* const names[NUM] = {"leaf",   "mid",     "top",   "recursive", "in_thread",
                                       "thread", "thrower", "outer", "catcher",   "main"};
static struct {
    long calls, self_ns, total_ns, depth;
} known[NUM];
static __thread long callees_ns;
static long known_from_outside[NUM]; /* ns of the outermost calls */
static jmp_buf escape;
static volatile long sink;

struct call {
    int function;
    long start_ns, callees_of_caller_ns;
};

SILENT static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

SILENT static struct call begin(int function) {
    struct call call = {function, now(), callees_ns};
    known[function].calls++;
    known[function].depth++;
    callees_ns = 0;
    return call;
}

SILENT static void end(struct call call) {
    long ns = now() - call.start_ns;
    known[call.function].self_ns += ns - callees_ns;
    if (--known[call.function].depth == 0) known[call.function].total_ns += ns;
    callees_ns = call.callees_of_caller_ns + ns;
}

#define MEASURED(function, statement) \
    do { \
        long start_ns = now(); \
        statement; \
        if (!known[function].depth) known_from_outside[function] += now() - start_ns; \
    } while (0)

SILENT static void nap(long ms) {
    struct timespec t = {0, ms * 1000000};
    nanosleep(&t, 0);
}

TRACED void leaf(void) { struct call call = begin(LEAF); nap(4); end(call); sink++; }
TRACED void mid(void) { struct call call = begin(MID); MEASURED(LEAF, leaf()); MEASURED(LEAF, leaf()); end(call); sink++; }
TRACED void top(void) { struct call call = begin(TOP); MEASURED(MID, mid()); nap(2); end(call); sink++; }
TRACED void recursive(int n) { struct call call = begin(RECURSIVE); if (n) recursive(n - 1); nap(2); end(call); sink++; }
TRACED void in_thread(void) { struct call call = begin(IN_THREAD); nap(7); end(call); sink++; }
TRACED void* thread(void* unused) {
    struct call call = begin(THREAD);
    for (int i = 0; i < 3; i++) MEASURED(IN_THREAD, in_thread());
    end(call);
    sink++;
    return unused;
}
SILENT static void* start_thread(void* unused) {
    MEASURED(THREAD, thread(unused));
    return unused;
}
TRACED void thrower(void) { known[THROWER].calls++; nap(5); longjmp(escape, 1); }
TRACED void outer(void) { known[OUTER].calls++; nap(1); thrower(); sink++; }
TRACED void catcher(void) {
    struct call call = begin(CATCHER);
    nap(1);
    if (!setjmp(escape)) outer();
    end(call);
    sink++;
}

extern void stop_recording(void);
extern long main_ns; /* of the recorder, which calls main */
static int stopped_early;

SILENT static void print_known(void) {
    long disturbed_ns = stopped_early ? 0 : main_ns - known[MAIN].total_ns;
    printf("{\"functions\": {");
    for (int i = 0; i < NUM; i++) {
        if (!known[i].calls) continue;
        if (known_from_outside[i]) disturbed_ns += known_from_outside[i] - known[i].total_ns;
        printf("\"%s\": {\"calls\": %ld, \"self_ns\": %ld, ", names[i], known[i].calls, known[i].self_ns);
        printf("\"total_ns\": %ld}%s", known[i].total_ns, i == MAIN ? "}" : ", ");
    }
    printf(", \"disturbed_ns\": %ld}\n", disturbed_ns);
}

TRACED int main(int argc, char** argv) {
    struct call call = begin(MAIN);
    const char* options = argc > 1 ? argv[1] : "";
    pthread_t other;
    atexit(print_known);
    pthread_create(&other, 0, start_thread, 0);
    for (int i = 0; i < 5; i++) MEASURED(TOP, top());
    MEASURED(RECURSIVE, recursive(3));
    for (int i = 0; i < 2 && strstr(options, "throw"); i++) MEASURED(CATCHER, catcher());
    pthread_join(other, 0);
    nap(3);
    end(call);
    stopped_early = strstr(options, "open") != 0;
    if (stopped_early) stop_recording();
    sink++;
    return 0;
}
