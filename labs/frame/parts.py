"""The parts that a lab needs besides Python; missing ones are reported before anything starts."""

from __future__ import annotations

from faultline.settings import ROOT, artifacts
from labs.frame.errors import LabError
from spark_job.options import UserError
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
    """Check that Java and the jars of the parts are there. Raises LabError that names what is missing."""
    try:
        check_java()
    except UserError as error:
        raise LabError(str(error)) from None
    if artifacts().name == "artifacts" and artifacts().parent.name.startswith("spark-"):
        # Another release of Spark has other jars, which its environment was made with.
        return
    locked = [
        line.split()[:2] for line in (ROOT / "docker" / "requirements" / "jars.lock").read_text("utf-8").splitlines()
    ]
    for part in parts:
        group, beginnings = _JARS[part]
        folder = artifacts() / "jars" / group
        for owner, coordinates in locked:
            name = "-".join(coordinates.split(":")[1:]) + ".jar"
            if owner == group and name.startswith(beginnings) and not (folder / name).is_file():
                raise LabError(
                    f"{part} is incomplete: {name} is not in {folder}; "
                    f"remove {artifacts() / f'jars-{group}.made-from'} and run again, which fetches it"
                )
