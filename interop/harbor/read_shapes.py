"""Reads documents, hosts and task folders, as JSON on standard input, with Harbor's own models, and prints what they say of each."""

import json
import sys
import warnings
from ipaddress import ip_address, ip_network
from pathlib import Path

from harbor.models.task.config import TaskConfig, normalize_allowed_hosts
from harbor.models.task.task import Task
from harbor.models.task.verifier_mode import VerifierEnvironmentDefinition, resolve_verifier_environment_definition
from harbor.publisher.packager import Packager
from scantree import SymlinkRecursionError

warnings.simplefilter("ignore")


def document(source: str) -> dict | None:
    try:
        return TaskConfig.model_validate_toml(source).model_dump(mode="json")
    except (ValueError, OverflowError):
        return None


def host(entry: str) -> str | None:
    try:
        return normalize_allowed_hosts([entry])[0]
    except ValueError:
        return None


def is_within(entry: str, address: str) -> bool:
    return ip_address(address) in ip_network(entry)


def checksum(task: Task) -> str | None:
    try:
        return task.checksum
    except SymlinkRecursionError:
        # It is an error there also if the link is left out.
        return None


def verifier(definition: VerifierEnvironmentDefinition) -> dict:
    image = definition.config.docker_image
    return {"folder": None if image else definition.directory.name, "image": image, "hasTests": definition.bundled_tests}


def folder(path: str) -> dict | None:
    try:
        task = Task(path)
    except (OSError, ValueError, RuntimeError):
        return None
    steps = task.config.steps or [None]
    definitions = [resolve_verifier_environment_definition(task.config, task.paths, step) for step in steps]
    return {
        "checksum": checksum(task),
        "digest": Packager.compute_content_hash(Path(path))[0],
        "verifiers": [one and verifier(one) for one in definitions],
    }


given = json.load(sys.stdin)
print(
    json.dumps(
        {
            "documents": [document(source) for source in given["documents"]],
            "hosts": [host(entry) for entry in given["hosts"]],
            "within": [is_within(*pair) for pair in given["within"]],
            "folders": [folder(path) for path in given["folders"]],
        }
    )
)
