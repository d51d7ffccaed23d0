#!/usr/bin/env python3
"""Attacks the Python package: hostile arguments for every public name, which it finds by inspection, not from a list.

    python_surface.py [--seed N]      runs that batch, or the same few batches each time
    RESHARD_LONG=1 python_surface.py  runs random batches for an hour, or for RESHARD_SECONDS

A batch is a list of statements that a seed gives. A child process of its own runs it, with a limit on memory and on the time of
each statement. A statement may raise what is documented. It must not end the process, hang, take memory without end, or raise
anything else. A failure prints the seed and the least code that repeats it."""

import argparse
import ast
import copy
import gc
import inspect
import os
import pathlib
import pickle
import random
import re
import resource
import subprocess
import sys
import threading
import time
import types
import warnings

HERE = pathlib.Path(__file__).resolve()
SECONDS = 5.0  # of CPU, for one statement
MEMORY = 1 << 30  # bytes beyond what a child has before its first statement
STATEMENTS = 400
BATCHES = 20  # of a short run; a multiple of len(KINDS)
KINDS = ("plain", "threads", "mpi", "warnings", "ending")
CALLED = ("__init__", "__setstate__", "__getstate__", "__eq__", "__hash__", "__len__", "__call__", "__str__", "__repr__", "__enter__",
          "__exit__", "__reduce__", "_repr_html_")
RUN = ("{}", "copy.copy({})", "copy.deepcopy({})", "pickle.loads(pickle.dumps({}))", "list(vars(type({})))", "type({}).__new__(type({}))")


# The surface.

def public(with_mpi):
    """(its name in a statement, object) for every public object."""
    import reshard
    import reshard.distcp
    import reshard.pages
    # reshard.nccl takes addresses, which nobody can check.
    modules = {"reshard": reshard, "reshard.rows": reshard.rows, "reshard.pages": reshard.pages, "reshard.dtypes": reshard.dtypes,
               "reshard.errors": reshard.errors, "reshard.tiles": reshard.tiles}
    if with_mpi:
        modules["reshard.mpi"] = reshard.mpi
    for place, module in modules.items():
        for name in sorted(getattr(module, "__all__", None) or (name for name in vars(module) if name[0] != "_")):
            value = getattr(module, name)
            own = getattr(value, "__module__", "").startswith("reshard")
            if own and callable(value):
                yield f"{place}.{name}", value


def parameters(function):
    """(name, annotation, whether it is keyword-only) for each parameter."""
    text = getattr(function, "__nb_signature__", None)
    try:
        if text is None:
            kinds = inspect.Parameter
            return [(one.name, str(one.annotation), one.kind == kinds.KEYWORD_ONLY)
                    for one in inspect.signature(function).parameters.values()
                    if one.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)]
        made = ast.parse(re.sub(r"\\(\d+)", "0", text[0][0]) + ": pass").body[0].args
        found = [(one, False) for one in made.posonlyargs + made.args] + [(one, True) for one in made.kwonlyargs]
        return [(one.arg, ast.unparse(one.annotation) if one.annotation else "", only) for one, only in found]
    except (TypeError, ValueError, SyntaxError):
        return [(f"argument_{number}", "", False) for number in range(3)]


