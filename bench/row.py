"""A row of the table: a case with its baseline or limit, and whether it passes."""

import dataclasses

import measure


@dataclasses.dataclass
class Row:
    """Medians of whole processes, and their baselines."""

    case: str
    # Unit of `value` and `bar`: "ratio" of the two medians, "s", "MiB" or "ms".
    unit: str
    bar: float
    value: float | None = None
    baseline: str = ""
    runs: list = dataclasses.field(default_factory=list)
    baseline_runs: list = dataclasses.field(default_factory=list)
    # Why there is no value.
    skipped: str = ""
    # Additional notes.
    notes: dict = dataclasses.field(default_factory=dict)

    @classmethod
    def ratio(cls, case, bar, runs, baseline, baseline_runs, **notes):
        value = measure.median(runs).wall / measure.median(baseline_runs).wall
        return cls(case, "ratio", bar, value, baseline, runs, baseline_runs, notes=notes)

    @classmethod
    def skip(cls, case, why, bar=0.0, unit="ratio"):
        return cls(case, unit, bar, skipped=why)

    @property
    def verdict(self):
        if self.skipped:
            return "skipped"
        return "ok" if self.value <= self.bar else "MISSED"

    def line(self):
        """Columns: case, seconds, seconds of the baseline, its name, value, bar, verdict."""
        if self.skipped:
            return [self.case, "", "", "", "", "", f"skipped: {self.skipped}"]
        seconds = [f"{found.wall:.3f}" if (found := measure.median(runs)) else "" for runs in (self.runs, self.baseline_runs)]
        unit = "" if self.unit == "ratio" else f" {self.unit}"
        return [self.case, *seconds, self.baseline, f"{self.value:.4g}{unit}", f"{self.bar:.3g}{unit}", self.verdict]

    def json(self):
        document = dataclasses.asdict(self)
        document["verdict"] = self.verdict
        for key in ("runs", "baseline_runs"):
            runs = getattr(self, key)
            if runs:
                document[f"{key}_spread"] = round(measure.spread(runs), 3)
        return document


HEADER = ["case", "seconds", "baseline s", "baseline", "value", "at most", ""]


def table(rows):
    """Lines of text: numbers to the right, words to the left."""
    lines = [HEADER, *(row.line() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADER))]
    right = (1, 2, 4, 5)
    for line in lines:
        cells = (cell.rjust(width) if column in right else cell.ljust(width) for column, (cell, width) in enumerate(zip(line, widths)))
        yield "  ".join(cells).rstrip()
