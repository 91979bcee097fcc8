"""Calls whose result nobody uses: they were made for what they do, known or not.

``struct.pack_into(buffer, 0, 7)`` as a statement gives nothing to anybody. So where no fact says
what such a call changes, it is taken to change what it is called on and what it is given; one that
is given nothing of the notebook sets something for all that follows.
"""

from __future__ import annotations

from benchpool.cells import facts
from benchpool.cells.def_use import Called
from benchpool.cells.effect import Effect

_FOLLOWED = frozenset(["()", "[]", "backward"])
"""Calls that are followed otherwise: of a result or an element, and of gradients."""


def does_more(call: Called, path: str | None, effect: Effect) -> bool:
    """Say whether a call must do more than what is known of it.

    Args:
        call: A call of no function of the notebook.
        path: Its whole dotted path, where it is one of a library.
        effect: What is known to change.
    """
    word = call.chain[-1]
    if not call.alone or word in _FOLLOWED or effect.is_seen or facts.only_tells(word):
        return False
    if "." in call.chain[0] or word.startswith("__"):
        return False
    library = (path or "").partition(".")[0]
    if library in facts.PICTURES or library in call.put_back or call.for_a_while:
        return False
    if facts.file_use(word) is not None or facts.is_of_files(path or ""):
        return False  # told where another cell reads the file
    return not call.shown or facts.sounds_like_change(word)
