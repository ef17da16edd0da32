"""The reproduction of the paper: its data, shifts, settings, runs, tables and figures."""
