"""From a folder of results to tables, figures and one page.

===============================  ===========================================
of the paper                     made by
===============================  ===========================================
figure 1, the cases              ``figures.support_cases``
figure 2, two examples           ``examples/plot_four_squares.py``
tables 2 to 7, accuracies        ``table_accuracy``, ``comparison``
table 8, split errors            ``table_ablation``
figures of learning curves       ``figures.curve_pictures``
figure 7, ablations              ``figures.ablation_pictures``
histograms of O-SVM scores       ``figures.score_pictures``
===============================  ===========================================
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from giw.pages.figures import png_bytes
from giw.pages.page import Page, Picture, Section, write_page
from giw.pages.tables import Sheet, latex_sheet, markdown_sheet, text_sheet
from giw.paper import figures, table_runs
from giw.paper.comparison import cells_sheet, reproduced_sentence
from giw.paper.frame import PLACES, Experiment, gather
from giw.paper.rows import Result
from giw.paper.table_ablation import KINDS, ablation_sheets
from giw.paper.table_accuracy import overview
from giw.writing import write_whole

FORMATS = {"txt": text_sheet, "md": markdown_sheet, "tex": latex_sheet}


@dataclass(frozen=True)
class Report:
    """A report before it is written: the page, and what it says about the files it came from."""

    page: Page
    remarks: list[str]  # a line for each result that was left out or needs a word
    n_results: int

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
        drawn = folder / "figures"
        drawn.mkdir(parents=True, exist_ok=True)
        for suffix, form in FORMATS.items():
            write_whole(folder / f"tables.{suffix}", "\n".join(map(form, self.sheets)))
        for picture in self.pictures:
            write_whole(drawn / f"{picture.name}.svg", picture.svg)
            dpi = 120 if picture.wide else 200  # many panels on one sheet
            write_whole(drawn / f"{picture.name}.png", png_bytes(picture.figure, dpi))
        return write_page(self.page, folder / "report.html")


def paper_sheets(results: Sequence[Result]) -> list[Sheet]:
    """The tables of :func:`paper_report` alone: no figure is drawn, so they are there at once."""
    experiments, _ = gather(results)
    sections = [*_sections(experiments, drawn=False), _appendix(experiments, results, [], [])]
    return [sheet for section in sections for sheet in section.sheets]


def paper_report(results: Sequence[Result], damaged: Sequence[str] = ()) -> Report:
    """Tables and figures of what :func:`giw.paper.rows.read_folder` has read, on one page."""
    experiments, remarks = gather(results)
    if not experiments:
        raise ValueError(f"none of the {len(results)} results can be reported: {remarks[0]}")
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
        sections=[*_sections(experiments), _appendix(experiments, results, damaged, remarks)],
        footer=["Made by `giw paper report` from stored results alone."],
        index=True,
    )
    return Report(page, remarks, len(results))


def in_one_sentence(experiments: Sequence[Experiment]) -> str:
    """In how many settings of the largest experiment GIW is best or tied; good news or not."""
    experiment = experiments[0]
    protocol = next(iter(experiment.protocols), "honest")
    every = [experiment.standings(place, protocol) for place in PLACES]
    ran = [rows for rows in every if "giw" in rows and len(rows) > 1]
    tested = [rows for rows in ran if max(row.n for row in rows.values()) > 1]
    setting = f"({protocol} protocol, {experiment.name})"
    if not tested:
        return f"GIW was compared with no other method over two or more trials {setting}."
    marked = sum(rows["giw"].marked for rows in tested)
    plural = "setting" if len(tested) == 1 else "settings"
    best = "GIW is best, or not told apart from the best"
    return f"{best}, in {marked} of {len(tested)} {plural} {setting}."


# Sections -----------------------------------------------------------------------------------------


def _sections(experiments: Sequence[Experiment], *, drawn: bool = True) -> list[Section]:
    """The page but for its appendix; with ``drawn`` false, tables alone."""
    sections = [Section("The four cases", pictures=[figures.support_cases()])] if drawn else []
    if any(experiment.scale == "paper" for experiment in experiments):
        sections.append(Section("What is reproduced", sheets=[cells_sheet(experiments)]))
    for experiment in experiments:
        split = table_runs.split_quality(experiment)
        curves = figures.curve_pictures(experiment) if drawn else []
        scores = figures.score_pictures(experiment) if drawn else []
        found = [
            Section("Accuracy", sheets=[overview(experiment, p) for p in experiment.protocols]),
            Section("Learning curves", pictures=curves),
            Section("The split", pictures=scores, sheets=[split] if split else []),
        ]
        sections += [replace(s, part=experiment.name) for s in found if s.sheets or s.pictures]
    for kind, title in KINDS.items():
        sheets = [sheet for e in experiments for sheet in ablation_sheets(e, kind)]
        made = [figures.ablation_pictures(e, kind) for e in experiments if drawn]
        pictures = [picture for of_one in made for picture in of_one]
        if sheets:
            sections.append(Section(title, pictures=pictures, sheets=sheets, part="Ablations"))
    return sections


def _appendix(
    experiments: Sequence[Experiment],
    results: Sequence[Result],
    damaged: Sequence[str],
    remarks: Sequence[str],
) -> Section:
    """Bookkeeping: files, versions, machines."""
    text = [f"{len(results)} results were read."]
    if damaged:
        plural = "file is" if len(damaged) == 1 else "files are"
        text.append(f"{len(damaged)} {plural} damaged or no result and not in these numbers:")
        text += damaged
    if remarks:
        text += ["Results that need a word:", *remarks]
    facts = {}
    for name in sorted({name for result in results for name in result.about} - {"commit"}):
        counts = Counter(result.about.get(name) or "not known" for result in results)
        facts[name] = "; ".join(f"{value} ({n} results)" for value, n in sorted(counts.items()))
    sheets = [table_runs.versions(experiments)]
    return Section("What was run", text=text, sheets=sheets, facts=facts, part="Appendix")
