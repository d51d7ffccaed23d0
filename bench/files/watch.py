"""Commands whose time and memory are measured, with the pages of files dropped before, and under a limit of memory where
the system gives one."""

import contextlib
import os
import shutil
import subprocess
import threading
import time


def drop_caches(*paths):
    """Drops the pages of files. Returns how, in words."""
    subprocess.run(["sync"], check=True)
    try:
        with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
            file.write("3\n")
        return "dropped"
    except OSError:
        for path in paths:
            for folder, _, names in os.walk(path):
                for name in names:
                    descriptor = os.open(os.path.join(folder, name), os.O_RDONLY)
                    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                    os.close(descriptor)
        return "given up file by file"


def watched(command, join=None):
    """Runs a command. Returns its seconds, the largest RssAnon in bytes that was seen, and its output.
    `join` runs in the process before it begins."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=join)
    most = [0]

    def watch():
        while process.poll() is None:
            try:
                with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
                    most[0] = max([most[0]] + [1024 * int(line.split()[1]) for line in file if line.startswith("RssAnon")])
            except (OSError, ValueError):
                pass
            time.sleep(0.01)

    watcher = threading.Thread(target=watch)
    watcher.start()
    out, _ = process.communicate()
    watcher.join()
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return time.monotonic() - begin, most[0], out


def remove(path):
    shutil.rmtree(path, ignore_errors=True)
    for one in (path, path + ".reshard.json"):
        if os.path.isfile(one):
            os.remove(one)


def _own_group(controller):
    with open("/proc/self/cgroup", encoding="ascii") as file:
        for line in file:
            _, names, path = line.rstrip("\n").split(":", 2)
            if controller in names.split(","):
                return path
    return None


def _write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


@contextlib.contextmanager
def group_of(limit):
    """A control group of so many bytes, including its page cache: (how a process joins it, a name for it), or (None, the
    reason why it cannot be had)."""
    own = _own_group("memory")
    first = own is not None
    parent = f"/sys/fs/cgroup/memory{own}" if first else "/sys/fs/cgroup"
    folder = os.path.join(parent, f"reshard-bench-{os.getpid()}")
    try:
        os.mkdir(folder)
    except OSError as error:
        yield None, f"no control group can be made ({error})"
        return
    try:
        try:
            _write(os.path.join(folder, "memory.limit_in_bytes" if first else "memory.max"), str(limit))
        except OSError as error:
            yield None, f"the control group takes no limit ({error})"
            return
        yield lambda: _write(os.path.join(folder, "cgroup.procs"), "0"), f"cgroup v{1 if first else 2}"
    finally:
        for _ in range(50):  # until the system has let its last process go
            try:
                os.rmdir(folder)
                break
            except OSError:
                time.sleep(0.1)
