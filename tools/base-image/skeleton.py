#!/usr/bin/python3
"""skeleton.py DISK BOOT ESP_LBA: places GRUB's boot code, where there is any, and the ESP's image on a partitioned raw disk.

The block lists are those of GRUB's own installer: the boot sector knows where core.img starts, and the first sector of
core.img where the rest of it is.
"""

import os
import struct
import sys

SECTOR = 512
CORE_LBA = 2048


def place_boot_code(out, boot):
    boot_img = open(f"{boot}/boot.img", "rb").read()
    core_img = bytearray(open(f"{boot}/core.img", "rb").read())
    rest = -(-(len(core_img) - SECTOR) // SECTOR)
    struct.pack_into("<QHH", core_img, SECTOR - 12, CORE_LBA + 1, rest, 0x820)

    mbr = bytearray(out.read(SECTOR))
    mbr[0:3] = boot_img[0:3]
    mbr[0x5A:0x1B8] = boot_img[0x5A:0x1B8]
    struct.pack_into("<Q", mbr, 0x5C, CORE_LBA)
    # Some BIOSes pass a wrong drive number: the check that would keep it is replaced by no-operations.
    mbr[0x66:0x68] = b"\x90\x90"
    out.seek(0)
    out.write(mbr)
    out.seek(CORE_LBA * SECTOR)
    out.write(core_img)


def main(disk, boot, esp_lba):
    with open(disk, "r+b") as out:
        if os.path.exists(f"{boot}/core.img"):
            place_boot_code(out, boot)
        out.seek(esp_lba * SECTOR)
        with open(f"{boot}/esp.img", "rb") as esp:
            while block := esp.read(1 << 20):
                if any(block):
                    out.write(block)
                else:
                    out.seek(len(block), 1)


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
