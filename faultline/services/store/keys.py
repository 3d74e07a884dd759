"""The key of the object store: made at its first start, in a file that only its owner may read.

Three files are in the store's folder. `credentials` has the key, in the form that S3 clients read; it is kept until the
folder is removed. Each start writes two files: `s3.json` tells SeaweedFS whose key this is, and `security.toml` has new
keys for its inner servers, which would answer everyone without a key.
"""

from __future__ import annotations

import configparser
import json
import secrets
from pathlib import Path

from faultline.files import replace_text
from faultline.settings import STORE_CREDENTIALS, SettingsError

USERS, INNER = "s3.json", "security.toml"
_SECTION, _ID, _SECRET = "default", "aws_access_key_id", "aws_secret_access_key"
_INNER = ("signing", "signing.read", "filer_signing", "filer_signing.read")


def write_keys(folder: Path) -> None:
    """Write the three files. Raises SettingsError when the key cannot be read, and OSError."""
    file = folder / STORE_CREDENTIALS
    if not file.exists():
        lines = (f"[{_SECTION}]", f"{_ID} = {secrets.token_hex(10)}", f"{_SECRET} = {secrets.token_hex(20)}")
        replace_text(file, "".join(f"{line}\n" for line in lines), private=True)
    key, secret = _read(file)
    user = {
        "name": "faultline",
        "credentials": [{"accessKey": key, "secretKey": secret}],
        # Buckets too.
        "actions": ["Admin"],
    }
    replace_text(folder / USERS, json.dumps({"identities": [user]}) + "\n", private=True)
    sections = [f'[jwt.{each}]\nkey = "{secrets.token_hex(16)}"\n' for each in _INNER]
    replace_text(folder / INNER, "".join(sections), private=True)


def _read(file: Path) -> tuple[str, str]:
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(file.read_text(encoding="utf-8"))
        return parser[_SECTION][_ID], parser[_SECTION][_SECRET]
    except (ValueError, KeyError, configparser.Error):
        raise SettingsError(
            f"{file} has no key ({_ID} and {_SECRET}); remove it, and the object store makes another at its next start"
        ) from None
