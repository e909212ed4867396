"""Signed lockfiles: Sigstore bundles, verified offline against the roots of a private instance."""

from __future__ import annotations

import copy
import hashlib
import json
import sys
from base64 import b64decode, b64encode
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skillruntime.catalog import SignedBy, discover, lock_for_npx, verify_signature
from skillruntime.errors import InvalidSkillError, LockfileNotFoundError, ToolNotAvailableError
from tests.catalog.conftest import WriteSkill

pytest.importorskip("sigstore", reason="pip install 'skillruntime[sigstore]'")

from tests.catalog.private_sigstore import IDENTITY, ISSUER, PrivateSigstore


@pytest.fixture(scope="module")
def sigstore() -> PrivateSigstore:
    return PrivateSigstore()


@pytest.fixture
def lockfile(tmp_path: Path, write_skill: WriteSkill, sigstore: PrivateSigstore) -> Path:
    """Return a lockfile with its signature, and the trusted root, beside a skill."""
    write_skill("pdf")
    path = tmp_path / "skills-lock.json"
    path.write_text(json.dumps(lock_for_npx(discover(tmp_path / "skills", use_index=False))))
    write(path, sigstore.sign(path.read_bytes()))
    (tmp_path / "trusted_root.json").write_text(json.dumps(sigstore.trusted_root()))
    return path


@pytest.fixture
def signed_by(lockfile: Path) -> SignedBy:
    return SignedBy(IDENTITY, ISSUER, lockfile.with_name("trusted_root.json"))


def write(lockfile: Path, bundle: object) -> None:
    lockfile.with_name("skills-lock.json.sigstore.json").write_text(json.dumps(bundle))


def refusal(lockfile: Path, signed_by: SignedBy) -> str:
    """Return why the signature is refused, without the beginning that every refusal has."""
    with pytest.raises(InvalidSkillError) as refused:
        verify_signature(lockfile.read_bytes(), str(lockfile), signed_by)
    text = str(refused.value)
    assert text.startswith(f"The signature of {str(lockfile)!r} is refused: ")
    return text.partition("refused: ")[2]


def test_a_signed_lockfile_freezes_a_catalog(lockfile: Path, signed_by: SignedBy) -> None:
    """The skills that it pins are offered, at a first start and at one with known stamps."""
    for _ in range(2):
        assert list(discover(lockfile.parent / "skills", frozen=lockfile, signed_by=signed_by)) == ["pdf"]


def test_a_changed_byte_of_the_lockfile_is_refused(lockfile: Path, signed_by: SignedBy) -> None:
    """Even one that changes nothing in its meaning."""
    lockfile.write_text(lockfile.read_text() + "\n")

    assert refusal(lockfile, signed_by) == "Bundle message digest mismatch"
    with pytest.raises(InvalidSkillError, match="signature"):
        discover(lockfile.parent / "skills", frozen=lockfile, signed_by=signed_by)


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("identity", "mallory@example.org", "Certificate's SANs do not match mallory@example.org"),
        ("identity", IDENTITY[:-1], "Certificate's SANs do not match"),
        ("issuer", "https://other.example", "Certificate's OIDCIssuer does not match"),
    ],
)
def test_another_identity_or_issuer_is_refused(
    lockfile: Path, signed_by: SignedBy, field: str, value: str, reason: str
) -> None:
    """Whole texts are compared, not beginnings; the message has both."""
    assert refusal(lockfile, replace(signed_by, **{field: value})).startswith(reason)


def test_another_instance_is_not_trusted(lockfile: Path, signed_by: SignedBy) -> None:
    """Its certificates, its certificate log and its transparency log, each alone."""
    own, other = json.loads(lockfile.with_name("trusted_root.json").read_text()), PrivateSigstore().trusted_root()
    reasons = []
    for part in ("certificateAuthorities", "ctlogs", "tlogs"):
        lockfile.with_name("trusted_root.json").write_text(json.dumps(own | {part: other[part]}))
        reasons.append(refusal(lockfile, signed_by))

    assert reasons[0].startswith("failed to build timestamp certificate chain")
    assert reasons[1].startswith("failed to verify SCT on signing certificate")
    assert reasons[2].startswith("invalid log entry: ")


def test_what_is_missing_is_named(lockfile: Path, signed_by: SignedBy) -> None:
    """The bundle, and the root."""
    with pytest.raises(LockfileNotFoundError, match=r"no trusted root '/no/such/root\.json'"):
        verify_signature(b"", str(lockfile), replace(signed_by, trusted_root="/no/such/root.json"))
    with pytest.raises(LockfileNotFoundError, match=r"no Sigstore bundle '.*skills-lock\.json\.sigstore\.json'"):
        lockfile.with_name("skills-lock.json.sigstore.json").unlink()
        verify_signature(b"", str(lockfile), signed_by)


