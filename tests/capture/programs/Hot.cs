// inner_hot is busy for half a second of processor time, called by outer_warm; each call allocates one array.
using System;
using System.Diagnostics;
using System.Runtime.CompilerServices;

static class Hot {
    [MethodImpl(MethodImplOptions.NoInlining)]
    static long inner_hot(int count) {
        long sum = new byte[64].Length;
        for (int i = 1; i < count; i++) sum += (sum ^ 0x5DEECE66DL) / i;
        return sum;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long outer_warm(int count) {
        long sum = 0;
        for (int i = 0; i < count; i++) sum += inner_hot(20000);
        return sum;
    }

    static double Used() {
        return Process.GetCurrentProcess().UserProcessorTime.TotalMilliseconds;
    }

    static void Main() {
        double end = Used() + 500;
        long total = 0;
        while (Used() < end) total += outer_warm(20);
        Console.WriteLine(total != 0 ? "done" : "nothing");
    }
}
