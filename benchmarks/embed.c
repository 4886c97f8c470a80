// Looks up addresses with the embedded library: embed DUMP QUESTIONS, pairs of time stamp and address as 64-bit numbers.
//
// Prints seconds to open the dump, and look-ups a second of the processor: of code alone; with lines and inlined calls, the first
// and the second time; the same in two threads, per second of wall time.

#define _DEFAULT_SOURCE
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "perfuse_symbolizer.h"

typedef perfuse_status (*look_up)(const perfuse_dump *, uint64_t, uint64_t, perfuse_answer *);

struct work {
    const perfuse_dump *dump;
    const uint64_t *questions;
    size_t num;
    look_up find;
    size_t num_found, num_lines;
};

static double now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void *run(void *argument) {
    struct work *work = argument;
    perfuse_answer *answer;
    if (perfuse_answer_new(&answer) != PERFUSE_OK)
        abort();
    for (size_t i = 0; i < work->num; i++) {
        const uint64_t *question = work->questions + 2 * i;
        if (work->find(work->dump, question[0], question[1], answer) == PERFUSE_OK) {
            size_t num_frames;
            const perfuse_frame *frames = perfuse_answer_frames(answer, &num_frames);
            work->num_found++;
            work->num_lines += num_frames > 0 && frames[0].line > 0;
        }
    }
    perfuse_answer_free(answer);
    return NULL;
}

static void measure(const char *what, struct work work, int num_threads) {
    pthread_t threads[8];
    struct work parts[8];
    clockid_t clock = num_threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
    double begin = now(clock);
    for (int i = 0; i < num_threads; i++) {
        parts[i] = work;
        if (pthread_create(&threads[i], NULL, run, &parts[i]))
            abort();
    }
    size_t num_found = 0, num_lines = 0;
    for (int i = 0; i < num_threads; i++) {
        pthread_join(threads[i], NULL);
        num_found += parts[i].num_found;
        num_lines += parts[i].num_lines;
    }
    double seconds = now(clock) - begin;
    printf("%s\t%.0f\t%zu\t%zu\n", what, (double)work.num * num_threads / seconds, num_found, num_lines);
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    FILE *file = fopen(argv[2], "rb");
    if (!file)
        return 1;
    fseek(file, 0, SEEK_END);
    size_t num = (size_t)ftell(file) / 16;
    rewind(file);
    uint64_t *questions = malloc(num * 16);
    if (!questions || fread(questions, 16, num, file) != num)
        return 1;

    perfuse_dump *dump;
    double begin = now(CLOCK_MONOTONIC);
    if (perfuse_dump_open(argv[1], &dump) != PERFUSE_OK) {
        fprintf(stderr, "%s: %s\n", argv[1], perfuse_error_message());
        return 1;
    }
    printf("open\t%.4f\n", now(CLOCK_MONOTONIC) - begin);
    begin = now(CLOCK_MONOTONIC);
    perfuse_dump_poll(dump, NULL);
    printf("poll\t%.9f\n", now(CLOCK_MONOTONIC) - begin);
    struct work work = {dump, questions, num, perfuse_dump_find_code, 0, 0};
    measure("code", work, 1);
    work.find = perfuse_dump_find;
    measure("first", work, 1);
    measure("again", work, 1);
    measure("threads", work, 2);
    perfuse_dump_free(dump);
    return 0;
}
