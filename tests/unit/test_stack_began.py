"""Offsets from which the job began to read, by lines of the TaskManagers' logs."""

from faultline.stack.began import in_lines, words

# Splits as Flink's Kafka source logs them; two TaskManagers, two runs.
FIRST = """\
2026-01-01 00:00:01,000 INFO  SplitAssigner - [[Partition: visits-0, StartingOffset: -2, StoppingOffset: -9223372036854775808]]
2026-01-01 00:10:01,000 INFO  SourceReaderBase - Adding split(s) to reader: [[Partition: visits-0, StartingOffset: 17, StoppingOffset: -9]]
"""  # noqa: E501
SECOND = """\
2026-01-01 00:00:01,500 INFO  Reader - [[Partition: visits-1, StartingOffset: -2, X], [Partition: other-0, StartingOffset: 3, X]]
2026-01-01 00:10:02,000 INFO  Reader - [[Partition: visits-1, StartingOffset: 5, StoppingOffset: -9]]
"""  # noqa: E501


def test_the_newest_offset_of_each_partition_counts_whichever_taskmanager_wrote_it() -> None:
    for logs in ((FIRST, SECOND), (SECOND, FIRST)):
        lines = [line for log in logs for line in log.splitlines()]
        assert in_lines("visits", lines) == {"0": 17, "1": 5}
    assert words({"1": 5, "0": 17}) == "partition 0 offset 17, partition 1 offset 5"
    assert in_lines("visits", []) == {} and words({}) == ""
