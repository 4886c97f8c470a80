"""Names in the vdso of this machine where its build id was not recorded, as with perf 7."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

from tools import output_of

import perfuse as pf
from needs import need

SOURCE = """
#include <time.h>
int main(void) {
    struct timespec now;
    for (int i = 0; i < 20000000; i++) clock_gettime(CLOCK_MONOTONIC, &now);
    return 0;
}
"""


def test_names_are_perfs(tmp_path: Path) -> None:
    need("perf")
    need("cc")
    (tmp_path / "clock.c").write_text(SOURCE, encoding="ascii")
    subprocess.run(["cc", "-O1", tmp_path / "clock.c", "-o", tmp_path / "clock"], check=True)
    recording = tmp_path / "perf.data"
    options = ["-q", "-B", "-N", "-e", "cpu-clock:u", "-F", "999", "-o", recording]
    subprocess.run(["perf", "record", *options, "--", tmp_path / "clock"], check=True)
    shown = output_of("perf", "script", "-i", recording, "-F", "ip,sym,dso")
    of_perf = Counter(re.findall(r"^\s*[0-9a-f]+ (\S+) \(\[vdso\]\)$", shown, re.MULTILINE))
    profile = pf.fuse(recording)
    rows = profile.sql("""SELECT f.name, count(*) FROM samples JOIN stacks USING (stack_id) JOIN frames USING (frame_id)
        JOIN functions f USING (function_id) JOIN modules m USING (module_id) WHERE m.name = '[vdso]' GROUP BY 1""")
    del of_perf["[unknown]"]
    assert dict(rows.fetchall()) == of_perf
    assert of_perf.total() > 50
