using System; using System.Diagnostics; using System.Runtime.CompilerServices; using System.Threading;
class Busy {
  static long sink;
  [MethodImpl(MethodImplOptions.NoInlining)] static void Spin(int ms) { var w = Stopwatch.StartNew(); while (w.ElapsedMilliseconds < ms) for (int i = 0; i < 1000; i++) sink += i; }
  [MethodImpl(MethodImplOptions.NoInlining)] static void Long() { Spin(60); }
  [MethodImpl(MethodImplOptions.NoInlining)] static void Short() { Spin(20); }
  static void Main() { for (int i = 0; i < 4; i++) { Long(); Short(); Short(); } GC.Collect(); GC.Collect(); }
}
