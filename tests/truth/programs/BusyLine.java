/** A method whose work is on one line of several in its loop. */
public class BusyLine {
    static long mix(long n) {
        long sum = 2;
        long other = 1;
        for (long i = 0; i < n; i++) {
            other += i;
            sum = (((((((((((((((((sum * 31 + i) * 37 + i) * 41 + i) * 43 + i) * 47 + i) * 53 + i) * 59 + i) * 61 + i) * 67 + i) * 71 + i) * 73 + i) * 79 + i) * 83 + i) * 89 + i) * 97 + i) * 101 + i) * 103 + i) * 107 + i; // busy
            other ^= i;
            other += 3;
        }
        return sum + other;
    }

    /** Nanoseconds of this thread on the processor: beside other work there are as many samples. */
    static long used() {
        return java.lang.management.ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    public static void main(String[] arguments) {
        long until = used() + Integer.parseInt(arguments[0]) * 1_000_000L;
        long sum = 0;
        while (used() < until) {
            sum += mix(1000);
        }
        System.out.println(sum);
    }
}
