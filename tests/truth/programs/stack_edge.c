/* Recursion whose frames have one size, without a C library: a copy of the stack can be made to end with a return address. */
static volatile unsigned long sum;

__attribute__((noinline)) static void spin(void)
{
	for (unsigned long i = 0; i < 300000000; i++)
		sum += i;
}

__attribute__((noinline)) static void level(int depth)
{
	volatile char used[40];
	used[depth] = 1;
	if (depth)
		level(depth - 1);
	else
		spin();
	sum += used[depth];
}

void _start(void)
{
	level(20);
	__asm__ volatile("syscall" : : "a"(60), "D"(0));
}
