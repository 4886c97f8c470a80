// An agent of the JVM that writes the JITDUMP of perf's libperf-jvmti.so: names of methods, and lines of their own code.

#define _GNU_SOURCE
#include <jvmti.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { CODE_LOAD = 0, CODE_DEBUG_INFO = 2 };

static FILE *dump;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void put(const void *bytes, size_t size) { fwrite(bytes, 1, size, dump); }
static void put32(uint32_t value) { put(&value, sizeof value); }
static void put64(uint64_t value) { put(&value, sizeof value); }

static void start_record(uint32_t tag, size_t body) {
    put32(tag);
    put32(16 + body);
    put64(now());
}

static int line_at(const jvmtiLineNumberEntry *lines, jint num, jlocation at) {
    int line = 0;
    for (jint nth = 0; nth < num && lines[nth].start_location <= at; nth++) line = lines[nth].line_number;
    return line;
}

static void put_lines(const void *code, jint num_places, const jvmtiAddrLocationMap *places,
                      const jvmtiLineNumberEntry *lines, jint num_lines, const char *file) {
    start_record(CODE_DEBUG_INFO, 16 + num_places * (16 + strlen(file) + 1));
    put64((uintptr_t)code);
    put64(num_places);
    for (jint nth = 0; nth < num_places; nth++) {
        put64((uintptr_t)places[nth].start_address);
        put32(line_at(lines, num_lines, places[nth].location));
        put32(0);
        put(file, strlen(file) + 1);
    }
}

static void JNICALL compiled(jvmtiEnv *jvmti, jmethodID method, jint size, const void *code, jint num_places,
                             const jvmtiAddrLocationMap *places, const void *compile_info) {
    static uint64_t index;
    char *name, *signature, *class_name, *file = NULL, full[1024];
    jclass of;
    jvmtiLineNumberEntry *lines;
    jint num_lines = 0;
    (void)compile_info;
    (*jvmti)->GetMethodDeclaringClass(jvmti, method, &of);
    (*jvmti)->GetClassSignature(jvmti, of, &class_name, NULL);
    (*jvmti)->GetMethodName(jvmti, method, &name, &signature, NULL);
    (*jvmti)->GetSourceFileName(jvmti, of, &file);
    if ((*jvmti)->GetLineNumberTable(jvmti, method, &num_lines, &lines) != JVMTI_ERROR_NONE) num_lines = 0;
    size_t length = snprintf(full, sizeof full, "%s%s%s", class_name, name, signature) + 1;
    if (length > sizeof full) return;
    pthread_mutex_lock(&lock);
    if (num_lines && num_places && file) put_lines(code, num_places, places, lines, num_lines, file);
    start_record(CODE_LOAD, 40 + length + size);
    put32(getpid());
    put32(gettid());
    put64((uintptr_t)code);
    put64((uintptr_t)code);
    put64(size);
    put64(index++);
    put(full, length);
    put(code, size);
    pthread_mutex_unlock(&lock);
}

static void open_dump(void) {
    char path[512];
    const uint32_t head[] = {0x4A695444, 1, 40, 62, 0, getpid()};
    snprintf(path, sizeof path, "%s/jit-%d.dump", getenv("JITDUMPDIR"), getpid());
    dump = fopen(path, "w+");
    put(head, sizeof head);
    put64(now());
    put64(0);
    fflush(dump);
    mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0);
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved) {
    jvmtiEnv *jvmti;
    jvmtiCapabilities wanted = {
        .can_generate_compiled_method_load_events = 1, .can_get_line_numbers = 1, .can_get_source_file_name = 1};
    jvmtiEventCallbacks callbacks = {.CompiledMethodLoad = compiled};
    (void)options, (void)reserved;
    if ((*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_1) != JNI_OK) return JNI_ERR;
    open_dump();
    (*jvmti)->AddCapabilities(jvmti, &wanted);
    (*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof callbacks);
    (*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_COMPILED_METHOD_LOAD, NULL);
    return JNI_OK;
}

JNIEXPORT void JNICALL Agent_OnUnload(JavaVM *vm) {
    (void)vm;
    fclose(dump);
}
