"""Values for python_surface.py: good ones of every type of the package, and hostile ones. A child imports all of it."""

import ctypes
import gc
import sys
import threading
import types
import warnings

import numpy

import reshard
import reshard.pages

MESHES = [reshard.parse_mesh(text) for text in ("x=2,y=3", "x=4", "x=2,y=2,z=2", "x=1", "x=2,y=3[0,2,4,1,3,5]")]
TEXTS = ["f32[12@x,6@y]", "f32[12,6@(y,x)]", "f64[12@y,6]", "bf16[7@x,5]", "f32[12,6]", "f32[0@x,3]", "f32[]", "u8[24@x/2]",
         "f32[12@x,6]{U:y}"]
LAYOUTS = [reshard.parse_layout(MESHES[0], text) for text in TEXTS] + [
    reshard.parse_layout(MESHES[1], text) for text in ("f32[12@x,6]", "f32[12,6@x]", "f32[16@x]", "f32[4,4@x]")]
PAIRS = [(LAYOUTS[0], LAYOUTS[1]), (LAYOUTS[9], LAYOUTS[10]), (LAYOUTS[11], LAYOUTS[12]), (LAYOUTS[4], LAYOUTS[0])]
PLANS = [reshard.synthesize(*pair) for pair in PAIRS] + [reshard.synthesize(*PAIRS[0], vocabulary="collectives")]
LISTS = [reshard.synthesize_list(PAIRS[:2])]
MACHINES = [reshard.Machine("laptop"), reshard.Machine("dgx-h100:nodes=2"), reshard.Machine("ethernet:nodes=2,per_node=2")]
SPLITS = [reshard.Split(0, [1, 3, 4]), reshard.Split(1, [2, 4], [1, 0]), reshard.Split(0, [5], overlapped=False)]
WORK = [reshard.WorkTimes([1, 4, 9], [1.0, 2.0, 3.0])]
WORLDS = [reshard.local(6), reshard.local(4), reshard.local(1)]
TILES = [reshard.split(numpy.zeros(layout.shape), layout) for layout in LAYOUTS if layout.summands == 1 and layout.dtype != "bf16"]
RULES = ["source x=2\notherwise = [x, -]\ntarget x=2\nl.qk = [x, -] <- l.q + l.k", "source x=2\notherwise = -"]
TENSORS = [("l.q", "f32", (8, 4)), ("l.k", "f32", (4, 4))]
CACHES = [reshard.pages.PagedCache(reshard.parse_layout(*words), block, 64) for *words, block in (
    ("tp=4", "bf16[2,128,8@tp,4]", 16), ("tp=2", "bf16[2,128,8@tp,4]", 32))]
PROGRAMS = [reshard.portable(PLANS[-1])]


class Raised(Exception):
    """Hostile objects raise this, so any call may raise it."""


def _raise(*_, **__):
    raise Raised("by a hostile object")


SPECIAL = ("__len__", "__iter__", "__getitem__", "__index__", "__int__", "__float__", "__bool__", "__hash__", "__eq__", "__str__",
           "__repr__", "__call__", "__array__", "__dlpack__", "__dlpack_device__", "__array_interface__", "__fspath__",
           "__contains__", "__next__", "__enter__", "__exit__", "__length_hint__", "__getattr__", "keys", "items", "shape", "dtype")


def raises(*names):
    """An object whose special methods raise: all of them, or the named ones."""
    return type("Hostile", (), {name: _raise for name in names or SPECIAL})()


class Lies:
    """A sequence that reports a wrong length, or a different length each time."""

    def __init__(self, length, *items, again=0):
        self.length, self.held, self.again = length, items, again

    def __len__(self):
        self.length += self.again
        return self.length

    def __getitem__(self, at):
        return self.held[at]


class Turns:
    """A different value at each look, as a number, a text, a sequence or an array."""

    def __init__(self, *values):
        self.values, self.at = values, -1

    def turn(self):
        self.at += 1
        return self.values[self.at % len(self.values)]

    def __index__(self):
        return self.turn()

    __int__ = __float__ = __len__ = __index__

    def __getitem__(self, at):
        if at > 3:
            raise IndexError
        return self.turn()

    def __iter__(self):
        return iter([self.turn()])

    def __array__(self, *_, **__):
        return self.turn()

    def __dlpack__(self, **more):
        return self.turn().__dlpack__(**more)

    def __dlpack_device__(self):
        return 1, 0


