"""How is a resolved experiment written down again? `read_experiment(dump_experiment(x))` is `x`."""

from io import StringIO

from ruamel.yaml import YAML

from broadgauge.specs.experiment import Experiment


def dump_experiment(experiment: Experiment) -> str:
    """YAML with every default written out, so that the run is understood without its version."""
    return dump_data(experiment.model_dump(mode="json"))


def dump_data(data: object) -> str:
    """Plain data as YAML that is read back as the same."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False
    yaml.width = 100
    text = StringIO()
    yaml.dump(data, text)
    return text.getvalue()
