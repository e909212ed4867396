"""The form of a contract document, as `contract.json` holds it: which members it has, and of which types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skillruntime.contract.coercion.policy import policy_named

__all__ = ["document_faults"]

# As JSON names them: an author of a contract.json need not know Python.
_NAMES: dict[type, str] = {str: "a string", dict: "an object", list: "an array"}


def document_faults(document: Mapping[str, Any]) -> list[str]:
    """Return all that is wrong with the form of the contract *document*, in sentences; its schemas are not looked at.

    >>> document_faults({"name": "weather", "run": []})
    ['run is not an object']
    """
    shapes = {
        "name": str,
        "title": str,
        "description": str,
        "version": str,
        "requires": dict,
        "run": dict,
        "annotations": dict,
        "migrations": list,
        "definitions": dict,
        "$defs": dict,
        "$schema": str,
    }
    faults = [
        f"{key} is not {_NAMES[shape]}"
        for key, shape in shapes.items()
        if key in document and not isinstance(document[key], shape)
    ]
    # The commonest mistake in a contract file: the input schema alone.
    if "input" not in document and "properties" in document:
        faults.append("this is a plain JSON Schema; a contract holds it under 'input'")
    if isinstance(document.get("version"), str):
        from skillruntime.contract.versions import Version

        try:
            Version.parse(document["version"])
        except ValueError as error:
            faults.append(f"version: {error}")
    run = document.get("run")
    if isinstance(run, dict):
        seconds = run.get("timeout_seconds")
        if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0):
            faults.append(f"run.timeout_seconds is {seconds!r}, not a number of seconds above 0")
        if "script" in run and not isinstance(run["script"], str):
            faults.append("run.script is not the path of a script")
    try:
        policy_named(document.get("policy", "safe"))
    except (TypeError, ValueError) as error:
        faults.append(str(error))
    return faults
