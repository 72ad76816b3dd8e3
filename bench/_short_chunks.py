"""Short chunks and slow answers: the default beside `drain`, for a policy that goes on."""

from __future__ import annotations

from _going_on import CASES, DRAINING, GoingOn

LAG_S = 0.06
NODE_CASES = ((CASES[0], 0.0), (CASES[1], 0.0), (CASES[6], 0.0), (CASES[0], 1.2))
"""A case, and how long one answer in ten takes there, in s."""


def short_chunks(on_node: bool) -> list[dict[str, object]]:
    """Print a row a case, and return what is in it."""
    heads = (
        f'{"x drain":>9}{"stands s":>9}{"back":>7}{"by drain":>9}{"lag: back":>11}{"by drain":>9}'
    )
    print(f'\n{"short chunks, back in mrad":<38}{heads}')
    found = [_in_process(number) for number in range(len(CASES))]
    if on_node:
        found += [_on_node(number) for number in range(len(NODE_CASES))]
    return found


def _in_process(number: int) -> dict[str, object]:
    case = CASES[number]
    ran, drained = GoingOn(case).run(), GoingOn(case, **DRAINING).run()
    lagged, both = GoingOn(case, LAG_S).run(), GoingOn(case, LAG_S, **DRAINING).run()
    times, stands = ran.progress / drained.progress, ran.stood_s / ran.answered
    back = [1e3 * item.largest_back for item in (ran, drained, lagged, both)]
    print(
        f'{case.name:<38}{times:>9.2f}{stands:>9.3f}{back[0]:>7.1f}{back[1]:>9.1f}'
        f'{back[2]:>11.1f}{back[3]:>9.1f}'
    )
    return {
        'case': case.name,
        'progress_to_drain': round(times, 3),
        'travelled_to_progress': round(ran.travelled / ran.progress, 4),
        'stands_s': round(stands, 3),
        'back_mrad': [round(value, 2) for value in back],
        'dropped_whole': ran.dropped_whole,
        'reason': ran.reason,
    }


def _on_node(number: int) -> dict[str, object]:
    from _going_on_node import on_the_node

    case, tail_s = NODE_CASES[number]
    ran, drained = (on_the_node(case, tail_s, drains) for drains in (False, True))
    times, back = ran.progress / drained.progress, [ran.largest_back, drained.largest_back]
    name = f'node: {case.name}' + (f', tail {tail_s:g} s' if tail_s else '')
    print(f'{name:<38}{times:>9.2f}{"":>9}{1e3 * back[0]:>7.1f}{1e3 * back[1]:>9.1f}')
    return {
        'case': name,
        'progress_to_drain': round(times, 3),
        'back_mrad': [round(1e3 * value, 2) for value in back],
        'reason': ran.reason,
        'said': ran.said,
    }
