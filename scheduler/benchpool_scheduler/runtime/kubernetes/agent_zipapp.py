"""Build the agent's zip file from its modules and those of ``worker``.

    python -m benchpool_scheduler.runtime.kubernetes.agent_zipapp /opt/benchpool/agent.pyz

It also contains the file that puts ``benchpool`` on the path of jobs. The same sources always give
the same bytes. The packages in between are empty in the zip, so that it contains no code of the
scheduler.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

from benchpool_scheduler.worker import job_package

PACKAGE = Path(__file__).resolve().parents[2]
BEGIN = """import sys
sys.dont_write_bytecode = True
from benchpool_scheduler.runtime.kubernetes.agent.run import main
main()
"""
SHELLS = ("", "runtime", "runtime/kubernetes")
PARTS = ("runtime/kubernetes/agent/*.py", "worker/**/*.py")
EPOCH = (1980, 1, 1, 0, 0, 0)


def files() -> dict[str, bytes]:
    """Return the contents of the zip file, by path."""
    root = PACKAGE.name
    found = {"__main__.py": BEGIN.encode()}
    for shell in SHELLS:
        found["/".join(part for part in (root, shell, "__init__.py") if part)] = b""
    for pattern in PARTS:
        for path in sorted(PACKAGE.glob(pattern)):
            found[f"{root}/{path.relative_to(PACKAGE).as_posix()}"] = path.read_bytes()
    found[job_package.NAME] = job_package.content()
    return found


def write(target: Path) -> None:
    """Write the zip file."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files().items():
            archive.writestr(zipfile.ZipInfo(name, EPOCH), content)
    target.chmod(0o755)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
