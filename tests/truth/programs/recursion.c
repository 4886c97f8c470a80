/* Sorts, with a comparison that recurses to a known depth: every sample in `spin` has the same callers, known by heart, but
   for how deep the sort was. `signal` as an argument does the same below a signal handler. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 9, VALUES = 64, ROUNDS = 40 };

static volatile unsigned long sink;

__attribute__((noinline)) static unsigned long spin(unsigned long n)
{
    for (unsigned i = 0; i < 20000; i++)
        n = n * 1103515245 + 12345;
    return n;
}

__attribute__((noinline)) static unsigned long level(int depth, unsigned long n)
{
    volatile char used[40];
    used[depth] = (char)n;
    unsigned long result = depth ? level(depth - 1, n + 1) : spin(n);
    return result + used[depth];
}

static int compare(const void *a, const void *b)
{
    sink += level(DEPTH - 1, *(const int *)a);
    return *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) static void sort(int round)
{
    int values[VALUES];
    for (int i = 0; i < VALUES; i++)
        values[i] = (i * 37 + round) % VALUES;
    qsort(values, VALUES, sizeof *values, compare);
}

static void handle(int number)
{
    for (int round = 0; round < ROUNDS; round++)
        sort(round + number);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "signal")) {
        signal(SIGUSR1, handle);
        raise(SIGUSR1);
    } else {
        handle(0);
    }
    printf("%lu\n", sink);
    return 0;
}
