/* Jitted by mcjit.cpp. Functions whose lines differ instruction by instruction, with calls inlined across lines. */
#include <stdint.h>

static inline __attribute__((always_inline)) uint32_t rotate(uint32_t value, int bits)
{
	return value << bits | value >> (32 - bits);
}

static inline __attribute__((always_inline)) uint32_t mix(uint32_t a, uint32_t b)
{
	a ^= b;
	a = rotate(a, 13);
	a *= 0x9e3779b1u;
	return a + b;
}

uint32_t hash(uint32_t rounds)
{
	uint32_t state = 1;
	for (uint32_t i = 0; i < rounds; i++) {
		state = mix(state, i);
		if (state & 1)
			state = rotate(state, 5);
		else
			state ^= 0x5bd1e995u;
	}
	return state;
}

uint32_t checksum(uint32_t rounds)
{
	uint32_t crc = 0xffffffffu;
	for (uint32_t i = 0; i < rounds; i++) {
		crc ^= i & 0xff;
		for (int bit = 0; bit < 8; bit++) {
			uint32_t mask = -(crc & 1);
			crc >>= 1;
			crc ^= 0xedb88320u & mask;
		}
	}
	return ~crc;
}

uint32_t collatz(uint32_t limit)
{
	uint32_t longest = 0;
	for (uint32_t start = 1; start <= limit; start++) {
		uint64_t value = start;
		uint32_t length = 1;
		while (value != 1) {
			if (value & 1)
				value = 3 * value + 1;
			else
				value /= 2;
			length++;
		}
		if (length > longest)
			longest = length;
	}
	return longest;
}