class Draw:
    """Statements from a seed."""

    def __init__(self, seed, with_mpi):
        import hostile
        self.random = random.Random(seed)
        self.names = list(public(with_mpi))
        self.classes = [(name, value) for name, value in self.names if isinstance(value, type) and not issubclass(value, Exception)]
        self.hostile = hostile.HOSTILE + [f"half({name})" for name, _ in self.classes] * 2
        self.good = dict(hostile.GOOD)
        if with_mpi:
            self.good["Comm"] = ["COMM", "COMM", "SELF"]
        self.values = {}  # type -> names of what statements have made

    def made(self, name, value):
        """Keeps the value of a statement for later statements."""
        if type(value).__module__.startswith("reshard") and not isinstance(value, Exception):
            of_type = self.values.setdefault(type(value), [])
            if len(of_type) < 20:
                of_type.append(name)

    def hostile_value(self):
        if self.random.random() < 0.1 and self.values:
            return self.random.choice(self.random.choice(list(self.values.values())))
        value = self.random.choice(self.hostile)
        shape = self.random.random()
        return f"[{value}]" if shape < 0.05 else f"({value}, {self.random.choice(self.hostile)})" if shape < 0.1 else value

    def argument(self, name, annotation):
        if self.random.random() < 0.6:
            for word, values in self.good.items():
                if word in annotation or word == name:
                    return self.random.choice(values)
        return self.hostile_value()

    def call(self, function, written):
        given = []
        for name, annotation, only in parameters(function):
            if name == "self" or (only and self.random.random() < 0.7):
                continue
            value = self.argument(name, annotation)
            given.append(f"{name}={value}" if only else value)
        if self.random.random() < 0.05 and given:
            given = given[:self.random.randrange(len(given))]
        return f"{written}({', '.join(given)})"

    def statement(self):
        """One call, access or assignment."""
        if self.values and self.random.random() < 0.55:
            kind = self.random.choice(list(self.values))
            held = self.random.choice(self.values[kind])
            if self.random.random() < 0.1:
                held = f"half(type({held}))"
            members = [name for name in dir(kind) if name[0] != "_" or name in CALLED]
            member, choice = self.random.choice(members), self.random.random()
            if choice < 0.08:
                return self.random.choice(RUN).replace("{}", held)
            if choice < 0.14:
                return f"setattr({held}, {member!r}, {self.hostile_value()})"
            if choice < 0.16:
                return f"delattr({held}, {member!r})"
            function = getattr(kind, member)
            return self.call(function, f"{held}.{member}") if callable(function) else f"{held}.{member}"
        name, function = self.random.choice(self.names)
        return self.call(function, name)


# The child.

def limit_time(seconds):
    """Limits the CPU time from now on: SIGXCPU ends the process after that."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime + seconds + 1), resource.RLIM_INFINITY))


def resident():
    """The most bytes that the process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def environment(kind):
    """The names that statements may use."""
    import hostile
    import reshard
    env = dict(vars(hostile), reshard=reshard, copy=copy, pickle=pickle)
    if kind in ("mpi", "ending"):
        from mpi4py import MPI
        env.update(MPI=MPI, COMM=MPI.COMM_WORLD, SELF=MPI.COMM_SELF)
    return env


def complaint(error):
    """Why this exception is not documented; empty if it is."""
    import hostile
    import reshard
    text = "".join(str(value) for value in error.args if isinstance(value, (str, int)))
    if isinstance(error, RuntimeError) and "__init__ method should not be called" in text:
        return ""
    if "std::" in text or isinstance(error, SystemError):
        return "the C++ library let an exception pass"
    if isinstance(error, MemoryError):
        return ""  # of Python's or numpy's: for a length that is not there, or an array that was asked for
    if isinstance(error, AttributeError) and re.search("object has no attribute '_[a-z]", text):
        return ""  # of an object of Python's that has no value yet
    fine = (TypeError, ValueError, OverflowError, reshard.Error, hostile.Raised, RecursionError, Warning)
    return "" if isinstance(error, fine) else "an exception that no docstring names"


def run(statement, name, env):
    """Runs one statement. Returns its value and the fault."""
    limit_time(SECONDS)
    before = resident()
    value, wrong = None, ""
    try:
        value = eval(statement, env)  # pylint: disable=eval-used
        if name:
            env[name] = value
    except BaseException as error:  # pylint: disable=broad-except
        tampers = statement.startswith(("setattr", "delattr", "list(vars", "pickle", "copy")) or "half(" in statement
        if not (tampers and isinstance(error, (AttributeError, RuntimeError, pickle.PickleError))):
            wrong = complaint(error)
        if wrong:
            wrong = f"{wrong}: {type(error).__name__}: {[value for value in error.args if isinstance(value, (str, int))]}"[:500]
    grown = resident() - before
    if grown > MEMORY // 2:
        wrong = f"took {grown >> 20} MiB"
    return value, wrong


