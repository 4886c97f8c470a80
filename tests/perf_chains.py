"""Call chains as `perf script` prints them, and the chains of a profile in the same form."""

import re
from collections import defaultdict

from perfuse import Profile

_SAMPLE = re.compile(r"^(?P<comm>.+?)\s+(?P<seconds>\d+)\.(?P<fraction>\d+):\s*$")
_FRAME = re.compile(r"^\s+(?P<ip>[0-9a-f]+)(?:\s|$)")
_NO_ADDRESS = 2**64 - 1

Chain = list[int]


def read(text: str) -> dict[int, Chain]:
    """Chains by time in nanoseconds, innermost first, of `perf script -F comm,time,ip,sym,dso --no-inline --ns`.

    Where perf's unwinder finds no return address it adds one that is none.
    """
    chains: dict[int, Chain] = {}
    chain: Chain = []
    for line in text.splitlines():
        if frame := _FRAME.match(line):
            if (ip := int(frame["ip"], 16)) != _NO_ADDRESS:
                chain.append(ip)
        elif sample := _SAMPLE.match(line):
            chain = chains.setdefault(int(sample["seconds"] + sample["fraction"]), [])
    return chains


def of(profile: Profile) -> dict[int, Chain]:
    """Chains of a profile, as perf 6.1 prints them.

    Addresses of files are offsets in them (code that `perf inject` wrote to separate files begins at 0x80), and the
    user's return addresses are one lower than they are.
    """
    rows = profile.sql("""
        WITH RECURSIVE up AS (
            SELECT ts_ns, stack_id, 0 AS n FROM samples
            UNION ALL
            SELECT ts_ns, parent_stack_id, n + 1 FROM up JOIN stacks USING (stack_id)
            WHERE parent_stack_id IS NOT NULL)
        SELECT ts_ns, CASE WHEN f.kind = 'kernel' THEN address
            WHEN code_object_id IS NOT NULL THEN relative_address + 128 - (unwound_by <> 'sampled')::UBIGINT
            ELSE address - (unwound_by <> 'sampled')::UBIGINT
                - coalesce(start_address, 0) + coalesce(file_offset, 0) END
        FROM up JOIN stacks USING (stack_id) JOIN frames f USING (frame_id)
            LEFT JOIN mappings USING (mapping_id)
        WHERE inline_depth = 0 ORDER BY ts_ns, n""").fetchall()
    found: dict[int, Chain] = defaultdict(list)
    for ts_ns, address in rows:
        found[ts_ns].append(address)
    return dict(found)
