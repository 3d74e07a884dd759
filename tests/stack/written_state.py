"""Write savepoints of a Flink job whose classes (java/faultline/written) no reader has. Flink environment.

Usage: written_state.py FOLDER hashmap|rocksdb KEYS GROUPS

Prints three paths: a savepoint in canonical format, one in the format of the backend, and a checkpoint.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlparse

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from faultline.inspector.flink.jvm import FLAGS, class_path
from flink_job.java_classes import compile_sources

SOURCES = Path(__file__).parent / "java"


def main() -> None:
    """Compile the job by Flink's compiler into a folder of the class path, and run it."""
    folder, backend, keys, groups = Path(sys.argv[1]).resolve(), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    with tempfile.TemporaryDirectory() as scratch:
        classes, logging = Path(scratch) / "classes", Path(scratch) / "log4j2.properties"
        classes.mkdir()
        logging.write_text("rootLogger.level = off\n")
        options = [*FLAGS, f"-Djava.io.tmpdir={scratch}", f"-Dlog4j.configurationFile={logging}"]
        path = os.pathsep.join([class_path(None), str(classes)])
        port = launch_gateway(classpath=path, javaopts=options, die_on_exit=True)
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
        compile_sources(gateway, SOURCES, classes)
        for written in gateway.jvm.faultline.written.Writer.run(folder.as_uri(), backend, keys, groups):
            print(urlparse(written).path)
        gateway.shutdown()


if __name__ == "__main__":
    main()
