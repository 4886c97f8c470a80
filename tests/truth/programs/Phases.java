/** Methods that are each busy alone for a known time; a line of output states its name and time, on CLOCK_MONOTONIC. */
public class Phases {
    static int collatz(int limit) {
        int longest = 0;
        for (int start = 1; start <= limit; start++) {
            long value = start;
            int length = 1;
            while (value != 1) {
                if ((value & 1) == 0) {
                    value >>= 1;
                } else {
                    value = 3 * value + 1;
                }
                length++;
            }
            longest = Math.max(longest, length);
        }
        return longest;
    }

    static int checksum(int rounds) {
        int crc = -1;
        for (int i = 0; i < rounds; i++) {
            crc ^= i & 0xff;
            for (int bit = 0; bit < 8; bit++) {
                int mask = -(crc & 1);
                crc >>>= 1;
                crc ^= 0xedb88320 & mask;
            }
        }
        return ~crc;
    }

    static int sieve(int limit) {
        boolean[] composite = new boolean[limit + 1];
        int primes = 0;
        for (int candidate = 2; candidate <= limit; candidate++) {
            if (composite[candidate]) {
                continue;
            }
            primes++;
            for (int multiple = 2 * candidate; multiple <= limit; multiple += candidate) {
                composite[multiple] = true;
            }
        }
        return primes;
    }

    interface Work {
        int run(int argument);
    }

    static void busy(String name, Work work, int argument, int milliseconds) {
        long start = System.nanoTime();
        long end = start + milliseconds * 1_000_000L;
        int sum = 0;
        while (System.nanoTime() < end) {
            sum += work.run(argument);
        }
        System.out.printf("phase {\"function\": \"%s\", \"start_ns\": %d, \"end_ns\": %d, \"result\": %d}%n",
                name, start, System.nanoTime(), sum);
    }

    public static void main(String[] arguments) {
        int milliseconds = Integer.parseInt(arguments[0]);
        for (int warm = 0; warm < 3000; warm++) {
            collatz(300);
            checksum(300);
            sieve(3000);
        }
        busy("collatz", Phases::collatz, 2000, milliseconds);
        busy("checksum", Phases::checksum, 2000, milliseconds);
        busy("sieve", Phases::sieve, 20000, milliseconds);
    }
}
