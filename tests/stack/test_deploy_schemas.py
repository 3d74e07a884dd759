"""The manifests against what the operators publish: definitions in a jar, and those that a generator writes."""

from __future__ import annotations

import re
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.flink import manifest as flink_manifest
from deploy.settings import cluster_settings
from faultline.packages.jars import LOCKS, fetch
from faultline.settings import artifacts
from tests.manifests import errors, names_in_classes, of_definition, with_key, written

pytestmark = [pytest.mark.ci, pytest.mark.timeout(300)]

KINDS = {"Kafka": "kafka.Kafka", "KafkaNodePool": "nodepool.KafkaNodePool", "KafkaTopic": "topic.KafkaTopic"}
"""Of Strimzi, with their classes below io.strimzi.api.kafka.model."""


@pytest.fixture(scope="module")
def jars() -> Path:
    """The folder of the jars of docker/requirements/schemas.jars; fetched once."""
    folder = artifacts() / "jars" / "schemas"
    fetch("schemas", folder, LOCKS / "schemas.jars")
    return folder


def jar(folder: Path, name: str) -> Path:
    (found,) = folder.glob(f"{name}-[0-9]*.jar")
    return found


@pytest.fixture(scope="module")
def flink_definition(jars: Path) -> dict[str, Any]:
    """The definition of FlinkDeployment, out of the operator's jar."""
    with zipfile.ZipFile(jar(jars, "flink-kubernetes-operator-api")) as archive:
        text = archive.read("META-INF/fabric8/flinkdeployments.flink.apache.org-v1.yml")
    definition = yaml.safe_load(text)
    assert definition["spec"]["names"]["kind"] == "FlinkDeployment"
    return dict(definition)


