"""What runs on the nodes of a cluster of SkyPilot: `setup`, and one of two forms of `run`?

The time limit is kept there, by the first node alone: nobody else has to live for it. It counts
from the beginning of `setup`. When `run` has ended the cluster is idle, and SkyPilot's own autodown
takes it away.
"""

import shlex

from broadgauge.specs.skypilot import Skypilot

STATE = "~/.broadgauge-cluster"
"""A file of each node: when its setup began, in seconds since 1970."""
LOOKS_EVERY_S = 10
NOBODY_S = 900
"""So long is a cluster held without a leader: that of a tool that lives comes seconds after setup,
and what a dead one leaves idle is paid for."""
READY = "broadgauge: this cluster is ready"
"""In the job's log, when every node's setup is done."""
HEREDOC = "BROADGAUGE_EXPERIMENT"
_LEADER = "broadgauge[.]zip leader"
"""A pattern that is not in its own command line."""
EXPERIMENT_FILE = "broadgauge-experiment.yaml"
_ONE_NODE = 'if [ "${SKYPILOT_NODE_RANK:-0}" != 0 ]; then exit 0; fi\n'


def setup_text(settings: Skypilot, limit_s: int, *, installs: bool) -> str:
    """The user's `setup`, which is killed at the limit."""
    own = settings.setup or ""
    install = f"{settings.install}\n" if installs else ""
    return (
        f"date +%s >{STATE}\n"
        f"# Killed after {limit_s} s: then the job has failed, and the idle cluster goes.\n"
        f"(sleep {limit_s}; kill -KILL $$) >/dev/null 2>&1 &\n"
        "broadgauge_watchdog=$!\n"
        f"{own}{'' if own.endswith(chr(10)) or not own else chr(10)}"
        f"{install}"
        "kill $broadgauge_watchdog\n"
    )


def hold_text(limit_s: int) -> str:
    """`run` of a cluster that the tool uses over ssh: it is held while a leader measures there."""
    return (
        "# Holds the cluster while Broadgauge measures on it, and no longer.\n"
        f"{_ONE_NODE}"
        f"began=$(cat {STATE})\n"
        f"echo '{READY}'\n"
        "last=$(date +%s)\n"
        f"while sleep {LOOKS_EVERY_S}; do\n"
        "  now=$(date +%s)\n"
        f"  if pgrep -u \"$(id -u)\" -f '{_LEADER}' >/dev/null; then last=$now; fi\n"
        f"  if [ $((now - began)) -ge {limit_s} ]; then\n"
        f"    echo 'broadgauge: the {limit_s} s that this cluster may be held have passed'\n"
        "    break\n"
        "  fi\n"
        f"  if [ $((now - last)) -ge {NOBODY_S} ]; then\n"
        f"    echo 'broadgauge: nobody has measured here for {NOBODY_S} s'\n"
        "    break\n"
        "  fi\n"
        "done\n"
        f"pkill -u \"$(id -u)\" -f '{_LEADER}' || true\n"
    )


def alone_text(settings: Skypilot, experiment_yaml: str, limit_s: int) -> str:
    """`run` of a rendered task: the first node runs the experiment on all of them, over ssh."""
    assert HEREDOC not in experiment_yaml.splitlines(), "a line of YAML has a colon or a dash"
    python = shlex.quote(settings.python)
    host = f"{{ssh: '$address', python: {_yaml_text(settings.python)}, working_folder: '$PWD'}}, "
    command = (
        f"timeout --signal=INT --kill-after=120 $(($(cat {STATE}) + {limit_s} - $(date +%s))) \\\n"
        f"  {python} -m broadgauge run {EXPERIMENT_FILE} --on hosts "
        '--set "hosts=[${hosts%, }]"'
    )
    return (
        "# The first node measures; its ssh starts what runs on the others.\n"
        f"{_ONE_NODE}"
        f"cat >{EXPERIMENT_FILE} <<'{HEREDOC}'\n"
        f"{experiment_yaml}"
        f"{HEREDOC}\n"
        "hosts=\n"
        "for address in ${SKYPILOT_NODE_IPS}; do\n"
        f'  hosts="$hosts{host}"\n'
        "done\n"
        f"{_kept(command, settings.results)}"
    )


def _kept(command: str, results: str | None) -> str:
    """The command, and what keeps its run folders."""
    if results is None:
        return f"{command}\n"
    folder = shlex.quote(results)
    return f"code=0\n{command} || code=$?\nmkdir -p {folder}\ncp -r runs/. {folder}/\nexit $code\n"


def _yaml_text(text: str) -> str:
    """In single quotes, inside a shell's double quotes."""
    plain = text.replace("'", "''")
    for character in ("\\", '"', "$", "`"):
        plain = plain.replace(character, f"\\{character}")
    return f"'{plain}'"
