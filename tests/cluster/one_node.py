"""A Slurm of one node on this host, in namespaces of its own: nothing of it can be reached from outside, and nothing can stay behind.

``python tests/cluster/one_node.py COMMAND`` runs a command with it; ``prove.py`` beside it is what it is for.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

INSIDE = "KVTIER_ONE_NODE_SCRATCH"
NEEDED = ("setpriv", "unshare", "munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol")
INSTALL = "apt-get install slurm-wlm munge"

# proctrack, task, jobacct_gather and accounting that ask for neither cgroups nor a database. In place of accounting squeue tells of jobs
# that have ended, for MinJobAge seconds.
CONFIGURATION = """\
ClusterName=one
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={scratch}/munge.socket
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
MinJobAge=7200
ReturnToService=2
StateSaveLocation={scratch}/state
SlurmdSpoolDir={scratch}/spool
SlurmctldPidFile={scratch}/slurmctld.pid
SlurmdPidFile={scratch}/slurmd.pid
SlurmctldLogFile={scratch}/slurmctld.log
SlurmdLogFile={scratch}/slurmd.log
NodeName=localhost NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory_mb} State=UNKNOWN
PartitionName=all Nodes=localhost Default=YES MaxTime=60 State=UP
"""


class Refused(Exception):
    """What is missing, in one line."""


def missing() -> str | None:
    """What keeps a Slurm from being started here, in one line; None if nothing does."""
    # Debian keeps daemons where only root's PATH looks.
    absent = [name for name in NEEDED if not shutil.which(name, path=search_path())]
    if absent:
        return f"{', '.join(absent)} not found; on Debian: {INSTALL}"
    if os.geteuid() != 0:
        return "must be run by root, for the namespaces and for the daemons"
    probe = subprocess.run([*UNSHARE, "true"], capture_output=True, text=True, check=False)
    if probe.returncode:
        return f"this host allows no namespaces of one's own (in a container: CAP_SYS_ADMIN): {probe.stderr.strip()}"
    return None


def search_path() -> str:
    """PATH with the folders of daemons in it."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


# Own network: only a loopback. Own mounts: /etc/slurm is this one's alone. Own process numbers: when the first process ends, all do.
# It ends at the latest with whoever started it.
UNSHARE = [
    "setpriv",
    "--pdeathsig",
    "KILL",
    "unshare",
    "--net",
    "--mount",
    "--uts",
    "--ipc",
    "--pid",
    "--fork",
    "--kill-child=KILL",
    "--mount-proc",
]


def inside(command: Sequence[str], seconds: float) -> int:
    """Run a command in namespaces of its own, with a scratch folder, for so many seconds at most; its exit status.

    Raises
    ------
    Refused
        If something that it takes is missing, or the time is over.
    """
    fault = missing()
    if fault:
        raise Refused(fault)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    scratch = tempfile.mkdtemp(prefix="kvtier-one-node-")
    # munged will not put its socket where others cannot look.
    Path(scratch).chmod(0o755)
    environment = {**os.environ, INSIDE: scratch, "PATH": search_path()}
    # However this ends, by time, Ctrl-C or SIGTERM: unshare is killed, and the kernel ends all that is inside.
    try:
        return subprocess.run([*UNSHARE, *command], env=environment, timeout=seconds, check=False, start_new_session=True).returncode
    except subprocess.TimeoutExpired:
        raise Refused(f"not done after {seconds:g} s, all ended") from None
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        remove(Path(scratch))


def remove(folder: Path) -> None:
    """Remove a folder in which processes that are just ending may still write."""
    for _ in range(50):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.1)


@contextmanager
def slurm() -> Iterator[Path]:
    """Slurm while the block lasts, inside the namespaces; gives the scratch folder.

    Raises
    ------
    Refused
        If the node does not become ready.
    """
    scratch = Path(os.environ[INSIDE])
    loopback_up()
    socket.sethostname("localhost")
    for folder in ("state", "spool"):
        (scratch / folder).mkdir()
    # The snakemake plugin does not pass SLURM_CONF into jobs, so the file must be where Slurm looks by itself.
    Path("/etc/slurm").mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/etc/slurm"], check=True)
    cpus = os.cpu_count() or 1
    memory_mb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    Path("/etc/slurm/slurm.conf").write_text(CONFIGURATION.format(scratch=scratch, cpus=cpus, memory_mb=memory_mb), encoding="utf-8")
    (scratch / "munge.key").write_bytes(os.urandom(128))
    (scratch / "munge.key").chmod(0o400)
    files = [
        f"--{name}={scratch}/munge.{suffix}"
        for name, suffix in {
            "key-file": "key",
            "socket": "socket",
            "pid-file": "pid",
            "log-file": "log",
            "seed-file": "seed",
        }.items()
    ]
    daemons = []
    try:
        for command in (["munged", "--foreground", *files], ["slurmctld", "-D"], ["slurmd", "-D"]):
            with (scratch / f"{command[0]}.out").open("w", encoding="utf-8") as out:
                daemons.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out))
            if command[0] == "munged":
                wait_for(lambda: (scratch / "munge.socket").exists(), daemons, scratch, "munged listens")
        wait_for(lambda: asked("sinfo", "--noheader", "--format=%T") == "idle", daemons, scratch, "the node is idle")
        yield scratch
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
        for daemon in daemons:
            try:
                daemon.wait(5)
            except subprocess.TimeoutExpired:
                daemon.kill()


def loopback_up() -> None:
    """Switch on the loopback of a new network namespace."""
    set_flags, set_address, up = 0x8914, 0x8916, 0x1
    # The daemons ask for addresses of families that this host has, and 127.0.0.1 alone is no family. So the loopback, which leads
    # nowhere, gets one more, of those reserved for documentation.
    address = struct.pack("=HH4s8x", socket.AF_INET, 0, socket.inet_aton("192.0.2.1"))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, set_flags, struct.pack("16sh14x", b"lo", up))
        fcntl.ioctl(control, set_address, struct.pack("16s16s", b"lo:1", address))


def asked(*command: str) -> str:
    """What a command says; empty if it fails."""
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    return said.stdout.strip() if said.returncode == 0 else ""


def wait_for(ready: Callable[[], bool], daemons: Sequence[subprocess.Popen], scratch: Path, what: str, seconds: float = 30) -> None:
    """Wait until something is so; refuse with the ends of the logs if a daemon dies or the time is over."""
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline or any(daemon.poll() is not None for daemon in daemons):
            logs = [line for path in sorted(scratch.glob("*.out")) for line in path.read_text(errors="replace").splitlines()[-5:]]
            raise Refused("\n  ".join([f"waited in vain until {what}", *logs]))
        time.sleep(0.1)


def main(command: list[str]) -> int:
    """Run a command with Slurm on."""
    try:
        if INSIDE not in os.environ:
            return inside([sys.executable, __file__, *command], seconds=3600)
        with slurm():
            return subprocess.run(command, check=False).returncode
    except Refused as refused:
        print(f"error: {refused}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["sinfo"]))
