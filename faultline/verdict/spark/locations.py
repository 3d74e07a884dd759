"""Locations that a run of the synchronizer reads and writes, from the settings of the run, or else from the stack's."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from pathlib import Path

from faultline.formats.run import SINKS, SPARK_RUN_FILE, RunError, SparkRun, read_run
from faultline.settings import Settings
from faultline.storage.data import location_noted, noted, notes_of, spark_checkpoints, spark_outputs
from faultline.storage.location import Location
from faultline.verdict.checker import Options
from faultline.verdict.model import Unknown


@dataclass(frozen=True)
class Locations:
    """Topic, sink, and the folders of output and checkpoint of one query; `notes` name what is not certain."""

    topic: str
    sink: str
    output: Location
    checkpoint: Location
    notes: tuple[str, ...] = ()


def locations(settings: Settings, options: Options) -> Locations:
    """Find the locations of a query. Raises Unknown when its own settings contradict the flags or the folder."""
    sink = _known(options.sink or settings.text("SPARK_SINK"), "--sink" if options.sink else "SPARK_SINK")
    query = settings.query(sink)
    checkpoint = _resolved(options.checkpoint or spark_checkpoints(settings) / query)
    notes = notes_of(checkpoint, settings)
    run = _run_in(notes) if notes else None
    if notes is None or run is None:
        note = f"no settings of a run in {notes or checkpoint}, judged with those of .env"
        output = _resolved(options.output or spark_outputs(settings) / query)
        return Locations(settings.text("VISITS_TOPIC"), sink, output, checkpoint, (note,))
    _refuse_contradiction(run, notes, checkpoint, settings, options)
    return Locations(run.topic, run.sink, location_noted(run.output, settings), checkpoint)


def _resolved(path: Location) -> Location:
    try:
        return path.resolve()
    except RuntimeError as error:
        # A loop of links.
        raise Unknown(f"{path} leads nowhere: {error}; name the folder itself") from None


def _known(sink: str, where: str) -> str:
    if sink not in SINKS:
        raise Unknown(f"{where} {sink} is unknown; one of {', '.join(SINKS)}")
    return sink


def _run_in(notes: Path) -> SparkRun | None:
    file = notes / SPARK_RUN_FILE
    if file.exists() and not file.is_file():
        raise Unknown(f"{file} is not a file")
    try:
        run = read_run(SparkRun, file)
    except RunError as error:
        raise Unknown(str(error)) from None
    if run is not None:
        if not all(isinstance(value, str) and value for value in astuple(run)):
            raise Unknown(f"{file} does not hold the settings of a run; it was damaged or written by another version")
        _known(run.sink, f"{file}: sink")
    return run


def _refuse_contradiction(
    run: SparkRun, notes: Path, checkpoint: Location, settings: Settings, options: Options
) -> None:
    folder = noted(checkpoint, settings)
    if run.checkpoint != folder:
        raise Unknown(
            f"{notes / SPARK_RUN_FILE} is of checkpoint {run.checkpoint} and is in {folder}, so it does not say "
            "what this checkpoint belongs to; judge the one that the query wrote (--checkpoint)"
        )
    asked = {
        "sink": options.sink,
        "output": None if options.output is None else noted(options.output, settings),
    }
    for name, value in asked.items():
        if value not in (None, getattr(run, name)):
            raise Unknown(
                f"checkpoint {checkpoint} belongs to {name} {getattr(run, name)} and not {value}; "
                f"leave --{name} out or give the --checkpoint of that {name}"
            )
