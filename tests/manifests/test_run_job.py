"""Proves what the one job of a run is: pods alike for all cases, an agent and a leader in them, all
networks attached, and nothing secret anywhere but in its Secret."""

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.costly import costly
from tests.running.rendering.experiments import EXPERIMENT, examples_with_a_face, variables_of
from tests.running.rendering.networks import NETWORKS, with_files
from tests.running.rendering.runs import (
    ORDERS,
    RUN_LABEL,
    objects_of_run,
    run_of,
    small_run,
    templates_of,
)

from broadgauge.manifests.attachments import NETWORKS as ANNOTATION
from broadgauge.manifests.names import EXPERIMENT as EXPERIMENT_LABEL
from broadgauge.manifests.names import JOB, MOST_NAME_CHARACTERS, RUN, secrets_name
from broadgauge.manifests.run_container import TOKEN_KEY
from broadgauge.manifests.run_job import (
    RunJob,
    asked_network_of,
    cores_of,
    lasting_objects,
    order_key,
    own_objects,
    run_objects,
    run_secret,
)
from broadgauge.messages.pod_start import TOKEN_VARIABLE
from broadgauge.running.experiments import LoadedExperiment, load
from broadgauge.running.rendering.experiment import ON_KUBERNETES
from broadgauge.specs.errors import InputError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.kubernetes.names import LABEL
from broadgauge.specs.kubernetes.settings import JobKind
from broadgauge.specs.secrets.values import SecretText

KINDS: tuple[JobKind, ...] = get_args(JobKind)
CPUS = "cluster.device=cpu"
GPUS = "cluster.device=cuda"
VOLUME = "kubernetes.volumes=[{name: data, mount: /data, size_bytes: 1 GiB}]"
PREPARED = "kubernetes.prepare={volume: data, model: {source: a/b}}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("print('t=1')\n")
    return with_files(tmp_path)


def containers_of(run: RunJob) -> list[list[dict[str, Any]]]:
    """Of each of its templates."""
    return [each["spec"]["containers"] for each in templates_of(run)]


@pytest.mark.parametrize("kind", KINDS)
def test_the_pods_are_those_of_the_largest_shape_and_hold_what_any_case_needs(
    folder: Path, kind: JobKind
) -> None:
    run = small_run(folder, GPUS, "cluster.shapes=[1x4, 3x2]", kind=kind)
    assert (run.num_pods, run.ranks_per_pod, run.gpus_per_pod) == (3, 4, 4)
    for template in templates_of(run):
        agent = template["spec"]["containers"][0]
        assert agent["resources"]["limits"]["nvidia.com/gpu"] == "4"
        assert template["spec"]["affinity"]["podAntiAffinity"]
        labels = template["metadata"]["labels"]
        assert labels[RUN] == RUN_LABEL
        assert labels[JOB] == run.name
    job = objects_of_run(run)[-1]["spec"]
    if kind == "job":
        assert (job["completions"], job["parallelism"], job["backoffLimit"]) == (3, 3, 0)
    elif kind == "trainjob":
        assert job["trainer"]["numNodes"] == 3
    else:
        numbers = {name: each["replicas"] for name, each in job["pytorchReplicaSpecs"].items()}
        assert numbers == {"Master": 1, "Worker": 2}


@pytest.mark.parametrize("kind", KINDS)
def test_a_pod_has_an_agent_and_a_leader_of_its_own_log(folder: Path, kind: JobKind) -> None:
    """All pods of one template alike; of a PyTorchJob the master alone."""
    run = small_run(folder, CPUS, kind=kind)
    ranks = "node" if kind == "trainjob" else "pytorch"
    first, *others = containers_of(run)
    assert [each["name"] for each in first] == [ranks, "leader"]
    assert [[each["name"] for each in pod] for pod in others] == (
        [[ranks]] if kind == "pytorchjob" else []
    )
    agent, leader = first
    assert agent["command"][-1] == "pod-agent"
    assert leader["command"][-1] == "pod-leader"
    both = ["--nodes", "2", "--leader", agent["args"][3], "--port", "29510"]
    assert agent["args"][:6] == leader["args"][:6] == both
    assert agent["args"][3].startswith(f"{RUN_LABEL}-")
    assert leader["resources"]["limits"] == {"memory": "1Gi"}
    seen = {each["mountPath"]: each["name"] for each in leader["volumeMounts"]}
    assert seen["/broadgauge/scratch"] == "broadgauge-leader"
    assert "broadgauge-leader" not in {each["name"] for each in agent["volumeMounts"]}
    assert "broadgauge-orders" not in {each["name"] for each in agent["volumeMounts"]}
    for each in first:
        known = variables_of(each)
        assert known["BROADGAUGE_POD_IP"] == {"fieldRef": {"fieldPath": "status.podIP"}}
        secret = {"name": secrets_name(run), "key": TOKEN_KEY}
        assert known[TOKEN_VARIABLE] == {"secretKeyRef": secret}
        assert each["securityContext"]["allowPrivilegeEscalation"] is False


