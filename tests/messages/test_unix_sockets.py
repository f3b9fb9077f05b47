"""Is a socket reached wherever it lies?"""

import socket
from pathlib import Path

from broadgauge.messages.unix_sockets import MOST_BYTES, short_path


def test_a_socket_deep_in_folders_is_reached(tmp_path: Path) -> None:
    path = tmp_path / ("deep" * 50) / "socket"
    path.parent.mkdir()
    assert len(str(path)) > MOST_BYTES
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as caller:
        with short_path(path) as there:
            server.bind(there)
        server.listen()
        with short_path(path) as there:
            caller.connect(there)
    assert path.is_socket()


def test_a_short_path_stays_what_it_is() -> None:
    with short_path(Path("/run/socket")) as there:
        assert there == "/run/socket"
