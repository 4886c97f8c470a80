using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

// Everything happens a known number of times: the numbers are those of test_mono_counts.py.
class Node { public Node Next; }

class Leak { public byte[] Data = new byte[40]; }

class Oops : Exception { public Oops (string message) : base (message) { } }

static class Counts
{
    static Node last;
    static readonly List<Leak> leaks = new List<Leak> (1000);
    static volatile object sink;
    static volatile bool enters;

    [MethodImpl (MethodImplOptions.NoInlining)]
    static void MakeNodes (int number)
    {
        for (var i = 0; i < number; i++)
            last = new Node { Next = last };
    }

    [MethodImpl (MethodImplOptions.NoInlining)]
    static void MakeBuffers ()
    {
        for (var i = 0; i < 500; i++)
            sink = new byte[100];
    }

    [MethodImpl (MethodImplOptions.NoInlining)]
    static void MakeStrings ()
    {
        for (var i = 0; i < 300; i++)
            sink = new string ('x', 50);
    }

    [MethodImpl (MethodImplOptions.NoInlining)]
    static void MakeLeaks ()
    {
        for (var i = 0; i < 1000; i++)
            leaks.Add (new Leak ());
    }

    [MethodImpl (MethodImplOptions.NoInlining)]
    static void Throw ()
    {
        throw new Oops ("a literal of 28 characters..");
    }

    [MethodImpl (MethodImplOptions.NoInlining)]
    static void Wait ()
    {
        Thread.Sleep (20);
    }

    static void Contend ()
    {
        var gate = new object ();
        var taken = new ManualResetEvent (false);
        var main = Thread.CurrentThread;
        enters = false;
        var holder = new Thread (() => {
            lock (gate) {
                taken.Set ();
                while (!enters || (main.ThreadState & ThreadState.WaitSleepJoin) == 0)
                    Thread.Sleep (1);
                Thread.Sleep (100);
            }
        }) { Name = "holder" };
        holder.Start ();
        taken.WaitOne ();
        enters = true;
        lock (gate) { }
        holder.Join ();
    }

    static void Main (string[] args)
    {
        if (args.Length > 0 && args[0] == "quiet")
            return;
        var nodes = args.Length > 0 ? int.Parse (args[0]) : 2000;
        MakeNodes (nodes);
        MakeBuffers ();
        MakeStrings ();
        for (var i = 0; i < 7; i++)
            try { Throw (); } catch (Oops) { }
        for (var i = 0; i < 5; i++) {
            var handle = GCHandle.Alloc (last);
            if (i < 3)
                handle.Free ();
        }
        for (var i = 0; i < 10; i++)
            Wait ();
        Contend ();
        GC.Collect ();
        MakeLeaks ();
        GC.Collect ();
    }
}
