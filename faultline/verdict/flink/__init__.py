"""The output of the windowing job: its topics, its clock, and the judge of both."""
