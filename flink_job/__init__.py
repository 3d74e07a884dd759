"""The windowing job: visits in, one count a visit and window out, late and unparsable visits beside them."""
