"""What does a parser say of a mistyped word? Its own usage, and the word that is nearest."""

import argparse
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn


class CommandLine(argparse.ArgumentParser):
    """A command's own words, and those of its parser for what it does not know."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuses what is left over here, where the usage is the command's and not the tool's."""
        if args is not None and self._subparsers is None:
            self._refuse_unknown(args)
        namespace, left = super().parse_known_args(args, namespace)
        if left:
            self._refuse(left)
        return namespace, left

    def _refuse_unknown(self, words: Sequence[str]) -> None:
        """Before what is missing is said: it may stand behind the mistyped option."""
        options = words[: words.index("--")] if "--" in words else words
        names = [word.partition("=")[0] for word in options if word.startswith("--")]
        unknown = [name for name in names if name not in self._option_string_actions]
        if unknown:
            self._refuse(unknown)
        for word in options:
            name, _, value = word.partition("=")
            if word.startswith("--") and value == "--":  # argparse 3.11 makes an empty list of it
                self.error(f"argument {name}: `--` is no value")

    def _refuse(self, left: Sequence[str]) -> NoReturn:
        near = _near(left[0], self._option_string_actions)
        if not near and "--set" in self._option_string_actions:
            near = _of_experiment(left[0])
        self.error(f"unrecognized arguments: {' '.join(left)}{near}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            near = _near(str(value), map(str, action.choices or ()))
            raise argparse.ArgumentError(action, f"{error.message}{near}") from None


def _of_experiment(option: str) -> str:
    """`--launches` is a key of the experiment and no option: `; did you mean --set launches=…?`"""
    from broadgauge.specs.experiment import Experiment

    key = option.lstrip("-").partition("=")[0].replace("-", "_")
    return f"; did you mean `--set {key}=…`?" if key in Experiment.model_fields else ""


def _near(seen: str, known: Iterable[str]) -> str:
    """`; did you mean …?`, and nothing where no word is near: the usage has all of them."""
    from broadgauge.wording.near_words import did_you_mean

    near = did_you_mean(seen, known)
    return f"; {near}" if near is not None and near.startswith("did you mean") else ""
