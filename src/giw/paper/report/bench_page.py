"""From a folder of results to tables, figures and one page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from giw.pages.figures import png_bytes
from giw.pages.page import Page, Picture, Section, write_page
from giw.pages.sheet import Sheet, latex_sheet, markdown_sheet, text_sheet
from giw.paper.bench.store import Result, Store
from giw.paper.report.ablations import SPLIT_WAYS_SHOWN, ablation_sheets, where
from giw.paper.report.accuracy import against_paper, coverage, overview, signed
from giw.paper.report.agreement import difference_sheet, trials_sheet
from giw.paper.report.cells import DATASET_CASES, Experiment, Place, gather
from giw.paper.report.changes import changed_picture, protocol_picture
from giw.paper.report.drawings import (
    curve_pictures,
    kernel_pictures,
    representation_picture,
    sample_picture,
    size_picture,
    split_error_picture,
)
from giw.paper.report.paper import paper_accuracy
from giw.paper.report.quality import commit_sheet, split_sheet, time_sheet
from giw.paper.report.scores import score_pictures
from giw.paper.shift import SHIFTS
from giw.writing import write_whole

ABLATIONS = {
    "split_error": "Split errors",
    "n_train": "Number of training points",
    "n_val": "Number of validation points",
    "representation": "Weights from losses or from the hidden layer",
    "protocol": "Honest against published protocol",
    "split_way": "Calibrated against published split",
    "soft": "Soft against hard membership",
    "other": "Other variants",
}


@dataclass(frozen=True)
class Report:
    """A report before it is written: the page, and what it says about the files it was made from.

    Attributes
    ----------
    page : Page
    damaged : list of str
        One line for each file that could not be used.
    remarks : list of str
        One line for each result that was left out or needs a word.
    n_results : int
        How many results were read.
    """

    page: Page
    damaged: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    n_results: int = 0

    @property
    def sheets(self) -> list[Sheet]:
        """All tables in the order of the page."""
        return [sheet for section in self.page.sections for sheet in section.sheets]

    @property
    def pictures(self) -> list[Picture]:
        """All figures in the order of the page."""
        return [picture for section in self.page.sections for picture in section.pictures]

    def write(self, folder: str | Path) -> Path:
        """Write the page, the tables in three formats and the figures; returns the page's path.

        The same results give the same bytes: nothing depends on the day, the place or the machine.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for suffix, form in (("txt", text_sheet), ("md", markdown_sheet), ("tex", latex_sheet)):
            text = "\n".join(form(sheet) for sheet in self.sheets)
            write_whole(folder / f"tables.{suffix}", text)
        figures = folder / "figures"
        figures.mkdir(exist_ok=True)
        for picture in self.pictures:
            write_whole(figures / f"{picture.name}.svg", picture.svg)
            dpi = 120 if picture.wide else 200  # many panels on one sheet
            write_whole(figures / f"{picture.name}.png", png_bytes(picture.figure, dpi))
        return write_page(self.page, folder / "report.html")


def report_folder(folder: str | Path) -> Report:
    """Read a folder that ``giw bench`` has filled, and make the report of it.

    Damaged files are named and the rest is reported; a folder without a single good result is a
    ValueError.
    """
    return bench_report(*read_folder(folder))


def read_folder(folder: str | Path) -> tuple[list[Result], list[str]]:
    """Results of a folder, and a line for each damaged file; ValueError where there is none."""
    results, damaged = Store(folder).read_all()
    if not results:
        found = f"none of its {len(damaged)} files is whole: {damaged[0]}" if damaged else "empty"
        raise ValueError(f"no results in {folder}: {found}; run giw bench first")
    return results, damaged


def bench_sheets(results: Sequence[Result]) -> list[Sheet]:
    """The tables of :func:`bench_report` alone: no figure is drawn, so they are there at once."""
    experiments, _ = gather(results)
    sheets = _first_sheets(experiments)
    for experiment in experiments:
        for _, found in _experiment_sheets(experiment):
            sheets += found
    ablated = [ablation_sheets(experiment) for experiment in experiments]
    return sheets + [sheet for kind in ABLATIONS for found in ablated for sheet in found[kind]]


def bench_report(results: Sequence[Result], damaged: Sequence[str] = ()) -> Report:
    """Tables and figures of results, on one page.

    Parameters
    ----------
    results : sequence of Result
    damaged : sequence of str
        Lines about files that are no results, from :meth:`giw.paper.bench.store.Store.read_all`.
    """
    experiments, remarks = gather(results)
    if not experiments:
        raise ValueError(f"none of the {len(results)} results can be reported: {remarks[0]}")
    sections = [s for experiment in experiments for s in _experiment_sections(experiment)]
    sections += _ablation_sections(experiments)
    sections += _image_sections(experiments, remarks)
    first = _files_section(experiments, results, damaged, remarks)
    page = Page(
        kicker="giw report",
        title="Generalized importance weighting and its rivals",
        answer=in_one_sentence(experiments),
        lead=[
            "Training data and the world part ways: the world shows digits, colours or kinds of "
            "things that training data lack (support shift), and training labels may be noisy or "
            "their classes uneven besides. Every method gets the same training data, a small "
            "validation set from the world and the same initial net. Each number stands beside "
            "the one that the paper prints."
        ],
        sections=[first, *sections],
        footer=["Made by `giw report` from stored results alone."],
        index=True,
    )
    return Report(page, list(damaged), remarks, len(results))


