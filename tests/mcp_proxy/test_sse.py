"""Server-sent events: bytes in, the same bytes out, wherever the stream is cut into chunks."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from skillruntime.adapters.mcp_proxy.responses import rewritten_event
from skillruntime.adapters.mcp_proxy.session import CLIENT
from skillruntime.adapters.mcp_proxy.sse import Blocks, data_of, field_of, with_data

lines = st.sampled_from([b"data: {}", b"data:1", b": ping", b"id: 7", b"retry: 10", b"event: message", b"", b"data"])
endings = st.sampled_from([b"\n", b"\r\n", b"\r"])


@given(st.lists(lines, max_size=12), endings, st.lists(st.integers(0, 80), max_size=6))
def test_a_stream_comes_out_as_it_went_in(content: list[bytes], ending: bytes, cuts: list[int]) -> None:
    """Every byte, in order, and the same events whether it comes whole or in pieces."""
    stream = b"".join(line + ending for line in content)
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]

    whole, pieces = Blocks(), Blocks()
    at_once = whole.feed(stream)
    in_pieces = [each for a, b in pairwise(places) for each in pieces.feed(stream[a:b])]

    assert b"".join(at_once) + whole.rest() == stream
    assert b"".join(in_pieces) + pieces.rest() == stream
    assert [data_of(each) for each in at_once if data_of(each)] == [
        data_of(each) for each in in_pieces if data_of(each)
    ]


@given(st.binary(max_size=60), st.integers(0, 60))
def test_bytes_of_any_kind_pass(stream: bytes, cut: int) -> None:
    """What is not an event stream is not changed either."""
    blocks = Blocks()

    assert b"".join([*blocks.feed(stream[:cut]), *blocks.feed(stream[cut:])]) + blocks.rest() == stream


def test_an_event_is_there_with_its_empty_line() -> None:
    """Nothing is held back: the first event of two comes out before the second is whole."""
    assert Blocks().feed(b"data: 1\n\ndata: 2\n") == [b"data: 1\n\n"]


def test_data_of_several_lines_is_one_message() -> None:
    """The standard joins the lines with line feeds."""
    assert data_of(b"data: a\r\ndata:b\r\n\r\n") == b"a\nb"


def test_new_data_keeps_the_other_lines() -> None:
    """Event ids and `retry` are what a client resumes by."""
    block = b"id: 9\nevent: message\ndata: {\ndata: }\nretry: 100\n\n"

    assert with_data(block, b"[1]") == b"id: 9\nevent: message\ndata: [1]\nretry: 100\n\n"
    assert field_of(block, b"id") == b"9"


def test_an_event_whose_message_passes_keeps_its_bytes() -> None:
    """Also its spacing, and a priming event without data."""
    for block in (b"data:{ }\r\n\r\n", b"id: 1\ndata: \n\n", b": ping\n\n"):
        assert rewritten_event(block, lambda raw: [(CLIENT, raw)]) == block


def test_a_second_message_becomes_an_event_of_its_own() -> None:
    """The refused part of a batch follows the first answer to the rest."""
    block = rewritten_event(b"id: 1\ndata: {}\n\n", lambda raw: [(CLIENT, raw), (CLIENT, b"[1]")])

    assert block == b"id: 1\ndata: {}\n\nevent: message\ndata: [1]\n\n"
