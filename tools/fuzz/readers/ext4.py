"""ext2, ext3 and ext4 volumes: vmbake's tree compared with debugfs for every path.

A volume counts where `e2fsck -fn` calls it clean, as it is or after `e2fsck -fy` has repaired it, which half of all volumes go
through. debugfs silently reads much of a corrupt volume, and differently from the kernel, so there it is not a second
opinion; where metadata have checksums it is one: what it refuses for a wrong checksum, vmbake may not read.
"""

import os
import pathlib
import shutil
import subprocess

from harness.debugfs import ENVIRONMENT as PROGRAMS
from harness.debugfs import compare_lines
from readers import edits

EXAMPLE = "tree"
ENVIRONMENT = {**PROGRAMS, "E2FSPROGS_FAKE_TIME": "1700000000", "E2FSCK_TIME": "1700000000"}
SEEDS = {
    "ext2": "ext2 -b 1024", "ext2-4k": "ext2 -b 4096", "ext3": "ext3 -b 1024", "ext4": "ext4 -b 1024", "ext4-4k": "ext4 -b 4096",
    "ext4-plain": "ext4 -b 1024 -O ^metadata_csum,^has_journal", "ext4-32": "ext4 -b 1024 -O ^64bit,^has_journal",
    "ext4-inline": "ext4 -b 1024 -O inline_data,^has_journal", "ext4-inline-plain": "ext4 -b 1024 -O inline_data,^metadata_csum,^has_journal",
    "ext4-ea": "ext4 -b 1024 -O ea_inode,^has_journal", "ext4-meta": "ext4 -b 1024 -O meta_bg,^resize_inode,^has_journal -g 256",
    "ext4-seed": "ext4 -b 1024 -O metadata_csum_seed,^has_journal", "ext4-cluster": "ext4 -b 1024 -O bigalloc,^has_journal",
    "ext4-extents": "ext4 -b 1024 -O ^extent,^64bit,^has_journal", "ext4-128": "ext4 -b 1024 -I 128 -O ^has_journal",
}
BLOCKS = 3072
# Fields that debugfs sets with correct checksums.
INODE = ("mode", "uid", "uid_high", "gid_high", "size", "size_high", "links_count", "blocks", "flags", "file_acl", "generation", "atime",
         "ctime", "mtime", "mtime_extra", "dtime", "extra_isize", "version", "block[0]", "block[1]", "block[2]", "block[3]", "block[4]",
         "block[5]", "block[6]", "block[7]", "block[12]", "block[13]", "block[14]")
SUPER = ("inodes_count", "blocks_count", "first_data_block", "log_block_size", "log_cluster_size", "blocks_per_group", "inodes_per_group",
         "clusters_per_group", "state", "rev_level", "first_ino", "inode_size", "feature_compat", "feature_incompat", "feature_ro_compat",
         "journal_inum", "def_hash_version", "jnl_backup_type", "desc_size", "first_meta_bg", "min_extra_isize", "want_extra_isize",
         "flags", "log_groups_per_flex", "checksum_type", "checksum_seed", "creator_os", "lastcheck", "encoding", "backup_bgs[0]")
# Of the superblock: where the words of features are, and bits of them.
COMPATIBLE, READ_ONLY = 0x5C, 0x64
EXT_ATTR, METADATA_CSUM = 0x8, 0x400
FLAGS = (0x8, 0x10, 0x20, 0x800, 0x1000, 0x4000, 0x40000, 0x80000, 0x100000, 0x200000, 0x10000000, 0x20000000, 0x40000000)


def missing():
    programs = [name for name in ("mke2fs", "debugfs", "e2fsck") if not shutil.which(name, path=ENVIRONMENT["PATH"])]
    return f"{programs[0]} is missing" if programs else ""


def make_seeds(folder):
    files = folder.parent / "files"
    fill(files)
    for number, (name, options) in enumerate(SEEDS.items()):
        uuid = f"00000000-0000-4000-8000-{number:012}"
        blocks = BLOCKS if "-b 1024" in options else BLOCKS // 2
        run("mke2fs", "-q", "-F", "-t", *options.split(), "-N", "64", "-U", uuid, "-E", f"hash_seed={uuid}", "-d", files, folder / name,
            str(blocks))
        # Copies of files have the times and the owner of the originals.
        same = [f'sif "/{path.relative_to(files)}" {field}' for path in sorted(files.rglob("*"))
                for field in ("ctime 1600000000", "atime 1600000000", "uid 0", "gid 0")]
        debugfs(folder / name, same + EXTRA)
        # Makes trees of hashes of directories of more than a block.
        run("e2fsck", "-fyD", folder / name, fine=(0, 1))


# Files that only root can create.
EXTRA = ["cd dir", "mknod character c 5 260", "mknod block b 8 1", "mknod pipe p", "ea_set plain user.one 1", "ea_set plain user.two 22",
         f"ea_set plain user.long {'x' * 180}", f"ea_set linked user.longer {'y' * 700}", "sif plain uid 100000",
         "sif plain mtime 0x80000001", "sif plain mtime_extra 0x7"]


