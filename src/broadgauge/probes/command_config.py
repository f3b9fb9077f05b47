"""What do the keys of a command's `config` become? Arguments behind it, and a variable or two.

Read where the ranks start, as the published script reads its `config.json` there.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from broadgauge.agent.pod.article_config import ArticleConfigError, read_config
from broadgauge.messages.tasks import CommandTask
from broadgauge.probes.trial import RefusedError

MOST_BYTES = 1 << 20


def configured(task: CommandTask, folder: Path) -> tuple[CommandTask, Mapping[str, str]]:
    """The task with these arguments, and the variables to set. Raises RefusedError."""
    if task.config is None:
        return task, {}
    path = folder / task.config
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1).decode()
        if len(text) > MOST_BYTES:
            raise RefusedError(f"config {path} is larger than {MOST_BYTES:,} bytes")
        config = read_config(text)
    except OSError as error:
        raise RefusedError(f"config {path} can't be read: {error.strerror}") from error
    except (UnicodeDecodeError, ArticleConfigError) as error:
        raise RefusedError(f"config {path}: {error}") from error
    words = (*task.command, *config.script_arguments)
    return replace(task, command=words, config=None), config.variables
