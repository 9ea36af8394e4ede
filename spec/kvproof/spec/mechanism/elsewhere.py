"""Obligations of the contract that this refinement leaves out, each with who sees to it."""

from __future__ import annotations

_TIER = "the manager of the tier promises it: whom it evicts, which slot it hands out"
_NUMBERS = (
    "a clip of numbers: the functions are proved to stay within the limit that they are given, and"
    " the monitor compares with what client and engine asked for"
)
_GEOMETRY = (
    "which positions an answered range needs is geometry: the functions are proved for it, and the"
    " monitor follows the bytes"
)
_WORTH = (
    "whether waiting is worth it the monitor computes from the whole state: from what is being"
    " stored, and what is on its way to the GPU"
)
_POLLS = (
    "the code also counts a load as waited for that was planned in the same window, the contract"
    " numbers jobs when they are handed out; the monitor's allowance for idle polls covers that"
)
_NO_MOVE = "the scheduler has no such move: that it does not happen is seen by running the code"

ELSEWHERE = {
    "admit: S8 #1": _TIER,
    "admit: S8 #2": _TIER,
    "admit: S8 #3": _TIER,
    "evict: S8": _TIER,
    "evict: S7 #1": _TIER,
    "evict: S7 #2": _TIER,
    "answer: P16 #1": _NUMBERS,
    "answer: P15": _NUMBERS,
    "answer: P16 #2": (
        "that the same question finds the same answer is Finder being a function of the tier's"
        " state; the monitor compares the answers"
    ),
    "offer: P15": _NUMBERS,
    "attend: S14 #1": _GEOMETRY,
    "attend: S14 #2": _GEOMETRY,
    "copy_slot: S14": _GEOMETRY,
    "open_load: P16": "calls on the scheduler do not nest, and Loads.lookup makes no job",
    "defer: L1": _POLLS,
    "defer: L3": _WORTH,
    "stall: L1": _POLLS,
    "stall: L2": "an engine that does not come to rest: the measures of progress are about that",
    "refuse_reset: P10": _NO_MOVE,
    "crash: P11": _NO_MOVE,
    "drained: P12 #3": "a count of what the code keeps; what these tables keep is concluded here",
}
"""``action: id``, with a number where an action has several of that id -> why it is not here.

Obligations of class *missed* (work, room, hits) are not in the refinement either.
"""
