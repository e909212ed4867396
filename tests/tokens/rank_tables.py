"""Makes the compact form of the encodings' rank files, which the package contains.

``python -m tests.tokens.rank_tables`` prints the digests that
`skillruntime.tokens.encodings` has to state.
"""

from __future__ import annotations

import binascii
import hashlib
import sys
import zlib
from array import array
from collections import Counter
from pathlib import Path

from skillruntime.tokens import encodings
from skillruntime.tokens.compact_ranks import LONGEST_TOKEN, SHORT
from skillruntime.tokens.encodings import ENCODINGS, read_rank_file


def pack_ranks(content: bytes) -> bytes:
    """Return the tokens of a rank file, a line of base64 and rank each, as
    `CompactRanks` takes them.

    The ranks are those of the lines: 0, 1, 2 and so on, as in the files of both
    encodings.
    """
    tokens = [binascii.a2b_base64(each) for each in content.split()[::2]]
    ranks = [rank for rank, token in enumerate(tokens) if len(token) <= LONGEST_TOKEN]
    ranks.sort(key=lambda rank: (len(tokens[rank]), tokens[rank]))
    number_of = Counter(map(len, tokens))
    numbers = array("I", [number_of[length] for length in range(LONGEST_TOKEN + 1)])
    short = array(
        "Q",
        [
            int.from_bytes(tokens[rank], "big")
            for rank in ranks
            if len(tokens[rank]) <= SHORT
        ],
    )
    long = b"".join(tokens[rank] for rank in ranks if len(tokens[rank]) > SHORT)
    return numbers.tobytes() + array("I", ranks).tobytes() + short.tobytes() + long


def packed_of(name: str) -> bytes:
    """Return the compact form of the encoding *name*."""
    return pack_ranks(read_rank_file(name, ENCODINGS[name].sha256))


if __name__ == "__main__":
    for name in ENCODINGS:
        packed = packed_of(name)
        (Path(encodings.__file__).parent / f"{name}.ranks").write_bytes(
            zlib.compress(packed, 9)
        )
        sys.stdout.write(f"{name} {hashlib.sha256(packed).hexdigest()}\n")
