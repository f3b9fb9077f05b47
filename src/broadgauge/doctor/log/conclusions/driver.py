"""Which versions have the loaded kernel module and the driver's library, where they differ?"""

from collections.abc import Iterator

from broadgauge.doctor.log.conclusions.conclusion import Conclusion, quoted
from broadgauge.doctor.log.facts import LogReading
from broadgauge.specs.records.record import Confidence, Finding, Severity

REFUSED_RULE = "nvrm-api-mismatch"
MODULE_RULE = "driver-module-version"
NVML_RULE = "nvml-versions-differ"


def driver_versions(reading: LogReading) -> Iterator[Conclusion]:
    """Both versions, where the kernel names the library's and anything the module's."""
    refused = [seen for seen in reading.seen if seen.rule.id == REFUSED_RULE]
    modules = [seen for seen in reading.seen if seen.rule.id == MODULE_RULE]
    loaded = {seen.fields["module"].rstrip(".") for seen in modules}
    asked = {seen.fields["library"] for seen in refused} - loaded
    if len(loaded) != 1 or len(asked) != 1:
        return
    (module,), (library,) = loaded, asked
    nvml = [seen for seen in reading.seen if seen.rule.id == NVML_RULE]
    yield Conclusion(
        place=refused[0].lines[0][0],
        finding=Finding(
            rule=NVML_RULE,
            severity=Severity.ERROR,
            symptom=(
                f"the loaded kernel module ({module}) and the driver's library ({library}) differ "
                "in version: no GPU can be used"
            ),
            evidence=quoted(
                line for seen in (*refused, *modules, *nvml) for line in seen.lines[:1]
            ),
            cause=(
                "the driver was updated (often by an unattended upgrade) and the old kernel module "
                "is still loaded; or a container brings a library of its own"
            ),
            fix=(
                "restart the node, or unload and load the modules when no GPU is used; hold the "
                "driver's packages back (`apt-mark hold`)"
            ),
            confidence=Confidence.LIKELY,
        ),
        explains=frozenset({REFUSED_RULE, NVML_RULE}),
        is_cause=True,
    )
