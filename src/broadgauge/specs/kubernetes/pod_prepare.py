"""What does a Job fetch onto a volume once, before any training? `kubernetes.prepare`."""

import re
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator

from broadgauge.specs.base import InOneWord, Spec, placed_error
from broadgauge.specs.kubernetes.names import ImageName, LabelName
from broadgauge.specs.secrets.names import url_secrets, without_credentials
from broadgauge.specs.secrets.token_forms import holds_token
from broadgauge.specs.secrets.variables import VARIABLE_PATTERN, holds_secret
from broadgauge.specs.units import CapacityBytes, TimeS

FOLDER = "broadgauge"
"""On the volume: what is fetched; the user's own lies beside it."""
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(?:/[A-Za-z0-9][\w.-]{0,95})?", re.ASCII)
_SCHEMES = ("http", "https", "file", "oci")
_OF_A_REGISTRY = re.compile(
    r"oci://[A-Za-z0-9.-]+(?::\d+)?/[a-z0-9][a-z0-9._/-]*"
    r"(?::\w[\w.-]*|@sha256:[0-9a-f]{64})?",
    re.ASCII,
)
"""As agent/volume/registry.py reads it."""
_WEB = ("http://", "https://")
_MOST_CHARACTERS = 1024
_BY_SECRET = (
    "put them into a Secret, name it in `kubernetes.secrets`, and let `prepare.command` fetch with "
    "that variable; HF_TOKEN is all that the Hugging Face hub needs"
)


def _check_path(text: str) -> str:
    parts = text.split("/")
    if not text.isprintable() or "\\" in text or {"", ".", ".."} & set(parts):
        raise ValueError(f"`{text}` is no path below a folder, like `model/granite`")
    return text


PathBelow = Annotated[
    str, StringConstraints(min_length=1, max_length=_MOST_CHARACTERS), AfterValidator(_check_path)
]
PlainWord = Annotated[str, StringConstraints(max_length=32_768, pattern=r"^[^\x00]*$")]
PlainVariables = dict[Annotated[str, StringConstraints(pattern=VARIABLE_PATTERN)], PlainWord]


class _OnVolume(Spec):
    """What is then found by ranks."""

    file: PathBelow | None = None
    """Which one of its files is meant: its variable, and `to`, are that file. null: the folder."""
    to: PathBelow | None = None
    """Below the volume's mount: where it is found, too, by a link. null: by its variable only."""

    @model_validator(mode="after")
    def _beside_ours(self) -> "_OnVolume":
        if self.to is not None and self.to.split("/")[0] == FOLDER:
            raise placed_error(f"`{FOLDER}` is Broadgauge's own folder", ("to",), "another folder")
        return self


class FetchedSource(_OnVolume):
    """A model or data set, and where from."""

    source: str = Field(min_length=1, max_length=_MOST_CHARACTERS)
    """A repository of the Hugging Face hub (`ibm-granite/granite-3.1-8b-base`), a URL (`https://`,
    `http://`, `file://`; what ends in `.tar`, `.tar.gz`, `.zip`, … is unpacked), a model in a
    registry of containers (`oci://host/team/model:tag`, whose layers are its files), or an absolute
    path in the image or on the volume."""
    revision: str | None = Field(default=None, min_length=1, max_length=255)
    """Branch, tag or commit of the repository. null: `main`, as it is when it is first fetched."""
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None
    """Of what a URL gives: anything else is refused. null: nothing is known of it."""
    leave_out: tuple[PlainWord, ...] = Field(default=(), max_length=32)
    """Patterns of the repository's files that are not fetched: `original/*`, `*.bin`."""

    @property
    def is_of_the_hub(self) -> bool:
        """A repository of Hugging Face's."""
        return "://" not in self.source and not self.source.startswith("/")

    @property
    def is_a_repository(self) -> bool:
        """Has it files of which some can be fetched alone?"""
        return self.is_of_the_hub or self.source.startswith("oci://")

    @model_validator(mode="after")
    def _is_one(self) -> "FetchedSource":
        _refuse_secrets(self.source, ("source",))
        if "://" in self.source:
            _check_url(self.source)
        elif self.is_of_the_hub and _HUB_ID.fullmatch(self.source) is None:
            raise placed_error(
                f"`{self.source}` is no repository of the hub, no URL and no absolute path",
                ("source",),
                "`ibm-granite/granite-3.1-8b-base`, `https://host/model.tar`, `/models/granite`",
            )
        if self.revision is not None and not self.is_of_the_hub:
            raise placed_error("`revision` is of a repository of the hub", ("revision",))
        if self.leave_out and not self.is_a_repository:
            raise placed_error("`leave_out` is of a repository", ("leave_out",))
        if self.sha256 is not None and not self.source.startswith(_WEB):
            raise placed_error("`sha256` is of what a URL gives", ("sha256",))
        return self


