"""The manifests: what is on disk is what the command writes, and it is what the local stack promises."""

from __future__ import annotations

import functools
import re
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pyspark
import pytest
from kubeflow_spark_api.models.spark_v1beta2_spark_application import SparkV1beta2SparkApplication

from deploy import flink, kafka, pod, spark
from deploy.__main__ import MANIFESTS, main, write
from deploy.settings import ENGINES, FILE, cluster_settings, of_pods
from faultline.command import CommandError
from faultline.formats.jobs import EXACTLY_ONCE
from faultline.services.kafka.start import configuration
from faultline.settings import ROOT, Settings, SettingsError, read_env_file
from faultline.storage.data import spark_checkpoints
from flink_job.configuration import store_lines
from flink_job.guarantees import job_configuration
from spark_job import session
from spark_job.options import alone
from tests.called import refused
from tests.manifests import errors, names_in_classes, strict, with_key, written
from tests.tree import files, places, require_none, text_of

SETTINGS = cluster_settings()
FILES = [manifest(SETTINGS).file for manifest in MANIFESTS]
AGAIN = "scripts/deploy.sh write"


def test_the_manifests_on_disk_are_those_that_the_command_writes_now(tmp_path: Path) -> None:
    names = {file.name for file in write(tmp_path)}
    assert names == {file.name for file in (ROOT / "deploy").glob("*.yaml")} - {"measured.yaml"}
    for name in names:
        now, kept = (folder / name for folder in (tmp_path, ROOT / "deploy"))
        assert kept.read_text(encoding="utf-8") == now.read_text(encoding="utf-8"), f"{name} is old: {AGAIN}"


def test_variables_of_the_shell_do_not_reach_the_manifests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STACK_TOPIC_PARTITIONS", "99")
    assert cluster_settings().values == SETTINGS.values


def test_no_manifest_has_a_key_or_a_secret() -> None:
    secrets = re.compile(r"access.key|secret.key|password|akia[0-9a-z]{16}|session.token", re.IGNORECASE)
    require_none(f"{place}: {word}" for place, word in places(secrets, [f"deploy/{file}" for file in FILES]))
    kinds = [(file, each["kind"]) for file in FILES for each in written(file)]
    require_none(f"{file}: {kind}" for file, kind in kinds if kind in ("Secret", "ConfigMap"))


def test_every_manifest_says_what_to_fill_in_and_what_is_not_checked() -> None:
    wrong = []
    for manifest in (each(SETTINGS) for each in MANIFESTS):
        text = text_of(f"deploy/{manifest.file}")
        header = " ".join(line.lstrip("# ") for line in text.splitlines() if line.startswith("#"))
        body = text.partition("---\n")[2]
        said = {*re.findall(r"YOUR-[A-Z-]+", body), *(["FILL IN"] if "YOUR-" in body else [])}
        said |= {f"unchecked: {each.part}: {each.reason}" for each in manifest.unchecked}
        wrong += [f"{manifest.file}: its header lacks {words}" for words in said if words not in header]
        wrong += (
            [f"{manifest.file}: FILL IN, and nothing to fill in"] if "FILL IN" in header and "YOUR-" not in body else []
        )
    require_none(wrong)


def test_every_object_has_a_name_that_kubernetes_takes() -> None:
    named = [(file, each["metadata"]) for file in FILES for each in written(file)]
    name = re.compile(r"[a-z]([-a-z0-9]{0,40}[a-z0-9])?")
    require_none(f"{file}: {each['name']}" for file, each in named if not name.fullmatch(each["name"]))
    assert {each["namespace"] for _, each in named} == {SETTINGS.text("NAMESPACE")}


