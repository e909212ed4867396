"""Verify who signed a lockfile: Sigstore bundles, offline, against roots that the host gives.

A bundle (sigstore.dev, "Sigstore bundle format") holds the signature, a certificate that lived for minutes, and the
proof that a transparency log recorded both. All of it is checked by the package ``sigstore``; no network is used.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from typing import Any

from skillruntime.catalog.file_opening import read_regular
from skillruntime.errors import InvalidSkillError, LockfileNotFoundError, ToolNotAvailableError

__all__ = ["SignedBy", "verify_signature"]

MAX_BUNDLE = 4 * 1024 * 1024
_IN_TOTO = "application/vnd.in-toto+json"
# A statement about a file can also say that it is bad: only "this builder made it" counts as a signature.
_PROVENANCE = "https://slsa.dev/provenance/"


@dataclass(frozen=True, slots=True)
class SignedBy:
    """Who must have signed a lockfile.

    *identity* is the e-mail address or the URI in the certificate, a workflow's for example, and *issuer* the URL of
    the identity provider that confirmed it. *trusted_root* is the path of a ``trusted_root.json``, or of a client trust
    configuration; nothing is downloaded. *bundle* is by default the lockfile's path and ``.sigstore.json``, as
    ``sigstore sign`` and ``cosign sign-blob --bundle`` name it.
    """

    identity: str
    issuer: str
    trusted_root: str | os.PathLike[str]
    bundle: str | os.PathLike[str] | None = None


def verify_signature(data: bytes, path: str, signed_by: SignedBy) -> None:
    """Check that *data*, the bytes of the file *path*, were signed as *signed_by* says.

    The bundle signs the bytes themselves, or is a build attestation (in-toto statement with a SLSA provenance) that
    names their SHA-256, as ``gh attestation`` downloads it.

    Raises:
        ToolNotAvailableError: the package ``sigstore`` is not installed.
        LockfileNotFoundError: there is no bundle, or no trusted root.
        InvalidSkillError: the signature is not valid for these bytes, this identity and these roots.
    """
    # An empty one would admit every certificate of the roots (sigstore.verify.policy.Identity takes None for "any").
    if not signed_by.identity or not signed_by.issuer:
        raise ValueError("SignedBy needs the identity that signed and the issuer that confirmed it")
    try:
        from sigstore.models import Bundle, ClientTrustConfig, TrustedRoot
        from sigstore.verify import Verifier, policy
    except ImportError as error:
        raise ToolNotAvailableError(
            f"The signature of {path!r} cannot be verified, because sigstore is not installed ({error})",
            suggested_action="pip install 'skillruntime[sigstore]'",
        ) from None
    bundle_path = os.fsdecode(signed_by.bundle) if signed_by.bundle is not None else f"{path}.sigstore.json"
    root_path = os.fsdecode(signed_by.trusted_root)
    bundle_text = _read(bundle_path, "Sigstore bundle", "Sign the lockfile: sigstore sign, or cosign sign-blob")
    root_text = _read(root_path, "trusted root", "Give the trusted_root.json of the Sigstore instance that signed it")
    try:
        document = json.loads(root_text)
        if "trustedRoot" in document:
            root = ClientTrustConfig.from_json(root_text.decode()).trusted_root
        else:
            root = TrustedRoot.from_file(root_path)
        verifier = Verifier(trusted_root=root)
    # Hostile JSON and certificates raise whatever their parsers raise; each means that nothing was verified.
    except Exception as error:
        raise _refused(path, f"{root_path!r} is not a trusted root ({_said(error)})") from None
    try:
        bundle = Bundle.from_json(bundle_text)
    except Exception as error:
        raise _refused(path, f"{bundle_path!r} is not a Sigstore bundle ({_said(error)})") from None
    expected = policy.Identity(identity=signed_by.identity, issuer=signed_by.issuer)
    try:
        if "dsseEnvelope" in json.loads(bundle_text):
            _require_subject(*verifier.verify_dsse(bundle, expected), data)
        else:
            verifier.verify_artifact(data, bundle, expected)
    except Exception as error:
        raise _refused(path, _said(error)) from None


def _require_subject(kind: str, payload: bytes, data: bytes) -> None:
    """Raise `ValueError` unless *payload* is an attestation that *data* were built."""
    statement: Any = json.loads(payload) if kind == _IN_TOTO else None
    if not isinstance(statement, dict) or not str(statement.get("predicateType")).startswith(_PROVENANCE):
        raise ValueError(f"its attestation is not a build provenance ({_PROVENANCE}...)")
    digest = hashlib.sha256(data).hexdigest()
    subjects = statement.get("subject")
    named = [each.get("digest") for each in subjects if isinstance(each, dict)] if isinstance(subjects, list) else []
    if not any(isinstance(each, dict) and each.get("sha256") == digest for each in named):
        raise ValueError("its attestation is about other bytes")


def _read(path: str, what: str, hint: str) -> bytes:
    try:
        return read_regular(path, MAX_BUNDLE)
    except FileNotFoundError:
        raise LockfileNotFoundError(f"There is no {what} {path!r}", suggested_action=hint) from None
    except (OSError, ValueError) as error:
        raise InvalidSkillError(f"The {what} {path!r} cannot be read: {error}") from None


def _refused(path: str, reason: str) -> InvalidSkillError:
    return InvalidSkillError(
        f"The signature of {path!r} is refused: {reason}",
        suggested_action="Do not use these skills until the signature is right, or the expected identity is corrected",
    )


def _said(error: Exception) -> str:
    """Return what *error* says, in one short line."""
    text = " ".join(str(error).split())
    return (text if len(text) <= 300 else text[:299] + "…") or type(error).__name__
