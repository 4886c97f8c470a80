/* Jitted by mcjit.cpp. Functions that are called on known lines. */
#include <stdint.h>

static __attribute__((noinline)) uint32_t first(uint32_t n)
{
	volatile uint32_t sum = 0;
	for (uint32_t i = 0; i < n; i++)
		sum = sum * 31 + i;
	return sum;
}

static __attribute__((noinline)) uint32_t second(uint32_t n)
{
	volatile uint32_t sum = 1;
	for (uint32_t i = 0; i < n; i++)
		sum = sum * 17 ^ i;
	return sum;
}

uint32_t caller(uint32_t n)
{
	uint32_t sum = n;
	for (uint32_t k = 0; k < 20; k++) {
		sum += first(n); /* called: first */
		sum ^= k * 3;
		sum += second(n); /* called: second */
		sum ^= k * 5;
		if ((k & 1) == 0)
			sum += first(n / 2); /* called: first */
		else
			sum -= second(n / 2); /* called: second */
	}
	return sum;
}
