"""Orbax's save and load of a model. Each rank of MPI is a process of JAX with one device."""

import os
import socket

import jax
import llama
import orbax.checkpoint as ocp
from jax.sharding import NamedSharding, PartitionSpec


def _free_port():
    with socket.socket() as held:
        held.bind(("localhost", 0))
        return held.getsockname()[1]


class Orbax:
    """A checkpointer with Orbax's own defaults, for bf16 tensors of these shapes."""

    def __init__(self, comm, tensors):
        port = comm.bcast(_free_port() if comm.rank == 0 else None)
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(f"localhost:{port}", comm.size, comm.rank)
        self.tensors = tensors
        self.mesh = jax.sharding.Mesh(jax.devices(), ("tp",))
        self.checkpointer = ocp.StandardCheckpointer()

    def _sharding(self, name, cut):
        dim = cut(name)
        axes = ["tp" if k == dim else None for k in range(len(self.tensors[name]))]
        return NamedSharding(self.mesh, PartitionSpec(*axes))

    def arrays(self, tiles, cut=llama.cut_dim):
        """Arrays of JAX with this rank's tiles, by name."""
        device = jax.local_devices()[0]
        return {name: jax.make_array_from_single_device_arrays(self.tensors[name], self._sharding(name, cut),
                                                               [jax.device_put(tile, device)])
                for name, tile in tiles.items()}

    def save(self, path, arrays):
        """Returns when all is written."""
        self.checkpointer.save(os.path.abspath(path), arrays)
        self.checkpointer.wait_until_finished()

    def load(self, path, cut=llama.cut_dim):
        wanted = {name: jax.ShapeDtypeStruct(shape, "bfloat16", sharding=self._sharding(name, cut))
                  for name, shape in self.tensors.items()}
        return jax.block_until_ready(self.checkpointer.restore(os.path.abspath(path), wanted))