def say(word, text):
    """Writes to the parent at once: the next statement may end the process."""
    os.write(1, f"{word} {text}\n".encode("utf-8", "backslashreplace"))


def say_wrong(found):
    for _, wrong in found:
        if wrong:
            say("WRONG", wrong)


def at_once(work, count):
    """Calls work in so many threads and waits for their end."""
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def child_of_batch(kind, seed, count):
    """Draws and runs a batch."""
    sys.path.insert(0, str(HERE.parent))
    env = environment(kind)
    draw = Draw(seed, kind == "mpi")
    limit_memory()
    if kind == "warnings":
        warnings.simplefilter("error")
    else:
        warnings.simplefilter("ignore")
    if kind == "threads":
        in_threads(draw, env, count)
        return
    for number in range(count):
        name, statement = f"v{number}", draw.statement()
        say("RUN", f"{name} = {statement}")
        value, wrong = run(statement, name, env)
        if wrong:
            say("WRONG", wrong)
        draw.made(name, value)
        if number % 50 == 0:
            gc.collect()
    say("END", str(resident() >> 20))


def in_threads(draw, env, count):
    """Statements of one batch, each in four threads at once."""
    for number in range(count // 8):
        name, statement = f"v{number}", draw.statement()
        say("RUN", f"{name} = {statement}")
        together, found = threading.Barrier(4), []

        def work():
            together.wait()
            value, wrong = run(statement, "", env)
            found.append((value, wrong))
        at_once(work, 4)
        say_wrong(found)
        env[name] = found[0][0]
        draw.made(name, found[0][0])
    say("END", str(resident() >> 20))


def limit_memory():
    """Limits the address space to the present size and so many bytes more."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, resource.RLIM_INFINITY))


def child_of_code(kind, path):
    """Runs statements that a file lists."""
    sys.path.insert(0, str(HERE.parent))
    env = environment(kind)
    limit_memory()
    warnings.simplefilter("error" if kind == "warnings" else "ignore")
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        name, statement = line.split(" = ", 1)
        say("RUN", line)
        copies = 4 if kind == "threads" else 1
        found = []
        at_once(lambda: found.append(run(statement, name, env)), copies)
        say_wrong(found)
    say("END", str(resident() >> 20))


# Objects that outlive the objects they need, and threads that outlive the interpreter.

OBJECTS = {
    "executor": "executor = reshard.mpi.Executor(COMM, PLAN)",
    "run": "run = reshard.mpi.Executor(COMM, PLAN).start(A, B)",
    "memory": "memory = reshard.mpi.allocate(COMM, SOURCE)",
    "registration": "registration = reshard.mpi.registered(COMM, C)",
    "dup": "dup = COMM.Dup(); other = reshard.mpi.Executor(dup, PLAN); moved = reshard.mpi.redistribute(dup, A, SOURCE, TARGET)",
    "moved": "moved = reshard.mpi.redistribute(COMM, A, SOURCE, TARGET)",
    "world": "world = reshard.local(2)",
    "plan": "plan = reshard.synthesize(*PAIRS[0])",
    "capabilities": "capabilities = reshard.mpi.capabilities(COMM)",
}
USES = {
    "executor": ["executor.run(A, B)", "executor.describe()", "executor.start(A, B)"],
    "run": ["run.wait()", "run.test()", "run.arrived()", "run.offer(0)"], "memory": ["memory.sum()", "memory.fill(3)"],
    "registration": ["registration.end()", "registration.__enter__()"], "dup": ["other.run(A, B)", "free(dup)"],
    "moved": ["reshard.mpi.redistribute(COMM, A, SOURCE, TARGET)", "reshard.mpi.clear(COMM)"],
    "world": ["world.redistribute(*MOVE)"], "plan": ["str(reshard.explain(*PAIRS[0]))", "plan.svg()"],
    "capabilities": ["reshard.mpi.allocate(COMM, SOURCE)"],
}
BEGIN = """
import atexit
SOURCE, TARGET = (reshard.parse_layout("x=1", text) for text in ("f32[1000@x]", "f32[1000]"))
PLAN = reshard.synthesize(SOURCE, TARGET)
A, B, C = (numpy.zeros(1000, "f4") for _ in range(3))
MOVE = reshard.split(numpy.zeros((400, 300), "f4"), reshard.parse_layout("x=2", "f32[400@x,300]")), *(
    reshard.parse_layout("x=2", text) for text in ("f32[400@x,300]", "f32[400,300@x]"))
"""


def ending(seed):
    """The lines of a program that ends somehow."""
    draw = random.Random(seed)
    chosen = draw.sample(sorted(OBJECTS), draw.randint(2, 5))
    lines, held = [OBJECTS[one] for one in chosen], [name for name in chosen]
    for _ in range(draw.randint(4, 12)):
        one, way = draw.choice(held), draw.random()
        use = draw.choice(USES[one])
        name = {"dup": "other", "capabilities": "capabilities"}.get(one, one)
        if way < 0.30:
            lines.append(use)
        elif way < 0.42:
            lines.append(f"{name} = None")
        elif way < 0.50:
            lines.append(f"circle = [{name}]; circle.append(circle); {name} = circle = None")
        elif way < 0.60:
            if not any(line.startswith("for_ever") for line in lines):  # MPI forbids calls of other threads meanwhile
                lines.append("finalize()")
        elif way < 0.65:
            lines.append("gc.collect()")
        elif way < 0.75:
            lines.append(f"for_ever(lambda: {use})")
        elif way < 0.85:
            lines.append(f"apart(lambda: {use})")
        elif way < 0.93:
            lines.append(f"atexit.register(quietly, lambda: {use})")
        else:
            lines.append(f"box = [{name}]; {name} = None; apart(box.clear)")
    return lines


def child_of_ending(path):
    """Runs a program, and exits with its status."""
    sys.path.insert(0, str(HERE.parent))
    env = environment("ending")
    warnings.simplefilter("ignore")
    import hostile

    def quietly(call):
        try:
            call()
        except (hostile.Raised, NameError) as error:
            del error
        except Exception as error:  # pylint: disable=broad-except
            theirs = type(error).__module__.startswith("mpi4py") or isinstance(error, AttributeError)  # of None
            if not theirs and complaint(error):
                say("WRONG", f"{complaint(error)}: {type(error).__name__}: {error}")

    apart_threads = []

    def for_ever(call):
        def work():
            while True:
                quietly(call)
        threading.Thread(target=work, daemon=True).start()

    def apart(call):
        apart_threads.append(threading.Thread(target=quietly, args=(call,)))
        apart_threads[-1].start()

    def finalize():
        for thread in apart_threads:
            thread.join()
        if not env["MPI"].Is_finalized():
            env["MPI"].Finalize()

    def free(comm):
        if not env["MPI"].Is_finalized() and comm != env["MPI"].COMM_NULL:
            comm.Free()
    env.update(finalize=finalize, free=free, quietly=quietly, for_ever=for_ever, apart=apart, gc=gc)
    exec(BEGIN, env)  # pylint: disable=exec-used
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        say("RUN", line)
        quietly(lambda: exec(line, env))  # pylint: disable=exec-used
    say("END", str(resident() >> 20))


# The parent.

class Failure(Exception):
    """The fault, and the statements of the batch up to it."""

    def __init__(self, wrong, lines):
        super().__init__(wrong)
        self.lines = lines


def child(*arguments, patience=None):
    """Runs this program as a child. Raises Failure. patience: seconds of silence that are allowed on a busy machine."""
    patience = patience or 60.0
    ran = subprocess.Popen([sys.executable, "-B", "-X", "faulthandler", str(HERE), *map(str, arguments)], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True, errors="replace", env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"))
    lines, state, errors = [], {"heard": time.monotonic(), "wrong": "", "ended": False}, []
    passing = threading.Thread(target=lambda: errors.extend(ran.stderr.readlines()[-30:]), daemon=True)
    passing.start()

    def listen():
        for line in ran.stdout:
            state["heard"] = time.monotonic()
            word, _, text = line.rstrip("\n").partition(" ")
            if state["wrong"]:
                continue  # the child runs on until it is killed
            if word == "RUN":
                lines.append(text)
            elif word == "WRONG":
                state["wrong"] = text
                ran.kill()
            elif word == "END":
                state["ended"] = True
    listening = threading.Thread(target=listen, daemon=True)
    listening.start()
    while ran.poll() is None and time.monotonic() - state["heard"] < patience:
        time.sleep(0.005)
    hung = ran.poll() is None
    if hung:
        ran.kill()
    code = ran.wait()
    listening.join(10)
    passing.join(10)
    if state["wrong"]:
        raise Failure(state["wrong"], lines)
    if hung:
        raise Failure(f"no word for {patience:.0f} s" + (", at the end" if state["ended"] else ""), lines)
    if code != 0 or not state["ended"]:
        raise Failure(f"ended with {code}\n" + "".join(errors[-25:]), lines)


def needed(lines):
    """The last statement, and the statements that made its arguments."""
    made = {line.split(" = ", 1)[0]: line for line in lines}
    wanted, found = [lines[-1]], []
    while wanted:
        line = wanted.pop()
        if line not in found:
            found.append(line)
            wanted += [made[name] for name in re.findall(r"\bv\d+\b", line.split(" = ", 1)[1]) if name in made]
    return sorted(found, key=lines.index)


def repeats(kind, lines, folder):
    """Whether these lines fail by themselves."""
    path = pathlib.Path(folder) / "code"
    path.write_text("\n".join(lines), encoding="utf-8")
    try:
        child("--child", "ending" if kind == "ending" else "code", "--kind", kind, "--code", path)
    except Failure:
        return True
    return False


def smallest(kind, lines, folder):
    """The fewest lines found that repeat the failure in twenty tries."""
    if not lines:
        return lines
    found = list(lines)
    if kind != "ending":
        found = needed(lines)
        if not repeats(kind, found, folder):
            return lines
    for line in list(found[:20]):
        fewer = [other for other in found if other is not line]
        if fewer and repeats(kind, fewer, folder):
            found = fewer
    return found


def attack(seed, folder):
    """One batch. Raises Failure."""
    kind = KINDS[seed % len(KINDS)]
    if kind == "ending":
        path = pathlib.Path(folder) / "ending"
        path.write_text("\n".join(ending(seed)), encoding="utf-8")
        child("--child", "ending", "--code", path)
    else:
        child("--child", "batch", "--kind", kind, "--seed", seed, "--count", STATEMENTS)


def main():
    """Runs batches until the time is over or one fails."""
    import tempfile
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--seed", type=int)
    words.add_argument("--child", help=argparse.SUPPRESS)
    words.add_argument("--kind", default="plain", help=argparse.SUPPRESS)
    words.add_argument("--code", help=argparse.SUPPRESS)
    words.add_argument("--count", type=int, default=STATEMENTS, help=argparse.SUPPRESS)
    given = words.parse_args()
    if given.child == "batch":
        return child_of_batch(given.kind, given.seed, given.count)
    if given.child == "code":
        return child_of_code(given.kind, given.code)
    if given.child == "ending":
        return child_of_ending(given.code)
    import reshard
    is_long = bool(os.environ.get("RESHARD_LONG"))
    seconds = float(os.environ.get("RESHARD_SECONDS") or 3600)
    first = given.seed if given.seed is not None else random.SystemRandom().randrange(10**6) * len(KINDS) if is_long else 0
    begin, seed = time.monotonic(), first
    with tempfile.TemporaryDirectory() as folder:
        while True:
            kind = KINDS[seed % len(KINDS)]
            if kind not in ("mpi", "ending") or reshard.mpi.available():
                try:
                    attack(seed, folder)
                except Failure as failure:
                    print("the least code:", *smallest(kind, failure.lines, folder), sep="\n  ")
                    print(f"{HERE.name} --seed {seed}   ({kind}): {failure}", flush=True)  # last: reports cut the beginning
                    sys.exit(1)
            seed += 1
            over = time.monotonic() - begin > seconds if is_long else seed - first >= BATCHES
            if given.seed is not None or over:
                break
    print(f"seeds {first} to {seed - 1}: nothing found")


if __name__ == "__main__":
    main()