class Liar(numpy.ndarray):
    """An array of numpy that reports wrong facts about itself."""

    flags = types.SimpleNamespace(writeable=True, c_contiguous=True)
    dtype = numpy.dtype("f8")
    shape = (12, 2)
    strides = (16, 8)

    def view(self, *_):
        return numpy.zeros(3)

    def __repr__(self):
        raise Raised("numpy cannot show an array with a wrong shape")

    __str__ = __repr__


class Capsule:
    """Returns a DLPack capsule that is no capsule, or the same capsule again and again."""

    def __init__(self, value):
        self.value = value

    def __dlpack__(self, **_):
        return self.value

    def __dlpack_device__(self):
        return 1, 0


def loop(kind=list):
    """A container that holds itself."""
    held = kind()
    if kind is dict:
        held["x"] = held
    else:
        held.append(held)
    return held


def half(kind):
    """An object without a value: __new__ and no __init__."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind.__new__(kind)


def reenter(function, *values):
    """A function that calls another one, collects garbage, and lets other threads run."""
    def again(*_):
        gc.collect()
        threading.Event().wait(0.0001)
        function(*values)
        return 1.0
    return again


class Sub(reshard.Layout):
    """A subclass whose __init__ does not call its base's."""

    def __init__(self, *_):
        pass


frozen = numpy.zeros((3, 4), "f4")
frozen.flags.writeable = False
text_type = type("Text", (str,), {"__len__": _raise, "encode": _raise})
number_type = type("Number", (int,), {"__index__": _raise, "__int__": _raise})

HOSTILE = [
    "None", "True", "False", "0", "1", "-1", "2", "3", "7", "64", "1000", "2**20", "2**31", "2**32", "2**40", "2**53", "2**62",
    "2**63-1", "2**63", "-2**63", "-2**63-1", "2**64", "10**30", "number_type(3)", "0.5", "1e-300", "1e300", "-0.0", "3.0",
    "float('nan')", "float('inf')", "-float('inf')", "1j", "numpy.float32(2)", "numpy.int64(3)", "numpy.bool_(True)",
    "''", "'x'", "' '", "'\\0'", "'x\\0y'", "'\\ud800'", "'\\udcff=2'", "'x=2'", "'x=2\\n'", "'é=2'", "'x'*100000", "'(' * 5000",
    "'f32[8@x]'", "'f32[9223372036854775807@x]'", "'x=9223372036854775807'", "'x=1073741824,y=1073741824'", "'%s{}{0}'",
    "'-1'", "'1e99'", "'96MiB'", "'9'*40+'GiB'", "'slice'", "'jax'", "'spec'", "'f32'", "text_type('x=2')", "b'x=2'",
    "bytearray(b'x')", "memoryview(b'ab')", "[]", "()", "{}", "set()", "[None]", "[0]", "[1]", "[-1]", "[2**63]", "[[]]",
    "[1, 2, 3]", "[3, 2, 1]", "[2**62, 2**62]", "[0.5]", "[float('nan')]", "['x']", "[('x', 2)]", "[('slice', 1)]", "[(1, 'x')]",
    "[('slice', LAYOUTS[0])]", "[('slice', 'f32[12@x,6@y]')]", "{'x': 2}", "{'x': -1}", "{'x': 2**62}", "{1: 2}", "{'': 1}",
    "range(5)", "range(10**5)", "iter([1])", "(one for one in ())", "loop()", "loop(dict)", "[loop()]", "(loop(), loop())",
    "Lies(2**40, 1)", "Lies(0, 1, 2)", "Lies(5, 1)", "Lies(2, 1, 2, again=1)", "Lies(-3, 1)", "[Lies(2, LAYOUTS[0], 3)]",
    "raises()", "raises('__len__')", "raises('__index__')", "raises('__eq__', '__hash__')", "raises('__str__', '__repr__')",
    "raises('__dlpack__')", "raises('__array__')", "raises('__getitem__', '__len__')", "raises('__getattr__')", "[raises()]",
    "[(raises(), raises())]", "Turns(1, -1)", "Turns(2**70)", "Turns('x', 3)", "[Turns(4, 8)]", "Turns(*TILES[0])",
    "Turns(numpy.zeros((3, 4), 'f4'), frozen)", "Capsule(None)", "Capsule(3)", "Capsule(numpy.zeros(3).__dlpack__())",
    "[Capsule(frozen)] * 6", "numpy.zeros((3, 4), 'f4')", "numpy.zeros((3, 4), 'f8').view(Liar)",
    "numpy.zeros((3, 4), 'u1').view(Liar)", "frozen", "[frozen] * 4", "numpy.zeros((4, 3), 'f4').T", "numpy.zeros(0)",
    "numpy.zeros(())", "numpy.broadcast_to(numpy.float32(1), (2**20, 2**20))", "numpy.zeros(3, 'O')", "numpy.zeros(3, 'M8[s]')",
    "numpy.zeros(3, 'i4,f4')", "numpy.zeros(3, '>f4')", "numpy.zeros((3, 4), 'f4')[::-1, ::2]", "numpy.ma.masked_array([1, 2])",
    "numpy.lib.stride_tricks.as_strided(numpy.zeros(9, 'f4'), (3, 4), (4, 4))", "numpy.dtype('f4')", "numpy.dtype('i4,f4')",
    "numpy.float32", "int", "object()", "type", "print", "sys", "reshard", "...", "NotImplemented", "lambda *_: 1.0",
    "lambda *_: float('nan')", "lambda *_: -1.0", "lambda *_: 'x'", "lambda: 1.0", "_raise", "lambda *_: 1e300",
    "reenter(reshard.synthesize, *PAIRS[0])", "reenter(gc.collect)", "Sub()", "half(Sub)", "ctypes.c_int(3)", "TILES[0]",
    "TILES[0][:3]", "TILES[0] * 2", "[TILES[0][0]] * 6", "LAYOUTS", "PAIRS", "PAIRS[0]", "[PAIRS[0]] * 3", "threading.Lock()",
]

