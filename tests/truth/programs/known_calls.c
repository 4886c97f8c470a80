/* Functions that sleep and measure themselves: the program prints the number of calls, the self time and the total time of each.
 * With "throw" calls are also left by longjmp: their time is that of the catcher. With "open" the recording ends before main does. */
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
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

SILENT static void nap(long ms) {
    struct timespec t = {0, ms * 1000000};
    nanosleep(&t, 0);
}

TRACED void leaf(void) { struct call call = begin(LEAF); nap(4); end(call); sink++; }
TRACED void mid(void) { struct call call = begin(MID); leaf(); leaf(); end(call); sink++; }
TRACED void top(void) { struct call call = begin(TOP); mid(); nap(2); end(call); sink++; }
TRACED void recursive(int n) { struct call call = begin(RECURSIVE); if (n) recursive(n - 1); nap(2); end(call); sink++; }
TRACED void in_thread(void) { struct call call = begin(IN_THREAD); nap(7); end(call); sink++; }
TRACED void* thread(void* unused) {
    struct call call = begin(THREAD);
    for (int i = 0; i < 3; i++) in_thread();
    end(call);
    sink++;
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

TRACED int main(int argc, char** argv) {
    struct call call = begin(MAIN);
    const char* options = argc > 1 ? argv[1] : "";
    pthread_t other;
    pthread_create(&other, 0, thread, 0);
    for (int i = 0; i < 5; i++) top();
    recursive(3);
    for (int i = 0; i < 2 && strstr(options, "throw"); i++) catcher();
    pthread_join(other, 0);
    nap(3);
    end(call);
    if (strstr(options, "open")) stop_recording();
    printf("{");
    for (int i = 0; i < NUM; i++) {
        if (!known[i].calls) continue;
        printf("\"%s\": {\"calls\": %ld, \"self_ns\": %ld, ", names[i], known[i].calls, known[i].self_ns);
        printf("\"total_ns\": %ld}%s", known[i].total_ns, i == MAIN ? "}\n" : ", ");
    }
    sink++;
    return 0;
}
