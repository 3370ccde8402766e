#!/usr/bin/python3
"""measure.py NAME COMMAND…: runs a command and prints its wall time, CPU time and peak memory in one line."""

import resource
import subprocess
import sys
import time

start = time.monotonic()
subprocess.run(sys.argv[2:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
wall = time.monotonic() - start
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{sys.argv[1]:<44} {wall:6.2f} s wall {used.ru_utime + used.ru_stime:6.2f} s CPU {used.ru_maxrss / 1024:6.0f} MiB")
