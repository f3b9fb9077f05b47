"""Three small experiments whose rendered files are kept: `python -m
tests.manifests.golden_experiments` writes them anew; read the difference before you commit it."""

from pathlib import Path

from tests.manifests.requests import VNIC, experiment_of, request_of

from broadgauge.manifests.files import to_yaml
from broadgauge.manifests.labels import JobKind
from broadgauge.manifests.prepare import prepare_file
from broadgauge.manifests.rbac import facts_file, rights_file
from broadgauge.manifests.rendering import render_job

FOLDER = Path(__file__).parent / "golden"
MAP = "w0:ens13:net1:10.0.1.9\nw1:ens13:net1:10.0.1.10\n"
VOLUME = {"name": "storage", "mount": "/mnt/storage", "size_bytes": "10 GiB"}


def rendered() -> dict[str, str]:
    """Each file's name and text."""
    return {"pod-network.yaml": _plain(), "vnic-address-map.yaml": _vnic(), "roce.yaml": _roce()}


def _text(request_texts: list[str]) -> str:
    return "".join(request_texts)


def _plain() -> str:
    """An indexed Job on the pod network: the smallest that there is."""
    request = request_of(experiment_of(namespace="training", shape="2x1"), "job")
    return _text([to_yaml(file) for file in render_job(request).files])


def _vnic() -> str:
    """The article's: a PyTorchJob over vNICs whose addresses a map gives."""
    by_map = VNIC | {"devices": "ens13", "ipam": {"kind": "address-map", "map": "m"}}
    networks = [{"name": "pod", "kubernetes": "pod"}, {"name": "vnic", "kubernetes": by_map}]
    experiment = experiment_of(
        namespace="training",
        networks=networks,
        volumes=[VOLUME],
        prepare={"volume": "storage", "model": "ibm-granite/granite-3.1-8b-base"},
        secrets={"HF_TOKEN": {"secret": "hf", "key": "token"}},
    )
    request = request_of(experiment, address_map=MAP)
    files = [to_yaml(file) for file in render_job(request).files]
    prepare = prepare_file(request)
    assert prepare is not None
    script = prepare.objects[0]["data"]
    script |= dict.fromkeys(script, "(the script)\n")
    return _text([*files, to_yaml(prepare)])


def _roce() -> str:
    """A TrainJob over SR-IOV and RoCE, in a queue, and who may run it."""
    networks = [
        {"name": "sriov", "kubernetes": {"attachment": "sriov", "resources": "openshift.io/vf"}},
        {
            "name": "roce",
            "kubernetes": {
                "attachment": "existing",
                "definitions": "rdmashared-net",
                "profile": "roce-shared",
            },
        },
    ]
    experiment = experiment_of(
        namespace="training", networks=networks, queue={"kueue": "team"}, deadline_s=7200
    )
    kind: JobKind = "trainjob"
    request = request_of(experiment, kind, files={"src/train.py": b"print('step')\n"})
    files = [to_yaml(file) for file in render_job(request).files]
    return _text([*files, to_yaml(rights_file(request)), to_yaml(facts_file(request))])


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, text in rendered().items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
