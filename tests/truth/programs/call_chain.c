/* Functions that call one another from known instructions, with frame pointers. */
static volatile unsigned long sum;

__attribute__((noinline)) void inner(void)
{
	for (unsigned long i = 0; i < 2000000; i++)
		sum += i;
}

__attribute__((noinline)) void middle(void)
{
	inner();
	sum++;
	inner();
	sum++;
}

int main(void)
{
	for (int i = 0; i < 60; i++) {
		middle();
		sum++;
	}
	return 0;
}
