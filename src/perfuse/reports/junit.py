"""What `check` found as JUnit XML, the form of test results that CI systems read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from perfuse.diagnostics import Diagnostic, Rule
from perfuse.output.terminal import escaped
from perfuse.reports.checked_files import CheckedFile, by_rule, located_message
from perfuse.reports.units import counted

CONFORMS = "conforms to its specification"
"""The test case of a file in which no rule is violated."""
CLASS_NAME = "perfuse.check"
_NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot have (section 2.2), even as references."""


def junit_document(files: Sequence[CheckedFile]) -> bytes:
    """A document with a suite for each file, and in it a test case for each rule that is violated.

    Findings are failures, accepted findings skipped, notes passed; a file that cannot be read is an error.
    """
    root = Element("testsuites", name="perfuse check")
    for file in files:
        suite = SubElement(root, "testsuite", name=_text(file.path))
        for case in _cases(file):
            suite.append(case)
        _count(suite, suite)
    _count(root, root)
    indent(root)
    document: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _count(element: Element, within: Element) -> None:
    """Sets the numbers of test cases and of their outcomes."""
    element.set("tests", str(sum(1 for _ in within.iter("testcase"))))
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(attribute, str(sum(1 for _ in within.iter(tag))))


def _cases(file: CheckedFile) -> Iterator[Element]:
    from perfuse.diagnostics import explain

    if file.unreadable:
        case = _case(file, "can be read")
        SubElement(case, "error", message=_text(file.unreadable), type="unreadable")
        yield case
        return
    if not file.others and not file.accepted:
        yield _case(file, CONFORMS)
    for found in by_rule(file.others):
        rule = explain(found[0].code)
        case = _case(file, _title(rule))
        tag = "failure" if found[0].is_finding else "system-out"
        inner = SubElement(case, tag)
        if tag == "failure":
            inner.set("message", _text(f"{counted(sum(one.count for one in found), 'time')}: {found[0].message}"))
            inner.set("type", rule.severity)
        inner.text = _text("\n".join(_lines(rule, found)))
        yield case
    for found in by_rule(file.accepted):
        case = _case(file, f"{_title(explain(found[0].code))} (accepted)")
        number = counted(sum(one.count for one in found), "time")
        SubElement(case, "skipped", message=f"{number}, accepted by --accept or --accept-file")
        yield case


def _case(file: CheckedFile, name: str) -> Element:
    return Element("testcase", classname=CLASS_NAME, name=_text(name), file=_text(file.path))


def _title(rule: Rule) -> str:
    return f"{rule.code} {rule.title}"


def _lines(rule: Rule, found: Sequence[Diagnostic]) -> Iterator[str]:
    yield f"{rule.code} {rule.severity}: {rule.title}"
    if rule.section:
        yield f"Specification: {rule.format}, section {rule.section}"
    for one in found:
        more = f" ({counted(one.count, 'occurrence')})" if one.count > 1 else ""
        yield f"  {located_message(one)}{more}"
    yield rule.meaning
    yield f"What to do: {rule.action}"


def _text(text: str) -> str:
    """A text without characters that XML cannot have: they are written as escapes."""
    return _NOT_IN_XML.sub(lambda match: f"\\u{ord(match[0]):04x}", escaped(text))
