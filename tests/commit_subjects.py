"""Check the subjects of the newest commits: ``component: imperative verb …``, 72 characters.

    python3 tests/commit_subjects.py

Older commits than ``SINCE`` were written before the rule. Needs nothing but Python and git.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SINCE = "006a99110359536d83cc970b504eefdb0742448f"
"""Last commit before the rule."""
NEWEST = 200
"""Number of commits to check, from the newest one back."""
MOST_CHARACTERS = 72
FORM = re.compile(r"(?P<component>[a-z][a-z0-9_/ ,.-]*): (?P<verb>[a-z]+)\b")
OTHER_FORMS = re.compile(r"(?:[^s]s|ed|ing)$")
"""Endings of verbs that are no imperatives."""
IMPERATIVES = frozenset({"bring", "embed", "feed", "need", "shed", "speed"})
"""Imperatives with the ending of another form."""


def faults(subject: str) -> list[str]:
    """Return what is wrong with the subject of a commit.

    >>> faults("web: limit concurrent page renders per user")
    []
    >>> faults("Fixes the page; adds a test")
    ['it is not "component: imperative verb ..."', 'it has a semicolon: commit one change']
    >>> faults("web: limits page renders")
    ['"limits" is not an imperative']
    """
    found = []
    form = FORM.match(subject)
    if form is None:
        found.append('it is not "component: imperative verb ..."')
    elif OTHER_FORMS.search(form["verb"]) and form["verb"] not in IMPERATIVES:
        found.append(f'"{form["verb"]}" is not an imperative')
    if len(subject) > MOST_CHARACTERS:
        found.append(f"it has {len(subject)} characters: at most {MOST_CHARACTERS}")
    if ";" in subject:
        found.append("it has a semicolon: commit one change")
    return found


def subjects(root: Path) -> list[str]:
    """Return the subjects of the newest commits after ``SINCE``, without merges.

    A copy of the sources without a history, or without that commit, has none.
    """
    found = subprocess.run(
        ["git", "log", "--no-merges", "--format=%s", f"--max-count={NEWEST}", f"{SINCE}..HEAD"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.splitlines() if found.returncode == 0 else []


def main() -> int:
    """Print each subject that breaks the rule; return 1 if there is one."""
    wrong = [(subject, found) for subject in subjects(ROOT) if (found := faults(subject))]
    for subject, found in wrong:
        print(f"Commit {subject!r}: {'; '.join(found)}.")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