def test_the_flink_job_has_the_guarantees_of_the_local_one() -> None:
    (deployment,) = written("flink.yaml")
    options = deployment["spec"]["flinkConfiguration"]
    local = job_configuration(Settings(environ={}), EXACTLY_ONCE)
    elsewhere = {"execution.checkpointing.dir", "parallelism.default"}
    assert {name: options[name] for name in local if name not in elsewhere} == {
        name: value for name, value in local.items() if name not in elsewhere
    }
    assert deployment["spec"]["job"]["parallelism"] == SETTINGS.number("FLINK_PARALLELISM")
    folders = [options[name] for name in ("execution.checkpointing.dir", "high-availability.storageDir")]
    assert all(folder.startswith("s3://") for folder in folders)


def test_the_flink_cluster_has_no_address_and_no_folder_of_one_machine() -> None:
    options = flink.cluster_options(SETTINGS)
    assert options["taskmanager.numberOfTaskSlots"] == "4"
    assert options["execution.checkpointing.num-retained"] == SETTINGS.text("FLINK_CHECKPOINTS_RETAINED")
    assert not [name for name in options if re.search("address|bind|port|host|tmp|java", name)]
    assert "@" not in "".join(options.values())


def test_the_brokers_keep_what_the_local_one_keeps_and_have_replicas() -> None:
    chosen = kafka.broker_settings(SETTINGS)
    assert chosen["log.retention.ms"] == SETTINGS.text("TOPIC_RETENTION_MS")
    assert chosen["transaction.max.timeout.ms"] == SETTINGS.text("KAFKA_TRANSACTION_MAX_TIMEOUT_MS")
    replicated = {value for name, value in chosen.items() if "replication.factor" in name}
    held = {value for name, value in chosen.items() if name.endswith(("min.isr", "min.insync.replicas"))}
    assert (replicated, held) == ({"3"}, {"2"})


def test_the_topics_are_those_of_the_two_pipelines() -> None:
    topics = [each["spec"] for each in written("kafka.yaml") if each["kind"] == "KafkaTopic"]
    names = ("VISITS_TOPIC", "VISIT_WINDOWS_TOPIC", "VISITS_LATE_TOPIC", "VISITS_REJECTED_TOPIC")
    assert [topic["topicName"] for topic in topics] == [SETTINGS.text(name) for name in names]
    assert {topic["replicas"] for topic in topics} == {3}
    assert {topic["partitions"] for topic in topics} == {SETTINGS.number("TOPIC_PARTITIONS")}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("TOPIC_PARTITIONS=4", "TOPIC_PARTITIONS=4 is no multiple of FLINK_PARALLELISM=8: some tasks would read more"),
        ("TOPIC_PARTITIONS=12", "TOPIC_PARTITIONS=12 is no multiple of FLINK_PARALLELISM=8"),
        ("KAFKA_BROKERS=x", "KAFKA_BROKERS=x is not a whole number above 0; correct it in deploy/kubernetes.env"),
        ("SPARK_EXECUTORS=0", "SPARK_EXECUTORS=0 is not a whole number above 0"),
        ("KAFKA_BROKERS=1", "KAFKA_REPLICATION=3 needs as many brokers, and KAFKA_BROKERS=1"),
        ("KAFKA_MIN_INSYNC=5", "KAFKA_MIN_INSYNC=5 is more than KAFKA_REPLICATION=3: nothing would ever be ackn"),
    ],
)
def test_settings_that_do_not_fit_each_other_are_refused(tmp_path: Path, line: str, message: str) -> None:
    other = tmp_path / "kubernetes.env"
    other.write_text(FILE.read_text(encoding="utf-8") + line + "\n", encoding="utf-8")
    with pytest.raises(SettingsError, match=f"^{re.escape(message)}"):
        cluster_settings(other)


def test_pods_of_spark_have_the_file_system_of_the_store_on_their_class_path() -> None:
    conf = written("spark.yaml")[0]["spec"]["sparkConf"]
    for name in ("spark.driver.extraClassPath", "spark.executor.extraClassPath"):
        assert {f"{pod.ARTIFACTS}/jars/spark/*", f"{pod.ARTIFACTS}/jars/spark-s3/*"} <= set(conf[name].split(":"))


