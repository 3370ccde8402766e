"""Small corruptions of bytes, by a seeded random generator."""

INTERESTING = (0, 1, 2, 7, 8, 9, 0x7F, 0x80, 0xFF, 0x100, 0x1FF, 0x200, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 62,
               1 << 63, (1 << 64) - 1)


def number(random, data, start, width, order):
    """Changes the number of `width` bytes at `start`: a bit, a step, another number's value, or a notorious one."""
    if start + width > len(data):
        return
    old = int.from_bytes(data[start:start + width], order)
    new = random.choice((
        lambda: old ^ 1 << random.randrange(8 * width),
        lambda: old + random.choice((-2, -1, 1, 2, 512, 1024, 65536)),
        lambda: random.choice(INTERESTING),
        lambda: random.getrandbits(8 * width),
        lambda: old << 1 if random.random() < 0.5 else old >> 1,
    ))()
    data[start:start + width] = (new % (1 << 8 * width)).to_bytes(width, order)


def swap(random, data, start, count, width):
    """Copies one of `count` entries of `width` bytes over another, or swaps them."""
    if count < 2 or start + count * width > len(data):
        return
    first, second = (start + width * random.randrange(count) for _ in range(2))
    one, other = data[first:first + width], data[second:second + width]
    data[second:second + width] = one
    if random.random() < 0.5:
        data[first:first + width] = other


def byte(random, data, start, end):
    """Changes a byte of a range."""
    end = min(end, len(data))
    if start < end:
        at = random.randrange(start, end)
        data[at] = random.choice((data[at] ^ 1 << random.randrange(8), random.randrange(256), 0, 255))
