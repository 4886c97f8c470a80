/** inner_hot is busy for half a second of processor time, called by outer_warm. */
final class Hot {
    static long inner_hot(int count) {
        long sum = 0;
        for (int i = 1; i < count; i++) {
            sum += (sum ^ 0x5DEECE66DL) / i;
        }
        return sum;
    }

    static long outer_warm(int count) {
        long sum = 0;
        for (int i = 0; i < count; i++) {
            sum += inner_hot(20_000);
        }
        return sum;
    }

    static long used() {
        return ProcessHandle.current().info().totalCpuDuration().get().toMillis();
    }

    public static void main(String[] arguments) {
        long end = used() + 500;
        long total = 0;
        while (used() < end) {
            total += outer_warm(20);
        }
        System.out.println(total != 0 ? "done" : "nothing");
    }
}
