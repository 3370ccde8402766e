"""environment.py FOLDER COUNT: what systemd reads of the files 0, 1, … of FOLDER, by its own function for EnvironmentFile=.

Prints for each file its variables as `NAME=value` and an empty one behind them, all ended by NUL; `!` for a file that it refuses.
Variables that a unit would not be given are left out. Exits with 3 where systemd is not installed.
"""

import ctypes
import glob
import itertools
import sys

STRINGS = ctypes.POINTER(ctypes.c_char_p)


def library():
    """The library that systemd's own programs share."""
    paths = glob.glob("/usr/lib/*/systemd/libsystemd-shared-*.so") + glob.glob("/usr/lib/systemd/libsystemd-shared-*.so")
    if not paths:
        sys.exit(3)
    shared = ctypes.CDLL(paths[0])
    shared.load_env_file.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(STRINGS)]
    shared.strv_env_clean_with_callback.argtypes = [STRINGS, ctypes.c_void_p, ctypes.c_void_p]
    shared.strv_env_clean_with_callback.restype = STRINGS
    return shared


def variables(shared, path):
    found = STRINGS()
    if shared.load_env_file(None, path.encode(), ctypes.byref(found)) < 0:
        return [b"!"]
    if not found:
        return []
    # As in exec_context_load_environment(), which drops lines that are not assignments.
    strings = shared.strv_env_clean_with_callback(found, None, None)
    return list(itertools.takewhile(lambda string: string is not None, map(strings.__getitem__, itertools.count())))


shared = library()
shared.log_set_max_level(0)
for number in range(int(sys.argv[2])):
    sys.stdout.buffer.write(b"".join(string + b"\0" for string in variables(shared, f"{sys.argv[1]}/{number}")) + b"\0")