def in_one_sentence(experiments: Sequence[Experiment]) -> str:
    """How GIW stands in the largest experiment, and how far from the paper; good news or not."""
    experiment = experiments[0]
    protocol = next(iter(experiment.protocols()), "honest")
    marked, compared, differences = 0, 0, []
    for pair in DATASET_CASES:
        for shift in SHIFTS:
            place = Place(*pair, shift)
            rows = experiment.standings(place, protocol)
            if "giw" not in rows:
                continue
            tested = len(rows) > 1 and max(row.n for row in rows.values()) > 1
            compared += tested
            marked += tested and rows["giw"].marked
            paper = paper_accuracy(*place, "giw")
            if paper is not None:
                differences.append(100 * rows["giw"].mean - paper.mean)
    setting = f"{protocol} protocol, {experiment.name}"
    if not differences:
        return f"GIW as it is was not run ({setting}); the tables below have what was."
    away = (
        f"its accuracy is {signed(differences[0], 1)} points from the paper's"
        if len(differences) == 1
        else f"its accuracy lies {signed(min(differences), 1)} to {signed(max(differences), 1)} "
        f"points from the paper's, {signed(float(np.median(differences)), 1)} in the median"
    )
    if not compared:
        return f"GIW was compared with no other method over two or more trials; {away} ({setting})."
    settings = "setting" if compared == 1 else "settings"
    return (
        f"GIW is best, or not told apart from the best, in {marked} of {compared} {settings}; "
        f"{away} ({setting})."
    )


def _files_section(
    experiments: Sequence[Experiment],
    results: Sequence[Result],
    damaged: Sequence[str],
    remarks: Sequence[str],
) -> Section:
    files = [f"{len(results)} results were read."]
    if damaged:
        plural = "file is" if len(damaged) == 1 else "files are"
        files.append(f"{len(damaged)} {plural} damaged or no result and not in these numbers:")
        files += damaged
    if remarks:
        files += ["Results that need a word:", *remarks]
    return Section(
        title="What was run",
        text=files,
        sheets=_first_sheets(experiments),
        facts=_about(results),
    )


def _first_sheets(experiments: Sequence[Experiment]) -> list[Sheet]:
    commits = commit_sheet(experiments)
    return [coverage(experiments), *([] if commits is None else [commits])]


def _about(results: Sequence[Result]) -> dict[str, str]:
    """Versions, commits and devices, with the number of results that name each."""
    names = sorted({name for result in results for name in result.about})
    facts = {}
    for name in names:
        counts = Counter(result.about.get(name) or "not known" for result in results)
        facts[name] = "; ".join(f"{value} ({n} results)" for value, n in sorted(counts.items()))
    return facts


def _experiment_sheets(experiment: Experiment) -> list[tuple[str, list[Sheet]]]:
    """Tables of methods as they are by the title of their section."""
    protocols, split = experiment.protocols(), split_sheet(experiment)
    trials = trials_sheet(experiment)
    return [
        ("Accuracy", [overview(experiment, protocol) for protocol in protocols]),
        (
            "Beside the paper",
            [
                *(difference_sheet(experiment, protocol) for protocol in protocols),
                *([] if trials is None else [trials]),
                *(against_paper(experiment, *pair) for pair in experiment.dataset_cases),
            ],
        ),
        ("Learning curves", []),
        ("The split", [] if split is None else [split]),
        ("Time and weights", [time_sheet(experiment)] if protocols else []),
    ]


def _experiment_sections(experiment: Experiment) -> list[Section]:
    drawn = {
        "Learning curves": curve_pictures(experiment),
        "The split": score_pictures(experiment),
    }
    return [
        Section(title, pictures=drawn.get(title, []), sheets=sheets, part=experiment.name)
        for title, sheets in _experiment_sheets(experiment)
        if sheets or drawn.get(title)
    ]


def _ablation_sections(experiments: Sequence[Experiment]) -> list[Section]:
    by_experiment = [(experiment, ablation_sheets(experiment)) for experiment in experiments]
    sections = []
    for kind, title in ABLATIONS.items():
        sheets = [sheet for _, found in by_experiment for sheet in found[kind]]
        if kind == "other" and not sheets:
            continue
        pictures = [p for e, found in by_experiment if found[kind] for p in _drawn(e, kind)]
        missing = [] if sheets else ["Missing: no run of this ablation is among the results."]
        sections.append(Section(title, missing, pictures, sheets=sheets, part="Ablations"))
    return sections


def _drawn(experiment: Experiment, kind: str) -> list[Picture]:
    if kind == "split_error":
        return [split_error_picture(experiment, place) for place in where(experiment, kind)]
    if kind in ("n_train", "n_val"):
        return [size_picture(experiment, place, kind) for place in where(experiment, kind)]
    if kind == "representation":
        picture = representation_picture(experiment)
    elif kind == "protocol":
        picture = protocol_picture(experiment)
    elif kind == "split_way":
        picture = changed_picture(
            experiment, "split-ways", ABLATIONS[kind], [kind], SPLIT_WAYS_SHOWN
        )
    elif kind == "soft":
        picture = changed_picture(experiment, "soft", ABLATIONS[kind], [kind], ["soft"])
    else:
        return []
    return [] if picture is None else [picture]


def _image_sections(experiments: Sequence[Experiment], remarks: list[str]) -> list[Section]:
    # of the first experiment that has them: more epochs or another seed show the same kind of thing
    kernels = next((k for e in experiments if (k := kernel_pictures(e, remarks))), [])
    samples = next(([s] for e in experiments if (s := sample_picture(e, remarks))), [])
    absent = "Missing: no result among these stores {}."
    return [
        Section(
            "Kernels of the first layer",
            [] if kernels else [absent.format("kernels")],
            kernels,
            part="Images",
        ),
        Section(
            "Sample images",
            [] if samples else [absent.format("images")],
            samples,
            part="Images",
        ),
    ]
