// A small page server without a network, with two leaks to find in heap snapshots.
using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;

public sealed class Page {
	public readonly string Title;
	public readonly byte[] Body = new byte[200];
	public Page(string title) { Title = title; }
}

public static class Clock {
	public static event Action Tick;
	public static void Advance() { if (Tick != null) Tick(); }
}

public sealed class Session {
	readonly List<Page> history = new List<Page>();
	int idle;

	// The first leak: the handler is never removed, so the clock keeps every session alive.
	public Session() { Clock.Tick += Age; }

	void Age() { idle++; }

	public void Visit(Page page) { idle = 0; history.Add(page); }
}

public sealed class Server {
	readonly Dictionary<int, Page> pages = new Dictionary<int, Page>();
	readonly Dictionary<int, Session> sessions = new Dictionary<int, Session>();

	public void Request(int user, int page) {
		Session session;
		if (!sessions.TryGetValue(user, out session)) sessions[user] = session = new Session();
		Page found;
		if (!pages.TryGetValue(page, out found)) pages[page] = found = new Page("page " + page);
		session.Visit(found);
		if (page % 9 == 0) session.Visit(new Page("search results for " + user));
	}

	public void Upload(int size) {
		var buffer = new byte[size];
		var handle = GCHandle.Alloc(buffer, GCHandleType.Pinned);
		// The second leak: rejected buffers are not unpinned.
		if (size % 3 == 0) return;
		handle.Free();
	}

	public void SignOut(int user) { sessions.Remove(user); }
}

public static class Program {
	static readonly Server server = new Server();

	static void Serve(int from, int to) {
		for (int user = from; user < to; user++) {
			for (int request = 0; request < 6; request++) server.Request(user, user * 7 % 40 + request);
			if (user % 4 == 0) server.Upload(1000 + user);
			server.SignOut(user);
			Clock.Advance();
		}
	}

	public static void Main() {
		Serve(0, 20);
		GC.Collect(); // a heap snapshot
		Serve(20, 120);
		GC.Collect(); // another one
	}
}
