// A shop that processes orders in three threads, with typical problems: a call site that allocates most of the memory, a
// lock that is held too long, exceptions for expected conditions, receipts that are never freed.
using System;
using System.Collections.Generic;
using System.Text;
using System.Threading;

class Item {
    public string Name;
    public decimal Price;
}

class Order {
    public int Number;
    public readonly List<Item> Items = new List<Item>();
}

class Receipt {
    public int Number;
    public byte[] Printed;
    public uint Check;
}

class BadOrder : Exception {
    public BadOrder(string line) : base("no number in: " + line) { }
}

class Printer {
    ~Printer() { Thread.Sleep(2); }
    public byte[] Print(string text) { return Encoding.UTF8.GetBytes(text); }
}

// Computes a checksum of each receipt, bit by bit.
static class Checksum {
    public static uint Of(byte[] bytes) {
        uint sum = 0xffffffff;
        for (int round = 0; round < 500; round++)
            foreach (byte one in bytes)
                sum = Step(sum ^ one);
        return ~sum;
    }

    static uint Step(uint sum) {
        for (int bit = 0; bit < 8; bit++)
            sum = (sum & 1) != 0 ? (sum >> 1) ^ 0xedb88320 : sum >> 1;
        return sum;
    }
}

// The receipts of a day. `kept` is never cleared.
static class Ledger {
    static readonly object gate = new object();
    static readonly List<Receipt> kept = new List<Receipt>();
    static decimal total;

    public static void Enter(Receipt receipt, decimal amount) {
        lock (gate) {
            total += amount;
            kept.Add(receipt);
            if (receipt.Number % 25 == 0)
                Thread.Sleep(2);
        }
    }

    public static string Summary() {
        lock (gate)
            return kept.Count + " receipts, " + total;
    }
}

class Counter {
    readonly int first, last;

    public Counter(int first, int last) {
        this.first = first;
        this.last = last;
    }

    static string Line(int number) {
        var parts = new List<string> { number % 17 == 0 ? "no." : number.ToString() };
        for (int i = 0; i < 3; i++)
            parts.Add("tea " + number % 7 + "=" + (2 + number % 5) + ".50");
        return string.Join(";", parts.ToArray());
    }

    static Order Parse(string line) {
        string[] parts = line.Split(';');
        int number;
        if (!int.TryParse(parts[0], out number))
            throw new BadOrder(line);
        var order = new Order { Number = number };
        for (int i = 1; i < parts.Length; i++) {
            string[] item = parts[i].Split('=');
            order.Items.Add(new Item { Name = item[0], Price = decimal.Parse(item[1]) });
        }
        return order;
    }

    // Concatenates strings in a loop: every step copies the whole string.
    static string Render(Order order) {
        string text = "Order " + order.Number + "\n";
        foreach (Item item in order.Items)
            text += item.Name + " " + item.Price + "\n";
        return text;
    }

    static decimal Sum(Order order) {
        decimal sum = 0;
        foreach (Item item in order.Items)
            sum += item.Price;
        return sum;
    }

    public void Work() {
        for (int number = first; number < last; number++) {
            try {
                Order order = Parse(Line(number));
                var receipt = new Receipt { Number = number, Printed = new Printer().Print(Render(order)) };
                receipt.Check = Checksum.Of(receipt.Printed);
                Ledger.Enter(receipt, Sum(order));
            } catch (BadOrder) {
                Interlocked.Increment(ref Shop.Refused);
            }
        }
    }
}

static class Shop {
    public static int Refused;

    static void Main() {
        var threads = new Thread[3];
        for (int i = 0; i < threads.Length; i++) {
            threads[i] = new Thread(new Counter(1 + i * 250, 1 + (i + 1) * 250).Work) { Name = "counter " + (i + 1) };
            threads[i].Start();
        }
        foreach (Thread thread in threads)
            thread.Join();
        GC.Collect();
        GC.WaitForPendingFinalizers();
        Console.WriteLine(Ledger.Summary() + ", " + Refused + " refused");
    }
}
