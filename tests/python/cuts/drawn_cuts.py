"""Random moves between balanced, ceil-div, block-cyclic and flattened tiles, with casts, transpositions, padding, and tiles
in any order of memory.

Each tile is taken from the array by numpy, which also casts, transposes and pads.
"""

import os
import random

import numpy

import reshard

LONG = bool(os.environ.get("RESHARD_LONG"))
DTYPES = ("u8", "i16", "f32", "bf16", "c64", "f64")
CASTS = {"u8": ("i16", "u64"), "i16": ("i32", "i64"), "f32": ("bf16", "f16", "f64", "f8_e5m2"), "bf16": ("f32", "f64"),
         "f64": ("f32", "bf16", "f16")}


class End:
    """A layout, and the tile of each rank as numpy cuts it. flattened: tiles are flattened and dealt out in units.

    order: of the dimensions of a tile in memory, outermost first; None: row-major."""

    def __init__(self, layout, tiles, flattened=False):
        self.layout, self.tiles, self.flattened, self.order = layout, tiles, flattened, None

    def tile(self, rank):
        """The tile of a rank, in the order of this end."""
        tile = self.tiles[rank] if rank < len(self.tiles) else reshard.empty_tile(self.layout, rank)
        if self.order is None:
            return tile
        stored = numpy.ascontiguousarray(tile.transpose(self.order))
        return stored.transpose(numpy.argsort(self.order))

    def blank(self, rank):
        """Memory for the tile of a rank, in the order of this end."""
        return numpy.empty_like(self.tile(rank))


