/* Records main in XRay's flight data recorder mode. Link it to any program: it starts before main and writes
 * xray-log.PROGRAM.XXXXXX after main. XRAY_FDR sets the options of the mode. */
#include <cstdio>
#include <cstdlib>
#include <xray/xray_interface.h>
#include <xray/xray_log_interface.h>

[[clang::xray_never_instrument]] static void stop() {
    __xray_unpatch();
    __xray_log_finalize();
    __xray_log_flushLog();
}

[[gnu::constructor, clang::xray_never_instrument]] static void start() {
    const char* options = std::getenv("XRAY_FDR");
    __xray_log_select_mode("xray-fdr");
    if (__xray_log_init_mode("xray-fdr", options ? options : "") != XRAY_LOG_INITIALIZED || __xray_patch() != SUCCESS) {
        std::fputs("recorder: XRay did not start\n", stderr);
        return;
    }
    std::atexit(stop);
}