# Values for an argument, by a word of its annotation or its name.
GOOD = {
    "Layout": [f"LAYOUTS[{at}]" for at in range(len(LAYOUTS))], "Mesh": [f"MESHES[{at}]" for at in range(len(MESHES))],
    "PagedCache": ["CACHES[0]", "CACHES[1]"], "ListPlan": ["LISTS[0]"], "Plan": [f"PLANS[{at}]" for at in range(len(PLANS))], "Capabilities": ["reshard.Capabilities()"],
    "Machine": [f"MACHINES[{at}]" for at in range(len(MACHINES))], "Split": [f"SPLITS[{at}]" for at in range(len(SPLITS))],
    "Callable": ["WORK[0]", "lambda begin, end: 1e-6 * (end - begin)"], "tuple[Layout": ["PAIRS", "PAIRS[:1]", "[]"],
    "problems": ["PAIRS", "PAIRS[:1]"], "rules": ["RULES[0]", "RULES[1]"], "tensors": ["TENSORS"], "tiles": [
        f"TILES[{at}]" for at in range(len(TILES))], "out": ["None", "TILES[1]"], "array": ["TILES[0][0]", "'f32[8,4]'"],
    "places": ["4", "64"], "rounds": ["1", "2"], "pieces_max": ["1", "8"], "rank": ["0", "1", "5"], "dim": ["0", "1"], "block": ["4", "9"], "piece": ["0", "1"], "notation": ["'jax'", "'hlo'", "'sdy'"],
    "vocabulary": ["'all'", "'collectives'"], "objective": ["'time'", "'bytes'", "'steps'"], "side": ["'send'", "'receive'"],
    "framework": ["'jax'", "'torch'", "'stablehlo'"], "text": ["'x=2,y=3'", "'f32[12@x,6]'"], "dtype": ["'f32'", "'bf16'", "'f8'"],
    "int": ["0", "1", "2", "5"], "float": ["0.0", "1.5"], "str": ["'x'", "'f32'", "'x=2'"], "bool": ["True", "False"],
    "Sequence": ["[1, 2]", "(4,)", "[]"],
}