def test_the_folders_are_those_of_the_images() -> None:
    dockerfile = (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8")
    assert f"STACK_ARTIFACTS={pod.ARTIFACTS}" in dockerfile
    assert f"STACK_HOME={pod.CODE}" in dockerfile
    for environment, file in (("flink", "flink.yaml"), ("tools", "spark.yaml")):
        assert f"{pod.ARTIFACTS}/venv-{environment}" in dockerfile
        programs = re.findall(rf"{pod.CODE}/([\w/]+\.py)", (ROOT / "deploy" / file).read_text(encoding="utf-8"))
        assert programs
        assert all((ROOT / program).is_file() for program in programs)


PAGE = (ROOT / "docs" / "scaling_out.md").read_text(encoding="utf-8")


def test_the_page_has_the_settings_that_change_with_their_values() -> None:
    local = Settings(environ={}).values
    rows = re.findall(r"^\| `([A-Z_]+)` \| (.+?) \| (.+?) \|", PAGE, re.MULTILINE)
    shown = {name: (here.strip("`"), there.strip("`")) for name, here, there in rows}
    changed = {name for name, value in SETTINGS.values.items() if name in local and value != local[name]}
    assert changed <= shown.keys()
    words = {"KAFKA_REPLICATION": "the brokers", "KAFKA_MIN_INSYNC": "a majority", "DATA": "empty"}
    for name, (here, there) in shown.items():
        assert there == SETTINGS.text(name), name
        assert here == (words[name] if name in words else local[name]), name
    assert local["DATA"] == ""
    for brokers in range(1, 6):
        few = Settings(environ={"STACK_KAFKA_BROKERS": str(brokers)})
        assert (few.replicas, 2 * few.least_in_sync - brokers in (1, 2)) == (brokers, True)


_PLACES_AND_FIELDS = re.compile(
    r"[aA]ddress|listener|host|endpoint|region|ssl|[dD]ir$|dirs$|ivy|ClassPath|JavaOptions|app\.name|spark\.master$"
    r"|process\.roles|node\.id|controller|\.cores$|\.memory$|^parallelism|^num\.partitions|^high-availability"
)
"""Addresses, folders, flags of one machine, and what the page has under the names of `.env`."""


def test_the_page_has_every_setting_that_the_small_cluster_has_and_the_manifests_have_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "key"
    key.write_text("[default]\naws_access_key_id = of-nobody\naws_secret_access_key = of-nobody\n", encoding="utf-8")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(key))
    profile = {**read_env_file(ROOT / ".env.cluster"), "STORE_ENDPOINT": "http://127.0.0.1:1"}
    small = Settings(environ={}).changed(profile)
    query = replace(
        alone(small, small.query(), tmp_path), master=small.spark_master, checkpoint=spark_checkpoints(small) / "query"
    )
    lines = configuration(small, 1, tmp_path).splitlines()
    brokers = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    hadoop = written("spark.yaml")[0]["spec"]["hadoopConf"]
    sides: list[tuple[dict[str, str], dict[str, str]]] = [
        (
            session.configuration(query, small, tmp_path),
            {**spark.spark_options(SETTINGS), **{f"spark.hadoop.{name}": value for name, value in hadoop.items()}},
        ),
        (brokers, kafka.broker_settings(SETTINGS)),
        (
            {
                **job_configuration(small, EXACTLY_ONCE),
                **flink.cluster_options(small),
                **dict(line.split(": ", 1) for line in store_lines(small)),
            },
            flink.options(SETTINGS),
        ),
    ]
    differ = [name for here, there in sides for name in here if here[name] != there.get(name)]
    assert len(differ) > 20
    said = PAGE.partition("## What changes, and why")[2].partition("\n## ")[0]
    missing = [name.removeprefix("spark.hadoop.") for name in differ if not _PLACES_AND_FIELDS.search(name)]
    assert "broker.session.timeout.ms" in missing
    shown = re.findall(r"`([\w.*]+)`", said)
    others = (r"share.coordinator.state.topic.num.partitions", "transaction.state.log.num.partitions")
    assert [name for name in missing if name not in others and not any(fnmatch(name, each) for each in shown)] == []


