"""Compares the quickstart's table, read by PyIceberg, with the quickstart's input.

Every row must be there once for each time the input was written, and every scalar
of every event must be the value of the column at its path, or stand in __overflow
under that path.
"""

import json
import sys
from collections import Counter

from pyiceberg.catalog.sql import SqlCatalog


def scalars(value, path=()):
    """Yields (path, value) for each scalar that is not null."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from scalars(inner, path + (key,))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from scalars(inner, path + (i,))
    elif value is not None:
        yield path, value


def escaped(step):
    """Returns a step as column names and overflow paths spell it."""
    return str(step).replace("~", "~0").replace(".", "~1")


def column(row, path):
    """Returns what the row's columns hold at a path, or None."""
    for step in path:
        if isinstance(step, int):
            row = row[step] if isinstance(row, list) and step < len(row) else None
        elif isinstance(row, dict):
            folded = {name.lower(): name for name in row}
            row = row.get(folded.get(escaped(step).lower()))
        else:
            return None
    return row


def overflowed(overflow, path, value):
    """Reports whether the value stands in __overflow, alone or inside of one."""
    steps = [escaped(s) for s in path]
    for n in range(len(steps), 0, -1):
        held = overflow.get(".".join(steps[:n]))
        if held is None:
            continue
        for step in path[n:]:
            held = held[step]
        return held == value
    return False


def main(data_dir, input_file, times):
    catalog = SqlCatalog(
        "default",
        uri=f"sqlite:///{data_dir}/catalog.db",
        warehouse=f"file://{data_dir}/warehouse",
    )
    table = catalog.load_table("github.webhooks")
    rows = table.scan().to_arrow().to_pylist()
    with open(input_file, encoding="utf-8") as lines:
        events = {event["delivery"]: event for event in map(json.loads, lines)}

    counts = Counter(row["delivery"] for row in rows)
    assert set(counts) == set(events), f"deliveries differ: {set(counts) ^ set(events)}"
    assert set(counts.values()) == {times}, f"want each {times} times: {counts.most_common(3)}"
    positions = Counter((row["__partition"], row["__offset"]) for row in rows)
    assert max(positions.values()) == 1, "a position is there twice"

    checked = in_overflow = 0
    for row in rows:
        overflow = json.loads(row["__overflow"] or "{}")
        for path, value in scalars(events[row["delivery"]]):
            found = column(row, path)
            if found == value and isinstance(found, bool) == isinstance(value, bool):
                checked += 1
            elif overflowed(overflow, path, value):
                checked += 1
                in_overflow += 1
            else:
                sys.exit(f"delivery {row['delivery']}: {path}: want {value!r}, found {found!r}")
    print(
        f"PyIceberg: {len(rows)} rows, {len(table.schema().fields)} columns, "
        f"{checked} values equal, {in_overflow} of them in __overflow, "
        f"snapshot {table.current_snapshot().snapshot_id}"
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
