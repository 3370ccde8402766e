#!/usr/bin/env python3
"""bridge.py SOCKET: one connection of the machine, on standard input, to a socket in the file system. qemu starts it for each."""

import socket
import sys
import threading


def pump(source, target):
    while chunk := source.recv(1 << 16):
        target.sendall(chunk)
    target.shutdown(socket.SHUT_WR)


machine = socket.socket(fileno=0)
with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
    server.connect(sys.argv[1])
    threading.Thread(target=pump, args=(machine, server), daemon=True).start()
    pump(server, machine)
