using System;
using System.Collections.Generic;
using System.Threading;

// Keeps every object it allocates alive until it reads a line.
class Keeper
{
    static readonly List<byte[]> Retained = new List<byte[]> ();

    static void Main ()
    {
        var done = false;
        var reader = new Thread (() => { Console.ReadLine (); done = true; });
        reader.Start ();
        Console.WriteLine ("running");
        while (!done) {
            for (var i = 0; i < 100; i++)
                Retained.Add (new byte[64]);
            Thread.Sleep (10);
        }
    }
}
