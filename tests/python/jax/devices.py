"""Eight devices of this host for the tests of reshard.jax. Import it before jax. XLA's warnings go to a file."""

import contextlib
import os
import sys
import tempfile

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0"  # -O0 compiles faster
os.environ["JAX_PLATFORMS"] = "cpu"

try:
    import jax
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

from jax.sharding import AxisType, NamedSharding, PartitionSpec

LONG = bool(os.environ.get("RESHARD_LONG"))
SEED = int(os.environ.get("RESHARD_SEED", "1"))


def mesh_of(kind=AxisType.Auto, **axes):
    """A mesh of these axes, all with one axis type."""
    return jax.make_mesh(tuple(axes.values()), tuple(axes), axis_types=(kind,) * len(axes))


def named(mesh, *spec):
    """NamedSharding(mesh, P(*spec))."""
    return NamedSharding(mesh, PartitionSpec(*spec))


@contextlib.contextmanager
def complaints():
    """A function that returns the text written to stderr so far, by C++ too."""
    sys.stderr.flush()
    held = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)

        def text():
            file.seek(0)
            return file.read().decode(errors="replace")
        try:
            yield text
        finally:
            sys.stderr.flush()
            os.dup2(held, 2)
            os.close(held)
            sys.stderr.write(text())
