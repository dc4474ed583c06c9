"""Bytes in, messages out: whole, byte by byte, cut, too long, or no messages at all."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.interfaces.pgwire.protocol import backend, client_codec
from dpsql.interfaces.pgwire.protocol.framing import ProtocolViolation, frame_message
from dpsql.interfaces.pgwire.protocol.frontend import (
    MAX_LOGIN_BYTES,
    MAX_MESSAGE_BYTES,
    MAX_STARTUP_BYTES,
    MESSAGE_TYPES,
    Bind,
    CancelRequest,
    Close,
    CopyData,
    CopyDone,
    CopyFail,
    Describe,
    Execute,
    Flush,
    FrontendDecoder,
    FunctionCall,
    GSSENCRequest,
    MalformedMessage,
    Parse,
    Password,
    SimpleQuery,
    SSLRequest,
    StartupMessage,
    Sync,
    Terminate,
    restore_bytes,
)
from tests.support.wire_messages import encode_query, read_all, to_bytes

NAMES = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=12)
CODES = st.lists(st.integers(0, 1), max_size=3).map(tuple)
MESSAGES = st.one_of(
    st.builds(SimpleQuery, NAMES),
    st.builds(Parse, NAMES, NAMES, st.lists(st.integers(0, 2**32 - 1), max_size=3).map(tuple)),
    st.builds(Bind, NAMES, NAMES, CODES, st.lists(st.none() | st.binary(max_size=9), max_size=3).map(tuple), CODES),
    st.builds(Describe, st.sampled_from("SP"), NAMES),
    st.builds(Close, st.sampled_from("SP"), NAMES),
    st.builds(Execute, NAMES, st.integers(-(2**31), 2**31 - 1)),
    st.sampled_from([Flush(), Sync(), Terminate(), CopyDone(), FunctionCall()]),
)


def after_login(most: int = MAX_MESSAGE_BYTES) -> FrontendDecoder:
    protocol = FrontendDecoder(most)
    protocol.allow_long_messages()
    return protocol


def taken(protocol: FrontendDecoder) -> list[object]:
    found = []
    while (message := protocol.next_message()) is not None:
        found.append(message)
    return found


@settings(max_examples=200, deadline=None)
@given(st.lists(MESSAGES, max_size=6))
def test_messages_come_out_as_they_went_in(messages):
    data = b"".join(map(to_bytes, messages))
    whole = after_login()
    whole.receive_data(data)
    assert taken(whole) == messages and whole.buffered_bytes == 0
    slow, found = after_login(), []
    for at in range(len(data)):
        slow.receive_data(data[at : at + 1])
        found += taken(slow)
    assert found == messages and slow.buffered_bytes == 0


def startup(body: bytes) -> bytes:
    return struct.pack("!i", len(body) + 4) + body


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (client_codec.SSL_REQUEST, SSLRequest()),
        (startup(struct.pack("!i", 80877104)), GSSENCRequest()),
        (client_codec.encode_cancel_request(7, b"1234"), CancelRequest(7, b"1234")),
        (client_codec.encode_cancel_request(2**32 - 1, b"x" * 32), CancelRequest(2**32 - 1, b"x" * 32)),
        (
            client_codec.encode_startup({"user": "ana", "database": "é"}),
            StartupMessage((3, 0), {"user": "ana", "database": "é"}),
        ),
        (startup(struct.pack("!i", 3 << 16 | 2) + b"user\0ana\0\0"), StartupMessage((3, 2), {"user": "ana"})),
        (startup(struct.pack("!i", 3 << 16) + b"\0"), StartupMessage((3, 0), {})),
    ],
)
def test_the_first_message(data, message):
    for step in (len(data), 1):
        protocol = FrontendDecoder()
        found = None
        for at in range(0, len(data), step):
            assert found is None
            protocol.receive_data(data[at : at + step])
            found = protocol.next_startup()
        assert found == message and protocol.buffered_bytes == 0


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (struct.pack("!i", 4), "08P01"),
        (struct.pack("!i", 7), "08P01"),
        (struct.pack("!i", -1), "08P01"),
        (struct.pack("!i", MAX_STARTUP_BYTES + 1), "08P01"),
        (struct.pack("!I", 2**32 - 1), "08P01"),
        (startup(struct.pack("!i", 2 << 16)), "0A000"),
        (startup(struct.pack("!i", 4 << 16)), "0A000"),
        (startup(struct.pack("!i", 0)), "0A000"),
        (b"GET / HTTP/1.1\r\n\r\n", "08P01"),
        (startup(struct.pack("!i", 80877103) + b"x"), "08P01"),
        (startup(struct.pack("!i", 80877102) + b"1234123"), "08P01"),
        (startup(struct.pack("!i", 3 << 16)), "08P01"),
        (startup(struct.pack("!i", 3 << 16) + b"user\0ana"), "08P01"),
        (startup(struct.pack("!i", 3 << 16) + b"user\0ana\0"), "08P01"),
        (startup(struct.pack("!i", 3 << 16) + b"user\0\xff\0\0"), "08P01"),
        (startup(struct.pack("!i", 3 << 16) + b"user\0ana\0\0more"), "08P01"),
    ],
)
def test_a_first_message_that_is_none(data, code):
    protocol = FrontendDecoder()
    protocol.receive_data(data)
    with pytest.raises(ProtocolViolation) as caught:
        protocol.next_startup()
    assert caught.value.sqlstate == code


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (b"Q", b"no end"),
        (b"Q", b"SELECT 1\0more"),
        (b"P", b"s\0"),
        (b"P", b"s\0SELECT 1\0\0\2\0\0\0\0"),
        (b"B", b"\0\0\0\1"),
        (b"B", b"\0\0\0\0\0\1\0\0\0\x09x"),
        (b"B", b"\0\0\0\0\0\1\xff\xff\xff\xfe\0\0"),
        (b"B", b"\0\0\xff\xff"),
        (b"D", b"Xs\0"),
        (b"D", b""),
        (b"C", b"s"),
        (b"E", b"\0\0"),
        (b"S", b"x"),
        (b"f", b"no end"),
    ],
)
def test_a_message_with_wrong_content_is_malformed_and_the_next_one_is_read(kind, body):
    protocol = after_login()
    protocol.receive_data(frame_message(kind, body) + frame_message(b"Q", b"SELECT 1\0"))
    message = protocol.next_message()
    assert isinstance(message, MalformedMessage) and message.kind == kind.decode()
    assert message.is_extended == (kind in (b"P", b"B", b"D", b"E", b"C"))
    assert protocol.next_message() == SimpleQuery("SELECT 1")


def test_text_in_another_encoding_keeps_its_bytes():
    for body in (b"SELECT '\xe9'\0", "SELECT 'é'\0".encode(), b"\xff\0"):
        protocol = after_login()
        protocol.receive_data(frame_message(b"Q", body))
        message = protocol.next_message()
        assert isinstance(message, SimpleQuery) and restore_bytes(message.sql) + b"\0" == body


def test_a_client_that_leaves_may_say_more():
    protocol = after_login()
    protocol.receive_data(frame_message(b"X", b"bye"))
    assert protocol.next_message() == Terminate()


@pytest.mark.parametrize(
    "data",
    [
        b"Q" + struct.pack("!i", 3),
        b"Q" + struct.pack("!i", -5),
        b"Q" + struct.pack("!i", MAX_MESSAGE_BYTES + 1),
        b"\0",
        b"z",
        b"\x16\x03\x01",
    ],
)
def test_what_is_no_message_is_a_violation(data):
    protocol = after_login()
    protocol.receive_data(data)
    with pytest.raises(ProtocolViolation) as caught:
        protocol.next_message()
    assert caught.value.sqlstate == "08P01"


def test_a_wrong_type_is_seen_in_the_first_byte():
    for kind in {bytes([one]) for one in range(256)} - MESSAGE_TYPES:
        protocol = after_login()
        protocol.receive_data(kind)
        with pytest.raises(ProtocolViolation):
            protocol.next_message()


def test_a_message_that_is_too_long_is_refused_before_it_comes():
    protocol = FrontendDecoder()
    protocol.receive_data(b"p" + struct.pack("!i", MAX_LOGIN_BYTES + 1))
    with pytest.raises(ProtocolViolation):
        protocol.next_message()
    allowed = after_login()
    allowed.receive_data(b"Q" + struct.pack("!i", MAX_LOGIN_BYTES + 1))
    assert allowed.next_message() is None


def test_the_buffer_holds_no_more_than_a_message():
    protocol = after_login(1000)
    assert protocol.free_bytes == 1005
    protocol.receive_data(b"Q" + struct.pack("!i", 1000))
    protocol.receive_data(b"x" * protocol.free_bytes)
    assert protocol.buffered_bytes == 1005 and protocol.free_bytes == 0
    with pytest.raises(ProtocolViolation):
        protocol.receive_data(b"x")
    assert protocol.buffered_bytes == 1005


def test_a_message_of_the_largest_size_fits():
    protocol = after_login(1000)
    data = encode_query("x" * (1000 - 5))
    assert len(data) == 1001
    protocol.receive_data(data)
    assert protocol.next_message() == SimpleQuery("x" * 995)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60), st.booleans())
def test_random_bytes_are_messages_or_a_violation(data, first):
    protocol = FrontendDecoder(500)
    try:
        protocol.receive_data(data)
        while (protocol.next_startup() if first else protocol.next_message()) is not None:
            pass
    except ProtocolViolation as error:
        assert error.sqlstate in ("08P01", "0A000") and "\n" not in error.message
    assert protocol.buffered_bytes <= 505


@settings(max_examples=300, deadline=None)
@given(MESSAGES, st.data())
def test_a_message_that_is_cut_or_changed_is_no_other_error(message, data):
    whole = to_bytes(message)
    at = data.draw(st.integers(0, len(whole) - 1))
    changed = bytearray(whole)
    changed[at] ^= data.draw(st.integers(1, 255))
    for sent in (whole[:at], bytes(changed)):
        protocol = after_login()
        protocol.receive_data(sent)
        try:
            taken(protocol)
        except ProtocolViolation as error:
            assert error.sqlstate == "08P01"


def test_a_password_is_not_shown():
    protocol = FrontendDecoder()
    protocol.receive_data(client_codec.encode_sasl_initial("SCRAM-SHA-256", b"secret"))
    message = protocol.next_message()
    assert isinstance(message, Password) and "secret" not in repr(message) and b"secret" in message.body
    others = (frame_message(b"d", b"x"), frame_message(b"f", b"why\0"))
    assert [taken_one(one) for one in others] == [CopyData(b"x"), CopyFail("why")]


def taken_one(data: bytes) -> object:
    protocol = after_login()
    protocol.receive_data(data)
    return protocol.next_message()


# --- the other direction ---------------------------------------------------------------------------------------------


def test_every_reply_is_read_back():
    field = backend.FieldDescription("n", 20, 8, -1, 1)
    sent = [
        backend.AUTHENTICATION_OK,
        backend.authentication_sasl(["SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"]),
        backend.authentication_sasl_continue(b"r=x"),
        backend.authentication_sasl_final(b"v=y"),
        backend.backend_key_data(7, b"1234"),
        backend.negotiate_protocol_version(0, ["_pq_.x"]),
        backend.parameter_status("TimeZone", "UTC"),
        backend.ready_for_query("T"),
        backend.row_description([field]),
        backend.parameter_description([23, 25]),
        backend.data_row([b"1", None, b""]),
        backend.command_complete("SELECT 1"),
        backend.error_response({"S": "ERROR", "C": "42601", "M": "é", "D": ""}),
        backend.notice_response({"S": "NOTICE", "C": "00000", "M": "m"}),
        backend.copy_out_response(2),
        backend.copy_data(b"1\t2\n"),
        backend.COPY_DONE,
        backend.PARSE_COMPLETE,
        backend.BIND_COMPLETE,
        backend.CLOSE_COMPLETE,
        backend.NO_DATA,
        backend.PORTAL_SUSPENDED,
        backend.EMPTY_QUERY,
    ]
    read = read_all(b"".join(sent))
    assert read[:3] == [
        client_codec.Authentication(0),
        client_codec.Authentication(10, b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0"),
        client_codec.Authentication(11, b"r=x"),
    ]
    assert read[1].mechanisms == ("SCRAM-SHA-256-PLUS", "SCRAM-SHA-256")
    assert read[4:12] == [
        client_codec.BackendKeyData(7, b"1234"),
        client_codec.NegotiateProtocolVersion(0, ("_pq_.x",)),
        client_codec.ParameterStatus("TimeZone", "UTC"),
        client_codec.ReadyForQuery("T"),
        client_codec.RowDescription((field,)),
        client_codec.ParameterDescription((23, 25)),
        client_codec.DataRow((b"1", None, b"")),
        client_codec.CommandComplete("SELECT 1"),
    ]
    assert read[12:] == [
        client_codec.ErrorResponse({"S": "ERROR", "C": "42601", "M": "é"}),
        client_codec.NoticeResponse({"S": "NOTICE", "C": "00000", "M": "m"}),
        client_codec.CopyOutResponse(False, (0, 0)),
        client_codec.CopyOutData(b"1\t2\n"),
        client_codec.COPY_DONE_REPLY,
        client_codec.PARSE_COMPLETE,
        client_codec.BIND_COMPLETE,
        client_codec.CLOSE_COMPLETE,
        client_codec.NO_DATA,
        client_codec.PORTAL_SUSPENDED,
        client_codec.EMPTY_QUERY,
    ]


def test_a_text_with_a_zero_byte_cannot_end_a_field_early():
    sent = backend.error_response({"S": "ERROR", "C": "XX000", "M": "a\0Cb"})
    assert read_all(sent) == [client_codec.ErrorResponse({"S": "ERROR", "C": "XX000", "M": "a�Cb"})]


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60))
def test_a_server_that_speaks_no_protocol_is_a_violation(data):
    read = client_codec.BackendDecoder(1000)
    read.receive_data(data)
    try:
        while read.next_reply() is not None:
            pass
    except ProtocolViolation:
        pass
