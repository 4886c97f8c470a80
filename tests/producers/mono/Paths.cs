// Allocates, throws, waits and takes handles along known call paths, so that each path has a known number.
// Every method is one call, none is inlined, and each kind of object is of a class of its own.
using System;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

class Small { int number; }
class Deep { long number; }
class InCatch { int number; }
class InFinally { int number; }
class AfterCatch { int number; }
class OfWorker { int number; }
class Pinned { int number; }
class Known : Exception { }

static class Paths
{
    const MethodImplOptions Alone = MethodImplOptions.NoInlining;
    static object kept;

    [MethodImpl(Alone)] static void Make() { kept = new Small(); }
    [MethodImpl(Alone)] static void ByOne() { Make(); }
    [MethodImpl(Alone)] static void ByTwo() { ByOne(); Make(); }

    [MethodImpl(Alone)] static void Recurse(int depth)
    {
        if (depth == 0) { kept = new Deep(); return; }
        Recurse(depth - 1);
    }

    [MethodImpl(Alone)] static void Throw() { throw new Known(); }

    [MethodImpl(Alone)] static void Through()
    {
        try { Throw(); } finally { kept = new InFinally(); }
    }

    [MethodImpl(Alone)] static void Catch()
    {
        try { Through(); } catch (Known) { kept = new InCatch(); }
        kept = new AfterCatch();
    }

    [MethodImpl(Alone)] static void Work(int count)
    {
        for (int i = 0; i < count; i++) kept = new OfWorker();
    }

    [MethodImpl(Alone)] static void RunFew() { Work(11); }
    [MethodImpl(Alone)] static void RunMany() { Work(500); RunFew(); }

    [MethodImpl(Alone)] static void Pin(object pinned)
    {
        GCHandle.Alloc(pinned, GCHandleType.Normal).Free();
    }

    [MethodImpl(Alone)] static void Handles(int count)
    {
        for (int i = 0; i < count; i++) Pin(kept);
    }

    static readonly object gate = new object();

    [MethodImpl(Alone)] static void Wait() { lock (gate) { } }

    [MethodImpl(Alone)] static void Contend()
    {
        var other = new Thread(Wait);
        lock (gate)
        {
            other.Start();
            while ((other.ThreadState & ThreadState.WaitSleepJoin) == 0) Thread.Sleep(1);
            Thread.Sleep(20);
        }
        other.Join();
    }

    static void Main()
    {
        for (int i = 0; i < 100; i++) ByTwo();
        for (int i = 0; i < 30; i++) ByOne();
        for (int i = 0; i < 20; i++) Recurse(4);
        for (int i = 0; i < 7; i++) Catch();
        Handles(9);
        for (int i = 0; i < 3; i++) Contend();
        var threads = new[] { new Thread(RunMany), new Thread(RunFew) };
        foreach (var thread in threads) thread.Start();
        foreach (var thread in threads) thread.Join();
    }
}
