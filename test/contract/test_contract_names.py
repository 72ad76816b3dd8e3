"""Names and constants of the wire, and the document that describes it."""

import json
from pathlib import Path
import re

import pytest
from seq_harness import contract
from seq_harness.cli import schemas
from seq_harness.contract import new_request_id, read_formats, wire, write_formats


def test_the_limits_are_those_of_the_contract() -> None:
    assert contract.CONTRACT_VERSION == '0.5.25'
    assert contract.MAX_STREAM_FRAMES == 1024
    assert contract.MAX_STREAM_BYTES == 64 * 1024 * 1024
    assert contract.MAX_WORKER_STREAM_BYTES == 1024**3
    assert contract.STREAM_WAIT_S == 10.0
    assert contract.MAX_STREAMS == 64
    assert contract.MAX_WINDOW == 256
    assert contract.FRAMES_MISSING == 'frames_missing'
    assert contract.FRAMES_OVER_LIMIT == 'frames_over_limit'
    assert contract.FORMAT_OBSERVE == 'x-seq-observe/1'


def test_the_formats_header_is_read_in_any_case() -> None:
    assert read_formats(' X-Seq-Msgpack/1 ,x-seq-observe/1,, ') == {
        wire.FORMAT_MSGPACK,
        wire.FORMAT_OBSERVE,
    }
    assert read_formats(None) == read_formats('') == frozenset()
    assert write_formats([wire.FORMAT_MSGPACK, wire.FORMAT_OBSERVE]) == (
        'x-seq-msgpack/1, x-seq-observe/1'
    )


def test_the_id_of_an_act_is_new_each_time() -> None:
    ids = {new_request_id() for _ in range(50)}
    assert len(ids) == 50
    assert all(re.fullmatch('r-[0-9a-f]{8}', each) for each in ids)


def test_everything_that_is_promised_is_there() -> None:
    for name in contract.__all__:
        assert getattr(contract, name) is not None


def test_the_document_holds_every_model_and_the_table_of_errors(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert schemas.main([]) == 0
    document = json.loads(capsys.readouterr().out)
    models = {
        name
        for name in contract.__all__
        if isinstance(getattr(contract, name), type)
        and issubclass(getattr(contract, name), contract.ActRequest.__base__ or object)
        and issubclass(getattr(contract, name), contract.model.WireModel)
    }
    assert len(models) > 25
    assert models <= set(document['$defs'])
    for name in models:
        schema = document['$defs'][name]
        assert schema['additionalProperties'] is False
        assert set(schema['properties']) == set(getattr(contract, name).model_fields)
    assert document['errors']['busy'] == {
        'status': 429,
        'retryable': True,
        'client_error': 'Unavailable',
        'exit_code': 7,
    }
    assert document['contract'] == '0.5.25'


def test_the_document_is_written_where_it_is_asked_for(tmp_path: Path) -> None:
    target = tmp_path / 'wire.json'
    assert schemas.main(['-o', str(target)]) == 0
    assert 'ObserveRequest' in json.loads(target.read_text(encoding='utf-8'))['$defs']


def test_a_file_that_cannot_be_written_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert schemas.main(['-o', str(tmp_path / 'missing' / 'wire.json')]) == 1
    assert 'cannot be written' in capsys.readouterr().err
