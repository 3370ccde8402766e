#!/usr/bin/env python3
"""bridge.py HOST:PORT: one connection of the machine, on standard input, to a server of the host. qemu starts it for each."""

import socket
import sys
import threading

HOST, PORT = sys.argv[1].rsplit(":", 1)


def pump(source, target):
    while chunk := source.recv(1 << 16):
        target.sendall(chunk)
    target.shutdown(socket.SHUT_WR)


machine = socket.socket(fileno=0)
with socket.create_connection((HOST, int(PORT))) as server:
    threading.Thread(target=pump, args=(machine, server), daemon=True).start()
    pump(server, machine)
