"""How is a training shown? Its steps have columns and pictures of their own."""

from broadgauge.report.kinds.kind import ChartGroup, KindInReport


class TrainingInReport(KindInReport):
    """A training as it is shown."""

    @property
    def charts(self) -> tuple[ChartGroup, ...]:
        from broadgauge.report.charts.step_pictures import STEP_PICTURES

        return STEP_PICTURES
