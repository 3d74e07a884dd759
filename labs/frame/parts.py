"""The parts that a lab needs besides Python; missing ones are reported before anything starts."""

from __future__ import annotations

from faultline.command import CommandError
from faultline.packages.jars import LOCK, read_jars
from faultline.settings import artifacts
from spark_job.session import check_java

BROKER = "the Kafka broker"
KAFKA_SOURCE = "Spark's Kafka source"
DELTA = "Delta Lake"
# Group of jars in docker/requirements/jars.lock, and the name prefixes of the jars that the part needs.
_JARS = {
    BROKER: ("kafka", ("",)),
    KAFKA_SOURCE: ("spark", ("spark-sql-kafka", "spark-token-provider-kafka", "kafka-clients", "commons-pool2")),
    DELTA: ("spark", ("delta-",)),
}


def require(*parts: str) -> None:
    """Check that Java and the jars of the parts are there. Raises CommandError that names what is missing."""
    check_java()
    if artifacts().name == "artifacts" and artifacts().parent.name.startswith("spark-"):
        # Another release of Spark has other jars, which its environment was made with.
        return
    locked = read_jars(LOCK)
    for part in parts:
        group, beginnings = _JARS[part]
        folder = artifacts() / "jars" / group
        for name in (jar.file_name for jar in locked if jar.group == group):
            if name.startswith(beginnings) and not (folder / name).is_file():
                raise CommandError(
                    f"{part} is incomplete: {name} is not in {folder}; "
                    f"remove {artifacts() / f'jars-{group}.made-from'} and run again, which fetches it"
                )
