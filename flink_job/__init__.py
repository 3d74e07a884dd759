"""The windowing job: visits in, one count per visit and window out; late and unparsable visits go to other topics."""
