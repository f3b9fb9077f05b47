"""What is started: `python -m tests.kubernetes.kubelet.main CONFIG.json`, as root.

The process that is started waits; its child is the first process of a PID namespace and is the
kubelet. So however either ends, the kernel ends every container, and with them all network
namespaces, devices and mounts.
"""

import json
import logging
import os
import signal
import socketserver
import sys
import threading
from pathlib import Path

from tests.kubernetes.kubelet.config import KubeletConfig

from broadgauge.agent.emulated.namespaces import prepare_cluster_root
from broadgauge.agent.emulated.syscalls import PR_SET_PDEATHSIG, CloneFlag, prctl, unshare

CONTROL = "control"
"""The control socket's name in the kubelet's folder."""


def main() -> None:
    config = KubeletConfig.from_json(Path(sys.argv[1]).read_text())
    unshare(CloneFlag.NEWPID | CloneFlag.NEWNS)
    child = os.fork()
    if child == 0:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != 0:  # the parent is outside this PID namespace; 0 while it lives
            os._exit(1)
        run_kubelet(config)
        os._exit(0)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os.kill(child, signal.SIGKILL))
    _, status = os.waitpid(child, 0)
    sys.exit(0 if os.waitstatus_to_exitcode(status) == -signal.SIGKILL else 1)


def run_kubelet(config: KubeletConfig) -> None:
    """In the first process of the PID namespace; until it is killed."""
    from tests.kubernetes.kubelet.spawner import Spawner

    prepare_cluster_root()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    spawner = Spawner.fork()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from tests.kubernetes.kubelet.kubelet import Kubelet

    kubelet = Kubelet(config, spawner)
    kubelet.start()
    serve_control(kubelet)


def serve_control(kubelet: object) -> None:
    """Answer requests, one JSON object a line, until the process is killed."""
    from tests.kubernetes.kubelet.faults import answer

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            for line in self.rfile:
                said = answer(kubelet.faults, json.loads(line))  # type: ignore[attr-defined]
                self.wfile.write(json.dumps(said).encode() + b"\n")

    path = kubelet.config.folder / CONTROL  # type: ignore[attr-defined]
    path.unlink(missing_ok=True)
    with socketserver.ThreadingUnixStreamServer(str(path), Handler) as server:
        server.daemon_threads = True
        threading.current_thread().name = "control"
        server.serve_forever()


if __name__ == "__main__":
    main()
