// A program that recovers from faults in files that it maps itself, with a handler from before the library and one from after it,
// which calls the one that it replaced: signals DUMP.

#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "perfuse_symbolizer.h"

#define CHECK(condition)                                        \
    do {                                                        \
        if (!(condition)) {                                     \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
            exit(1);                                            \
        }                                                       \
    } while (0)

static sigjmp_buf recovery;
static struct sigaction replaced;

static void recover(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info, (void)context;
    siglongjmp(recovery, 1);
}

static void call_replaced(int signal, siginfo_t *info, void *context) {
    replaced.sa_sigaction(signal, info, context);
}

static void install(void (*handler)(int, siginfo_t *, void *), struct sigaction *before) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGBUS, &action, before) == 0);
}

// Number of faults that the program recovered from, of three.
static int faults(volatile const char *gone) {
    volatile int num = 0;
    for (volatile int i = 0; i < 3; i++) {
        if (sigsetjmp(recovery, 1))
            num++;
        else
            (void)*gone;
    }
    return num;
}

int main(int argc, char **argv) {
    perfuse_dump *dump;
    CHECK(argc == 2);
    int file = open("own", O_RDWR | O_CREAT, 0600);
    CHECK(file >= 0 && ftruncate(file, 4096) == 0);
    volatile const char *gone = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
    CHECK(gone != MAP_FAILED && ftruncate(file, 0) == 0);

    install(recover, NULL);
    CHECK(perfuse_dump_open(argv[1], &dump) == PERFUSE_OK);
    int before = faults(gone);
    install(call_replaced, &replaced);
    int after = faults(gone);
    // The library's handler is in front again, and is called once more by the one that it replaced.
    perfuse_dump *other;
    CHECK(perfuse_dump_open(argv[1], &other) == PERFUSE_OK);
    int around = faults(gone);
    perfuse_dump_free(other);

    // Faults of the library's own mappings are its own, whatever is in front of its handler.
    CHECK(truncate(argv[1], 0) == 0);
    perfuse_dump_finish(dump, NULL);
    CHECK(perfuse_dump_is_whole(dump) == PERFUSE_ERROR_CUT);
    perfuse_dump_free(dump);
    printf("%d + %d + %d faults\n", before, after, around);
    return 0;
}
