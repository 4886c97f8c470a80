// Records main in the XRay mode that XRAY_MODE names: link with -Wl,--wrap=main. The log is xray-log.PROGRAM.XXXXXX.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <xray/xray_interface.h>
#include <xray/xray_log_interface.h>

extern "C" int __real_main(int, char**);

[[clang::xray_never_instrument]] static long now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

// Time of the call of main, for programs that compare it with their own.
extern "C" {
long main_ns;
}

[[clang::xray_never_instrument]] static int timed_main(int argc, char** argv) {
    long start_ns = now();
    int status = __real_main(argc, argv);
    main_ns = now() - start_ns;
    return status;
}

// Programs may call it before main ends.
extern "C" [[clang::xray_never_instrument]] void stop_recording() {
    static bool stopped = false;
    if (stopped) return;
    stopped = true;
    __xray_unpatch();
    __xray_log_finalize();
    __xray_log_flushLog();
}

extern "C" [[clang::xray_never_instrument]] int __wrap_main(int argc, char** argv) {
    const char* mode = std::getenv("XRAY_MODE");
    const char* options = std::getenv("XRAY_MODE_OPTIONS");
    if (mode == nullptr) return timed_main(argc, argv);
    __xray_log_select_mode(mode);
    if (__xray_log_init_mode(mode, options ? options : "") != XRAY_LOG_INITIALIZED || __xray_patch() != SUCCESS) {
        std::fprintf(stderr, "XRay did not start\n");
        return 1;
    }
    int status = timed_main(argc, argv);
    stop_recording();
    return status;
}
