using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

// What two threads do one after the other, a known number of times: the numbers are those of test_mono_selected.py.
class Found { }

class Oops : Exception { }

static class Selected
{
    static readonly List<object> found = new List<object> ();
    static readonly List<GCHandle> left = new List<GCHandle> ();

    static GCHandle Make ()
    {
        return GCHandle.Alloc (found [0], GCHandleType.WeakTrackResurrection);
    }

    static void Early ()
    {
        for (var i = 0; i < 6; i++)
            left.Add (Make ());
        for (var i = 0; i < 2; i++) {
            left [0].Free ();
            left.RemoveAt (0);
        }
    }

    static void Late ()
    {
        for (var i = 0; i < 3; i++)
            Make ().Free ();
    }

    [MethodImpl (MethodImplOptions.NoInlining)]
    static void Throw () { throw new Oops (); }

    [MethodImpl (MethodImplOptions.NoInlining)]
    static void Deeper () { Throw (); }

    static void Run (ThreadStart what, string name)
    {
        var thread = new Thread (what) { Name = name };
        thread.Start ();
        thread.Join ();
    }

    static void Main ()
    {
        for (var i = 0; i < 25; i++)
            found.Add (new Found ());
        for (var i = 0; i < 7; i++)
            try { Throw (); } catch (Oops) { }
        for (var i = 0; i < 4; i++)
            try { Deeper (); } catch (Oops) { }
        Run (Early, "early");
        Thread.Sleep (200);
        Run (Late, "late");
        GC.Collect ();
    }
}
