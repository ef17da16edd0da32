"""Tables, figures and pages that a person opens."""