@pytest.fixture(scope="module")
def strimzi_definitions(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The definitions by kind, as Strimzi's generator writes them from its annotated classes."""
    folder = tmp_path_factory.mktemp("definitions")
    classes = [f"io.strimzi.api.kafka.model.{name}={folder / kind}.yaml" for kind, name in KINDS.items()]
    path = f"{jar(jars, 'crd-generator')}:{jar(jars, 'api')}"
    command = ["java", "-cp", path, "io.strimzi.crdgenerator.CrdGenerator", "--yaml", *classes]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {kind: yaml.safe_load((folder / f"{kind}.yaml").read_text(encoding="utf-8")) for kind in KINDS}


def test_the_flink_deployment_fits_but_for_what_is_marked(flink_definition: dict[str, Any]) -> None:
    (deployment,) = written("flink.yaml")
    group, version = deployment["apiVersion"].split("/")
    assert group == flink_definition["spec"]["group"]
    found = errors(of_definition(flink_definition, version), deployment)
    # When a newer definition knows the version, this mark is to be removed.
    assert [error.partition(":")[0] for error in found] == ["spec.flinkVersion"]
    assert "spec.flinkVersion" in [each.part for each in flink_manifest(cluster_settings()).unchecked]


@pytest.mark.parametrize(
    ("place", "misspelt"),
    [
        (("spec",), "taskManagers"),
        (("spec", "job"), "upgradMode"),
        (("spec", "jobManager"), "replica"),
        (("spec", "podTemplate", "spec"), "volume"),
        (("spec", "podTemplate", "spec", "containers", 0), "envs"),
        (("spec", "podTemplate", "spec", "volumes", 0, "secret"), "name"),
    ],
)
def test_a_misspelt_key_of_the_flink_deployment_is_found(
    flink_definition: dict[str, Any], place: tuple[str | int, ...], misspelt: str
) -> None:
    (deployment,) = written("flink.yaml")
    with_key(deployment, place, misspelt)
    assert any(f"'{misspelt}'" in error for error in errors(of_definition(flink_definition, "v1beta1"), deployment))


def test_a_wrong_value_of_the_flink_deployment_is_found(flink_definition: dict[str, Any]) -> None:
    (deployment,) = written("flink.yaml")
    deployment["spec"]["job"]["upgradeMode"] = "newest"
    found = errors(of_definition(flink_definition, "v1beta1"), deployment)
    assert any(error.startswith("spec.job.upgradeMode: 'newest' is not one of") for error in found)


def test_kafkas_objects_fit(strimzi_definitions: dict[str, dict[str, Any]]) -> None:
    objects = written("kafka.yaml")
    assert {each["kind"] for each in objects} == strimzi_definitions.keys()
    for each in objects:
        definition = strimzi_definitions[each["kind"]]
        assert each["apiVersion"].partition("/")[0] == definition["spec"]["group"]
        assert errors(of_definition(definition, "v1beta2"), each) == [], each["metadata"]["name"]


@pytest.mark.parametrize(
    ("kind", "place", "misspelt"),
    [
        ("Kafka", ("spec", "kafka", "listeners", 0), "prot"),
        ("Kafka", ("spec", "entityOperator"), "topicsOperator"),
        ("KafkaNodePool", ("spec",), "replica"),
        ("KafkaNodePool", ("spec", "storage", "volumes", 0), "deleteClaims"),
        ("KafkaNodePool", ("spec", "template", "pod"), "affinities"),
        ("KafkaTopic", ("spec",), "partition"),
    ],
)
def test_a_misspelt_key_of_a_kafka_object_is_found(
    strimzi_definitions: dict[str, dict[str, Any]], kind: str, place: tuple[str | int, ...], misspelt: str
) -> None:
    thing = next(each for each in written("kafka.yaml") if each["kind"] == kind)
    with_key(thing, place, misspelt)
    found = errors(of_definition(strimzi_definitions[kind], "v1beta2"), thing)
    assert any(f"'{misspelt}'" in error for error in found)


def test_no_broker_setting_is_one_that_strimzi_refuses(strimzi_definitions: dict[str, dict[str, Any]]) -> None:
    (version,) = (each for each in strimzi_definitions["Kafka"]["spec"]["versions"] if each["name"] == "v1beta2")
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    words = spec["kafka"]["properties"]["config"]["description"]
    refused = re.search(r"prefixes cannot be set: (.*?)(?: \(with the exception of: (.*?)\))?\.?$", words)
    assert refused, words
    prefixes, allowed = (tuple(re.split(r",\s*", part)) if part else () for part in refused.groups())
    assert "listeners" in prefixes
    chosen = written("kafka.yaml")[0]["spec"]["kafka"]["config"]
    assert [name for name in chosen if name.startswith(prefixes) and name not in allowed] == []


def test_every_option_of_flink_is_in_its_classes() -> None:
    options = written("flink.yaml")[0]["spec"]["flinkConfiguration"]
    names = {name for name in options if not name.startswith("s3.")}
    library = sorted(artifacts().glob("venv-flink/lib/python3*/site-packages/pyflink/lib/flink-*.jar"))
    assert library
    assert names - names_in_classes(library, names, r"Option[^/]*\.class$") == set()
    assert names_in_classes(library, {"execution.checkpointing.intervall"}, r"Option[^/]*\.class$") == set()


def test_every_setting_of_kafka_is_in_its_classes() -> None:
    objects = written("kafka.yaml")
    names = set(objects[0]["spec"]["kafka"]["config"])
    topics = {name for each in objects if each["kind"] == "KafkaTopic" for name in each["spec"]["config"]}
    library = sorted((artifacts() / "jars" / "kafka").glob("kafka*.jar"))
    assert library
    known = names_in_classes(library, names, r"Config[^/]*\.class$")
    # The broker's default of a topic's setting has `log.` before its name; Kafka puts the two together.
    topics |= {name.removeprefix("log.") for name in names - known if name.startswith("log.")}
    assert topics - names_in_classes(library, topics, r"/TopicConfig\.class$") == set()
    assert {name for name in names - known if not name.startswith("log.")} == set()
    assert names_in_classes(library, {"retention.mss"}, r"/TopicConfig\.class$") == set()
