"""test_two_nodes_end.py TWO_NODES MPIEXEC RESHARD: however bench/two_nodes.py is told to end, its launcher, its ranks
and its namespaces end with it. Exits 77 where there are no tools or privileges for namespaces."""

import os
import signal
import subprocess
import sys
import time

RANKS = 4
BEGIN_SECONDS = 100
END_SECONDS = 100


def network(pid):
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return None


def is_over(pid):
    """A process whose parent has not asked for it yet is over too."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] in "ZX"
    except OSError:
        return True


def processes():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def children(pid):
    found = []
    for one in processes():
        try:
            with open(f"/proc/{one}/stat", encoding="utf-8") as file:
                if int(file.read().rsplit(")", 1)[1].split()[1]) == pid:
                    found.append(one)
        except OSError:
            pass
    return found


def hold_networks(pid, held):
    """Those of the script's own processes, but for the one that all share, by name. They are kept open: the name of one
    that is gone may become another's."""
    for child in children(pid):
        try:
            file = os.open(f"/proc/{child}/ns/net", os.O_RDONLY)
        except OSError:
            continue
        name = f"net:[{os.fstat(file).st_ino}]"
        if name in held or name == network("self"):
            os.close(file)
        else:
            held[name] = file


def inhabitants(networks):
    return [pid for pid in processes() if network(pid) in networks and not is_over(pid)]


def runs(pid, program):
    try:
        return os.path.samefile(f"/proc/{pid}/exe", program)
    except OSError:
        return False


def until(seconds, holds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.1)
    return False


def ends_on(number, two_nodes, mpiexec, reshard):
    # A slow link and many rounds: it would run for minutes.
    script = subprocess.Popen([sys.executable, "-B", two_nodes, mpiexec, reshard, "--rate", "1000000", "--rounds", "1000"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    networks = {}

    def ranks_run():
        hold_networks(script.pid, networks)
        return script.poll() is not None or sum(runs(pid, reshard) for pid in inhabitants(networks)) == RANKS

    began = until(BEGIN_SECONDS, ranks_run)
    if script.poll() is not None:
        out, err = script.communicate()
        if script.returncode == 77:
            print(out, end="")
            sys.exit(77)
        sys.exit(f"wrong: it ended with {script.returncode} by itself\n{out}\n{err}")
    script.send_signal(number)
    ended = until(END_SECONDS, lambda: script.poll() is not None)
    left = not until(END_SECONDS, lambda: not inhabitants(networks))
    names = [os.path.basename(os.readlink(f"/proc/{pid}/exe")) for pid in inhabitants(networks)]
    for pid in inhabitants(networks):
        os.kill(pid, signal.SIGKILL)
    for file in networks.values():
        os.close(file)
    if not ended:
        script.kill()
    script.communicate()
    if not began:
        sys.exit(f"wrong: no {RANKS} ranks after {BEGIN_SECONDS} seconds")
    if left or not ended:
        sys.exit(f"wrong: {signal.Signals(number).name} left {names} after {END_SECONDS} seconds")
    expected = -number if number == signal.SIGKILL else 128 + number
    if script.returncode != expected:
        sys.exit(f"wrong: {signal.Signals(number).name} ended it with {script.returncode}")
    print(f"{signal.Signals(number).name}: ended, and nothing is left")


def main():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
        ends_on(number, *sys.argv[1:])


if __name__ == "__main__":
    main()