@pytest.mark.parametrize("kind", KINDS)
def test_every_mount_has_a_volume_and_every_volume_is_there_once(
    folder: Path, kind: JobKind
) -> None:
    run = small_run(folder, "kubernetes.topology_file=topo.xml", text=NETWORKS, kind=kind)
    made = {each["metadata"]["name"] for each in objects_of_run(run)}
    for template in templates_of(run):
        spec = template["spec"]
        names = [each["name"] for each in spec["volumes"]]
        assert len(set(names)) == len(names)
        within = (*spec["containers"], *spec["initContainers"])
        mounts = {mount["name"] for each in within for mount in each["volumeMounts"]}
        assert mounts == set(names)
        maps = {each["configMap"]["name"] for each in spec["volumes"] if "configMap" in each}
        assert maps <= made


def test_all_networks_are_on_the_same_pods_and_a_launch_is_told_its_own(folder: Path) -> None:
    run = small_run(folder, text=NETWORKS)
    (template,) = templates_of(run)
    asked = json.loads(template["metadata"]["annotations"][ANNOTATION])
    attached = {each["interface"]: each["name"] for each in asked}
    assert len(attached) == len(asked) == 10
    assert set(attached) == {f"net{number}" for number in range(1, 11)}
    definitions = {each.definition for each in run.definitions} | {"net"}
    assert set(attached.values()) == definitions
    told = {case.network_name: asked_network_of(run, case) for case in run.cases}
    for case in run.cases:
        network = asked_network_of(run, case)
        if case.link is None:
            assert network is None
            continue
        assert network is not None
        wanted = () if case.link.name == "pod" else range(case.link.num_nics)
        assert len(network.attachments) == len(wanted)
        for each in network.attachments:
            assert attached[each.interface] == each.definition.rpartition("/")[2]
    two = told["vnic-nics-2"]
    assert two is not None
    assert [each.interface for each in two.attachments] == ["net1", "net2"]


def test_a_network_of_as_many_nics_as_nodes_has_the_most_and_fewer_are_told(folder: Path) -> None:
    """Of two nodes the first two, though the pods have four."""
    run = small_run(folder, "cluster.shapes=[2x1, 4x1]", "networks.vnic.nics_per_node=1",
                    "networks.vnic.kubernetes.ipam=dhcp", "networks.vnic.kubernetes.devices=ens13",
                    text=NETWORKS)  # fmt: skip
    told = {case.nodes: asked_network_of(run, case) for case in run.cases
            if case.network_name == "vf"}  # fmt: skip
    assert run.num_pods == 4
    two, four = told[2], told[4]
    assert two is not None
    assert four is not None
    assert [len(two.attachments), len(four.attachments)] == [2, 4]
    assert four.attachments[:2] == two.attachments


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", examples_with_a_face())
def test_every_example_with_pods_is_a_run(name: str, kind: JobKind) -> None:
    """With a network told to each case of several nodes, names that fit, and labels on all."""
    run = run_of(load(name, (ON_KUBERNETES,)), kind, program=b"zip")
    for case in run.cases:
        assert (asked_network_of(run, case) is None) is (case.link is None)
        assert cores_of(run, case) >= 1
    own, lasting = own_objects(run, ORDERS), lasting_objects(run)
    assert objects_of_run(run) == (*lasting, *own)
    for each in own:
        labels = each["metadata"]["labels"]
        assert (labels[RUN], labels[JOB]) == (RUN_LABEL, run.name)
        assert re.fullmatch(LABEL, each["metadata"]["name"])
        assert each["metadata"]["namespace"] == "training"
    assert not any({RUN, JOB} & each["metadata"]["labels"].keys() for each in lasting)
    assert all(EXPERIMENT_LABEL in each["metadata"]["labels"] for each in (*own, *lasting))
    names = [(each["kind"], each["metadata"]["name"]) for each in (*own, *lasting)]
    assert len(set(names)) == len(names)
    for template in templates_of(run):
        assert template["spec"]["restartPolicy"] == "Never"


@pytest.mark.parametrize("kind", KINDS)
def test_a_jobs_successor_shares_no_object_with_it(folder: Path, kind: JobKind) -> None:
    """But what outlives both."""
    loaded = load("granite-h100", (ON_KUBERNETES, VOLUME, "kubernetes.prepare=null"))
    first, second = (
        own_objects(run_of(loaded, kind, name, program=b"zip"), ORDERS)
        for name in (RUN_LABEL, f"{RUN_LABEL}-r1")
    )
    taken = {(each["kind"], each["metadata"]["name"]) for each in first}
    assert not taken & {(each["kind"], each["metadata"]["name"]) for each in second}


def test_the_longest_name_has_room_for_what_operators_add(folder: Path) -> None:
    long = "n" * MOST_NAME_CHARACTERS
    for kind in KINDS:
        run = run_of(load("pods", (ON_KUBERNETES,)), kind, long, program=b"zip")
        for container in containers_of(run)[0]:
            leader = container["args"][container["args"].index("--leader") + 1]
            assert all(len(part) <= 63 for part in leader.split("."))


