"""Random pairs of layouts that DTensor, XLA and Shardy can each express."""

import itertools
import math
import random

NAMES = "abcd"
FLOOR = 1 << 20  # bytes of a tile at least, so that costs by size are those of large arrays


def drawn_end(draw, axes, dims, summed):
    """The use of each axis, in order: a dimension that it cuts, None, or "sum"."""
    return ["sum" if axis in summed else draw.choice([*range(dims), None]) for axis in range(axes)]


def pair(seed, number):
    """One pair: a third with sums, a fifth uneven, 1 to 4 axes of 2 to 8, at most 128 devices; both ends differ."""
    draw = random.Random(f"{seed} {number}")
    while True:
        axes = draw.choice((1, 2, 2, 3, 3, 4))
        sizes = [draw.randint(2, 8) for _ in range(axes)]
        if math.prod(sizes) > 128:
            continue
        dims = draw.randint(1, 4)
        sums = number % 3 == 0
        summed = draw.sample(range(axes), draw.randint(1, axes)) if sums else ()
        kept = [axis for axis in summed if draw.randrange(3) == 0]
        source, target = drawn_end(draw, axes, dims, summed), drawn_end(draw, axes, dims, kept)
        if source != target:
            break
    uneven = number % 5 == 1 or number % 15 == 0
    unit = [math.lcm(*(math.prod(sizes[axis] for axis in range(axes) if end[axis] == dim) for end in (source, target)))
            for dim in range(dims)]
    shape = [one * draw.randint(1, 4) for one in unit]
    devices = math.prod(sizes)
    for dim in itertools.cycle(range(dims)):
        if math.prod(shape) * 4 // devices >= FLOOR:
            break
        shape[dim] *= 2
    if uneven:
        shape = [extent + draw.randint(1, max(1, extent // 3)) for extent in shape]
    return {"id": str(number), "sizes": sizes, "shape": shape, "source": source, "target": target,
            "sums": sums, "uneven": any(extent % one for extent, one in zip(shape, unit))}


def floor_bytes(one):
    """The bytes of the larger end's largest tile, which no plan of ours exceeds."""
    tiles = [math.prod(-(-extent // math.prod(size for size, what in zip(one["sizes"], one[end]) if what == dim))
                       for dim, extent in enumerate(one["shape"])) for end in ("source", "target")]
    return 4 * max(tiles)


def placements(end):
    words = ["Partial(sum)" if one == "sum" else "Replicate()" if one is None else f"Shard(dim={one})" for one in end]
    return "(" + ", ".join(words) + ("," if len(words) == 1 else "") + ")"


def question(one, vocabulary):
    """The pair as a line of `reshard plan --batch`, in DTensor's notation."""
    return {"id": one["id"], "notation": "dtensor", "options": {"objective": "bytes", "vocabulary": vocabulary},
            "mesh": "(" + ",".join(map(str, one["sizes"])) + ("," if len(one["sizes"]) == 1 else "") + ")",
            "array": "f32[" + ",".join(map(str, one["shape"])) + "]",
            "source": placements(one["source"]), "target": placements(one["target"])}


def cuts(one, end):
    """The axes that cut each dimension, as in Shardy and PartitionSpec."""
    return [[NAMES[axis] for axis, what in enumerate(end) if what == dim] for dim in range(len(one["shape"]))]