def test_every_field_of_a_bundle_is_protected(lockfile: Path, signed_by: SignedBy) -> None:
    """One byte changed in any signature, key, proof, body or time is refused, and never another exception."""
    whole = json.loads(lockfile.with_name("skills-lock.json.sigstore.json").read_text())
    checked = 0
    for path, value in leaves(whole):
        # Whose index the proof's own is; the media type only names the edition of the format.
        if path[-1] == "mediaType":
            continue
        bundle = copy.deepcopy(whole)
        place = bundle
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = changed(value)
        write(lockfile, bundle)
        assert refusal(lockfile, signed_by), path
        checked += 1
    assert checked >= 14


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[tuple[Any, ...], str]]:
    """Return every text in a JSON value, with its path."""
    if isinstance(value, str):
        return [(path, value)]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [leaf for key, each in items for leaf in leaves(each, (*path, key))]


def changed(text: str) -> str:
    """Return *text* with another number, another word, or another byte in its middle."""
    if text.isdigit():
        return str(int(text) + 1)
    try:
        data = bytearray(b64decode(text, validate=True))
    except ValueError:
        return text.replace("2\n", "3\n", 1) if "\n" in text else f"{text}x"
    data[len(data) // 2] ^= 1
    return b64encode(data).decode()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "null", "3", '"x"', "[" * 100_000, '{"mediaType": 3}', '{"dsseEnvelope": {}}', "\ud800"]
)
@pytest.mark.parametrize("name", ["skills-lock.json.sigstore.json", "trusted_root.json"])
def test_damaged_bundles_and_roots_are_refused(lockfile: Path, signed_by: SignedBy, name: str, text: str) -> None:
    """With the path of the file; never another exception."""
    lockfile.with_name(name).write_bytes(text.encode("utf-8", "surrogatepass"))

    assert name in refusal(lockfile, signed_by)


def statement(data: bytes, **changes: object) -> dict[str, object]:
    digest = hashlib.sha256(data).hexdigest()
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "skills-lock.json", "digest": {"sha256": digest}}],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {},
        **changes,
    }


def test_a_build_attestation_is_a_signature(lockfile: Path, signed_by: SignedBy, sigstore: PrivateSigstore) -> None:
    """As `gh attestation` downloads it; about these bytes only, and of no other kind."""
    data = lockfile.read_bytes()
    write(lockfile, sigstore.attest(statement(data)))
    verify_signature(data, str(lockfile), signed_by)

    write(lockfile, sigstore.attest(statement(b"other")))
    assert refusal(lockfile, signed_by) == "its attestation is about other bytes"
    for subject in ([], None, [3], [{"digest": 3}], [{"digest": {"sha512": "x"}}]):
        write(lockfile, sigstore.attest(statement(data, subject=subject)))
        assert refusal(lockfile, signed_by) == "its attestation is about other bytes"
    write(lockfile, sigstore.attest(statement(data, predicateType="https://cosign.sigstore.dev/attestation/vuln/v1")))
    assert refusal(lockfile, signed_by).startswith("its attestation is not a build provenance")
    write(lockfile, sigstore.attest(statement(data), kind="text/plain"))
    assert refusal(lockfile, signed_by).startswith("its attestation is not a build provenance")


def test_without_sigstore_the_error_has_the_command(
    lockfile: Path, signed_by: SignedBy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is an optional dependency."""
    monkeypatch.setitem(sys.modules, "sigstore.models", None)

    with pytest.raises(ToolNotAvailableError) as refused:
        discover(lockfile.parent / "skills", frozen=lockfile, signed_by=signed_by)
    assert refused.value.suggested_action == "pip install 'skillruntime[sigstore]'"


def test_an_expected_identity_cannot_be_left_out(lockfile: Path, signed_by: SignedBy) -> None:
    """An empty one would accept everyone, and a signature without a lockfile nothing."""
    for empty in (replace(signed_by, identity=""), replace(signed_by, issuer="")):
        with pytest.raises(ValueError, match="needs the identity"):
            verify_signature(lockfile.read_bytes(), str(lockfile), empty)
    with pytest.raises(ValueError, match="pass its path as frozen"):
        discover(lockfile.parent / "skills", signed_by=signed_by)
