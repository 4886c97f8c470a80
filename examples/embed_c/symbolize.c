// Names addresses of JIT code: symbolize DUMP, with lines "TIME ADDRESS" on standard input.
//
// TIME is a time stamp of the dump, or "latest"; ADDRESS is hexadecimal. For each line it prints the functions at that address,
// innermost first, one a line: address, name, tier, file, line, column, and whether it is inlined, with tabs between them.
// While the program waits for input, the dump may grow.

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perfuse_symbolizer.h"

static const char *or_empty(const char *text) {
    return text ? text : "";
}

static void print(const char *address, const perfuse_answer *answer) {
    const perfuse_code *code = perfuse_answer_code(answer);
    size_t num_frames;
    const perfuse_frame *frames = perfuse_answer_frames(answer, &num_frames);
    for (size_t i = 0; i < num_frames; i++) {
        const perfuse_frame *frame = &frames[i];
        // The outermost function is that of the code: only its name has a tier.
        const char *tier = i + 1 == num_frames ? or_empty(code->tier) : "";
        printf("%s\t%s\t%s\t%s\t%" PRIu32 "\t%" PRIu32 "\t%s\n", address, frame->linkage_name, tier,
               or_empty(frame->path), frame->line, frame->column, frame->is_inlined ? "inlined" : "");
    }
}

static int fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, perfuse_error_message());
    return 1;
}

int main(int argc, char **argv) {
    perfuse_dump *dump;
    perfuse_answer *answer;
    if (argc != 2) {
        fprintf(stderr, "usage: symbolize DUMP < LINES\n");
        return 2;
    }
    if (perfuse_dump_open(argv[1], &dump) != PERFUSE_OK || perfuse_answer_new(&answer) != PERFUSE_OK)
        return fail(argv[1]);

    char time[32], address[32];
    while (scanf("%31s %31s", time, address) == 2) {
        uint64_t at = strcmp(time, "latest") ? strtoull(time, NULL, 10) : PERFUSE_LATEST;
        uint64_t where = strtoull(address, NULL, 16);
        // The code may be newer than what was read of the dump, or may have replaced what was there.
        if (perfuse_dump_poll(dump, NULL) != PERFUSE_OK)
            return fail(argv[1]);
        if (perfuse_dump_find(dump, at, where, answer) == PERFUSE_OK)
            print(address, answer);
        else
            printf("%s\t?\n", address);
        fflush(stdout);
    }

    perfuse_answer_free(answer);
    perfuse_dump_free(dump);
    return 0;
}
