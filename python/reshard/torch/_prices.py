"""The price of a move: bytes, collectives, memory, and time on a process group that was described or measured."""

from __future__ import annotations

import dataclasses
import functools
import json
import time
from dataclasses import dataclass
from typing import NamedTuple

from .. import InputError, Machine
from ._groups import group_name
from ._specs import devices_of, members
from ._versions import on_cpus, torch

KINDS = ("all_gather", "all_to_all", "reduce_scatter", "all_reduce")


class Call(NamedTuple):
    """A collective on one device. received: bytes. ranks: the size of its group."""
    kind: str
    ranks: int
    received: int


class Price(NamedTuple):
    """The cost of a move on the busiest device. received, copied: bytes; peak: bytes of the largest tensor on the way; held:
    the most bytes at once, source and target included."""
    calls: tuple[Call, ...]
    copied: int
    peak: int
    held: int
    words: str

    @property
    def received(self) -> int:
        return sum(call.received for call in self.calls)


@dataclass(frozen=True)
class Prices:
    """The times of collectives on a process group. A collective takes start + peer * (ranks - 1) + received * byte.

    start, peer, byte: for each of all_gather, all_to_all, reduce_scatter and all_reduce, in seconds (byte: for each byte
    that a rank receives). copy: seconds for each byte that a rank copies. calibrate() measures one, of_machine() computes
    one, json() and from_json() keep one in a file."""
    start: dict[str, float]
    peer: dict[str, float]
    byte: dict[str, float]
    copy: float
    name: str = ""

    def seconds(self, price: Price) -> float:
        """The time of a move."""
        return price.copied * self.copy + sum(
            self.start[call.kind] + self.peer[call.kind] * (call.ranks - 1) + self.byte[call.kind] * call.received
            for call in price.calls)

    def json(self) -> str:
        """The prices as text that from_json() reads."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Prices:
        """Prices that json() wrote. Errors: InputError (a missing field, or a number below 0)."""
        try:
            held = json.loads(text)
            made = cls(**{name: {kind: float(held[name][kind]) for kind in KINDS} for name in ("start", "peer", "byte")},
                       copy=float(held["copy"]), name=str(held.get("name", "")))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"prices are the text that Prices.json() writes: {error!r}") from None
        for one in (made.start, made.peer, made.byte, {"copy": made.copy}):
            for kind, value in one.items():
                if not 0 <= value < float("inf"):
                    raise InputError(f"the price of {kind} is {value}; a number of seconds from 0 on is wanted")
        return made

    @classmethod
    def of_machine(cls, machine: Machine | str, ranks: int) -> Prices:
        """Prices of a machine as reshard has them: the innermost level that holds so many ranks. Errors: InputError."""
        known = Machine(machine) if isinstance(machine, str) else machine
        sizes = [int(line.split(" devices ")[1].split()[0]) if " devices all" not in line else ranks
                 for line in str(known).splitlines() if line.startswith("level ")]
        at = next((number for number, size in enumerate(sizes) if size >= ranks), len(sizes) - 1)
        _, rate, latency = known.levels[at]
        start = 20e-6  # a kernel of NCCL and its launch
        return cls({kind: start for kind in KINDS}, {kind: latency for kind in KINDS}, {kind: 1 / rate for kind in KINDS},
                   1 / known.copy_bytes_per_second, known.name)


# The medians of three calls of calibrate() on 8 ranks and 2 cores.
_GLOO = Prices({"all_gather": 0.0, "all_to_all": 1.4e-4, "reduce_scatter": 0.0, "all_reduce": 0.0},
               {"all_gather": 5e-4, "all_to_all": 1.9e-4, "reduce_scatter": 1.9e-3, "all_reduce": 1.6e-3},
               {"all_gather": 4e-9, "all_to_all": 3e-9, "reduce_scatter": 5e-9, "all_reduce": 2.4e-9}, 2.5e-10, "gloo")


def usual(mesh) -> Prices:
    """Prices of a mesh that nobody measured. They depend on the type of device and the number of ranks alone."""
    return _GLOO if on_cpus(mesh) else _nccl(mesh.size())


@functools.lru_cache(maxsize=64)
def _nccl(ranks: int) -> Prices:
    return Prices.of_machine(f"dgx-h100:nodes={max(1, -(-ranks // 8))}", ranks)


def calibrate(mesh, rounds: int = 5, largest: int = 1 << 23) -> Prices:
    """Measures collectives on a mesh, and returns the same prices on all its ranks.

    rounds: the least time counts; small ones run four times as often. largest: bytes of the largest tile. All ranks of the mesh call it."""
    everyone, at = sorted(devices_of(mesh)), mesh.get_coordinate()
    groups = {tuple(everyone), *(tuple(sorted(members(mesh, [axis], at))) for axis in range(mesh.ndim))}
    named = sorted(((len(ranks), group_name(list(ranks), mesh)) for ranks in groups if len(ranks) > 1), key=lambda one: one[0])
    whole, device = group_name(everyone, mesh), mesh.device_type
    start, peer, byte = {}, {}, {}
    for kind in KINDS:
        small = [(size, _agreed(_time(kind, name, size, 256, 4 * rounds, whole, device), whole, device)) for size, name in named]
        size, name = named[-1]
        large = _agreed(_time(kind, name, size, largest, rounds, whole, device), whole, device)
        (few, short), (many, long) = small[0], small[-1]
        peer[kind] = max(0.0, (long - short) / (many - few)) if many > few else long / many
        start[kind] = max(0.0, short - peer[kind] * (few - 1))
        byte[kind] = max(0.0, large - long) / _received(kind, size, largest)
    held = torch.ones(largest // 4, device=device).view(-1, 64)
    copied = _agreed(_least(lambda: held.t().contiguous(), rounds, whole, device), whole, device)
    return Prices(start, peer, byte, copied / largest, f"measured on {len(everyone)} ranks")


def _received(kind: str, ranks: int, largest: int) -> int:
    """Bytes that a rank receives of a collective. largest: bytes of its larger tensor."""
    share = largest * (ranks - 1) // ranks
    return 2 * share if kind == "all_reduce" else share


def _time(kind: str, name: str, ranks: int, largest: int, rounds: int, whole: str, device: str) -> float:
    ops = torch.ops._c10d_functional
    big = torch.ones(largest // 4 // ranks * ranks, device=device)
    part = big[:big.numel() // ranks].clone()
    splits = [part.numel()] * ranks
    run = {"all_gather": lambda: ops.all_gather_into_tensor(part, ranks, name),
           "all_to_all": lambda: ops.all_to_all_single(big, splits, splits, name),
           "reduce_scatter": lambda: ops.reduce_scatter_tensor(big, "sum", ranks, name),
           "all_reduce": lambda: ops.all_reduce(big, "sum", name)}[kind]
    return _least(lambda: ops.wait_tensor(run()), rounds, whole, device)


def _least(run, rounds: int, whole: str, device: str) -> float:
    ops, best = torch.ops._c10d_functional, float("inf")
    token = torch.ones(1, device=device)
    for _ in range(rounds + 1):
        ops.wait_tensor(ops.all_reduce(token, "sum", whole))
        begin = time.perf_counter()
        run()
        if device != "cpu":
            torch.accelerator.synchronize()
        best = min(best, time.perf_counter() - begin)
    return best


def _agreed(seconds: float, whole: str, device: str) -> float:
    """The slowest rank's time, to nine digits."""
    ops = torch.ops._c10d_functional
    found = torch.tensor([seconds], dtype=torch.float64 if device != "mps" else torch.float32, device=device)
    return float(f"{ops.wait_tensor(ops.all_reduce(found, 'max', whole)).item():.9g}")
