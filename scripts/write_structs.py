"""Write the structs that kernels in C read: one header for each module of arguments, from its named tuples.

``python -m scripts.write_structs`` writes them to ``src/keepsum/sampling/native``; ``--check`` only says which differ.
A named tuple in Python and the struct of the same name in C are the same memory. Types of records (states) and whole
constants, which both sides need, are there too: ``EXACT_STATE`` becomes ``ExactState`` and ``ExactStates``.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, get_origin

import numpy as np

from keepsum.sampling.core.kernel import Array, Fields, Layout, Number, layout_of

NATIVE = Path(__file__).parents[1] / "src" / "keepsum" / "sampling" / "native"
# Header and module, each before those that include it.
MODULES = {
    "core": "keepsum.sampling.core.kernel_arguments",
    "l1": "keepsum.sampling.l1.kernel_arguments",
    "splitting": "keepsum.sampling.l1.splitting.kernel_arguments",
    "focus": "keepsum.sampling.l1.focus.kernel_arguments",
    "gaussian": "keepsum.sampling.gaussian.kernel_arguments",
    "general": "keepsum.sampling.general.kernel_arguments",
    "mcmc": "keepsum.research.mcmc.kernel_arguments",
    "projection": "keepsum.projection.kernel_arguments",
}
NUMBERS = {"int": "i64", "bool": "i64", "float": "double", "word": "u64"}
ELEMENTS = {
    "int64": "Int", "int32": "Int32", "int16": "Int16", "int8": "Int8", "uint64": "Word", "uint16": "Word16",
    "float64": "Float",
}  # fmt: skip


def camel(name: str) -> str:
    """The name of a type of records in C.

    >>> camel("EXACT_STATE")
    'ExactState'
    """
    return name.title().replace("_", "")


def records() -> dict[Any, str]:
    """The types of records of all modules, by their names in C."""
    return {
        value: camel(name)
        for module in map(importlib.import_module, MODULES.values())
        for name, value in vars(module).items()
        if isinstance(value, np.dtype)
    }


def c_type(layout: Layout) -> str:
    """The type of a field."""
    if isinstance(layout, Number):
        return NUMBERS[layout.kind]
    if isinstance(layout, Fields):
        return layout.cls.__name__
    if layout.dtype.names is not None:
        return f"{records()[layout.dtype]}s"
    kind = ELEMENTS[layout.dtype.name] + {1: "s", 2: "Matrix", 3: "Cube"}[layout.form.dimensions]
    return f"Out{kind}" if layout.form.written else kind


def slots(layout: Layout) -> int:
    """How many slots of 8 bytes it takes."""
    if isinstance(layout, Fields):
        return sum(slots(part) for _, part in layout.fields)
    return 1 + layout.form.dimensions if isinstance(layout, Array) else 1


def struct(name: str, layout: Fields) -> str:
    """The declaration of a struct; an empty named tuple in it takes no room."""
    fields = "".join(f"    {c_type(part)} {field};\n" for field, part in layout.fields if slots(part))
    size = f'_Static_assert(sizeof({name}) == {8 * slots(layout)}, "as Python packs it");\n'
    return f"typedef struct {{\n{fields}}} {name};\n{size}"


def record(name: str, dtype: np.dtype[Any]) -> str:
    """The declaration of a type of records, and of an array of these."""
    fields = "".join(
        f"    {NUMBERS['float' if kind[0] == np.float64 else 'int']} {field};\n"
        for field, kind in (dtype.fields or {}).items()
    )
    size = f'_Static_assert(sizeof({name}) == {dtype.itemsize}, "as NumPy lays it out");\n'
    return (
        f"typedef struct {{\n{fields}}} {name};\n{size}typedef struct {{\n    {name} *at;\n    i64 size;\n}} {name}s;\n"
    )


def constant(name: str, value: float) -> str:
    """A constant: an integer or a float, written exactly."""
    if isinstance(value, int):
        return (
            f"#define {name} {f'({value})' if value < 0 else value}\n"
            if abs(value) < 2**31
            else (f"#define {name} INT64_C({value})\n")
        )
    return f"#define {name} {value.hex()}\n"


def header(name: str) -> str:
    """The text of a header."""
    module = importlib.import_module(MODULES[name])
    own = [(key, value) for key, value in vars(module).items() if not key.startswith("_")]
    numbers = [(k, v) for k, v in own if k.isupper() and type(v) in (int, float) and k in assigned(module)]
    parts = ["".join(constant(*number) for number in numbers)] if numbers else []
    parts += [record(camel(k), v) for k, v in own if isinstance(v, np.dtype)]
    for key, value in own:
        is_task = get_origin(value) is Annotated and hasattr(value.__origin__, "_fields")
        if is_task or (isinstance(value, type) and hasattr(value, "_fields") and value.__module__ == module.__name__):
            layout = layout_of(value)
            assert isinstance(layout, Fields)  # noqa: S101
            parts.append(struct(key, layout))
    guard = f"KEEPSUM_{name.upper()}_ARGUMENTS_H"
    before = '#include "types.h"\n' if name == "core" else "".join(f'#include "{other}"\n' for other in included(name))
    body = "\n".join(parts)
    return (
        f"/* Written by scripts/write_structs.py from {module.__name__}: change that, not this. */\n"
        f"#ifndef {guard}\n#define {guard}\n\n{before}\n{body}\n#endif\n"
    )


def assigned(module: ModuleType) -> set[str]:
    """The names that a module itself assigns to, not those that it imports."""
    import ast

    names: set[str] = set()
    for node in ast.parse(Path(module.__file__ or "").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign):
            names.update(leaf.id for target in node.targets for leaf in ast.walk(target) if isinstance(leaf, ast.Name))
    return names


def included(name: str) -> list[str]:
    """The headers of the modules that this one's named tuples come from."""
    module = importlib.import_module(MODULES[name])
    known = {other: header_name for header_name, other in MODULES.items()}
    used = {value.__module__ for value in vars(module).values() if isinstance(value, type)} & set(known)
    names = [known[m] for m in MODULES.values() if m in used and m != module.__name__]
    return [f"{n}_arguments.h" for n in dict.fromkeys(["core", *names])]


def main(check: bool = False) -> int:
    """Write the headers that differ, or say which do."""
    stale = 0
    for name, module in MODULES.items():
        path, text = NATIVE / f"{name}_arguments.h", header(name)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            stale += 1
            print(f"{'stale' if check else 'writing'}: {path.name}, from {module}")
            if not check:
                path.write_text(text, encoding="utf-8")
    return stale if check else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
