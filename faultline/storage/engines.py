"""Settings of the engines' own clients for an object store: its address, and the name of the file with the key.

A key itself is never a setting: engines show their settings, and pass them on with a job.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from faultline.settings import store_jars
from faultline.storage.location import Location
from faultline.storage.objects import ObjectLocation, ObjectStore


def flink_s3_options(endpoint: str) -> dict[str, str]:
    """Options with which Flink's file system for `s3://` finds a store, on every machine."""
    return {
        "s3.endpoint": endpoint,
        # The bucket is a part of the path and not of the host's name.
        "s3.path.style.access": "true",
    }


def flink_options(store: ObjectStore | None) -> dict[str, str]:
    """Options of Flink's file system for `s3://`; none without a store."""
    return {} if store is None else flink_s3_options(store.endpoint)


def flink_name(address: str) -> str:
    """The path of a location on a disk that Flink names by an address, `file:/x`; other addresses as they are."""
    parts = urlsplit(address)
    return parts.path if parts.scheme == "file" else address


def flink_environment(store: ObjectStore | None) -> dict[str, str]:
    """Variables of a JVM with Flink's file system for `s3://`, whose client is version 1 of Amazon's."""
    if store is None:
        return {}
    return {
        "AWS_CREDENTIAL_PROFILES_FILE": str(store.credentials),
        "AWS_REGION": store.region,
        # Without a key in the file it would ask an address that only machines of Amazon have.
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def spark_name(location: Location) -> str:
    """The name under which Spark reads and writes a location: a path, or a URI of Hadoop's file system `s3a://`."""
    return f"s3a://{location.bucket}/{location.key}" if isinstance(location, ObjectLocation) else str(location)


def s3a_options(endpoint: str, region: str) -> dict[str, str]:
    """Options with which Hadoop's file system `s3a://` finds a store and its key, on every machine."""
    options = {
        "endpoint": endpoint,
        # Signatures need one; without it the client would search.
        "endpoint.region": region,
        # The bucket is a part of the path and not of the host's name.
        "path.style.access": "true",
        "connection.ssl.enabled": str(endpoint.startswith("https:")).lower(),
        # The key is in a file named in the environment, never in a setting: command lines and Spark's page show those.
        "aws.credentials.provider": "software.amazon.awssdk.auth.credentials.ProfileCredentialsProvider",
    }
    return {f"fs.s3a.{name}": value for name, value in options.items()}


def spark_options(store: ObjectStore | None, scratch: Path) -> dict[str, str]:
    """Spark's options of Hadoop's file system `s3a://`, which keeps blocks in `scratch` until they are sent."""
    if store is None:
        return {}
    options = {
        **s3a_options(store.endpoint, store.region),
        # The least part of an upload, and few threads: one driver writes a file at a time.
        "fs.s3a.multipart.size": "5M",
        "fs.s3a.multipart.threshold": "5M",
        "fs.s3a.threads.max": "8",
        "fs.s3a.connection.maximum": "32",
        "fs.s3a.buffer.dir": str(scratch),
    }
    return {f"spark.hadoop.{name}": value for name, value in options.items()}


def spark_environment(store: ObjectStore | None) -> dict[str, str]:
    """Variables of a JVM with Hadoop's file system `s3a://`, whose client is version 2 of Amazon's."""
    if store is None:
        return {}
    return {
        # Spark's start script puts them behind its own: a class archive takes no other jars before those it has.
        "SPARK_DIST_CLASSPATH": str(store_jars("spark") / "*"),
        "AWS_SHARED_CREDENTIALS_FILE": str(store.credentials),
        "AWS_REGION": store.region,
        # Without a key in the file it would ask an address that only machines of Amazon have.
        "AWS_EC2_METADATA_DISABLED": "true",
    }
