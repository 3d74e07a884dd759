"""Inspector and verdict read Spark's files in a real object store, and say the same as of the same files on a disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from faultline.formats.run import SPARK_RUN_FILE
from faultline.formats.status import Progress
from faultline.formats.verdict import CATEGORIES, Outcome
from faultline.inspector.__main__ import main
from faultline.inspector.model import as_dict
from faultline.inspector.reading import flink_reports
from faultline.inspector.recognize import engine_of
from faultline.probes import progress
from faultline.settings import Settings, store_jars
from faultline.storage.location import Location
from faultline.storage.objects import CREDENTIALS
from faultline.storage.words import location_of
from faultline.verdict.checker import Options
from faultline.verdict.checkers.spark import judge_output
from faultline.verdict.model import Unknown
from faultline.verdict.spark import reader
from faultline.verdict.spark.checkpoint import newest_commit
from faultline.verdict.spark.locations import locations
from faultline.verdict.store import open_store
from tests.called import call, program, script
from tests.golden.archives import golden, releases
from tests.judge.spark_world import Query, Topic, random_world, reading, write_output
from tests.stack.running_stack import RunningStack
from tests.stack.store import BUCKET, Store

pytestmark = [pytest.mark.ci, pytest.mark.timeout(300)]

QUERIES = sorted(path.parent for release in releases("spark") for path in release.glob("*/checkpoint"))


@pytest.fixture(scope="module")
def uploaded(store: Store) -> str:
    for release in releases("spark"):
        store.upload(release, f"golden/{release.name}")
    return f"s3://{BUCKET}/golden"


@pytest.fixture(autouse=True)
def _reached(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)


def inspected(capsys: pytest.CaptureFixture[str], root: str, query: str, *flags: str) -> tuple[int, str]:
    """Exit code and JSON of the inspector, without the place that it read."""
    code = main([f"{root}/{query}/checkpoint", "--json", "--no-lag", "--all", *flags])
    said = capsys.readouterr()
    assert said.err == ""
    return code, said.out.replace(root, "ROOT")


@pytest.mark.parametrize("query", QUERIES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_inspector_says_the_same_of_a_checkpoint_in_the_store(
    query: Path, uploaded: str, capsys: pytest.CaptureFixture[str]
) -> None:
    roots = (str(query.parents[1]), uploaded)
    name = f"{query.parent.name}/{query.name}"
    flags = [("--sink", f"{root}/{name}/output") if (query / "output").is_dir() else () for root in roots]
    on_disk, in_store = (inspected(capsys, root, name, *more) for root, more in zip(roots, flags, strict=True))
    assert in_store == on_disk
    assert json.loads(in_store[1])["steps"]


@pytest.mark.skipif(not any(store_jars("flink").glob("*.jar")), reason=f"{store_jars('flink')} is not fetched")
def test_the_inspector_says_the_same_of_flinks_checkpoints_in_the_store(store: Store) -> None:
    """All of them by one JVM."""
    paths: list[Location] = []
    roots: list[str] = []
    for folder in (golden("flink-2.2") / name for name in ("exactly-once", "at-least-once", "rocksdb")):
        newest = max(file.parent.relative_to(folder) for file in folder.rglob("chk-*/_metadata"))
        for root in (folder, store.upload(folder, f"flink-{folder.name}")):
            roots.append(str(root))
            paths.append(root / str(newest))
    assert {engine_of(path) for path in paths} == {"flink"}
    said = []
    for text, report in zip(roots, flink_reports(paths, rows=5, follow=False), strict=True):
        document = json.loads(json.dumps(as_dict(report)).replace(text, "ROOT"))
        # A copy has the time of the copy.
        document["steps"][0].pop("at")
        assert document["operators"]
        said.append(document)
    assert said[0::2] == said[1::2]


def test_state_rows_in_the_store_are_a_problem_and_the_rest_is_shown(
    uploaded: str, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = f"{uploaded}/spark-4.0/files_windowed/checkpoint"
    assert main([checkpoint, "--json", "--no-lag", "--state"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["problems"] == [f"{checkpoint}/state: Spark reads it from a disk only; copy the checkpoint to one"]
    assert report["steps"]


def test_the_script_passes_a_place_in_the_store_on(uploaded: str, tmp_path: Path) -> None:
    where = {"STACK_BACKEND": "local", "STACK_HOME": str(tmp_path)}
    done = script("inspect.sh", f"{uploaded}/spark-4.0/kafka_killed/checkpoint", "--no-lag", **where)
    assert done.returncode == 0, done.stderr
    assert "A restart re-runs batch 3" in done.stdout


@pytest.mark.parametrize(
    ("word", "variables", "said"),
    [
        ("s3://faultline/golden/none", {}, "s3://faultline/golden/none does not exist"),
        ("s3://no-such-bucket/x", {}, "has no bucket no-such-bucket"),
        ("s3://faultline/x", {"STACK_STORE_ENDPOINT": "http://127.0.0.1:1"}, "http://127.0.0.1:1 does not answer"),
        ("s3://faultline/x", {CREDENTIALS: "/nowhere"}, "/nowhere cannot be read: No such file or directory"),
        ("s3://faultline/x", {"STACK_STORE_ENDPOINT": ""}, "setting STORE_ENDPOINT is missing"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_line(
    uploaded: str, word: str, variables: dict[str, str], said: str, tmp_path: Path
) -> None:
    environ = {"STACK_BACKEND": "local", "STACK_HOME": str(tmp_path), **variables}
    done = script("inspect.sh", word, "--no-lag", **environ)
    assert done.returncode != 0
    assert said in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_a_refused_key_is_said_in_a_line(uploaded: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "credentials"
    file.write_text("[default]\naws_access_key_id = nobody\naws_secret_access_key = nothing\n")
    monkeypatch.setenv(CREDENTIALS, str(file))
    checkpoint = f"{uploaded}/spark-4.0/kafka_killed/checkpoint"
    said = call(main, checkpoint, "--no-lag")
    why = f"{checkpoint} cannot be read: the object store refuses the key of {file}\n"
    assert (said.returncode, said.stderr) == (1, why)


def judged(
    topic: Topic, output: Location, checkpoint: Location, root: str
) -> tuple[dict[str, object], list[list[str]]]:
    """The verdict and all findings, without the place that was read."""
    where = locations(Settings({}), Options(output=output, checkpoint=checkpoint))
    assert (where.output, where.checkpoint) == (output, checkpoint)
    with open_store(in_memory=True) as store:
        read = reading(store, topic)
        judgement = judge_output(store, topic, where, lambda: (topic.spans(), ()), read, caught_up=True)
        findings = [[str(each) for each in judgement.findings(category)] for category in CATEGORIES]
    document = json.loads(json.dumps(judgement.verdict.as_json()).replace(root, "ROOT"))
    document.pop("seconds")
    return document, findings


def world(folder: Path, key: str, seed: int) -> tuple[Topic, Query]:
    """Write the output of a query whose log names files of the store, without the settings of the run."""
    topic, batches = random_world(seed)
    query = write_output(folder, topic, batches)
    (query.checkpoint / SPARK_RUN_FILE).unlink()
    for file in (query.output / "_spark_metadata").iterdir():
        text = file.read_text().replace(f"file://{folder}", f"s3a://{BUCKET}/{key}")
        file.write_text(text)
    return topic, query


@pytest.mark.parametrize(
    ("damage", "several"),
    [
        ("nothing", False),
        ("a file is gone", False),
        ("a line is gone", False),
        ("a line is there twice", False),
        ("a line is there twice", True),
    ],
)
def test_the_verdict_on_output_in_the_store_is_that_on_a_disk(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str, several: bool
) -> None:
    folder = tmp_path.resolve()
    key = f"world/{damage.replace(' ', '-')}-{several}"
    topic, query = world(folder, key, seed=7)
    file = max(query.files.values(), key=lambda each: each.stat().st_size)
    lines = file.read_bytes().splitlines(keepends=True)
    if damage == "a file is gone":
        file.unlink()
    elif damage == "a line is gone":
        file.write_bytes(b"".join(lines[1:]))
    elif damage == "a line is there twice":
        file.write_bytes(b"".join([*lines, lines[0]]))
    root = store.upload(folder, key)
    if several:
        monkeypatch.setattr(reader, "_PARALLEL_BYTES", 0)
    on_disk = judged(topic, query.output, query.checkpoint, str(folder))
    in_store = judged(
        topic, root / str(query.output.relative_to(folder)), root / str(query.checkpoint.relative_to(folder)), str(root)
    )
    assert in_store == on_disk
    expected = Outcome.HOLDS if damage == "nothing" else Outcome.VIOLATED
    assert in_store[0]["outcome"] == expected.value


def test_a_store_that_does_not_answer_is_unknown(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STACK_STORE_ENDPOINT", "http://127.0.0.1:1")
    checkpoint = location_of(f"s3://{BUCKET}/checkpoint", Settings())
    where = locations(Settings(), Options(checkpoint=checkpoint))
    with pytest.raises(Unknown, match=r"cannot be read: the object store at .* does not answer"):
        newest_commit(where.checkpoint, where.topic)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("STACK_STORE_ENDPOINT", "http://127.0.0.1:1", "http://127.0.0.1:1 does not answer"),
        ("STACK_STORE_ENDPOINT", "127.0.0.1:1", "is not of the form http://HOST:PORT"),
        ("STACK_DATA", "s3://no-such-bucket/x", "has no bucket no-such-bucket"),
        (CREDENTIALS, "/nowhere", "/nowhere cannot be read: No such file or directory"),
    ],
)
def test_a_start_on_a_wrong_store_starts_nothing(
    name: str, value: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("STACK_DATA", f"s3://{BUCKET}/below")
    monkeypatch.setenv(name, value)
    done = RunningStack(home, "local").script("up.sh", check=False)
    assert done.returncode == 2
    backend, line = done.stderr.splitlines()
    assert backend.startswith("backend: local")
    assert line.startswith("up.sh: ") and said in line
    assert not home.exists()


def test_a_store_that_takes_the_data_is_accepted() -> None:
    done = program("faultline.services.store.check", STACK_DATA=f"s3://{BUCKET}/below")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_status_of_data_in_a_store_names_the_newest_batch_and_what_is_refused(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STACK_DATA", f"s3://{BUCKET}/status")
    assert progress.data(Settings()) == Progress()
    for batch in (9, 10):
        store.put(f"status/checkpoints/spark/visits_json/commits/{batch}", b"v1\n{}")
    found = progress.data(Settings())
    assert found.synchronizer
    assert (found.synchronizer.batch, found.refused) == (10, "")
    monkeypatch.setenv("STACK_STORE_ENDPOINT", "http://127.0.0.1:1")
    assert progress.data(Settings()) == Progress(refused="the object store at http://127.0.0.1:1 does not answer")
