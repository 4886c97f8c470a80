/* Renders postcards: does the same work in each run. -DCACHE is the change that was meant to make it faster. */

#include <stdio.h>

#define SIZE 220
#define ROUNDS 80

static double image[SIZE * SIZE];
static unsigned words[4096];

__attribute__((noinline)) static double noise(unsigned x, unsigned y) {
    unsigned n = x * 374761393u + y * 668265263u;
    n = (n ^ (n >> 13)) * 1274126177u;
    return (double) (n ^ (n >> 16)) / 4294967296.0;
}

__attribute__((noinline)) static double shade(unsigned x, unsigned y) {
    double light = 0;
    for (unsigned sample = 0; sample < 8; sample++) light += noise(x + sample, y) * 0.125;
#ifdef CACHE
    /* The key of the cache costs more than what it saves. */
    unsigned key = 2166136261u;
    for (unsigned byte = 0; byte < 12; byte++) key = (key ^ ((x * y) >> byte & 255)) * 16777619u;
    light += key % 2 * 1e-9;
#endif
    return light;
}

__attribute__((noinline)) static void render(unsigned round) {
    for (unsigned y = 0; y < SIZE; y++)
        for (unsigned x = 0; x < SIZE; x++) image[y * SIZE + x] = shade(x + round, y);
}

__attribute__((noinline)) static void blur(void) {
    for (unsigned pass = 0; pass < 12; pass++)
        for (unsigned at = SIZE; at < SIZE * (SIZE - 1); at++)
            image[at] = (image[at - 1] + image[at] + image[at + 1] + image[at - SIZE] + image[at + SIZE]) * 0.2;
}

__attribute__((noinline)) static unsigned count(unsigned round) {
    unsigned sum = 0;
    for (unsigned at = 0; at < 600000; at++) sum += words[(at * 7919u + round) % 4096u]++ % 5;
    return sum;
}

__attribute__((noinline)) static unsigned write_out(void) {
    unsigned hash = 7;
    for (unsigned at = 0; at < SIZE * SIZE * 8; at++) hash = hash * 31 + (unsigned) (image[at % (SIZE * SIZE)] * 255);
    return hash;
}

int main(void) {
    unsigned sum = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        render(round);
        blur();
        sum += count(round) + write_out();
    }
    printf("%u\n", sum);
    return 0;
}
