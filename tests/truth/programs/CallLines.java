/**
 * Methods that are called on known lines, and a method that is busy on one line at a time; a line of output states the name of
 * each busy line and when, on CLOCK_MONOTONIC.
 */
public class CallLines {
    static long first(long n) {
        long sum = 0;
        for (long i = 0; i < n; i++) sum += i * 31 ^ (sum >>> 3);
        return sum;
    }

    static long second(long n) {
        long sum = 1;
        for (long i = 0; i < n; i++) sum += i * 17 ^ (sum >>> 5);
        return sum;
    }

    static long caller(int k) {
        long sum = k;
        sum += first(40_000); // called: first
        sum ^= k * 3;
        sum += second(40_000); // called: second
        sum ^= k * 5;
        if ((k & 1) == 0) {
            sum += first(20_000); // called: first
        } else {
            sum -= second(20_000); // called: second
        }
        return sum;
    }

    static long busy(long n, long[] times) {
        long sum = 2;
        times[0] = System.nanoTime();
        for (long i = 0; i < n; i++) sum += i * 13 ^ (sum >>> 7); // busy: add
        times[1] = System.nanoTime();
        for (long i = 1; i < n; i++) sum ^= sum / i + (sum << 2); // busy: divide
        times[2] = System.nanoTime();
        return sum;
    }

    static void print(String line, long start, long end) {
        System.out.printf("phase {\"function\": \"%s\", \"start_ns\": %d, \"end_ns\": %d}%n", line, start, end);
    }

    /** Nanoseconds of this thread on the processor: beside other work there are as many samples. */
    static long used() {
        return java.lang.management.ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    public static void main(String[] arguments) {
        long until = used() + Integer.parseInt(arguments[0]) * 1_000_000L;
        long sum = 0;
        for (int k = 0; used() < until; k++) {
            sum += caller(k);
        }
        long[] times = new long[3];
        for (int warm = 0; warm < 20_000; warm++) {
            sum += busy(100, times);
        }
        for (int round = 0; round < 8; round++) {
            sum += busy(30_000_000, times);
            print("add", times[0], times[1]);
            print("divide", times[1], times[2]);
        }
        System.out.println("sum " + sum);
    }
}
