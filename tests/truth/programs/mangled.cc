/* Functions whose names have empty parameter packs, unsigned template arguments and offsets of `this`. */
static volatile unsigned long sum;

static void __attribute__((noinline)) spin(void)
{
	for (unsigned long i = 0; i < 20000000; i++)
		sum += i;
}

struct Phase {
};

struct Pipeline {
	template <typename P, typename... Args> __attribute__((noinline)) void run(Args &&...)
	{
		spin();
		sum++;
	}
};

template <typename Key, unsigned Bits, unsigned long Size, typename... More> struct Table {
	__attribute__((noinline)) void insert(Key)
	{
		spin();
		sum++;
	}
};

struct First {
	virtual void first() { sum++; }
	long value = 1;
};

struct Second {
	virtual void second() = 0;
};

struct Both : First, Second {
	void second() override;
};

void __attribute__((noinline)) Both::second()
{
	spin();
	sum++;
}

int main(int argc, char **argv)
{
	Both both;
	Second *second = &both;
	Pipeline().run<Phase>();
	Pipeline().run<Phase>(argc);
	Table<int, 9, 10>().insert(argc);
	Table<Table<int, 1, 2>, 3, 4, Phase>().insert({});
	second->second();
	return 0;
}
