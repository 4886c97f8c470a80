"""An S3 server of another project, and proxies before it that lose connections: `python -m fleet.object_store LOST`.

It is a process of its own: Delta holds the interpreter's lock while it waits for an answer. It prints the ports of the
server, of a proxy that loses requests and of one that loses answers, and adds a byte to the file LOST for each that is
lost. It ends with its standard input.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

EVERY = 4
"""Of so many requests that write, one is lost."""


@dataclass
class LossyProxy:
    """Passes connections to a server; of requests that write, every fourth is lost.

    Attributes:
        target: Port of the server.
        lost: The file that has a byte for each that was lost.
        after_answer: Whether the request is passed on, and its answer is lost.
    """

    target: int
    lost: Path
    after_answer: bool
    number: int = 0

    def start(self) -> int:
        """Listens on a free port, and returns it."""
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return int(listener.getsockname()[1])

    def _accept(self, listener: socket.socket) -> None:
        while True:
            client, _ = listener.accept()
            server = socket.create_connection(("127.0.0.1", self.target))
            for source, sink, is_request in ((client, server, True), (server, client, False)):
                threading.Thread(target=self._pass, args=(source, sink, is_request), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, is_request: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 20):
                if is_request and data[:4] == b"PUT " and self._is_lost():
                    if self.after_answer:
                        sink.sendall(data)
                        # The server reads the request; what it answers goes to a connection that is closed.
                        sink.settimeout(0.2)
                        with contextlib.suppress(OSError):
                            source.settimeout(0.2)
                            sink.sendall(source.recv(1 << 20))
                    break
                sink.sendall(data)
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _is_lost(self) -> bool:
        self.number += 1
        if self.number % EVERY:
            return False
        with self.lost.open("ab") as file:
            file.write(b".")
        return True


def main() -> None:
    """Starts the server and the proxies."""
    from moto.server import ThreadedMotoServer

    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    port = int(moto.get_host_and_port()[1])
    lost = Path(sys.argv[1])
    print(port, *(LossyProxy(port, lost, answers).start() for answers in (False, True)), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
