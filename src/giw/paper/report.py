"""From a folder of results to tables, figures and one page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from giw.pages.figures import png_bytes
from giw.pages.page import Page, Picture, Section, write_page
from giw.pages.tables import Sheet, latex_sheet, markdown_sheet, text_sheet
from giw.paper.ablation_tables import ablation_sheets
from giw.paper.accuracy_tables import (
    against_paper,
    difference_sheet,
    overview,
    reproduced_sentence,
    signed,
    trials_sheet,
)
from giw.paper.figures import (
    ablation_pictures,
    curve_pictures,
    kernel_pictures,
    sample_picture,
    score_pictures,
)
from giw.paper.frame import Experiment, Place, gather
from giw.paper.printed import paper_accuracy
from giw.paper.rows import Result, read_folder
from giw.paper.run_tables import commit_sheet, coverage, split_sheet, time_sheet
from giw.paper.settings import DATASET_CASES, SHIFTS
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
FORMATS = {"txt": text_sheet, "md": markdown_sheet, "tex": latex_sheet}


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
        figures = folder / "figures"
        figures.mkdir(parents=True, exist_ok=True)
        for suffix, form in FORMATS.items():
            write_whole(folder / f"tables.{suffix}", "\n".join(map(form, self.sheets)))
        for picture in self.pictures:
            write_whole(figures / f"{picture.name}.svg", picture.svg)
            dpi = 120 if picture.wide else 200  # many panels on one sheet
            write_whole(figures / f"{picture.name}.png", png_bytes(picture.figure, dpi))
        return write_page(self.page, folder / "report.html")


def report_folder(folder: str | Path) -> Report:
    """Read a folder that ``giw paper run`` has filled, and make the report of it.

    Damaged files are named and the rest is reported; a folder without a single good result is a
    ValueError.
    """
    return paper_report(*read_folder(folder))


def paper_sheets(results: Sequence[Result]) -> list[Sheet]:
    """The tables of :func:`paper_report` alone: no figure is drawn, so they are there at once."""
    experiments, _ = gather(results)
    sheets = _first_sheets(experiments)
    sheets += [s for e in experiments for _, found in _experiment_sheets(e) for s in found]
    ablated = [ablation_sheets(experiment) for experiment in experiments]
    return sheets + [sheet for kind in ABLATIONS for found in ablated for sheet in found[kind]]


def paper_report(results: Sequence[Result], damaged: Sequence[str] = ()) -> Report:
    """Tables and figures of results, on one page.

    Parameters
    ----------
    results : sequence of Result
    damaged : sequence of str
        Lines about files that are no results, from :meth:`giw.paper.rows.Store.read_all`.
    """
    experiments, remarks = gather(results)
    if not experiments:
        raise ValueError(f"none of the {len(results)} results can be reported: {remarks[0]}")
    sections = [s for experiment in experiments for s in _experiment_sections(experiment)]
    sections += _ablation_sections(experiments)
    sections += _image_sections(experiments, remarks)
    page = Page(
        kicker="giw paper report",
        title="Generalized importance weighting and its rivals",
        answer=in_one_sentence(experiments),
        lead=[
            "Test data show digits, colours or kinds of things that training data lack (support "
            "shift), and training labels may be noisy or their classes uneven besides. Every "
            "method gets the same training data, a small validation set like the test data and "
            "the same initial net. Each number stands beside the one that the paper prints.",
            reproduced_sentence(experiments),
        ],
        sections=[_files_section(experiments, results, damaged, remarks), *sections],
        footer=["Made by `giw paper report` from stored results alone."],
        index=True,
    )
    return Report(page, list(damaged), remarks, len(results))


def in_one_sentence(experiments: Sequence[Experiment]) -> str:
    """How GIW stands in the largest experiment, and how far from the paper; good news or not."""
    experiment = experiments[0]
    protocol = next(iter(experiment.protocols()), "honest")
    marked, compared, away = 0, 0, []
    for place in (Place(*pair, shift) for pair in DATASET_CASES for shift in SHIFTS):
        rows = experiment.standings(place, protocol)
        if "giw" not in rows:
            continue
        tested = len(rows) > 1 and max(row.n for row in rows.values()) > 1
        compared += tested
        marked += tested and rows["giw"].marked
        paper = paper_accuracy(*place, "giw")
        if paper is not None:
            away.append(100 * rows["giw"].mean - paper.mean)
    setting = f"{protocol} protocol, {experiment.name}"
    if not away:
        return f"GIW as it is was not run ({setting}); the tables below have what was."
    distance = (
        f"its accuracy is {signed(away[0], 1)} points from the paper's"
        if len(away) == 1
        else f"its accuracy lies {signed(min(away), 1)} to {signed(max(away), 1)} "
        f"points from the paper's, {signed(float(np.median(away)), 1)} in the median"
    )
    if not compared:
        what = "GIW was compared with no other method over two or more trials"
    else:
        settings = "setting" if compared == 1 else "settings"
        best = "GIW is best, or not told apart from the best"
        what = f"{best}, in {marked} of {compared} {settings}"
    return f"{what}; {distance} ({setting})."


# Sections -----------------------------------------------------------------------------------------


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
    sheets, about = _first_sheets(experiments), _about(results)
    return Section(title="What was run", text=files, sheets=sheets, facts=about)


def _first_sheets(experiments: Sequence[Experiment]) -> list[Sheet]:
    return _present(coverage(experiments), commit_sheet(experiments))


def _present(*sheets: Sheet | None) -> list[Sheet]:
    return [sheet for sheet in sheets if sheet is not None]


def _about(results: Sequence[Result]) -> dict[str, str]:
    """Versions, commits and devices, with the number of results that name each."""
    facts = {}
    for name in sorted({name for result in results for name in result.about}):
        counts = Counter(result.about.get(name) or "not known" for result in results)
        facts[name] = "; ".join(f"{value} ({n} results)" for value, n in sorted(counts.items()))
    return facts


def _experiment_sheets(experiment: Experiment) -> list[tuple[str, list[Sheet]]]:
    """Tables of methods as they are by the title of their section."""
    protocols = experiment.protocols()
    beside = [
        *(difference_sheet(experiment, protocol) for protocol in protocols),
        trials_sheet(experiment),
        *(against_paper(experiment, *pair) for pair in experiment.dataset_cases),
    ]
    return [
        ("Accuracy", [overview(experiment, protocol) for protocol in protocols]),
        ("Beside the paper", _present(*beside)),
        ("Learning curves", []),
        ("The split", _present(split_sheet(experiment))),
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
        if sheets or kind != "other":
            missing = [] if sheets else ["Missing: no run of this ablation is among the results."]
            drawn = [ablation_pictures(e, kind) for e, found in by_experiment if found[kind]]
            pictures = [picture for some in drawn for picture in some]
            sections.append(Section(title, missing, pictures, sheets=sheets, part="Ablations"))
    return sections


def _image_sections(experiments: Sequence[Experiment], remarks: list[str]) -> list[Section]:
    # of the first experiment that has them: more epochs or another seed show the same kind of thing
    kernels = next((k for e in experiments if (k := kernel_pictures(e, remarks))), [])
    samples = next(([s] for e in experiments if (s := sample_picture(e, remarks))), [])
    absent = "Missing: no result among these stores {}."
    return [
        Section(title, [] if pictures else [absent.format(what)], pictures, part="Images")
        for title, what, pictures in (
            ("Kernels of the first layer", "kernels", kernels),
            ("Sample images", "images", samples),
        )
    ]
