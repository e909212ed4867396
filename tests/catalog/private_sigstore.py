"""A Sigstore of our own, for tests: a certificate authority, a certificate log and a transparency log, in memory.

The formats are the published ones: RFC 6962 (signed certificate timestamps, Merkle trees), Fulcio's certificate
profile, Rekor's hashedrekord and dsse entries with their checkpoint (C2SP tlog-checkpoint) and signed entry timestamp,
and the bundle 0.3 and trusted root 0.1 of sigstore/protobuf-specs. The keys are new in each run.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

IDENTITY, ISSUER = "https://example.org/skills/.github/workflows/release.yml@refs/heads/main", "https://issuer.example"
SIGNED_AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
_ISSUER_OID = ObjectIdentifier("1.3.6.1.4.1.57264.1.1")
_SCT_OID = ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")
_SHA256 = ec.ECDSA(hashes.SHA256())


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@dataclass(frozen=True, slots=True)
class PrivateSigstore:
    """One instance; two of them do not trust each other."""

    authority: ec.EllipticCurvePrivateKey = field(default_factory=_new_key)
    certificate_log: ec.EllipticCurvePrivateKey = field(default_factory=_new_key)
    log: ec.EllipticCurvePrivateKey = field(default_factory=_new_key)

    def trusted_root(self) -> dict[str, Any]:
        """Return the content of ``trusted_root.json``."""
        since = {"start": "2026-01-01T00:00:00Z"}
        return {
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [_log(self.log, "https://rekor.example", since)],
            "certificateAuthorities": [
                {
                    "subject": {"organization": "example", "commonName": "authority"},
                    "uri": "https://fulcio.example",
                    "certChain": {"certificates": [{"rawBytes": _base64(_der(self._root_certificate()))}]},
                    "validFor": since,
                }
            ],
            "ctlogs": [_log(self.certificate_log, "https://ctfe.example", since)],
        }

    def sign(self, data: bytes, *, identity: str = IDENTITY, issuer: str = ISSUER) -> dict[str, Any]:
        """Return a bundle over *data*, as ``sigstore sign`` writes it."""
        key = _new_key()
        certificate = self._certificate(key, identity, issuer)
        signature = key.sign(data, _SHA256)
        digest = hashlib.sha256(data).digest()
        spec = {
            "data": {"hash": {"algorithm": "sha256", "value": digest.hex()}},
            "signature": {"content": _base64(signature), "publicKey": {"content": _base64(_pem(certificate))}},
        }
        message = {
            "messageDigest": {"algorithm": "SHA2_256", "digest": _base64(digest)},
            "signature": _base64(signature),
        }
        return self._bundle(certificate, "hashedrekord", spec) | {"messageSignature": message}

    def attest(self, statement: object, *, kind: str = "application/vnd.in-toto+json") -> dict[str, Any]:
        """Return a bundle with an in-toto statement in a DSSE envelope, as ``gh attestation download`` writes it."""
        key = _new_key()
        certificate = self._certificate(key, IDENTITY, ISSUER)
        payload = json.dumps(statement).encode()
        # DSSE, protocol.md: the pre-authentication encoding is what is signed.
        signature = key.sign(b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload), _SHA256)
        envelope = {
            "payload": _base64(payload),
            "payloadType": kind,
            "signatures": [{"sig": _base64(signature), "keyid": ""}],
        }
        own_hash = hashlib.sha256(json.dumps(envelope).encode()).hexdigest()
        spec = {
            "envelopeHash": {"algorithm": "sha256", "value": own_hash},
            "payloadHash": {"algorithm": "sha256", "value": hashlib.sha256(payload).hexdigest()},
            "signatures": [{"signature": _base64(signature), "verifier": _base64(_pem(certificate))}],
        }
        return self._bundle(certificate, "dsse", spec) | {"dsseEnvelope": envelope}

    def _root_certificate(self) -> x509.Certificate:
        key = self.authority.public_key()
        return (
            _builder("authority", timedelta(days=3650), SIGNED_AT - timedelta(days=30), number=1)
            .public_key(key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .sign(self.authority, hashes.SHA256())
        )

    def _certificate(self, key: ec.EllipticCurvePrivateKey, identity: str, issuer: str) -> x509.Certificate:
        authority = self.authority.public_key()
        builder = (
            _builder("", timedelta(minutes=10), SIGNED_AT - timedelta(minutes=5), number=2)
            .public_key(key.public_key())
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority), critical=False)
            .add_extension(x509.SubjectAlternativeName([x509.UniformResourceIdentifier(identity)]), critical=True)
            .add_extension(x509.UnrecognizedExtension(_ISSUER_OID, issuer.encode()), critical=False)
        )
        # RFC 6962, 3.2: what the log signs is the certificate as it is without the timestamp.
        before = builder.sign(self.authority, hashes.SHA256()).tbs_certificate_bytes
        timestamp = int(SIGNED_AT.timestamp() * 1000)
        entry = hashlib.sha256(_spki(authority)).digest() + len(before).to_bytes(3, "big") + before
        signature = self.certificate_log.sign(struct.pack("!BBQH", 0, 0, timestamp, 1) + entry + b"\0\0", _SHA256)
        log_id = hashlib.sha256(_spki(self.certificate_log.public_key())).digest()
        sct = struct.pack("!B32sQHBBH", 0, log_id, timestamp, 0, 4, 3, len(signature)) + signature
        listed = struct.pack("!HH", len(sct) + 2, len(sct)) + sct
        octets = b"\x04" + (bytes([len(listed)]) if len(listed) < 128 else b"\x81" + bytes([len(listed)])) + listed
        return builder.add_extension(x509.UnrecognizedExtension(_SCT_OID, octets), critical=False).sign(
            self.authority, hashes.SHA256()
        )

    def _bundle(self, certificate: x509.Certificate, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
        body = _canonical({"apiVersion": "0.0.1", "kind": kind, "spec": spec})
        leaf, sibling = hashlib.sha256(b"\0" + body).digest(), hashlib.sha256(b"\0another entry").digest()
        root = hashlib.sha256(b"\1" + sibling + leaf).digest()
        log_id = hashlib.sha256(_spki(self.log.public_key())).digest()
        note = f"rekor.example - 1\n2\n{_base64(root)}\n"
        checkpoint = f"{note}\n— rekor.example {_base64(log_id[:4] + self.log.sign(note.encode(), _SHA256))}\n"
        seconds = int(SIGNED_AT.timestamp())
        promised = {"body": _base64(body), "integratedTime": seconds, "logID": log_id.hex(), "logIndex": 1}
        entry = {
            "logIndex": "1",
            "logId": {"keyId": _base64(log_id)},
            "kindVersion": {"kind": kind, "version": "0.0.1"},
            "integratedTime": str(seconds),
            "inclusionPromise": {"signedEntryTimestamp": _base64(self.log.sign(_canonical(promised), _SHA256))},
            "inclusionProof": {
                "logIndex": "1",
                "rootHash": _base64(root),
                "treeSize": "2",
                "hashes": [_base64(sibling)],
                "checkpoint": {"envelope": checkpoint},
            },
            "canonicalizedBody": _base64(body),
        }
        material = {"certificate": {"rawBytes": _base64(_der(certificate))}, "tlogEntries": [entry]}
        return {"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json", "verificationMaterial": material}


def _builder(subject: str, lasts: timedelta, start: datetime, *, number: int) -> x509.CertificateBuilder:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)] if subject else [])
    builder = x509.CertificateBuilder().serial_number(number).subject_name(name)
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])
    return builder.issuer_name(issuer).not_valid_before(start).not_valid_after(start + lasts)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _log(key: ec.EllipticCurvePrivateKey, url: str, since: dict[str, str]) -> dict[str, Any]:
    public = _spki(key.public_key())
    return {
        "baseUrl": url,
        "hashAlgorithm": "SHA2_256",
        "publicKey": {"rawBytes": _base64(public), "keyDetails": "PKIX_ECDSA_P256_SHA_256", "validFor": since},
        "logId": {"keyId": _base64(hashlib.sha256(public).digest())},
    }


def _canonical(document: dict[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()  # RFC 8785, for ASCII keys and integers


def _spki(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def _der(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.DER)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
