"""Tables, figures and pages of the comparison."""

from giw.paper.report.bench_page import Report, bench_report, report_folder
from giw.paper.report.demo import demo_page

__all__ = ["Report", "bench_report", "demo_page", "report_folder"]
