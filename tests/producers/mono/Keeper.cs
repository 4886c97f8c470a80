using System;
using System.Collections.Generic;
using System.Threading;

// Keeps what it allocates, until a line comes in.
class Keeper
{
    static readonly List<byte[]> Kept = new List<byte[]> ();

    static void Main ()
    {
        var done = false;
        var reader = new Thread (() => { Console.ReadLine (); done = true; });
        reader.Start ();
        Console.WriteLine ("running");
        while (!done) {
            for (var i = 0; i < 100; i++)
                Kept.Add (new byte[64]);
            Thread.Sleep (10);
        }
    }
}
