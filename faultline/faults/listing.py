"""The rows of the matrix as a list for a reader."""

from __future__ import annotations

from faultline.faults.model import Need
from faultline.faults.rows import CONTROL_ROWS, ROWS


def show_rows() -> None:
    """Print the rows of the matrix."""
    for row in ROWS.values():
        print(f"{row.name}\n    breaks:   {'; '.join(step.line for step in row.breaks)}")
        print(f"    promised: {row.promise}\n    because   {row.why}")
        for need in row.needs:
            where = "" if need is Need.DISK else ": root, Linux, backend local"
            print(f"    needs     {need.value}{where}")
        if row.settings:
            settings = ", ".join(f"{name}={value}" for name, value in row.settings)
            print(f"    with      {settings}, on a stack that has it or a new one")
        elif row.spoils:
            print("    ends in   scripts/reset.sh: topics, checkpoints and outputs are removed")
    for name, rows in CONTROL_ROWS.items():
        print(f"{name}\n    control:  {rows[0].why}\n    promised: {rows[0].promise}, under each of: ", end="")
        print(", ".join(row.fault for row in rows))
    print(f"\n{len(ROWS)} rows, {len(CONTROL_ROWS)} negative controls of three rows each")
