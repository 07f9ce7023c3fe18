"""Comparisons as JUnit XML, which CI systems display: one test case per input or pair.

Written for the schema that Jenkins' JUnit plug-in and GitLab read: testsuites, testsuite, testcase, failure, error.
Characters that XML does not allow, or that a terminal would interpret, are escaped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree

from edgeconv.core.text import visible, visible_lines
from edgeconv.io.files import utf8, xml_text

JUnitOutcome = Literal["passed", "failure", "error"]


@dataclass(frozen=True)
class JUnitCase:
    """One line of the report."""

    name: str
    outcome: JUnitOutcome
    message: str = ""
    """One line: what differs or went wrong."""
    details: str = ""


def to_xml(suite: str, cases: Iterable[JUnitCase]) -> bytes:
    """The report as UTF-8 XML."""
    listed = list(cases)
    counts = {
        "tests": str(len(listed)),
        "failures": str(sum(case.outcome == "failure" for case in listed)),
        "errors": str(sum(case.outcome == "error" for case in listed)),
    }
    root = ElementTree.Element("testsuites", counts)
    group = ElementTree.SubElement(root, "testsuite", {"name": suite, **counts})
    for case in listed:
        entry = ElementTree.SubElement(group, "testcase", {"classname": suite, "name": visible(case.name)})
        if case.outcome != "passed":
            ElementTree.SubElement(entry, case.outcome, {"message": visible(case.message)}).text = visible_lines(
                case.details
            )
    ElementTree.indent(root)
    xml: str = ElementTree.tostring(root, encoding="unicode", xml_declaration=True)
    return utf8(xml_text(xml) + "\n")