def test_pods_wait_for_what_is_fetched_which_outlives_the_run(folder: Path) -> None:
    run = small_run(folder, CPUS, VOLUME, PREPARED)
    kinds = [each["kind"] for each in lasting_objects(run)]
    assert kinds == ["PersistentVolumeClaim", "ConfigMap", "Job"]
    (template,) = templates_of(run)
    assert [each["name"] for each in template["spec"]["initContainers"]] == ["prepared"]
    assert "BROADGAUGE_MODEL" in variables_of(template["spec"]["containers"][0])


def test_variables_of_a_launch_are_in_no_pod(folder: Path) -> None:
    run = small_run(folder, GPUS, "environment.ODD=told", "kubernetes.topology_file=topo.xml")
    for container in containers_of(run)[0]:
        known = variables_of(container)
        assert not {"ODD", "NCCL_DEBUG", "GLOO_SOCKET_IFNAME", "OMP_NUM_THREADS"} & known.keys()
    assert variables_of(containers_of(run)[0][0])["NCCL_TOPO_FILE"].endswith("topology.xml")


def test_orders_are_in_their_own_map_and_have_to_fit(folder: Path) -> None:
    run = small_run(folder, CPUS)
    found = {each["metadata"]["name"]: each for each in objects_of_run(run)}
    held = found[f"{RUN_LABEL}-orders"]["binaryData"]
    assert {key: base64.b64decode(text) for key, text in held.items()} == ORDERS
    large = {order_key(0): gzip.compress(b"") + b"\0" * (1 << 20)}
    with pytest.raises(InputError, match=r"what all launches are told.* room for 960 KiB"):
        run_objects(run, large)


def test_per_case_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="a run has one job for all of its cases"):
        small_run(folder, CPUS, "kubernetes.allocation=per_case")


TOKEN = "hf_abcdefghijklmnopqrstuvwxyz0123456789"


@costly(30)
@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=6),
    st.sampled_from(KINDS),
    st.booleans(),
)
def test_a_secret_is_in_the_secret_and_nowhere_else(
    value: str, kind: JobKind, of_cluster: bool
) -> None:
    """Whatever it is: objects are made without its value."""
    secrets = {"HF_TOKEN": {"secret": "hf", "key": "token"}} if of_cluster else {}
    experiment = Experiment.model_validate(
        {
            "name": "e",
            "platform": "kubernetes",
            "cluster": {"shapes": ["1x1", "2x1"], "device": "cpu"},
            "kubernetes": {"name": "x", "secrets": secrets},
            "networks": [{"name": "pod", "kubernetes": "pod"}],
            "environment": {"HF_TOKEN": {"from_environment": True}},
            "workloads": [{"kind": "collectives", "ops": ["all_reduce"], "sizes": ["1 MiB"]}],
        }
    )
    loaded = LoadedExperiment(experiment=experiment, source="e.yaml", folder=Path("/"))
    run = run_of(loaded, kind, program=b"zip")
    assert run.looked_up == (() if of_cluster else ("HF_TOKEN",))
    values = {name: SecretText(value) for name in run.looked_up}
    secret = run_secret(run, SecretText("of the run"), values)
    held = {key: base64.b64decode(text).decode() for key, text in secret["data"].items()}
    assert held == {TOKEN_KEY: "of the run", **dict.fromkeys(run.looked_up, value)}
    assert secret["metadata"]["labels"][RUN] == RUN_LABEL
    agent, leader = containers_of(run)[0]
    name, key = ("hf", "token") if of_cluster else (secrets_name(run), "HF_TOKEN")
    assert variables_of(agent)["HF_TOKEN"] == {"secretKeyRef": {"name": name, "key": key}}
    assert "HF_TOKEN" not in variables_of(leader)


def test_orders_that_hold_a_token_are_refused_without_telling_it(folder: Path) -> None:
    run = small_run(folder, CPUS)
    with pytest.raises(InputError, match="holds a token") as caught:
        run_objects(run, {order_key(0): gzip.compress(json.dumps({"x": TOKEN}).encode())})
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("workloads.mine.command", "[train.py, --hub-token, abcdefghij]"),
        ("environment.OTHER", TOKEN),
    ],
)
def test_a_secret_where_orders_would_show_it_is_refused(folder: Path, key: str, value: str) -> None:
    with pytest.raises(InputError) as caught:
        small_run(folder, CPUS, f"{key}={value}")
    assert "abcdefghij" not in str(caught.value)


def test_one_variable_has_one_source(folder: Path) -> None:
    ref = "kubernetes.secrets={HF_TOKEN: {secret: hf, key: token, workloads: [other]}}"
    other = EXPERIMENT.replace("launches: 2", "  - {kind: collectives, name: other}\nlaunches: 2")
    with pytest.raises(InputError, match="one value of it"):
        small_run(folder, CPUS, ref, "environment.HF_TOKEN={from_environment: true}", text=other)
