/*
 * A JVMTI agent that writes code and lines as JITDUMP, with the same record contents as libperf-jvmti.so of Linux: the debug
 * record of a method precedes its load, and has one entry for each pc of the JVM's table of inlined methods, with the line of
 * the innermost method.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <jvmti.h>
#include <jvmticmlr.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { CODE_LOAD = 0, DEBUG_INFO = 2, CODE_CLOSE = 3, MAX_LINES = 1 << 15, EM_X86_64 = 62 };

struct line {
    uint64_t pc;
    uint32_t number;
    char file[64];
};

static FILE *dump;
static uint64_t num_loads;

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void put32(uint32_t value) { fwrite(&value, sizeof value, 1, dump); }

static void put64(uint64_t value) { fwrite(&value, sizeof value, 1, dump); }

static void put_header(uint32_t id, size_t size) {
    put32(id);
    put32((uint32_t)size);
    put64(now());
}

static void put_load(const char *name, const void *code, size_t size) {
    size_t name_size = strlen(name) + 1;
    put_header(CODE_LOAD, 56 + name_size + size);
    put32((uint32_t)getpid());
    put32((uint32_t)syscall(SYS_gettid));
    put64((uintptr_t)code);
    put64((uintptr_t)code);
    put64(size);
    put64(++num_loads);
    fwrite(name, name_size, 1, dump);
    fwrite(code, size, 1, dump);
}

static void put_lines(const void *code, const struct line *lines, size_t count) {
    size_t size = 32;
    for (size_t i = 0; i < count; i++) size += 16 + strlen(lines[i].file) + 1;
    put_header(DEBUG_INFO, size);
    put64((uintptr_t)code);
    put64(count);
    for (size_t i = 0; i < count; i++) {
        put64(lines[i].pc);
        put32(lines[i].number);
        put32(0);
        fwrite(lines[i].file, strlen(lines[i].file) + 1, 1, dump);
    }
}

static int find_line(jvmtiEnv *jvmti, jmethodID method, jint bci, struct line *line) {
    jvmtiLineNumberEntry *table = NULL;
    jint count = 0;
    jclass class;
    char *file = NULL;
    if ((*jvmti)->GetLineNumberTable(jvmti, method, &count, &table)) return 0;
    line->number = 0;
    for (jint i = 0; i < count && table[i].start_location <= bci; i++) line->number = (uint32_t)table[i].line_number;
    (*jvmti)->Deallocate(jvmti, (unsigned char *)table);
    if ((*jvmti)->GetMethodDeclaringClass(jvmti, method, &class)) return 0;
    if ((*jvmti)->GetSourceFileName(jvmti, class, &file)) return 0;
    snprintf(line->file, sizeof line->file, "%s", file);
    (*jvmti)->Deallocate(jvmti, (unsigned char *)file);
    return line->number != 0;
}

static void JNICALL on_method(jvmtiEnv *jvmti, jmethodID method, jint size, const void *code, jint map_length,
                              const jvmtiAddrLocationMap *map, const void *info) {
    static struct line lines[MAX_LINES];
    size_t count = 0;
    jclass class;
    char *type = NULL, *name = NULL, *signature = NULL, full[4096];
    (void)map_length, (void)map;
    (*jvmti)->GetMethodDeclaringClass(jvmti, method, &class);
    (*jvmti)->GetClassSignature(jvmti, class, &type, NULL);
    (*jvmti)->GetMethodName(jvmti, method, &name, &signature, NULL);
    snprintf(full, sizeof full, "%s%s%s", type, name, signature);
    flockfile(dump);
    for (const jvmtiCompiledMethodLoadRecordHeader *head = info; head; head = head->next) {
        if (head->kind != JVMTI_CMLR_INLINE_INFO) continue;
        const jvmtiCompiledMethodLoadInlineRecord *inlined = (const void *)head;
        for (jint i = 0; i < inlined->numpcs && count < MAX_LINES; i++) {
            const PCStackInfo *at = &inlined->pcinfo[i];
            lines[count].pc = (uintptr_t)at->pc;
            count += (size_t)find_line(jvmti, at->methods[0], at->bcis[0], &lines[count]);
        }
    }
    if (count) put_lines(code, lines, count);
    put_load(full, code, (size_t)size);
    funlockfile(dump);
}

static void JNICALL on_stub(jvmtiEnv *jvmti, const char *name, const void *code, jint size) {
    (void)jvmti;
    flockfile(dump);
    if (size) put_load(name, code, (size_t)size);
    funlockfile(dump);
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved) {
    char path[64];
    jvmtiEnv *jvmti;
    jvmtiCapabilities capabilities;
    jvmtiEventCallbacks callbacks;
    (void)options, (void)reserved;
    snprintf(path, sizeof path, "jit-%d.dump", getpid());
    int fd = open(path, O_CREAT | O_TRUNC | O_RDWR, 0666);
    if (fd < 0 || (*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_1)) return 1;
    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    dump = fdopen(fd, "w+");
    put32(0x4A695444);
    put32(1);
    put32(40);
    put32(EM_X86_64);
    put32(0);
    put32((uint32_t)getpid());
    put64(now());
    put64(0);
    memset(&capabilities, 0, sizeof capabilities);
    capabilities.can_generate_compiled_method_load_events = 1;
    capabilities.can_get_line_numbers = 1;
    capabilities.can_get_source_file_name = 1;
    (*jvmti)->AddCapabilities(jvmti, &capabilities);
    memset(&callbacks, 0, sizeof callbacks);
    callbacks.CompiledMethodLoad = on_method;
    callbacks.DynamicCodeGenerated = on_stub;
    (*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof callbacks);
    (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_COMPILED_METHOD_LOAD, NULL);
    (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_DYNAMIC_CODE_GENERATED, NULL);
    return 0;
}

JNIEXPORT void JNICALL Agent_OnUnload(JavaVM *vm) {
    (void)vm;
    put_header(CODE_CLOSE, 16);
    fclose(dump);
}
