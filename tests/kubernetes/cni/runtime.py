"""What Multus does with a NetworkAttachmentDefinition's `config`: it starts the plugins.

Source: Container Network Interface Specification 1.0.0, Section 2 ("Execution Protocol"), Section 3
("Execution of Network Configurations", with "Deriving runtimeConfig") and 0.3.1's of the same name.
"""

import json
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.kubernetes.cluster.programs import program
from tests.kubernetes.cni.node import LIMIT_S, Namespaces, Node

JsonObject = dict[str, Any]
_DEL_WITHOUT_RESULT = ("0.3.0", "0.3.1")


class PluginError(Exception):
    """A plugin refused; its message."""


def plugins_folder() -> Path:
    return program("macvlan").parent


@dataclass(slots=True, kw_only=True)
class Attachment:
    """One network of one pod."""

    node: Node
    pod: Namespaces
    config: str
    """As the definition has it."""
    name: str = "net1"
    """Of the interface in the pod."""
    ips: list[str] = field(default_factory=list)
    """From the pod's annotation."""
    more_plugins: Path | None = None
    """Folder of plugins beside the real ones."""
    result: JsonObject | None = None
    """Of the last plugin."""

    def add(self) -> JsonObject:
        """Of all plugins, one after the other. Raises PluginError, JSONDecodeError."""
        for plugin in self.plugins():
            self.result = json.loads(self.start("ADD", plugin))
        assert self.result is not None
        return self.result

    def delete(self) -> None:
        """Of all plugins, the last one first. Raises PluginError."""
        for plugin in reversed(self.plugins()):
            self.start("DEL", plugin)

    def check(self) -> None:
        """Is all as it was made? Raises PluginError."""
        for plugin in self.plugins():
            self.start("CHECK", plugin)

    def plugins(self) -> list[JsonObject]:
        """What each plugin is given, but for the result of those before it."""
        config = json.loads(self.config)
        common = {key: config[key] for key in ("cniVersion", "name")}
        found = []
        for plugin in config.get("plugins", [config]):
            capabilities = plugin.get("capabilities", {})
            told = {"ips": self.ips} if capabilities.get("ips") and self.ips else {}
            own = {key: value for key, value in plugin.items() if key != "capabilities"}
            found.append({**own, **common, **({"runtimeConfig": told} if told else {})})
        return found

    def start(self, command: str, plugin: JsonObject) -> str:
        """Its output. Raises PluginError."""
        is_told = command != "DEL" or plugin["cniVersion"] not in _DEL_WITHOUT_RESULT
        told = {"prevResult": self.result} if is_told and self.result is not None else {}
        return self.start_with(command, plugin["type"], json.dumps({**plugin, **told}))

    def start_with(self, command: str, kind: str, text: str) -> str:
        """The plugin of this type, with any text. Raises PluginError."""
        folders = [plugins_folder(), *([self.more_plugins] if self.more_plugins else [])]
        ended = subprocess.run(
            self.node.command(str(plugins_folder() / kind)),
            env={
                "CNI_COMMAND": command,
                "CNI_CONTAINERID": f"pod-{self.pod.pid}",
                "CNI_NETNS": str(self.pod.path),
                "CNI_IFNAME": self.name,
                "CNI_PATH": os.pathsep.join(map(str, folders)),
                "PATH": os.environ["PATH"],
            },
            input=text,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        if ended.returncode:
            raise PluginError(json.loads(ended.stdout)["msg"] if ended.stdout else ended.stderr)
        return ended.stdout


def versions_of(kind: str) -> list[str]:
    """Of the specification, that a plugin knows."""
    ended = subprocess.run(
        [plugins_folder() / kind],
        env={"CNI_COMMAND": "VERSION"},
        input='{"cniVersion": "1.0.0"}',
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=True,
    )
    found: list[str] = json.loads(ended.stdout)["supportedVersions"]
    return found