def test_the_page_names_everything_that_is_not_checked() -> None:
    section = PAGE.partition("## What is unchecked")[2]
    parts = [part for make in MANIFESTS for each in make(SETTINGS).unchecked for part in each.part.split(", ")]
    assert parts
    require_none(part for part in parts if f"`{part}`" not in section)


def test_every_setting_of_a_pod_is_one_that_its_programs_have() -> None:
    in_code = "".join(
        text_of(name)
        for name in files()
        if name.endswith(".py") and name.startswith(("faultline/", "flink_job/", "spark_job/"))
    )
    names = {name for engine in ENGINES for name in of_pods(SETTINGS, engine)} - Settings(environ={}).values.keys()
    assert names
    # bind_host() puts the last ones together.
    require_none(name for name in names if f'"{name}"' not in in_code and not name.endswith("_BIND_HOST"))


def test_pods_have_no_setting_of_the_other_engine() -> None:
    assert not [name for name in of_pods(SETTINGS, "FLINK") if name.startswith("SPARK_")]
    assert not [name for name in of_pods(SETTINGS, "SPARK") if name.startswith("FLINK_")]
    assert of_pods(SETTINGS, "FLINK")["FLINK_PARALLELISM"] == SETTINGS.text("FLINK_PARALLELISM")
    assert of_pods(SETTINGS, "SPARK")["SPARK_MASTER"] == SETTINGS.text("SPARK_MASTER")


@functools.cache
def spark_schema() -> dict[str, Any]:
    return strict(SparkV1beta2SparkApplication.model_json_schema(by_alias=True))


def test_the_spark_application_fits_the_published_models() -> None:
    (application,) = written("spark.yaml")
    assert errors(spark_schema(), application) == []


@pytest.mark.parametrize(
    ("place", "misspelt"),
    [
        ((), "specs"),
        (("spec",), "sparkVersoin"),
        (("spec", "driver"), "memroy"),
        (("spec", "executor", "podSecurityContext"), "runAsRoot"),
        (("spec", "restartPolicy"), "onFailureRetryIntervall"),
        (("spec", "volumes", 0, "secret"), "name"),
    ],
)
def test_a_misspelt_key_is_found(place: tuple[str | int, ...], misspelt: str) -> None:
    (application,) = written("spark.yaml")
    with_key(application, place, misspelt)
    assert any(f"'{misspelt}'" in error for error in errors(spark_schema(), application))


def test_every_setting_of_spark_is_in_its_classes() -> None:
    names = {name for name in spark.spark_options(SETTINGS) if not name.startswith("spark.faultline.")}
    jars = sorted((Path(pyspark.__file__).parent / "jars").glob("spark-*.jar"))
    where = r"(?i)(internal/config/|config|conf|launcher/SparkLauncher|status|ui)[^/]*\.class$"
    assert names - names_in_classes(jars, names, where) == set()
    assert names_in_classes(jars, {"spark.ui.kilEnabled"}, where) == set()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["size", "--busy", "2"], "argument --busy: '2' is not a share between 0 and 1; --help lists the flags"),
        (["size", "--visits-per-second", "many"], "argument --visits-per-second: 'many' is not a number above 0"),
        (["wirte"], "argument COMMAND: invalid choice: 'wirte'"),
        ([], "the following arguments are required: COMMAND"),
    ],
)
def test_the_command_refuses_wrong_words_with_one_line(words: list[str], message: str) -> None:
    said = refused(main, *words)
    assert said.startswith(f"deploy: {message}")
    assert said.count("\n") == 1


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deploy.__main__.HERE", tmp_path / "gone")
    with pytest.raises(CommandError, match=f"^{tmp_path / 'gone' / 'kafka.yaml'}: No such file or directory$"):
        main(["write"])
