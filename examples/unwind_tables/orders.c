// A program with one function that SFrame cannot represent before version 3: it aligns its stack and allocates on it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct order { int number; double price; };

__attribute__((noinline)) static double total(const struct order *orders, int num) {
    double sum = 0;
    for (int i = 0; i < num; i++)
        sum += orders[i].number * orders[i].price;
    return sum;
}

static int by_size(const void *left, const void *right) {
    double difference = *(const double *)left - *(const double *)right;
    return (difference > 0) - (difference < 0);
}

__attribute__((noinline)) static double median(const struct order *orders, int num) {
    double lanes[8] __attribute__((aligned(64))) = {0};
    double sorted[num];
    for (int i = 0; i < num; i++)
        sorted[i] = lanes[i % 8] = orders[i].price;
    qsort(sorted, num, sizeof *sorted, by_size);
    return sorted[num / 2] + lanes[memchr(lanes, 1, sizeof lanes) != NULL];
}

int main(int argc, char **argv) {
    int num = argc * 100;
    struct order *orders = calloc(num, sizeof *orders);
    for (int i = 0; i < num; i++)
        orders[i] = (struct order){i, i * 1.5};
    printf("%s: %.2f in all, median %.2f\n", argv[0], total(orders, num), median(orders, num));
    free(orders);
    return 0;
}
