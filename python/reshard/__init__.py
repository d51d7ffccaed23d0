"""Moves distributed arrays between shardings: plans, their price before a byte moves, and the move itself::

    import reshard
    source = reshard.parse_layout("x=2,y=3", "f32[12288@x,4096]")
    target = reshard.parse_layout("x=2,y=3", "f32[12288@y,4096]")
    print(reshard.synthesize(source, target))

In one process: ``reshard.local(ranks).redistribute(tiles, source, target)``. Under MPI:
``reshard.mpi.redistribute(comm, tile, source, target)``. On GPUs: ``reshard.nccl``. Between two jobs: ``reshard.live``.
Inside JAX and PyTorch: ``reshard.jax``, ``reshard.torch``. A tile is the part of an array that one rank holds. `split`
makes tiles of a whole array, and `join` is its inverse. Errors are exceptions of ``reshard.errors``, all of them
``reshard.Error``."""

from . import errors, live, mpi, nccl
from ._core import (Alternative, Capabilities, DeviceMemory, Digest, Explanation, Layout, ListPlan, Machine, Mesh, Operation,
                    PieceChoice, Plan, Schedule, ScheduledActivity, Split, Step, TileProgram, WorkTimes, choose_pieces, explain,
                    measure_work, notations, parse_layout, parse_mesh, planning_rules, portable, program_generators, schedule,
                    synthesize, synthesize_list, translate)
from ._local import Local, local
from .checkpoints import load, move_tensors, save
from .digests import DigestKeys
from .errors import BackendError, Error, InfeasibleError, InputError, UnsupportedError
from .pipelines import pipeline_of_rows
from .programs import Program
from .rebuilds import DeviceTraffic, rebuild_traffic
from .runner import Runner, TaskPiece, TaskRun
from .rows import CheckpointMapping, RowSchedule, halo_rows, row_dtype, schedule_rows
from .tiles import empty_tile, join, split

__all__ = ["Alternative", "BackendError", "Capabilities", "DeviceMemory", "DeviceTraffic", "Digest", "DigestKeys", "Error", "Explanation",
           "InfeasibleError", "InputError", "Layout", "ListPlan", "Local", "Machine", "Mesh", "CheckpointMapping", "Operation", "PieceChoice", "Plan",
           "Program", "RowSchedule", "Runner", "Schedule", "ScheduledActivity", "Split", "Step", "TaskPiece", "TaskRun", "TileProgram", "UnsupportedError", "WorkTimes", "choose_pieces", "empty_tile",
           "errors", "explain", "halo_rows", "join", "live", "load", "local", "measure_work", "move_tensors", "mpi", "nccl", "notations", "parse_layout",
           "parse_mesh", "pipeline_of_rows", "planning_rules", "portable", "program_generators", "rebuild_traffic", "row_dtype", "save", "schedule", "schedule_rows", "split", "synthesize",
           "synthesize_list", "translate"]


def __getattr__(name: str):
    """reshard.jax imports JAX, and reshard.torch imports PyTorch. Each is imported only when a program uses it."""
    if name in ("jax", "torch"):
        import importlib
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module 'reshard' has no attribute '{name}'")
