"""How is a run read whose files hold values of secrets, as older versions stored them?

They are taken out as soon as they are read, so that nothing that is shown or exported has one. Its
cases keep the keys that they were stored with, of which the values were a part.
"""

import re
from collections.abc import Mapping

from broadgauge.specs.case import Case
from broadgauge.specs.errors import ExperimentError
from broadgauge.specs.plan import Plan
from broadgauge.specs.secrets.names import is_secret, without_credentials
from broadgauge.specs.secrets.taking import declared_form, take_secrets
from broadgauge.specs.secrets.variables import holds_secret

_KEY = re.compile(r"^\s*([A-Za-z_]\w*):", re.MULTILINE)
_PARTS = ("workload", "network")
"""Of a case, what has variables of its own beside the merged ones."""

Variables = Mapping[str, str]


def take_from_plan(stored: object) -> dict[int, Variables]:
    """Takes the values out of a plan's JSON; by the case's place, its variables as stored."""
    found: dict[int, Variables] = {}
    cases = stored.get("cases") if isinstance(stored, dict) else None
    for place, case in enumerate(cases if isinstance(cases, list) else ()):
        if isinstance(case, dict):
            before = case.get("environment")
            for holder in (case, *(case.get(part) for part in _PARTS)):
                _mask(holder)
            if isinstance(before, dict) and case["environment"] != before:
                found[place] = before
    return found


def _mask(holder: object) -> None:
    """What today stands in the place of its secrets' values."""
    variables = holder.get("environment") if isinstance(holder, dict) else None
    if isinstance(holder, dict) and isinstance(variables, dict):
        masked = {
            name: declared_form(name, value)
            for name, value in variables.items()
            if isinstance(value, str) and holds_secret(name, value)
        }
        holder["environment"] = variables | masked


def with_stored_keys(plan: Plan, variables: Mapping[int, Variables]) -> Plan:
    """The plan, whose cases with these variables have the keys of then."""
    if not variables:
        return plan
    cases: list[Case] = list(plan.cases)
    for place, stored in variables.items():
        cases[place] = cases[place].with_key_of(stored)
    kept: Plan = plan.model_copy(update={"cases": tuple(cases)})
    return kept


def without_values(experiment_yaml: str, filename: str) -> str:
    """A stored experiment as it is, or with what stands in the place of values today."""
    has_name = any(is_secret(name) for name in _KEY.findall(experiment_yaml))
    if not has_name and without_credentials(experiment_yaml) == experiment_yaml:
        return experiment_yaml
    # Here, so that a run that needs none of it is shown without YAML.
    from broadgauge.specs.text.writing import dump_data
    from broadgauge.specs.text.yaml_source import parse_yaml

    try:
        document, secrets = take_secrets(parse_yaml(experiment_yaml, filename))
    except ExperimentError:
        return f"# {filename} holds values of secrets and can't be read: it is not shown\n"
    return dump_data(document.data) if secrets else experiment_yaml
