"""The root file system of a raw image, mounted by the kernel. Needs root."""

import os

from harness.disk import partitions
from harness.run import must


class Mount:
    """Read-only, or writable by a layer of memory above it."""

    def __init__(self, image, folder):
        self.folder = folder
        (folder / "image").mkdir(parents=True)
        must("mount", "-o", f"ro,noload,loop,offset={partitions(image)[1].start}", image, folder / "image")
        self.root = str(folder / "image")

    def writable(self):
        top = self.folder / "top"
        top.mkdir()
        must("mount", "-t", "tmpfs", "tmpfs", top)
        for name in ("upper", "work", "root"):
            (top / name).mkdir()
        must("mount", "-t", "overlay", "overlay", "-o", f"lowerdir={self.root},upperdir={top}/upper,workdir={top}/work", top / "root")
        return str(top / "root")

    def close(self):
        for path in (self.folder / "top/root", self.folder / "top", self.folder / "image"):
            if os.path.ismount(path):
                must("umount", path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