class PrepareCommand(_OnVolume):
    """The user's own step: tokenising, …"""

    words: tuple[PlainWord, ...] = Field(min_length=1, max_length=1024)
    """Run once, after model and data set, which it finds by BROADGAUGE_MODEL and
    BROADGAUGE_DATASET. It writes to the folder BROADGAUGE_PREPARED. Files beside the experiment
    that it names, and `kubernetes.files`, are sent, and it runs among them; else in `mount`."""

    @model_validator(mode="after")
    def _nothing_secret(self) -> "PrepareCommand":
        if not self.words[0]:
            raise placed_error("a command begins with a program", ("words", 0))
        for i, word in enumerate(self.words):
            _refuse_secrets(word, ("words", i))
        return self


def _in_a_list(value: Any) -> Any:
    return {"words": value} if isinstance(value, (list, tuple)) else value


AnySource = Annotated[FetchedSource, BeforeValidator(InOneWord("source"))]
AnyCommand = Annotated[PrepareCommand, BeforeValidator(_in_a_list)]


class PodPrepare(Spec):
    """Fetched once onto a volume, which every training then finds filled."""

    volume: LabelName
    """Which of `volumes` it fills."""
    model: AnySource | None = None
    """Ranks find it by BROADGAUGE_MODEL; text alone is its `source`."""
    dataset: AnySource | None = None
    """Ranks find it by BROADGAUGE_DATASET; text alone is its `source`."""
    command: AnyCommand | None = None
    """Of yours, run once after these: tokenising, … Ranks find by BROADGAUGE_PREPARED what it
    makes; a list alone is its `words`."""
    environment: PlainVariables = Field(default_factory=dict)
    """Variables of this step alone: HTTPS_PROXY, HF_ENDPOINT, SSL_CERT_FILE."""
    image: ImageName | None = None
    """With Python 3.10 or newer. null: the ranks' image."""
    cpus: Annotated[float, Field(gt=0, le=4096)] | None = None
    """Of its pod, requested and its limit. null: a tenth of one is requested, without a limit."""
    memory_bytes: CapacityBytes | None = None
    """Of its pod, requested and its limit. null: 256 MiB are requested, without a limit."""
    wait_limit_s: TimeS = 7200.0
    """How long pods of a training wait for it, holding their GPUs, before they give up."""

    @property
    def parts(self) -> tuple[tuple[str, FetchedSource | PrepareCommand], ...]:
        """What is asked for, by key."""
        found = (("model", self.model), ("dataset", self.dataset), ("command", self.command))
        return tuple((key, part) for key, part in found if part is not None)

    @model_validator(mode="after")
    def _asks_for_something(self) -> "PodPrepare":
        if not self.parts:
            raise ValueError("at least one of `model`, `dataset` and `command`")
        return self

    @model_validator(mode="after")
    def _places_differ(self) -> "PodPrepare":
        places = [(key, f"{part.to}/") for key, part in self.parts if part.to is not None]
        for i, (key, place) in enumerate(places):
            for before, other in places[:i]:
                if place.startswith(other) or other.startswith(place):
                    raise placed_error(
                        f"`{place[:-1]}` and the {before}'s `{other[:-1]}` are one place, or one "
                        "lies in the other",
                        (key, "to"),
                    )
        return self

    @model_validator(mode="after")
    def _variables_hold_no_secret(self) -> "PodPrepare":
        for name, value in self.environment.items():
            if name.startswith("BROADGAUGE_"):
                raise placed_error(
                    f"`{name}` is Broadgauge's own variable", ("environment", name), "another name"
                )
            if holds_secret(name, value) or url_secrets(value) or holds_token(value):
                raise placed_error(
                    f"`{name}` holds a secret, which everybody who sees the job would read",
                    ("environment", name),
                    "`kubernetes.secrets`: a key of a Secret as a variable",
                )
        return self


def _refuse_secrets(text: str, path: tuple[str | int, ...]) -> None:
    """Manifest, Job and log would show it. Raises a placed error, which does not."""
    if holds_token(text):
        raise placed_error("it has the form of a token, which a manifest would show", path)
    if found := url_secrets(text):
        raise placed_error(
            f"`{without_credentials(text).partition('?')[0]}` has credentials in its URL "
            f"({', '.join(found)}), and everybody who reads the manifest would have them",
            path,
            _BY_SECRET,
        )


def _check_url(text: str) -> None:
    """A password with a blank or `/` in it is not seen as one. Raises a placed error, without it.

    Source: RFC 3986, 3.2: both must be escaped there, and what follows a host's colon is a port.
    """
    scheme = text.partition("://")[0]
    try:
        url = urlsplit(text)
        is_plain = "@" not in url.netloc and url.port != 0 and url.scheme in _SCHEMES
        is_plain = is_plain and (bool(url.hostname) or url.scheme == "file")
        is_plain = is_plain and (url.scheme != "oci" or bool(_OF_A_REGISTRY.fullmatch(text)))
    except ValueError:  # its words repeat what may be a password
        is_plain = False
    if not is_plain or not text.isprintable():
        raise placed_error(
            f"`{scheme[:32]}://***` is no `https://host/path`, `http://…`, `file:///path` or `oci://host/model:1`",
            ("source",),
        )
