#define _GNU_SOURCE
#include <stdio.h>
#include <time.h>
#define TRACED __attribute__((noinline, xray_always_instrument))
static volatile long sink;
static double now_ms(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e3 + t.tv_nsec / 1e6; }
TRACED void busy(long ms) { for (double end = now_ms() + ms; now_ms() < end;) for (int i = 0; i < 1000; i++) sink += i; }
TRACED void busy_30ms(void) { busy(30); }
TRACED void busy_10ms(void) { busy(10); }
TRACED void step(void) { busy_30ms(); busy_10ms(); busy_10ms(); }
TRACED int work(void) { for (int i = 0; i < 8; i++) step(); return 0; }
int main(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return work(); }
