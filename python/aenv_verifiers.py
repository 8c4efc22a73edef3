"""The plugin `aenv-verifiers` of verifiers, which finds plugins by the name of a top-level module."""

from aenv_client.verifiers import AEnvHarness, AEnvTaskset

__all__ = ["AEnvHarness", "AEnvTaskset"]
