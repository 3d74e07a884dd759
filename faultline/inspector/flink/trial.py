"""One operator of a planned job, restored from a checkpoint by Flink itself, in a cluster inside this JVM.

The types of an operator's state are known only when it opens its state, so it is opened: with its state from the
checkpoint, behind a source that never gives a record, and with nothing behind it. As soon as it runs it is cancelled.
Only operators that reach out to nothing are opened (planned.py): a sink's committer, for one, commits what it restores.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError

from faultline.inspector.errors import InspectorError
from faultline.inspector.flink.jvm import java_cause
from faultline.inspector.flink.metadata import Entry
from faultline.inspector.flink.planned import PlannedOperator
from faultline.storage.location import Location
from faultline.waiting import attempts

LIMIT_SECONDS = 120.0
_POLL_SECONDS = 0.05
_OBJECT = re.compile(r"@[0-9a-f]{4,8}\b")
"""The suffix that Java adds to the name of a class to tell objects apart."""
_REFUSAL = "StateMigrationException"
"""The exception of a state backend when an operator asks for its state with a type that does not fit."""
_LEFT_OUT = ("execution.checkpointing.", "state.checkpoints.", "restart-strategy", "high-availability", "jobmanager.")
"""Options of the job that a trial must not have: it takes no checkpoints, and a failure is its answer."""


class Trial:
    """A cluster inside this JVM, and what a job on it needs: the jars and options of the planned job."""

    def __init__(self, jvm: Any, cluster: Any, empty: Path, graph: Any, configuration: Any) -> None:
        self._jvm, self._cluster, self._empty = jvm, cluster, empty
        self._graph, self._configuration = graph, configuration

    def refusal(self, planned: PlannedOperator, entry: Entry, checkpoint: Location, loader: Any) -> str | None:
        """Say why Flink does not restore the operator; None when it does.

        Raises InspectorError when neither is seen.
        """
        flink = self._jvm.org.apache.flink
        job = self._job(planned, entry, loader)
        claim = flink.core.execution.RecoveryClaimMode.NO_CLAIM
        # The other operators' state has no operator here.
        # As text: Flink's Path takes the %20 of a URI for a name.
        settings = flink.runtime.jobgraph.SavepointRestoreSettings.forPath(str(checkpoint.resolve()), True, claim)
        job.setSavepointRestoreSettings(settings)
        try:
            self._cluster.submitJob(job).get()
            return self._outcome(job.getJobID(), planned)
        except Py4JJavaError as error:
            raise InspectorError(f"{planned.label}: Flink could not try it: {java_cause(error)}") from None

    def _outcome(self, job_id: Any, planned: PlannedOperator) -> str | None:
        for _ in attempts(LIMIT_SECONDS, _POLL_SECONDS):
            graph = self._cluster.getExecutionGraph(job_id).get()
            if graph.getState().isGloballyTerminalState():
                return self._refusal(graph.getFailureInfo().getException(), planned)
            states = {vertex.getExecutionState().toString() for vertex in each_of(graph.getAllExecutionVertices())}
            if states == {"RUNNING"}:
                self._cluster.cancelJob(job_id).get()
                self._cluster.requestJobResult(job_id).get()
                return None
        self._cluster.cancelJob(job_id).get()
        raise InspectorError(f"{planned.label}: Flink did not restore it within {LIMIT_SECONDS:g} s, nor refuse to")

    @staticmethod
    def _refusal(exception: Any, planned: PlannedOperator) -> str:
        """Say what Flink says, innermost. Raises InspectorError unless it refused the types of the state."""
        refused = False
        while True:
            text = str(exception.getMessage() or exception.toString())
            # What comes from a task has the name of its class in its words alone (SerializedThrowable).
            refused = refused or _REFUSAL in f"{exception.toString()} {text}"
            if exception.getCause() is None:
                break
            exception = exception.getCause()
        words = _OBJECT.sub("", text.splitlines()[0]).rstrip(".")
        if refused:
            return f"its state cannot be opened: {words}"
        raise InspectorError(f"{planned.label}: it did not run in this process, whose memory is small: {words}")

    def _job(self, planned: PlannedOperator, entry: Entry, loader: Any) -> Any:
        flink = self._jvm.org.apache.flink
        options = flink.configuration.Configuration()
        for name, value in self._graph.getJobConfiguration().toMap().items():
            if not name.startswith(_LEFT_OUT):
                options.setString(name, value)
        options.setString("restart-strategy.type", "none")
        under_test = self._transformation(planned, entry)
        transformations = self._jvm.java.util.ArrayList()
        transformations.add(under_test)
        checkpoints = flink.streaming.api.environment.CheckpointConfig()
        generator = flink.streaming.api.graph.StreamGraphGenerator(
            transformations, self._graph.getExecutionConfig(), checkpoints, options
        )
        graph = generator.generate()
        self._copy(planned.node, graph.getStreamNode(under_test.getId()))
        graph.getStreamNode(under_test.getId()).setUserHash(entry.id)
        job = graph.getJobGraph(loader, flink.api.common.JobID())
        submitted = flink.client.cli.ExecutionConfigAccessor.fromConfiguration(self._configuration)
        job.addJars(submitted.getJars())
        job.setClasspaths(submitted.getClasspaths())
        return job

    def _transformation(self, planned: PlannedOperator, entry: Entry) -> Any:
        """Put the operator behind as many silent sources as it has inputs."""
        streaming = self._jvm.org.apache.flink.streaming.api.transformations
        text = self._jvm.org.apache.flink.api.common.typeinfo.Types.STRING
        parallelism = min(planned.parallelism, entry.max_parallelism)
        inputs = [self._silent_source(entry.max_parallelism) for _ in planned.node.getTypeSerializersIn()]
        factory = planned.node.getOperatorFactory()
        kinds = {1: streaming.OneInputTransformation, 2: streaming.TwoInputTransformation}
        if len(inputs) not in kinds:
            raise InspectorError(f"{planned.label}: an operator with {len(inputs)} inputs is not tried")
        built = kinds[len(inputs)](*inputs, planned.name, factory, text, parallelism)
        built.setMaxParallelism(entry.max_parallelism)
        return built

    def _silent_source(self, max_parallelism: int) -> Any:
        """Return a source that watches a folder in which no file ever appears."""
        flink, java = self._jvm.org.apache.flink, self._jvm.java
        paths = java.lang.reflect.Array.newInstance(java.lang.Class.forName("org.apache.flink.core.fs.Path"), 1)
        paths[0] = flink.core.fs.Path(self._empty.as_uri())
        lines = flink.connector.file.src.reader.TextLineInputFormat()
        source = flink.connector.file.src.FileSource.forRecordStreamFormat(lines, paths)
        source = source.monitorContinuously(java.time.Duration.ofHours(1)).build()
        text = flink.api.common.typeinfo.Types.STRING
        no_watermarks = flink.api.common.eventtime.WatermarkStrategy.noWatermarks()
        built = flink.streaming.api.transformations.SourceTransformation("silent", source, no_watermarks, text, 1)
        # Flink may run it in one task with the operator.
        built.setMaxParallelism(max_parallelism)
        return built

    @staticmethod
    def _copy(planned: Any, node: Any) -> None:
        """Give the operator what its transformation had: types, key, memory."""
        node.setSerializersIn(planned.getTypeSerializersIn())
        if planned.getTypeSerializerOut() is not None:
            node.setSerializerOut(planned.getTypeSerializerOut())
        if planned.getStateKeySerializer() is not None:
            node.setStatePartitioners(planned.getStatePartitioners())
            node.setStateKeySerializer(planned.getStateKeySerializer())
        node.setManagedMemoryUseCaseWeights(
            planned.getManagedMemoryOperatorScopeUseCaseWeights(), planned.getManagedMemorySlotScopeUseCases()
        )


def each_of(iterable: Any) -> Iterator[Any]:
    """Iterate over a Java Iterable that is no collection."""
    iterator = iterable.iterator()
    while iterator.hasNext():
        yield iterator.next()


@contextmanager
def trial_cluster(jvm: Any, scratch: Path, slots: int, graph: Any, configuration: Any) -> Iterator[Trial]:
    """Start a cluster in the JVM for a planned job, on a loopback address and free ports; it ends with the block."""
    flink = jvm.org.apache.flink
    empty = scratch / "no-records"
    empty.mkdir()
    options = flink.configuration.Configuration()
    for name, value in {
        "io.tmp.dirs": str(scratch),
        "rest.bind-address": "127.0.0.1",
        "taskmanager.memory.managed.size": "64m",
        "taskmanager.memory.network.min": "32m",
        "taskmanager.memory.network.max": "32m",
    }.items():
        options.setString(name, value)
    builder = getattr(flink.runtime.minicluster, "MiniClusterConfiguration$Builder")()
    builder = builder.setConfiguration(options).setNumTaskManagers(1).setNumSlotsPerTaskManager(slots)
    cluster = flink.runtime.minicluster.MiniCluster(builder.setCommonBindAddress("127.0.0.1").withRandomPorts().build())
    try:
        cluster.start()
        yield Trial(jvm, cluster, empty, graph, configuration)
    except Py4JJavaError as error:
        raise InspectorError(f"Flink's cluster inside this process did not start: {java_cause(error)}") from None
    finally:
        cluster.closeAsync()
