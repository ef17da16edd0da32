"""Pages, figures and tables that a person opens."""
