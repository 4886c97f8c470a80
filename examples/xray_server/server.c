/* A small page server without a network, as an example for call traces.
 *
 * Requests come in bursts. Most pages are in the cache; a miss is read from a slow "disk", every ninth request is invalid and
 * is left by longjmp. */
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WORKERS = 3, REQUESTS = 60, PAGES = 16, DEPTH = 5 };

struct page {
    unsigned number;
    char text[512];
};

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static struct page cache[PAGES];
static _Thread_local jmp_buf bad_request;

static void wait_us(long microseconds) {
    struct timespec time = {0, microseconds * 1000};
    nanosleep(&time, NULL);
}

__attribute__((noinline)) static unsigned checksum(const char *text, size_t size) {
    unsigned sum = 1;
    for (size_t i = 0; i < size; i++) sum = sum * 31 + (unsigned char)text[i];
    return sum;
}

__attribute__((noinline)) static void read_from_disk(struct page *page) {
    wait_us(1500);
    memset(page->text, 'a' + page->number % 26, sizeof page->text);
}

__attribute__((noinline)) static void look_up(unsigned number, struct page *page) {
    pthread_mutex_lock(&cache_lock);
    struct page *slot = &cache[number % PAGES];
    if (slot->number != number) {
        slot->number = number;
        read_from_disk(slot); /* with the lock held: the other threads wait */
    }
    *page = *slot;
    pthread_mutex_unlock(&cache_lock);
}

__attribute__((noinline)) static unsigned parse(unsigned request) {
    if (request % 9 == 8) longjmp(bad_request, 1);
    return 1 + request * 7 % 20;
}

__attribute__((noinline)) static unsigned render_node(const struct page *page, int depth) {
    unsigned sum = checksum(page->text, sizeof page->text >> depth);
    if (depth < DEPTH) sum += render_node(page, depth + 1) ^ render_node(page, depth + 1);
    return sum;
}

__attribute__((noinline)) static unsigned render(const struct page *page) {
    return render_node(page, 0);
}

__attribute__((noinline)) static unsigned refuse(unsigned request) {
    wait_us(20);
    return request;
}

__attribute__((noinline, xray_always_instrument, xray_log_args(1))) static unsigned handle(unsigned request) {
    char label[32];
    int size = snprintf(label, sizeof label, "request %u", request);
    __xray_customevent(label, (size_t)size);
    if (setjmp(bad_request)) return refuse(request);
    struct page page;
    look_up(parse(request), &page);
    return render(&page);
}

__attribute__((noinline)) static void *serve(void *first) {
    unsigned long sum = 0;
    for (unsigned i = 0; i < REQUESTS; i++) {
        sum += handle(*(unsigned *)first + i * WORKERS);
        if (i % 10 == 9) wait_us(700); /* the next burst */
    }
    return (void *)sum;
}

int main(void) {
    pthread_t workers[WORKERS];
    unsigned first[WORKERS];
    for (unsigned i = 0; i < WORKERS; i++) {
        first[i] = i;
        pthread_create(&workers[i], NULL, serve, &first[i]);
    }
    unsigned long sum = 0;
    for (unsigned i = 0; i < WORKERS; i++) {
        void *result;
        pthread_join(workers[i], &result);
        sum += (unsigned long)result;
    }
    printf("%lu\n", sum);
    return 0;
}