def random_cut(draw, extent, shards):
    """A cut as Layout takes it, and the indices of each shard."""
    kind = draw.choice(("balanced", "balanced", "ceil-div", "block-cyclic", "shares"))
    indices = numpy.arange(extent)
    if kind == "balanced":
        return "balanced", numpy.array_split(indices, shards)
    if kind == "ceil-div":
        block = -(-extent // shards)
        return None, [indices[i * block:(i + 1) * block] for i in range(shards)]
    if kind == "block-cyclic":
        block = draw.randint(1, 4)
        return block, [indices[indices // block % shards == i] for i in range(shards)]
    borders = sorted(draw.choices(range(extent + 1), k=shards - 1))
    shares = numpy.split(indices, borders)
    return [len(share) for share in shares], shares


def flattened_cut(draw, extent, sizes, names):
    """A cut of an extent that counts rows times columns. The first axis cuts rows or columns evenly, and the second deals
    out the elements of each flattened tile in units. Its text, and the indices of each shard; None if nothing divides."""
    outer, inner = names
    kinds = [(rows, cuts_rows) for rows in range(2, extent) if extent % rows == 0 for cuts_rows in (True, False)
             if (rows if cuts_rows else extent // rows) % sizes[outer] == 0]
    if not kinds:
        return None
    rows, cuts_rows = draw.choice(kinds)
    grid = numpy.arange(extent).reshape(rows, -1)
    parts = [part.ravel() for part in numpy.split(grid, sizes[outer], 0 if cuts_rows else 1)]
    units = [0] * sizes[inner]
    while sum(units) == 0 or parts[0].size % sum(units) != 0:
        units = [draw.randint(0, 3) for _ in units]
    borders = numpy.cumsum(units)[:-1] * (parts[0].size // sum(units))
    dims = f"{rows}@{outer},{extent // rows}" if cuts_rows else f"{rows},{extent // rows}@{outer}"
    return f"({dims})@{inner}[{','.join(map(str, units))}]", [share for part in parts for share in numpy.split(part, borders)]


def cut_text(extent, names, cut):
    """The dimension as our notation writes it."""
    if not names:
        return str(extent)
    end = f"[{cut}]" if isinstance(cut, str) else f"/{cut}" if isinstance(cut, int) else f"{cut}" if cut else ""
    return f"{extent}@({','.join(names)}){end.replace(' ', '')}"


def coordinates(rank, sizes):
    return dict(zip(sizes, numpy.unravel_index(rank, tuple(sizes.values()))))


def number(names, sizes, rank):
    at = coordinates(rank, sizes)
    shard = 0
    for name in names:
        shard = shard * sizes[name] + int(at[name])
    return shard


def cut_end(draw, sizes, array, dtype):
    """Each axis cuts one dimension or none."""
    spec = [[] for _ in array.shape]
    for name in draw.sample(list(sizes), len(sizes)):
        dim = draw.randint(0, array.ndim)
        if dim < array.ndim:
            spec[dim].append(name)
    mesh, cuts, texts, indices, flattened = reshard.Mesh(sizes), [], [], [], False
    for extent, names in zip(array.shape, spec):
        flat = flattened_cut(draw, extent, sizes, names) if len(names) == 2 and draw.random() < 0.7 else None
        flattened |= flat is not None
        shards = int(numpy.prod([sizes[name] for name in names]))
        cut, shares = random_cut(draw, extent, shards) if names else (None, [numpy.arange(extent)])
        cuts.append(cut)
        texts.append(flat[0] if flat else cut_text(extent, names, cut))
        indices.append(flat[1] if flat else shares)
    layout = reshard.parse_layout(mesh, f"{dtype}[{','.join(texts)}]")
    if not flattened:
        assert layout == reshard.Layout(mesh, dtype, array.shape, [tuple(names) for names in spec], cuts=cuts), texts
    ranks = int(numpy.prod(list(sizes.values())))
    tiles = [array[numpy.ix_(*(shares[number(names, sizes, rank)] for shares, names in zip(indices, spec)))]
             for rank in range(ranks)]
    return End(layout, tiles, flattened)


def flat_end(draw, sizes, array, dtype):
    """The first axis cuts a dimension evenly, and the second deals out the elements of each flattened tile in units."""
    first, second = sizes
    dim = draw.randrange(array.ndim)
    parts = numpy.array_split(array, sizes[first], dim)
    if len({part.shape for part in parts}) > 1:
        return cut_end(draw, sizes, array, dtype)
    units = [0] * sizes[second]
    while sum(units) == 0 or parts[0].size % sum(units) != 0:
        units = [draw.randint(0, 3) for _ in units]
    borders = numpy.cumsum(units)[:-1] * (parts[0].size // sum(units))
    tiles = [tile for part in parts for tile in numpy.split(part.ravel(), borders)]
    placements = f"(Shard({dim}), RaggedShard({tuple(range(array.ndim))}, {tuple(units)}))"
    shape = ",".join(str(extent) for extent in array.shape)
    layout = reshard.parse_layout(reshard.Mesh(sizes), placements, "dtensor", f"{dtype}[{shape}]")
    if layout.ndim == array.ndim:  # whole rows: the array keeps its dimensions
        tiles = [tile.reshape(layout.tile_shape(rank)) for rank, tile in enumerate(tiles)]
    return End(layout, tiles, flattened=True)


def resized(draw, array, fill):
    """The array with other extents: cut off at the end, or padded with `fill`."""
    shape = [max(0, extent + draw.choice((-3, -1, 0, 0, 1, 2, 8))) for extent in array.shape]
    made = numpy.full(shape, fill, array.dtype)
    common = tuple(slice(min(extents)) for extents in zip(shape, array.shape))
    made[common] = array[common]
    return made


class Move:
    """A question with the options of redistribute. source and target are Ends."""

    def __init__(self, source, target, options):
        self.source, self.target, self.options = source, target, options
        self.text = f"{source.layout!r} to {target.layout!r} with {options}"


def values(draw, shape, dtype):
    """Floats have bits that a narrower float rounds. numpy's and ml_dtypes' casts of them are the reference."""
    numbers = numpy.arange(int(numpy.prod(shape))) % 120
    if dtype in ("f32", "f64"):
        numbers = numbers * draw.choice((1.0, 1 / 3, -1e-3, 700.0))
    return numbers.reshape(shape).astype(reshard.Layout("", dtype, shape).numpy_dtype)


def moves(seed, count, ranks):
    """Yields moves on at most `ranks` ranks. Only arrays of different extents have a fill value."""
    for number_of_move in range(count):
        draw = random.Random(f"{seed} {number_of_move}")
        shape = tuple(draw.choice((0, 1, 4, 6, 7, 10, 12, 12, 13, 21)) for _ in range(draw.randint(1, 3)))
        dtype = draw.choice(DTYPES)
        array = values(draw, shape, dtype)
        sides = [(a, b) for a in range(1, ranks + 1) for b in range(1, ranks + 1) if ranks // 2 < a * b <= ranks]
        options, changed, target_dtype = {}, array, dtype
        likely = draw.choice((0.2,) * 7 + (1,))  # an option; some moves have all
        if draw.random() < likely:
            options["permute"] = draw.sample(range(array.ndim), array.ndim)
            changed = changed.transpose(options["permute"])
        if draw.random() < likely and dtype in CASTS:
            options["cast"], target_dtype = True, draw.choice(CASTS[dtype])
            changed = changed.astype(reshard.Layout("", target_dtype, ()).numpy_dtype)
        if draw.random() < likely:
            options["fill"] = draw.choice((0, 1, 7))
            changed = resized(draw, changed, options["fill"])
        ends = []
        for whole, type_of_end in ((array, dtype), (changed, target_dtype)):
            sizes = dict(zip("ab", draw.choice(sides)))
            flat = not {"fill", "permute"} & options.keys() and draw.random() < 0.3
            end = (flat_end if flat else cut_end)(draw, sizes, whole, type_of_end)
            if draw.random() < 0.3:
                end.order = draw.sample(range(end.layout.ndim), end.layout.ndim)
            ends.append(end)
        yield Move(*ends, options)
