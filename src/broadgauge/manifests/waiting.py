"""How do a training's pods wait for model and data set, so that all may be applied in any order?"""

from broadgauge.manifests import security
from broadgauge.manifests.config_maps import PROGRAM_KEY
from broadgauge.manifests.expansion import not_expanded
from broadgauge.manifests.job import JobPods
from broadgauge.manifests.prepared import filled_volume, order_text
from broadgauge.manifests.volumes import PROGRAM, mounted_claim, mounted_program
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.messages.prepare_order import VARIABLE


def waiting_containers(job: JobPods) -> list[Manifest]:
    """None where all is there; first of the init containers: nothing else starts without it."""
    prepare = job.settings.prepare
    if prepare is None or job.preparation is None:
        return []
    volume = mounted_claim(job.settings, filled_volume(job.settings, prepare)).mount
    order = order_text(job.preparation.order)
    found: Manifest = {"name": "prepared", "image": job.settings.image}
    if job.settings.image_pull_policy is not None:
        found["imagePullPolicy"] = job.settings.image_pull_policy
    found |= {
        "command": [not_expanded(job.settings.python), f"{PROGRAM}/{PROGRAM_KEY}", "wait"],
        "args": ["--limit-s", f"{prepare.wait_limit_s:g}"],
        "env": [
            {"name": VARIABLE, "value": not_expanded(order)},
            {"name": "PYTHONUNBUFFERED", "value": "1"},
        ],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
        "securityContext": security.of_helper(job.settings),
        "volumeMounts": [mounted_program(job).mount, volume | {"readOnly": True}],
    }
    return [found]


def prepared_variables(job: JobPods) -> dict[str, str]:
    """By which ranks find what was fetched."""
    return {} if job.preparation is None else job.preparation.order.variables()
