"""What does the report of a run say of networks that were found, at which no rate was set?"""

import csv
import io
import json
from dataclasses import replace
from types import ModuleType

import pytest
from rich.console import Console
from tests.report.page.test_html import read

from broadgauge.advise.ladders.ladder import is_unshaped
from broadgauge.analysis.analyse import analysed
from broadgauge.report.export.run_tables import to_csv, to_json
from broadgauge.report.page.html import render
from broadgauge.report.terminal.run import print_run
from broadgauge.report.words.links import line_rate_cell, reference_words
from broadgauge.results.model import RunSummary
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.networks.network import Network
from broadgauge.specs.networks.pod_networks import SecondaryNetwork

ON_HOSTS = (
    Network(name="fabric", found={"interface": ("ib0", "ib1"), "nominal_gbps": 200}),
    Network(name="frontend", found={"subnet": "10.0.0.0/16"}),
    Network(name="storage", found={"interface": "eth3"}),
)
IN_PODS = (
    Network(name="pod", kubernetes="pod"),
    Network(
        name="vnic",
        kubernetes={
            "attachment": "host-device",
            "devices": ["ens13"],
            "definitions": ["port-01"],
            "ipam": {"kind": "whereabouts", "ranges": ["10.1.0.0/24"]},
        },
    ),
    Network(
        name="shared", kubernetes={"attachment": "existing", "definitions": ["rdmashared-net"]}
    ),
)
OF_EMULATION = ("emulat", "unshaped", "shaper", "no added delay", "dotted", "fastest network")


@pytest.fixture(scope="module", params=["hosts", "kubernetes"])
def found(
    request: pytest.FixtureRequest, samples: ModuleType, tmp_path_factory: pytest.TempPathFactory
) -> RunSummary:
    """A run on three found networks; of the last, nobody knows what streams carry."""
    networks = ON_HOSTS if request.param == "hosts" else IN_PODS
    options = samples.Options(
        platform=request.param, networks=networks, unmeasured=networks[2], has_failure=False
    )
    return samples.sample_run(tmp_path_factory.mktemp("found"), options)


def page_words(run: RunSummary) -> str:
    return " ".join(" ".join(read(render(analysed(run))).words).split())


def printed(run: RunSummary) -> str:
    console = Console(width=200)
    with console.capture() as capture:
        print_run(analysed(run), console)
    return " ".join(capture.get().split())


def test_nothing_that_is_shown_speaks_of_emulation(found: RunSummary) -> None:
    assert "An emulated network" not in page_words(found)
    for words in (page_words(found).partition("What the figures mean")[0], printed(found)):
        assert [each for each in OF_EMULATION if each in words] == []
        assert "one plain stream, at least" in words
    assert "nodes: unknown" in printed(found)


def test_a_report_of_emulated_networks_says_so(run: RunSummary) -> None:
    words = page_words(run)
    for each in ("An emulated network has", "unshaped", "no added delay", "dotted: the line rate"):
        assert each in words
    assert "Against the fastest network" in words
    assert "nodes: this machine" in printed(run)


def test_the_line_rate_of_a_found_network_is_what_is_known(
    found: RunSummary, samples: ModuleType
) -> None:
    cells = {
        summary.case.network_name: line_rate_cell([summary])
        for summary in found.cases
        if summary.case.workload == samples.TRAIN and summary.case.nodes > 1
    }
    nominal, carried, unknown = cells.values()
    assert {cell.main for cell in cells.values() if cell is not None} == {"found"}
    if "fabric" in cells:
        assert nominal is not None
        assert nominal.under == "2 × 200 Gbit/s\nnominal"
    assert carried is not None
    assert unknown is not None
    assert carried.under.endswith("Gbit/s\ncarried")
    assert carried.detail.startswith("one plain TCP stream carried at least ")
    assert unknown.under == "rate\nnot known"
    for words in (page_words(found), printed(found)):
        assert "carried" in words
        assert "not known" in words


def test_eight_streams_are_named_where_they_carried_more(found: RunSummary) -> None:
    summary = next(each for each in found.cases if each.case.network_name in ("frontend", "vnic"))
    eight = Estimate(value=90.0, low=None, high=None, launches=1, trials=1, method="mean")
    cell = line_rate_cell([replace(summary, eight_streams_gbps=eight)])
    assert cell is not None
    assert (cell.under, cell.detail) == (
        "90 Gbit/s\ncarried",
        "eight plain TCP streams carried at least 90 Gbit/s",
    )


def test_exports_have_no_rate_of_a_found_network(found: RunSummary) -> None:
    rows = csv.DictReader(io.StringIO(to_csv(analysed(found), "records")))
    assert {row["line_rate_gbps"] for row in rows} == {""}
    cases = json.loads(to_json(analysed(found)))["cases"]
    networks = [case["case"]["network"] for case in cases if case["case"]["network"] is not None]
    assert {network["rate_gbps"] for network in networks} == {None}


def test_no_found_network_is_the_unshaped_rung_of_a_ladder(
    found: RunSummary, run: RunSummary
) -> None:
    assert [each.case.network_name for each in found.cases if is_unshaped(each.case)] == []
    assert {each.case.network_name for each in run.cases if is_unshaped(each.case)} == {"reference"}


def test_of_found_networks_the_others_are_compared_with_the_first(found: RunSummary) -> None:
    assert reference_words(found) == "the first network"
    assert "Against the first network" in page_words(found)


def test_a_card_names_the_network_by_the_experiment_and_where_it_is(found: RunSummary) -> None:
    words = page_words(found)
    where = {
        "fabric": "found at ib0 and ib1, nominal 200 Gbit/s",
        "frontend": "found at 10.0.0.0/16",
        "pod": "pod network",
        "vnic": "host-device port-01 of ens13",
        "shared": "existing rdmashared-net",
    }
    names = {each.case.network_name for each in found.cases}
    for name in names & where.keys():
        assert f"{name} 2x1 {where[name]}" in words


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        ({"attachment": "macvlan", "devices": ["ens1", "ens2"]}, "macvlan over ens1 to ens2"),
        ({"attachment": "bridge", "devices": ["br0"]}, "bridge br0"),
        ({"attachment": "host-device", "devices": ["ens13"]}, "host-device of ens13"),
        ({"attachment": "host-device", "resources": ["x.io/nic"]}, "host-device of x.io/nic"),
        ({"attachment": "sriov", "resources": ["x.io/rail0"]}, "sriov of x.io/rail0"),
        (
            {"attachment": "sriov", "resources": ["x.io/rail0"], "definitions": ["rail0"]},
            "sriov rail0",
        ),
        (
            {"attachment": "device-plugin", "resources": ["rdma/a"], "transport": "roce"},
            "device-plugin rdma/a",
        ),
        (
            {
                "attachment": "existing",
                "definitions": ["net-1"],
                "devices": ["ens1"],
                "ipam": {"kind": "address-map", "map": "m"},
            },
            "existing net-1 of ens1",
        ),
    ],
)
def test_an_attachment_is_named_by_its_definition_and_then_by_its_device(
    keys: dict[str, object], place: str
) -> None:
    by_whereabouts = {"kind": "whereabouts", "ranges": ["10.1.0.0/24", "10.2.0.0/24"]}
    has_none = keys["attachment"] in ("existing", "device-plugin")
    ipam = {} if has_none else {"ipam": by_whereabouts}
    assert SecondaryNetwork.model_validate(ipam | keys).place == place
