/* Runs a command and writes its cost to a file: wall time, user time and system time in seconds, peak memory in KiB, exit code
 * (128 plus the signal where one ended it). usage: launcher FILE COMMAND...
 *
 * Linux counts the memory of the process that started a command, up to exec, as that of the command. This program is small,
 * the Python process of a benchmark is not. */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static double seconds(struct timeval time) { return time.tv_sec + time.tv_usec / 1e6; }

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: launcher FILE COMMAND...\n");
        return 2;
    }
    double started = now();
    pid_t child = fork();
    if (child == 0) {
        execvp(argv[2], argv + 2);
        perror(argv[2]);
        _exit(127);
    }
    int status;
    struct rusage usage;
    if (child < 0 || wait4(child, &status, 0, &usage) != child) {
        perror("launcher");
        return 1;
    }
    double wall = now() - started;
    FILE *report = fopen(argv[1], "w");
    if (!report) {
        perror(argv[1]);
        return 1;
    }
    fprintf(report, "%.6f %.6f %.6f %ld %d\n", wall, seconds(usage.ru_utime), seconds(usage.ru_stime), usage.ru_maxrss,
            WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    return fclose(report) ? 1 : 0;
}
