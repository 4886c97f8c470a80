// Asserts what the header promises: interface FIRST LATER, two parts of a dump.

#define _DEFAULT_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "perfuse_symbolizer.h"

#define CHECK(condition)                                                     \
    do {                                                                     \
        if (!(condition)) {                                                  \
            fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, perfuse_error_message()); \
            exit(1);                                                         \
        }                                                                    \
    } while (0)

static size_t read_file(const char *path, uint8_t *bytes, size_t most) {
    FILE *file = fopen(path, "rb");
    CHECK(file);
    size_t num = fread(bytes, 1, most, file);
    fclose(file);
    return num;
}

static void *look_up(void *argument) {
    perfuse_dump *dump = argument;
    perfuse_answer *answer;
    CHECK(perfuse_answer_new(&answer) == PERFUSE_OK);
    for (int i = 0; i < 20000; i++) {
        perfuse_status status = perfuse_dump_find(dump, 150, 0x4010, answer);
        CHECK(status == PERFUSE_OK && !strcmp(perfuse_answer_code(answer)->name, "first"));
    }
    perfuse_answer_free(answer);
    return NULL;
}

int main(int argc, char **argv) {
    static uint8_t first[4096], later[4096];
    perfuse_dump *dump = NULL;
    perfuse_answer *answer = NULL;
    perfuse_dump_facts facts;
    uint64_t num_records;
    size_t num_frames = 99;
    CHECK(argc == 3);
    printf("%s\n", perfuse_symbolizer_version());
    size_t num_first = read_file(argv[1], first, sizeof first);
    size_t num_later = read_file(argv[2], later, sizeof later);

    // NULL is an error, and frees nothing.
    CHECK(perfuse_dump_open(NULL, &dump) == PERFUSE_ERROR_ARGUMENT);
    CHECK(strstr(perfuse_error_message(), "NULL"));
    CHECK(perfuse_dump_open("/no such file", &dump) == PERFUSE_ERROR_IO);
    dump = (perfuse_dump *)first;
    CHECK(perfuse_dump_open("/dev/null", &dump) == PERFUSE_ERROR_IO && dump == NULL);
    CHECK(perfuse_dump_open(argv[1], NULL) == PERFUSE_ERROR_ARGUMENT);
    CHECK(perfuse_dump_new(NULL) == PERFUSE_ERROR_ARGUMENT);
    CHECK(perfuse_answer_new(NULL) == PERFUSE_ERROR_ARGUMENT);
    CHECK(perfuse_dump_poll(NULL, &num_records) == PERFUSE_ERROR_ARGUMENT);
    CHECK(perfuse_dump_find(NULL, 0, 0, NULL) == PERFUSE_ERROR_ARGUMENT);
    CHECK(perfuse_answer_code(NULL) == NULL);
    CHECK(perfuse_answer_frames(NULL, &num_frames) == NULL && num_frames == 0);
    CHECK(perfuse_unwind_open(NULL, NULL) == PERFUSE_ERROR_ARGUMENT);
    CHECK(perfuse_unwind_find(NULL, 0, NULL) == PERFUSE_ERROR_ARGUMENT);
    perfuse_dump_free(NULL);
    perfuse_answer_free(NULL);
    perfuse_unwind_free(NULL);

    // Bytes arrive one by one; each record is there with its last byte.
    CHECK(perfuse_dump_new(&dump) == PERFUSE_OK && perfuse_answer_new(&answer) == PERFUSE_OK);
    CHECK(perfuse_dump_push(dump, NULL, 1, NULL) == PERFUSE_ERROR_ARGUMENT);
    CHECK(perfuse_dump_get_facts(dump, &facts) == PERFUSE_NOT_FOUND);
    uint64_t total = 0;
    for (size_t i = 0; i < num_first; i++) {
        CHECK(perfuse_dump_push(dump, first + i, 1, &num_records) == PERFUSE_OK);
        total += num_records;
    }
    CHECK(total == 3);
    CHECK(perfuse_dump_get_facts(dump, &facts) == PERFUSE_OK);
    CHECK(facts.num_records == 3 && facts.num_code == 2 && facts.pid == 77 && facts.elf_machine == 62);
    CHECK(facts.read_bytes == num_first && !facts.is_closed && !facts.has_arch_timestamps && !facts.num_damaged);

    // An answer is replaced by the next look-up, also by one that finds nothing.
    CHECK(perfuse_dump_find(dump, PERFUSE_LATEST, 0x4018, answer) == PERFUSE_OK);
    const perfuse_code *code = perfuse_answer_code(answer);
    CHECK(!strcmp(code->name, "first") && code->tier == NULL && code->code_offset == 0x18 && code->tid == 78);
    CHECK(code->created == 100 && code->replaced == UINT64_MAX && code->start_address == 0x4000 && code->code_index == 1);
    const perfuse_frame *frames = perfuse_answer_frames(answer, &num_frames);
    CHECK(num_frames == 1 && frames[0].line == 8 && !strcmp(frames[0].path, "two.src") && !frames[0].is_inlined);
    CHECK(perfuse_dump_find_code(dump, PERFUSE_LATEST, 0x5000, answer) == PERFUSE_OK);
    code = perfuse_answer_code(answer);
    CHECK(!strcmp(code->name, "Second") && !strcmp(code->linkage_name, "Builtin:Second") && code->is_stub == 1);
    perfuse_answer_frames(answer, &num_frames);
    CHECK(num_frames == 0);
    CHECK(perfuse_dump_find_of(dump, code->pid, PERFUSE_LATEST, 0x4018, answer) == PERFUSE_OK);
    CHECK(!strcmp(perfuse_answer_code(answer)->name, "first") && perfuse_answer_frames(answer, &num_frames)->line == 8);
    CHECK(perfuse_dump_find_of(dump, 1, PERFUSE_LATEST, 0x4018, answer) == PERFUSE_NOT_FOUND);
    CHECK(perfuse_dump_find(dump, 0, 0x5000, answer) == PERFUSE_NOT_FOUND);
    CHECK(perfuse_answer_code(answer) == NULL);

    // Look-ups in threads, while the dump grows and code is replaced.
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, look_up, dump) == 0);
    for (size_t i = 0; i < num_later; i++)
        CHECK(perfuse_dump_push(dump, later + i, 1, NULL) == PERFUSE_OK);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(perfuse_dump_finish(dump, &num_records) == PERFUSE_OK && num_records == 0);
    CHECK(perfuse_dump_get_facts(dump, &facts) == PERFUSE_OK && facts.num_records == 5 && facts.is_closed);
    CHECK(perfuse_dump_find(dump, 150, 0x4010, answer) == PERFUSE_OK);
    CHECK(perfuse_answer_code(answer)->replaced == 200);
    perfuse_dump_free(dump);

    // A file that becomes shorter is an error, not a signal.
    CHECK(perfuse_dump_open(argv[1], &dump) == PERFUSE_OK);
    CHECK(perfuse_dump_is_whole(dump) == PERFUSE_OK);
    CHECK(perfuse_dump_push(dump, later, num_later, &num_records) == PERFUSE_ERROR_ARGUMENT);
    CHECK(strstr(perfuse_error_message(), "of a file"));
    CHECK(truncate(argv[1], 50) == 0);
    CHECK(perfuse_dump_is_whole(dump) == PERFUSE_ERROR_CUT);
    CHECK(perfuse_dump_poll(dump, &num_records) == PERFUSE_ERROR_CUT);
    perfuse_dump_find(dump, PERFUSE_LATEST, 0x4018, answer);
    perfuse_dump_free(dump);

    // Bytes of something else.
    CHECK(perfuse_dump_new(&dump) == PERFUSE_OK);
    CHECK(perfuse_dump_push(dump, (const uint8_t *)"no dump", 7, NULL) == PERFUSE_ERROR_FORMAT);
    CHECK(strstr(perfuse_error_message(), "magic"));
    perfuse_dump_free(dump);
    perfuse_unwind_table *table = (perfuse_unwind_table *)first;
    CHECK(perfuse_unwind_section(first, num_first, 0x1000, &table) == PERFUSE_ERROR_FORMAT && table == NULL);
    perfuse_answer_free(answer);
    CHECK(!strcmp(perfuse_status_name(PERFUSE_ERROR_CUT), "PERFUSE_ERROR_CUT"));
    return 0;
}
