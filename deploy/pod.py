"""Parts that the pods of both engines have in common: image, settings, user, and the key of the object store."""

from __future__ import annotations

from deploy.manifest import Object
from deploy.settings import of_pods
from faultline.settings import Settings, as_environment

CODE = "/faultline"
"""The project's folder in the images."""
ARTIFACTS = "/opt/faultline"
"""The folder of environments and jars in the images."""
_VOLUME = "store"
_FOLDER = "/etc/faultline/store"
_CREDENTIALS = f"{_FOLDER}/credentials"
_USER = 1000
"""The user of the images."""


def image(settings: Settings, name: str) -> str:
    """The image that docs/scaling_out.md builds for an engine."""
    return f"{settings.text('REGISTRY')}/faultline-{name}:{settings.text('IMAGE_TAG')}"


def environment(settings: Settings, engine: str) -> list[Object]:
    """Variables of a container: settings, and where the object store's key is; never the key itself."""
    variables = as_environment(of_pods(settings, engine)) | {
        # Each client of the store looks for the file by its own name: Flink's first, Spark's and Arrow's second.
        "AWS_CREDENTIAL_PROFILES_FILE": _CREDENTIALS,
        "AWS_SHARED_CREDENTIALS_FILE": _CREDENTIALS,
        "AWS_REGION": settings.text("STORE_REGION"),
        # No search for a key at a cloud's own address.
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    return [{"name": name, "value": value} for name, value in sorted(variables.items())]


def volumes(settings: Settings) -> list[Object]:
    """The Secret as a volume that only the images' user and its group can read."""
    return [{"name": _VOLUME, "secret": {"secretName": settings.text("STORE_SECRET"), "defaultMode": 0o440}}]


def mounts() -> list[Object]:
    """Return the mount of the Secret's volume in a container."""
    return [{"name": _VOLUME, "mountPath": _FOLDER, "readOnly": True}]


def user() -> Object:
    """The images' user, never root."""
    return {"runAsNonRoot": True, "runAsUser": _USER, "runAsGroup": _USER, "fsGroup": _USER}
