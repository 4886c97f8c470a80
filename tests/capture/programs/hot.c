/* inner_hot is busy for half a second of processor time, called by outer_warm. */
#include <stdio.h>
#include <time.h>

__attribute__((noipa)) unsigned long inner_hot(unsigned long count)
{
	unsigned long sum = 1;

	for (unsigned long i = 1; i < count; i++)
		sum += (sum ^ 0x5DEECE6) / i;
	return sum;
}

__attribute__((noipa)) unsigned long outer_warm(unsigned long count)
{
	unsigned long sum = 0;

	for (unsigned long i = 0; i < count; i++)
		sum += inner_hot(2000);
	return sum;
}

int main(void)
{
	clock_t end = clock() + CLOCKS_PER_SEC / 2;
	unsigned long total = 0;

	while (clock() < end)
		total += outer_warm(20);
	puts(total ? "done" : "nothing");
	return 0;
}
