"""A plan of collectives as operations on a tile: until the library's own."""

import functools
import re
from types import SimpleNamespace
from math import prod

import reshard


def _atoms(layout):
    """Per dimension (stride, size) over positions of row-major devices, and the device list."""
    mesh = layout.mesh
    sizes = mesh.shape
    stride, strides = 1, {}
    for name in reversed(mesh.axis_names):
        strides[name] = stride
        stride *= sizes[name]
    body = re.fullmatch(r"\w+\[(.*)\]", str(layout)).group(1)
    out = []
    for part in re.findall(r"(?:[^,(]|\((?:[^()]|\([^)]*\))*\))+", body):
        _, _, axes = part.partition("@")
        if axes.startswith("("):
            axes = axes[1:-1]
        atoms = []
        for a in filter(None, axes.split(",")):
            s = re.fullmatch(r"(\w+)(?::\((\d+)\)(\d+))?", a)
            size = int(s.group(3) or sizes[s.group(1)])
            pre = int(s.group(2) or 1)
            atoms.append((strides[s.group(1)] * (sizes[s.group(1)] // (pre * size)), size))
        out.append(atoms)
    return out


def _common(layouts, n):
    """All on axes that none of them cuts: factors major to minor."""
    points = {1, n}
    for dims in layouts:
        for d in dims:
            for stride, size in d:
                points |= {stride, stride * size}
    p = sorted(points)
    if any(b % a for a, b in zip(p, p[1:])):
        raise reshard.UnsupportedError("cuts of an axis without a common refinement")
    return p


def _refined(dims, p):
    return [[k for stride, size in d for k in range(len(p) - 2, -1, -1) if stride <= p[k] and p[k + 1] <= stride * size] for d in dims]


@functools.lru_cache(4096)
def operations(source, target):
    n = source.ranks
    shape = source.shape
    if source.mesh.devices != tuple(range(n)) or target.mesh.devices != tuple(range(n)):
        raise reshard.UnsupportedError("another order of devices")
    ends = [_atoms(source), _atoms(target)]
    p = _common(ends, n)
    names = [f"a{k}" for k in range(len(p) - 1)]
    mesh = reshard.Mesh([(names[k], p[k + 1] // p[k]) for k in reversed(range(len(names)))] or {"a": 1})
    s, t = (reshard.Layout(mesh, source.dtype, shape, [[names[k] for k in d] for d in _refined(e, p)]) for e in ends)
    plan = reshard.synthesize(s, t, vocabulary="collectives", objective="bytes")
    layouts = [_atoms(s)] + [_atoms(step.layout) for step in plan.steps]
    p = _common(layouts, n)
    size = [b // a for a, b in zip(p, p[1:])]
    layouts = [_refined(d, p) for d in layouts]
    digit = lambda d, k: d // p[k] % size[k]
    for l in layouts:
        if any(e % prod(size[k] for k in d) for e, d in zip(shape, l)):
            raise reshard.UnsupportedError("sizes that do not divide")

    def groups(axes):
        out = {}
        for d in range(n):
            out.setdefault(tuple(digit(d, k) for k in range(len(size)) if k not in axes), []).append(d)
        return tuple(tuple(sorted(g, key=lambda d: [digit(d, k) for k in axes])) for g in out.values())

    def index(d, axes):
        v = 0
        for k in axes:
            v = v * size[k] + digit(d, k)
        return v

    tile = [e // prod(size[k] for k in d) for e, d in zip(shape, layouts[0])]
    ops = []
    N = lambda axes: prod(size[k] for k in axes)
    for step, a, b in zip(plan.steps, layouts, layouts[1:]):
        left = [x[len(y):] if x[:len(y)] == y else [] for x, y in zip(a, b)]
        entered = [y[len(x):] if y[:len(x)] == x else [] for x, y in zip(a, b)]
        new = [e // N(d) for e, d in zip(shape, b)]
        if step.kind == "slice":
            for dim, axes in enumerate(entered):
                if axes:
                    ops.append(("slice", dim, new[dim], tuple(index(d, axes) * new[dim] for d in range(n))))
        elif step.kind == "permute":
            have = [tuple(index(d, x) for x in a) for d in range(n)]
            want = [tuple(index(d, x) for x in b) for d in range(n)]
            free = {}
            for d in range(n):
                if have[d] != want[d]:
                    free.setdefault(have[d], []).append(d)
            ops.append(("permute", tuple((d, d) if have[d] == want[d] else (free[want[d]].pop(0), d) for d in range(n))))
        elif step.kind in ("all_gather", "all_to_all"):
            out = [k for d in left for k in d]
            into = [k for d in entered for k in d]
            src = [d for d, x in enumerate(left) if x]
            dst = [d for d, x in enumerate(entered) if x]
            body = list(new)
            for d in src:
                body[d] = tile[d]
            if step.kind == "all_to_all":
                split, place, at = [], [], {}
                for d, e in enumerate(tile):
                    if d in dst:
                        at[d] = len(split)
                        split.append(N(entered[d]))
                    place.append(len(split))
                    split.append(e // N(entered[d]) if d in dst else e)
                body = [split[k] for k in place]
                ops += [("reshape", tuple(split)), ("transpose", tuple([at[d] for d in dst] + place)),
                        ("reshape", tuple([size[k] for k in into] + body)),
                        ("transpose", tuple([into.index(k) for k in out] + [len(into) + i for i in range(len(tile))])),
                        ("reshape", (N(out), *body)), ("all_to_all", groups(out))]
            else:
                body = list(tile)
                ops += [("reshape", (1, *body)), ("all_gather", groups(out))]
            order = []
            for d in range(len(tile)):
                order += ([src.index(d)] if d in src else []) + [len(src) + d]
            ops += [("reshape", tuple([N(left[d]) for d in src] + body)), ("transpose", tuple(order)), ("reshape", tuple(new))]
        else:
            raise reshard.UnsupportedError(step.kind)
        tile = new
    made = []
    for kind, *w in ops:
        if kind == "slice":
            dim, extent, starts = w
            shape_ = tuple(extent if k == dim else None for k in range(len(tile)))
            made.append(SimpleNamespace(kind=kind, output_shape=extent, dim=dim, starts=[[v if k == dim else 0 for k in range(len(tile))] for v in starts]))
        else:
            field = {"reshape": "output_shape", "transpose": "permutation", "permute": "pairs"}.get(kind, "groups")
            made.append(SimpleNamespace(kind=kind, **{field: w[0]}))
    at = [e // prod(size[k] for k in d) for e, d in zip(shape, layouts[0])]
    for o in made:
        if o.kind == "slice":
            at[o.dim] = o.output_shape
            o.output_shape = tuple(at)
        elif o.kind == "reshape":
            at = list(o.output_shape)
        elif o.kind == "transpose":
            at = [at[k] for k in o.permutation]
    return plan, made
