"""`check --accept`: findings that CI can live with do not change the exit code, and are counted."""

import json
from pathlib import Path

import pytest
from command_line import Perfuse


@pytest.mark.truth(
    recording="sframe_program",
    path="check",
    source="errors of the linkers of binutils 2.40 to 2.47 in PLTs: the corpus' manifest, and binutils PR 32296",
)
def test_known_errors_of_linkers_are_accepted_by_section(perfuse: Perfuse, sframe_corpus: Path) -> None:
    new, old = (str(sframe_corpus / version / "x86_64" / "small_ibt.elf") for version in ("v3", "v1"))
    assert perfuse("check", new).code == 1
    done = perfuse("check", "--accept", "SF075@.plt.got", new)
    assert (done.code, done.err) == (0, "")
    assert "3 notes; 1 accepted" in done.out
    assert "accepted  SF075@.plt.got  1 time" in done.out
    done = perfuse("check", "--accept", "SF075@.text", new)
    assert done.code == 1
    assert "nothing was found that SF075@.text accepts" in done.err
    # The linker of 2.40 has wrong rows in .plt and .plt.sec: one section of the two is not enough.
    assert perfuse("check", "--accept", "SF075@.plt.sec", old).code == 1
    assert perfuse("check", "--accept", "SF075@.plt.sec", "--accept", "sf075@.plt", old).code == 0


def test_accepted_findings_of_several_files_are_counted_in_json(perfuse: Perfuse, sframe_corpus: Path) -> None:
    paths = [str(sframe_corpus / version / "x86_64" / "small_ibt.elf") for version in ("v1", "v3")]
    options = ("--accept", "SF075@.plt.sec", "--accept", "SF075", "--accept", "JD010")
    done = perfuse("check", "--json", *options, *paths)
    assert done.code == 0
    shown = json.loads(done.out)
    assert [(one["accept"], one["count"]) for one in shown["accepted"]] == [
        ("SF075@.plt.sec", 2),
        ("SF075", 2),
        ("JD010", 0),
    ]
    for recording, expected in zip(shown["recordings"], (3, 1), strict=True):
        accepted = [one for one in recording["diagnostics"] if one["accepted"]]
        assert recording["accepted"] == len(accepted) == expected
        assert all(one["code_section"].startswith(".plt") for one in accepted)


def test_findings_of_other_formats_are_accepted_by_rule_and_field(perfuse: Perfuse, recordings: Path) -> None:
    [recording] = json.loads(perfuse("check", "--json", "damaged.dump").out)["recordings"]
    findings = [one for one in recording["diagnostics"] if one["severity"] != "info"]
    assert findings
    places = {f"{one['code']}@{one['field']}" if one["field"] else one["code"] for one in findings}
    lines = [f"{place}  # known" for place in sorted(places)]
    (recordings / "accepted").write_text("\n".join(["# of the producer", "", *lines]), encoding="utf-8")
    done = perfuse("check", "--accept-file", "accepted", "damaged.dump")
    assert (done.code, done.err) == (0, "")
    assert f"{sum(one['count'] for one in findings)} accepted" in done.out
    one_missing = [word for place in sorted(places)[1:] for word in ("--accept", place)]
    assert perfuse("check", *one_missing, "damaged.dump").code == 1


def test_limits_count_what_is_left(perfuse: Perfuse, sframe_corpus: Path) -> None:
    path = str(sframe_corpus / "v1" / "x86_64" / "small_ibt.elf")
    everything = json.loads(perfuse("check", "--json", path).out)["recordings"][0]["diagnostics"]
    limited = json.loads(perfuse("check", "--json", "--limit", "1", "--accept", "JD010", path).out)
    rows = limited["recordings"][0]["diagnostics"]
    assert len({row["code"] for row in rows}) == len(rows) < len(everything)
    assert sum(row["count"] for row in rows) == sum(row["count"] for row in everything)


@pytest.mark.parametrize(
    ("accepted", "message"),
    [
        ("SF75", "no rule has the code SF75"),
        ("SF081", "SF081 is a note"),
        ("SF075@", "nothing follows the @"),
    ],
)
def test_what_cannot_be_accepted_is_an_error(perfuse: Perfuse, recordings: Path, accepted: str, message: str) -> None:
    done = perfuse("check", "--accept", accepted, "damaged.dump")
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    (recordings / "accepted").write_text(f"JD010\n{accepted}\n", encoding="utf-8")
    done = perfuse("check", "--accept-file", "accepted", "damaged.dump")
    assert done.code == 2
    assert f"accepted, line 2: {message}" in done.err
    assert perfuse("check", "--accept-file", "absent", "damaged.dump").code in (2, 3)
