"""Calls whose result is unused: they are made for their effect, known or not.

``struct.pack_into(buffer, 0, 7)`` as a statement returns nothing. So if no fact lists the effect of
such a call, it is assumed to change its receiver and its arguments. A call that gets nothing of the
notebook is assumed to set something for all later code.
"""

from __future__ import annotations

from benchpool.cells import facts, setting_facts
from benchpool.cells.def_use import Called
from benchpool.cells.effect import Effect

_FOLLOWED = frozenset(["()", "[]", "backward"])
"""Calls handled elsewhere: of a result or an element, and of gradients."""


def does_more(call: Called, path: str | None, effect: Effect) -> bool:
    """Return whether a call must have more effects than those known.

    Args:
        call: A call that runs no function of the notebook.
        path: Its full dotted path, if it belongs to a library.
        effect: The known changes.
    """
    word = call.chain[-1]
    if not call.alone or word in _FOLLOWED or effect.is_seen or setting_facts.only_outputs(word):
        return False
    if "." in call.chain[0] or word.startswith("__"):
        return False
    library = (path or "").partition(".")[0]
    if library in setting_facts.PICTURES or library in call.put_back or call.for_a_while:
        return False
    if facts.file_use(word) is not None or facts.is_of_files(path or ""):
        return False  # reported where another cell reads the file
    return not call.shown or setting_facts.sounds_like_change(word)
