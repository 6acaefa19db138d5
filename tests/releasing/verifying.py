"""Releases that are verified after a change: which checks fail."""

import json

import msgspec

import keepsum as ks

LAPLACE = ks.Laplace.per_unit(epsilon=0.25)


def failures(*arguments, **options):
    return [check.name for check in ks.verify(*arguments, **options).checks if not check.passed]


def edit(path, change):
    data = json.loads(path.read_bytes())
    change(data)
    path.write_bytes(msgspec.json.encode(data))
