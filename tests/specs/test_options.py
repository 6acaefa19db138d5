"""Every option of a release is one record, with a word for it on every face."""

from __future__ import annotations

import msgspec
import pytest

from keepsum.specs.options import OPTIONS, by_argument, by_flag, value_of, with_values
from keepsum.specs.spec import SECTIONS, Spec


def test_every_key_of_a_spec_has_a_record():
    keys = [
        f"{section}.{field.name}"
        for section in SECTIONS
        for field in msgspec.structs.fields(type(getattr(Spec(), section)))
    ]
    assert list(OPTIONS) == keys


@pytest.mark.parametrize("key", OPTIONS)
def test_a_record_has_a_word_for_every_face(key):
    option = OPTIONS[key]
    assert option.help.endswith(".") or option.help[-1].isalpha()
    assert option.label
    assert option.label == option.label.strip(".")
    assert option.argument.isidentifier()
    assert set(option.not_with) <= set(OPTIONS)
    if option.flag is not None:
        assert by_flag(option.flag) is option
    assert by_argument(option.argument).argument == option.argument


def test_values_are_set_by_their_keys():
    spec = with_values(Spec(), {"source.count": "n", "keep.total": True, "source.data": "a.csv"})
    assert (spec.source.count, spec.source.data, value_of(spec, OPTIONS["keep.total"])) == ("n", "a.csv", True)
