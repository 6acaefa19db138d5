"""Certificates for the tests of what is made from them: the published ones, a plain one, and changes of its facts."""

import copy
import json
from functools import cache
from pathlib import Path

import keepsum as ks

SAMPLES = Path(__file__).parents[1] / "certificates"
FOLDERS = sorted(path.parent for path in SAMPLES.glob("*/certificate.json"))
CHANGES = {
    "estimated": {
        "guarantee.sampling": {
            "exactness": "estimated", "total_variation": 1e-7, "extrapolated": 1e-9, "confidence": 0.95,
            "delta": "2.29e-7",
        }
    },
    "rounded": {
        "guarantee.sampling": {
            "exactness": "rounded", "total_variation": 1e-8, "extrapolated": None, "confidence": None,
            "delta": "2.29e-8",
        }
    },
    "no guarantee": {
        "guarantee.sampling": {
            "exactness": "estimated", "total_variation": 1.0, "extrapolated": 1e-9, "confidence": 0.95, "delta": "1",
        }
    },
    "seed": {"randomness": "seed"},
    "records without a unit": {"records": {"unit": None, "max_rows_per_unit": None}},
    "one record each, declared": {"records": {"unit": None, "max_rows_per_unit": 1}},
    "several records": {"records": {"unit": "person", "max_rows_per_unit": 3}, "guarantee.person.distance.length": 6,
                        "guarantee.person.epsilon": "1.5"},
    "pinned": {"exposure.pinned": [["a"], ["b"]]},
    "bounded": {"exposure.bounded": 7},
    "not checked": {"exposure.not_checked": 9},
    "categories": {"domain.taken_from_data": ["place"]},
    "file order": {"domain.keeps_file_order": True},
    "nonnegative": {
        "postprocessing": [{
            "kind": "nonnegative", "norm": "l1", "unique": True, "sha256": "5" * 64, "cells_changed": 2,
            "l1_distance": 4, "largest_change": 3,
        }]
    },
    "ledger": {"ledger": {"dataset": "people", "entry": 12, "head": "7" * 64}},
    "large epsilon": {"mechanism.parameters": {"epsilon": "6"}, "guarantee.person.epsilon": "12"},
    "middling epsilon": {"mechanism.parameters": {"epsilon": "2"}, "guarantee.person.epsilon": "4"},
    "kept": {"kept.parts": [{"kind": "margin", "axes": [], "totals": [{"labels": [], "value": 60}]}]},
    "upper bound": {"guarantee.person.distance.exact": False},
    "carried": {"carried": [{"name": "code", "axis": "place", "values": [1, 2, 3]}]},
    "file attributes": {"table.attributes": {"UNIT": "PS"}},
    "a value not protected": {"guarantee.person.attributes.0.fixed_values": 1},
    "nothing protected": {"guarantee.person.attributes.0.any_value": None,
                          "guarantee.person.attributes.0.other_value": None},
    "not known": {
        "guarantee.person.attributes.0.any_value": None, "guarantee.person.attributes.0.other_value": None,
        "guarantee.person.attributes.0.unknown_cells": 3, "guarantee.person.distance": None,
        "guarantee.person.epsilon": None, "guarantee.person.delta": None,
    },
    "weak reading": {
        "guarantee.person.attributes.0.any_value.rule": "graver", "guarantee.person.distance.rule": "graver",
    },
}  # fmt: skip


def sample(folder):
    return ks.Certificate.from_json((folder / "certificate.json").read_bytes())


@cache
def _plain():
    table = ks.Table.from_array([10, 20, 30], axes={"place": ["a", "b", "c"]})
    return ks.release(table, keep=[], mechanism=ks.Laplace.per_unit(epsilon="1/4")).certificate.to_json()


def certificate(*changes):
    """One attribute, no totals, exact noise of epsilon 0.5 for one person; and changed facts by their names above."""
    document = json.loads(_plain())
    for change in changes:
        for path, value in (CHANGES[change] if isinstance(change, str) else change).items():
            *outer, last = path.split(".")
            place = document
            for name in outer:
                place = place[int(name) if name.isdigit() else name]
            place[last] = copy.deepcopy(value)
    return ks.Certificate.from_json(json.dumps(document))
