"""A release that is signed."""

import pytest

from keepsum.releasing.canonical import make_keys


@pytest.fixture
def signed(released, tmp_path):
    make_keys(tmp_path / "key.pem", tmp_path / "key.pub.pem")
    return released.save(tmp_path / "out.csv", sign_with=tmp_path / "key.pem")
