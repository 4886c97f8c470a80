"""`check --sarif` and `--junit`: the readers of others understand them, and they have what the text and JSON have."""

import json
import os
import shutil
import struct
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes
from xml.etree import ElementTree

import pytest
from command_line import Perfuse

from node_peers import node_modules

HERE = Path(__file__).parent
DAMAGED, DUMP = "damaged.dump", "jit-2345.dump"
EVERY_KIND = (DAMAGED, DUMP, "perf.data", "xray-log.server.Qd81xw", "libsmall.so", "output.mlpd")
FINDINGS, USAGE, UNREADABLE = 1, 2, 3


@pytest.fixture(scope="session")
def multitool() -> Path:
    """Microsoft's validator of SARIF."""
    tool = node_modules(HERE / "peers" / "package.json") / "@microsoft" / "sarif-multitool-linux" / "Sarif.Multitool"
    tool.chmod(0o755)
    return tool


def judged(multitool: Path, log: Path) -> Counter[str]:
    """Errors and warnings of the validator, its rules for GitHub included, by rule."""
    out = log.with_suffix(".judged.sarif")
    command = [multitool, "validate", log, "--rule-kind", "Sarif;Ghas", "--level", "Error;Warning", "-o", out]
    environment = {**os.environ, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert out.exists(), done.stdout + done.stderr
    document = json.loads(out.read_text(encoding="utf-8-sig"))
    return Counter(result["ruleId"] for run in document["runs"] for result in run.get("results", []))


def diagnostics_of(perfuse: Perfuse, *words: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for recording in json.loads(perfuse("check", "--json", *words).out)["recordings"]:
        for found in recording["diagnostics"]:
            yield recording["path"], found


def test_the_validator_accepts_every_kind(perfuse: Perfuse, multitool: Path, tmp_path: Path) -> None:
    done = perfuse("check", "--sarif", "check.sarif", "--accept", "JD052", *EVERY_KIND, "nosuch")
    assert done.code == UNREADABLE
    assert judged(multitool, tmp_path / "check.sarif") == Counter()


def test_the_validator_is_not_blind(perfuse: Perfuse, multitool: Path, tmp_path: Path) -> None:
    perfuse("check", "--sarif", "check.sarif", DAMAGED)
    document = json.loads((tmp_path / "check.sarif").read_bytes())
    document["runs"][0]["results"][0]["ruleIndex"] = 99
    (tmp_path / "wrong.sarif").write_text(json.dumps(document))
    assert judged(multitool, tmp_path / "wrong.sarif") == {"SARIF1009": 1}


def test_sarif_has_every_diagnostic_of_json(perfuse: Perfuse, tmp_path: Path) -> None:
    options = ("--accept", "JD052")
    expected = list(diagnostics_of(perfuse, *options, *EVERY_KIND))
    assert {found["severity"] for _, found in expected} >= {"info", "warning", "data_loss"}
    perfuse("check", "--sarif", "check.sarif", *options, *EVERY_KIND)
    [run] = json.loads((tmp_path / "check.sarif").read_bytes())["runs"]
    levels = {"info": "note", "warning": "warning", "data_loss": "error", "error": "error"}
    rules = run["tool"]["driver"]["rules"]
    found = []
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        [location] = result["locations"]
        place = location["physicalLocation"]
        uri = place["artifactLocation"]["uri"]
        assert run["artifacts"][place["artifactLocation"]["index"]]["location"]["uri"] == uri
        known = result["properties"]
        found.append(
            (
                uri,
                result["ruleId"],
                result["level"],
                place.get("region", {}).get("byteOffset"),
                known.get("record_index"),
                known.get("section", ""),
                result["occurrenceCount"],
                "suppressions" in result,
            )
        )
    assert Counter(found) == Counter(
        (
            path,
            one["code"],
            levels[one["severity"]],
            one["offset"],
            one["record_index"],
            one["section"],
            one["count"],
            one["accepted"],
        )
        for path, one in expected
    )
    message = next(one["message"]["text"] for one in run["results"] if one["ruleId"] == "JD010")
    [(_, truncated)] = [pair for pair in expected if pair[1]["code"] == "JD010"]
    assert message.startswith(f"offset {truncated['offset']:#x}, record {truncated['record_index']}, ")
    assert f"(section {truncated['section']} of the specification)" in message


def test_results_are_recognized_where_offsets_are_others(perfuse: Perfuse, tmp_path: Path) -> None:
    """A fingerprint belongs to one result of a file, and the result of the next recording has it, too."""
    dump = (tmp_path / DAMAGED).read_bytes()
    header, records = dump[:40], dump[40:]
    close = struct.pack("<IIQ", 3, 24, 0) + bytes(8)
    (tmp_path / "later.dump").write_bytes(header + close + records)
    perfuse("check", "--sarif", "check.sarif", DAMAGED, "later.dump")
    [run] = json.loads((tmp_path / "check.sarif").read_bytes())["runs"]
    found: dict[str, dict[str, tuple[str, int]]] = {DAMAGED: {}, "later.dump": {}}
    for result in run["results"]:
        [location] = result["locations"]
        place = location["physicalLocation"]
        [fingerprint] = result["partialFingerprints"].values()
        of_file = found[place["artifactLocation"]["uri"]]
        assert fingerprint not in of_file
        of_file[fingerprint] = (result["ruleId"], place.get("region", {}).get("byteOffset"))
    first, later = found[DAMAGED], found["later.dump"]
    assert first.keys() <= later.keys()
    moved = [one for one in first if first[one] != later[one]]
    assert moved
    assert all(first[one][0] == later[one][0] and later[one][1] - first[one][1] == len(close) for one in moved)


def test_the_hint_at_more_places_leads_to_them(perfuse: Perfuse, tmp_path: Path) -> None:
    """All places of a note are one row, of which no limit shows more."""
    (tmp_path / "zeros.dump").write_bytes(2 * ((tmp_path / DAMAGED).read_bytes() + bytes(48)))
    hint = "--limit 0 shows all"
    severity = ""
    with_hint: dict[str, set[bool]] = {}
    for line in perfuse("check", "--limit", "1", "zeros.dump").out.splitlines():
        if line.startswith("  ") and line[2:3].strip():
            severity = line.split()[1]
        elif line.strip().startswith("…"):
            with_hint.setdefault(severity, set()).add(hint in line)
    assert with_hint.pop("info") == {False}
    assert list(with_hint.values()) == [{True}] * len(with_hint) != []
    assert hint not in perfuse("check", "--limit", "0", "zeros.dump").out


def test_a_name_that_is_not_utf8_is_reported_with_the_other_files(perfuse: Perfuse, tmp_path: Path) -> None:
    """Of a directory, such as that of a build: the name is nobody's choice here."""
    directory = tmp_path / "dumps"
    directory.mkdir()
    shutil.copy(tmp_path / DUMP, os.fsencode(directory) + b"/jit-1\xff.dump")
    shutil.copy(tmp_path / DUMP, directory / "jit-2.dump")
    done = perfuse("check", "--json", "--sarif", "check.sarif", "--junit", "check.xml", "dumps")
    assert done.code == UNREADABLE
    assert done.err.count("not UTF-8") == 1
    bad, good = json.loads(done.out)["recordings"]
    assert bad["path"] == r"dumps/jit-1\xff.dump"
    assert "not UTF-8" in bad["unreadable"]
    assert good["diagnostics"]
    [run] = json.loads((tmp_path / "check.sarif").read_bytes())["runs"]
    uris = [artifact["location"]["uri"] for artifact in run["artifacts"]]
    assert uris == ["dumps/jit-1%FF.dump", "dumps/jit-2.dump"]
    _, document = read_junit(tmp_path / "check.xml")
    assert (document.errors, document.failures > 0) == (1, True)


def read_junit(path: Path) -> Any:
    """A document as junitparser reads it."""
    junitparser = pytest.importorskip("junitparser")
    return junitparser, junitparser.JUnitXml.fromfile(str(path))


def test_a_reader_of_junit_counts_the_rules(perfuse: Perfuse, tmp_path: Path) -> None:
    words = ("--accept", "JD052", *EVERY_KIND)
    expected: dict[str, Counter[str]] = {path: Counter() for path in (*EVERY_KIND, "nosuch")}
    seen = set()
    for path, found in diagnostics_of(perfuse, *words):
        outcome = "skipped" if found["accepted"] else "passed" if found["severity"] == "info" else "failures"
        if (path, found["code"], outcome) not in seen:
            seen.add((path, found["code"], outcome))
            expected[path][outcome] += 1
    expected["nosuch"]["errors"] += 1
    for counts in expected.values():
        counts["passed"] += not counts  # a file without any diagnostic
    assert perfuse("check", "--junit", "check.xml", *words, "nosuch").code == UNREADABLE
    junitparser, document = read_junit(tmp_path / "check.xml")
    suites = {suite.name: suite for suite in document}
    assert list(suites) == [*EVERY_KIND, "nosuch"]
    for path, suite in suites.items():
        outcomes = Counter(
            {junitparser.Failure: "failures", junitparser.Error: "errors", junitparser.Skipped: "skipped"}[
                type(case.result[0])
            ]
            if case.result
            else "passed"
            for case in suite
        )
        assert outcomes == +expected[path], path
        assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (
            outcomes.total(),
            outcomes["failures"],
            outcomes["errors"],
            outcomes["skipped"],
        )
    totals = sum(expected.values(), Counter())
    assert (document.tests, document.failures, document.errors) == (
        totals.total(),
        totals["failures"],
        totals["errors"],
    )
    [failed] = [case for case in suites[DAMAGED] if case.name.startswith("JD010")]
    assert failed.result[0].type == "data_loss"
    assert "offset 0x" in failed.result[0].text
    assert "Specification: jitdump, section IV" in failed.result[0].text


@pytest.mark.parametrize(
    ("words", "code"),
    [((DAMAGED,), FINDINGS), (("--accept", "JD010", "--accept", "JD052", DAMAGED), 0), (("nosuch",), UNREADABLE)],
)
def test_exit_codes_are_those_without_reports(perfuse: Perfuse, words: tuple[str, ...], code: int) -> None:
    assert perfuse("check", *words).code == code
    assert perfuse("check", *words, "--sarif", "a.sarif", "--junit", "a.xml").code == code
    [run] = json.loads(Path("a.sarif").read_bytes())["runs"]
    assert run["invocations"][0]["exitCode"] == code
    assert run["invocations"][0]["executionSuccessful"] == (code != UNREADABLE)


def test_the_text_is_the_same_with_reports(perfuse: Perfuse) -> None:
    text = perfuse("check", DAMAGED).out
    assert perfuse("check", "--sarif", "a.sarif", "--junit", "a.xml", DAMAGED).out == text
    as_json = perfuse("check", "--json", DAMAGED).out
    assert perfuse("check", "--json", "--junit", "a.xml", DAMAGED).out == as_json


def test_standard_output(perfuse: Perfuse) -> None:
    assert json.loads(perfuse("check", "--sarif", "-", DAMAGED).out)["version"] == "2.1.0"
    assert ElementTree.fromstring(perfuse("check", "--junit", "-", DAMAGED).out).tag == "testsuites"
    for words in (("--sarif", "-", "--junit", "-"), ("--json", "--sarif", "-"), ("--sarif", "a", "--junit", "./a")):
        done = perfuse("check", *words, DAMAGED)
        assert (done.code, done.out) == (USAGE, "")
        assert not Path("a").exists()


def test_a_limit_is_said_in_the_last_row(perfuse: Perfuse, sframe_corpus: Path) -> None:
    path = str(sframe_corpus / "v1" / "x86_64" / "small_ibt.elf")
    places: Counter[str] = Counter()
    for _, found in diagnostics_of(perfuse, path):
        places[found["code"]] += found["count"]
    assert max(places.values()) > 2
    perfuse("check", "--limit", "2", "--sarif", "a.sarif", path)
    [run] = json.loads(Path("a.sarif").read_bytes())["runs"]
    counts: Counter[str] = Counter()
    for result in run["results"]:
        counts[result["ruleId"]] += result["occurrenceCount"]
    assert counts == places
    assert max(Counter(result["ruleId"] for result in run["results"]).values()) == 2


def test_neither_inputs_nor_files_of_other_kinds_are_overwritten(perfuse: Perfuse) -> None:
    before = Path(DAMAGED).read_bytes()
    for option in ("--sarif", "--junit"):
        done = perfuse("check", option, DAMAGED, DAMAGED)
        assert done.code == USAGE
        assert "is an input" in done.err
        assert perfuse("check", option, DAMAGED, "perf.data").code == USAGE
        assert perfuse("check", option, "nowhere/a", DAMAGED).code == USAGE
    assert Path(DAMAGED).read_bytes() == before
    Path("notes").write_text("precious")
    assert perfuse("check", "--junit", "notes", DAMAGED).code == USAGE
    assert Path("notes").read_text() == "precious"
    assert perfuse("check", "--junit", "notes", "--force", DAMAGED).code == FINDINGS
    assert perfuse("check", "--junit", "notes", DAMAGED).code == FINDINGS, "its own kind is replaced"


NAMES: list[bytes] = [
    b"two words;#?%.dump",
    b"\x1b[31mred\x07.dump",
    '\ufffe\u202e<&">.dump'.encode(),
]


@pytest.mark.parametrize("name", NAMES)
def test_any_file_name(perfuse: Perfuse, multitool: Path, tmp_path: Path, name: bytes) -> None:
    path = os.fsdecode(name)
    shutil.copy(DAMAGED, path)
    assert perfuse("check", "--sarif", "a.sarif", "--junit", "a.xml", path).code == FINDINGS
    [run] = json.loads(Path("a.sarif").read_bytes())["runs"]
    assert unquote_to_bytes(run["artifacts"][0]["location"]["uri"]) == name
    assert judged(multitool, tmp_path / "a.sarif") == Counter()
    content = Path("a.xml").read_text(encoding="utf-8")
    assert ElementTree.fromstring(content)[0].tag == "testsuite"
    assert all(character in "\n" or character.isprintable() for character in content)


def test_absolute_paths_and_those_above_are_file_uris(perfuse: Perfuse, tmp_path: Path) -> None:
    above = f"../{tmp_path.name}/{DAMAGED}"
    perfuse("check", "--sarif", "a.sarif", str(tmp_path / DAMAGED), above, f"./{DAMAGED}")
    [run] = json.loads(Path("a.sarif").read_bytes())["runs"]
    expected = (tmp_path / DAMAGED).as_uri()
    assert [one["location"]["uri"] for one in run["artifacts"]] == [expected, expected, DAMAGED]


def annotations(out: str) -> list[tuple[str, dict[str, str], str]]:
    """Level, properties and message of each command, unescaped as the runner of GitHub does (`ActionCommand.cs`)."""

    def unescape(text: str, *, is_property: bool) -> str:
        marks = {"%3A": ":", "%2C": ","} if is_property else {}
        for escape, character in {"%0D": "\r", "%0A": "\n", **marks, "%25": "%"}.items():
            text = text.replace(escape, character)
        return text

    found = []
    for line in out.splitlines():
        head, _, message = line.removeprefix("::").partition("::")
        level, _, properties = head.partition(" ")
        pairs = (pair.split("=", 1) for pair in properties.split(","))
        named = {name: unescape(value, is_property=True) for name, value in pairs}
        found.append((level, named, unescape(message, is_property=False)))
    return found


def test_annotations_name_each_rule_with_its_section(perfuse: Perfuse) -> None:
    done = perfuse("check", "--github", "-", "--accept", "JD053", *EVERY_KIND, "nosuch")
    assert done.code == UNREADABLE
    expected = {
        (path, one["code"]): one
        for path, one in reversed([*diagnostics_of(perfuse, *EVERY_KIND)])
        if one["severity"] != "info" and one["code"] != "JD053"
    }
    found = annotations(done.out)
    assert {(of["file"], of["title"].split()[0]) for _, of, _ in found} == {*expected, ("nosuch", "cannot")}
    for level, of, message in found:
        one = expected.get((of["file"], of["title"].split()[0]))
        if one is None:
            assert level == "error"
            continue
        assert level == ("warning" if one["severity"] == "warning" else "error")
        assert one["message"] in message
        assert (f"(section {one['section']} of the specification)" in message) == bool(one["section"])


def test_annotations_keep_any_file_name(perfuse: Perfuse, tmp_path: Path) -> None:
    name = "a,b:c%2C=d.dump"
    shutil.copy(tmp_path / DAMAGED, tmp_path / name)
    assert {of["file"] for _, of, _ in annotations(perfuse("check", "--github", "-", name).out)} == {name}


def test_annotations_share_no_output(perfuse: Perfuse) -> None:
    done = perfuse("check", "--github", "-", "--json", DUMP)
    assert (done.code, done.out) == (USAGE, "")
    assert perfuse("check", "--github", "x", "--sarif", "x", DUMP).code == USAGE
