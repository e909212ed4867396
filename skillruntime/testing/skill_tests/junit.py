"""Write the results as JUnit XML, which build servers show as a list of tests."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

from skillruntime.testing.skill_tests.results import CallableResult, SkillTestReport

__all__ = ["to_junit"]

# XML 1.0, 2.2: code points that are not allowed in a document.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(report: SkillTestReport) -> str:
    """Return *report* as JUnit XML: a suite for each skill, a test for each callable;
    an untestable callable is skipped.
    """
    root = ElementTree.Element("testsuites", name="skillruntime")
    for skill in report.skills:
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=_text(skill.name),
            tests=str(len(skill.callables)),
            failures=str(sum(each.status == "failed" for each in skill.callables)),
            skipped=str(sum(each.status == "not testable" for each in skill.callables)),
            time=f"{skill.seconds:.1f}",
        )
        for each in skill.callables:
            test = ElementTree.SubElement(
                suite, "testcase", classname=_text(skill.name), name=_text(each.name)
            )
            _add_outcome(test, each)
    ElementTree.indent(root)
    return ElementTree.tostring(root, "unicode", xml_declaration=True)


def _add_outcome(test: ElementTree.Element, result: CallableResult) -> None:
    for failure in result.failures:
        element = ElementTree.SubElement(
            test, "failure", type=failure.check, message=_text(failure.message)
        )
        arguments = json.dumps(failure.arguments, ensure_ascii=False)
        element.text = _text(f"arguments: {arguments}\n{failure.command}")
    if result.status == "not testable":
        reasons = [f"{each.reason}; {each.remedy}" for each in result.hindrances]
        ElementTree.SubElement(test, "skipped", message=_text("; ".join(reasons)))


def _text(text: str) -> str:
    return _NOT_XML.sub("�", text)
