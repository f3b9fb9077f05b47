"""Where is a run's leader, for this tool and for one that comes later? A file of the run folder."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from broadgauge.messages.codec import Decoder, encode
from broadgauge.platforms.launch_folders import private, writing
from broadgauge.specs.errors import RunFolderError

Place = TypeVar("Place")


@dataclass(frozen=True, slots=True)
class LeaderFile(Generic[Place]):
    """It outlives the tool and a power failure."""

    path: Path
    decode: Decoder[Place]
    how_to_end: str
    """What still runs there, for people: a clause."""

    def read(self) -> Place | None:
        """None: the run has no leader that we know of. Raises RunFolderError where nobody knows:
        another leader beside one that goes on would disturb what it measures."""
        try:
            return self.decode(json.loads(self.path.read_text()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise RunFolderError(
                f"{self.path} says where the run goes on, and can't be read: {error}",
                hint=f"{self.how_to_end} what still runs; remove the file then, and what is not "
                "stored runs again",
            ) from error

    def write(self, place: Place) -> None:
        """The whole of it, or nothing. Raises RunFolderError."""
        draft = self.path.with_suffix(".new")
        with writing(self.path.parent):
            self.path.parent.mkdir(0o700, parents=True, exist_ok=True)
            with open(draft, "w", opener=private) as file:
                file.write(json.dumps(encode(place)) + "\n")
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self.path)

    def forget(self) -> None:
        """The leader is gone."""
        self.path.unlink(missing_ok=True)