def fill(folder):
    """Files of every shape."""
    (folder / "dir" / "many").mkdir(parents=True)
    (folder / "dir" / "plain").write_bytes(b"text\n" * 30)
    (folder / "dir" / "tiny").write_bytes(b"few")
    (folder / "dir" / "linked").write_bytes(bytes(range(256)) * 41)
    os.link(folder / "dir" / "linked", folder / "other")
    (folder / "short").symlink_to("dir/plain")
    (folder / "long").symlink_to("dir/" * 40 + "plain")
    with open(folder / "holes", "wb") as file:
        for at in range(0, 200 * 1024, 24 * 1024):
            file.seek(at)
            file.write(b"%d\n" % at * 900)
        file.truncate(230_000)
    for number in range(24):
        (folder / "dir" / "many" / f"{'a long name of a file ' * 5}{number}").symlink_to("x")
    for path in folder.rglob("*"):
        os.utime(path, (1_600_000_000, 1_600_000_000), follow_symlinks=False)


def run(*command, fine=(0,)):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env=ENVIRONMENT, check=False)
    if done.returncode not in fine:
        raise RuntimeError(f"{command}: {done.stdout} {done.stderr}")


def debugfs(path, commands):
    subprocess.run(["debugfs", "-w", "-f", "-", path], input="\n".join(commands).encode(), capture_output=True, env=ENVIRONMENT, check=False)


def make(random, seeds, path):
    name, data = random.choice(seeds)
    data = bytearray(data)
    if random.random() < 0.5:
        for _ in range(random.choice((1, 1, 2, 4))):
            random.choice((superblock, group, inode, inode, inode, block, block, block))(random, data)
        path.write_bytes(data)
    else:
        path.write_bytes(data)
        commands = [random.choice((set_inode, set_inode, set_inode, set_super, set_group))(random)
                    for _ in range(random.choice((1, 1, 2, 3)))]
        debugfs(path, commands)
    if random.random() < 0.5:
        repair(path)


def repair(path):
    """Twice, as repairs may leave something to repair; at most so long, as some do not end."""
    for _ in range(2):
        try:
            subprocess.run(["e2fsck", "-fy", path], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           env=ENVIRONMENT, check=False, timeout=10)
        except subprocess.TimeoutExpired:
            return


def set_inode(random):
    field = random.choice(INODE)
    value = random.choice((random.randrange(16), random.randrange(4096), random.getrandbits(32), random.choice(FLAGS),
                           0o10000 * random.randrange(16) + random.getrandbits(12), random.choice(FLAGS) | random.choice(FLAGS)))
    return f"sif <{random.choice((2, 2, 7, 8, *range(11, 50)))}> {field} {value}"


def set_super(random):
    value = random.choice((random.randrange(16), random.randrange(4096), random.getrandbits(32), 1 << random.randrange(32)))
    return f"ssv {random.choice(SUPER)} {value}"


def set_group(random):
    field = random.choice(("block_bitmap", "inode_bitmap", "inode_table", "free_blocks_count", "free_inodes_count", "used_dirs_count",
                           "flags", "itable_unused"))
    return f"set_bg 0 {field} {random.choice((random.randrange(8), random.randrange(BLOCKS)))}"


class Layout:
    """Where the parts of a volume stand."""

    def __init__(self, data):
        def field(at, width):
            return int.from_bytes(data[1024 + at:1024 + at + width], "little")
        self.block = 1024 << min(field(0x18, 4), 6)
        self.groups = (field(0x14, 4) + 1) * self.block
        self.inode = max(field(0x58, 2), 128)
        self.table = int.from_bytes(data[self.groups + 8:self.groups + 12], "little") * self.block


def superblock(random, data):
    edits.number(random, data, 1024 + 4 * random.randrange(256), random.choice((1, 2, 4)), "little")


def group(random, data):
    layout = Layout(data)
    edits.number(random, data, layout.groups + 2 * random.randrange(32), random.choice((2, 4)), "little")


def inode(random, data):
    layout = Layout(data)
    start = layout.table + (random.choice((2, *range(11, 50))) - 1) * layout.inode
    if random.random() < 0.5:
        edits.number(random, data, start + 2 * random.randrange(layout.inode // 2), random.choice((2, 4)), "little")
    else:
        edits.byte(random, data, start, start + layout.inode)


def block(random, data):
    """A place in one of the blocks that are not empty, beyond the inodes: directories, extents, attributes, contents."""
    layout = Layout(data)
    full = [at for at in range(0, len(data), layout.block) if any(data[at:at + layout.block])]
    start = random.choice(full) if full else 0
    at = start + min(random.randrange(layout.block), random.randrange(layout.block))
    if random.random() < 0.5:
        edits.number(random, data, at & ~3, random.choice((2, 4)), "little")
    else:
        edits.byte(random, data, at, at + 1)


def is_clean(path):
    try:
        done = subprocess.run(["e2fsck", "-fn", path], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              env=ENVIRONMENT, check=False, timeout=20)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def accepts(path):
    return is_clean(path)


def compare(path, lines):
    clean = is_clean(path)
    if not clean and not has(path, READ_ONLY, METADATA_CSUM):
        return "damaged, no second opinion", ""
    said, detail = compare_lines(lines, pathlib.Path(path))
    if said != "equal" and not has(path, COMPATIBLE, EXT_ATTR):
        return "exempt", "without the feature ext_attr, debugfs shows no attributes, and the kernel those in inodes"
    if said == "equal":
        return ("equal" if clean else "damaged, equal"), ""
    if clean:
        return "DIFFERS", detail
    return ("DAMAGED" if "checksum" in detail else "damaged, differs"), detail


def has(path, features, bit):
    with open(path, "rb") as file:
        file.seek(1024 + features)
        return int.from_bytes(file.read(4), "little") & bit != 0
