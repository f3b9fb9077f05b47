"""By which certificates do an API server and the user of a kubeconfig prove who they are?

Each that a kubeconfig names is read before a server is asked. Source: Kubernetes, "kubeconfig
(v1)".
"""

import base64
import os
import ssl

from broadgauge.platforms.kubernetes.json_shapes import JsonMap, text
from broadgauge.platforms.kubernetes.kubeconfig import HINT, FoundConfig
from broadgauge.specs.errors import InputError

_INSECURE = "insecure-skip-tls-verify"


def tls_of(found: FoundConfig) -> ssl.SSLContext:
    """Raises InputError, without what a file or a value holds."""
    authority = _content(found, "cluster", "certificate-authority", found.cluster)
    certificate, key = _certificate(found)
    is_checked, kind = found.cluster.get(_INSECURE) is not True, "cluster"
    if authority is not None and not is_checked:
        raise InputError(
            f"{found.place('cluster', _INSECURE)}: it names an authority, too, which would not be "
            "asked",
            hint="leave one of both out, as kubectl wants it",
        )
    try:
        context = _context(authority, is_checked=is_checked)
        kind = "user"
        if certificate is not None and key is not None:
            _load(context, certificate, key)
    except (OSError, ValueError) as error:  # ssl.SSLError is one
        why = getattr(error, "reason", None) or getattr(error, "strerror", None)
        raise InputError(
            f"{found.place(kind)}: its certificates can't be loaded: {why or type(error).__name__}",
            hint=HINT,
        ) from None
    return context


def _context(authority: bytes | None, *, is_checked: bool) -> ssl.SSLContext:
    """`authority`: None: the machine's own. Raises OSError, ValueError."""
    pem = None if authority is None else authority.decode()
    context = ssl.create_default_context(cadata=pem)
    if not is_checked:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _load(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Python reads them from a file only: one that is in memory alone. Raises OSError."""
    with os.fdopen(os.memfd_create("client-certificate"), "wb") as file:
        file.write(certificate.rstrip() + b"\n" + key)
        file.flush()
        context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")


def _certificate(found: FoundConfig) -> tuple[bytes | None, bytes | None]:
    """The user's, and its key. Raises InputError."""
    certificate, key = (
        _content(found, "user", name, found.user) for name in ("client-certificate", "client-key")
    )
    if key is not None and b"ENCRYPTED" in key:
        raise InputError(
            f"{found.place('user', 'client-key')}: a key with a passphrase can't be used",
            hint="a token, or `openssl pkey -in KEY -out KEY-WITHOUT`",
        )
    if (certificate is None) != (key is None):
        lacking = "client-certificate" if certificate is None else "client-key"
        raise InputError(f"{found.place('user', lacking)}: it is missing", hint=HINT)
    return certificate, key


def _content(found: FoundConfig, kind: str, key: str, data: JsonMap) -> bytes | None:
    """None: there is none. Raises InputError."""
    inline, path = text(data.get(f"{key}-data")), text(data.get(key))
    try:
        if inline is not None:
            return base64.b64decode("".join(inline.split()), validate=True)
        return None if path is None else (found.folder / path).read_bytes()
    except OSError as error:
        raise InputError(
            f"{found.place(kind, key)}: {found.folder / str(path)} can't be read: {error.strerror}",
            hint=HINT,
        ) from error
    except ValueError:
        place = found.place(kind, f"{key}-data" if inline is not None else key)
        words = "it is no base64" if inline is not None else "it is no path"
        raise InputError(f"{place}: {words}", hint=HINT) from None
