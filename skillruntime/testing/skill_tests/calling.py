"""Make the calls of a test, each in its own workspace with the files that it needs."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath

from skillruntime.catalog.directory_walk import walk
from skillruntime.errors import ErrorCode
from skillruntime.testing.skill_tests.checks import first_failure
from skillruntime.testing.skill_tests.expected.written_files import REMOVED, digest_of
from skillruntime.testing.skill_tests.hindrances import LONGEST_CALL, hindrance_of
from skillruntime.testing.skill_tests.inputs.case import Case
from skillruntime.testing.skill_tests.inputs.made_files import (
    is_file_name,
    made_file,
    texts_of,
)
from skillruntime.testing.skill_tests.inputs.repository import make_repository
from skillruntime.testing.skill_tests.inputs.sample_files import sample_for
from skillruntime.testing.skill_tests.lessons import Lessons, asks_for_repository
from skillruntime.testing.skill_tests.runs import Run
from skillruntime.testing.skill_tests.search.reached_lines import noted_steps
from skillruntime.testing.skill_tests.subject import Subject

__all__ = ["Caller"]

_MOST_REPEATS = 10
"""How often a call is repeated with other texts and files, until one ends well."""

_MOST_LATER_REPEATS = 3
"""How often a call is repeated after another one ended well."""


@dataclass(slots=True)
class Caller:
    """Makes calls of *subject*, and learns from the results which files it needs."""

    subject: Subject
    lessons: Lessons
    has_succeeded: bool = False
    """Whether a call has ended well."""

    without_files: set[str] = field(default_factory=set)
    """Parameters for which no file is made, because they name output files."""

    variants: dict[str, Mapping[str, bytes]] = field(default_factory=dict)
    """The files of each name that stands for a further file or directory."""

    traces: bool = True
    """Whether calls are traced; not after one that took too long."""

    @classmethod
    def of(cls, subject: Subject) -> Caller:
        """Return a caller of *subject* that knows nothing of its script."""
        return cls(subject, Lessons(subject))

    async def call(self, case: Case) -> Run:
        """Make the call of *case* with the files that it names. If it fails, repeat it
        with what the script seems to expect, and finally without the files that it may
        want to write.

        What a failed call shows is used in all calls until one has ended well; later it
        is used for that call alone, and only if the repeated call ends well.
        """
        first = await self._call_once(case)
        if not self.has_succeeded:
            run = await self._repeated(first, case, _MOST_REPEATS)
            self.has_succeeded |= run.has_ended_well
            return run
        learning = replace(self, lessons=self.lessons.for_one_call())
        run = await learning._repeated(first, case, _MOST_LATER_REPEATS)
        self.traces &= learning.traces
        if run.has_ended_well:
            return run
        return first

    async def _call_once(self, case: Case) -> Run:
        case = self.with_lessons(case)
        return await self.call_traced(case, self.files_of(case))

    async def _repeated(self, run: Run, case: Case, most: int) -> Run:
        """Return *run* if it ended well or shows a fault, else the last of at most
        *most* further runs of *case*, each with what the one before showed.
        """
        for _ in range(most):
            if run.has_ended_well or _shows_a_fault(run):
                break
            if not self.lessons.learn_from(run):
                break
            run = await self._call_once(case)
        if run.has_ended_well or not run.files or case.has_outputs:
            return run
        # No file explains what a script prints beside its JSON.
        if any(check == "output" for check, _ in first_failure(run)):
            return run
        return await self._called_without_a_file(run)

    async def call_with(self, case: Case, files: Mapping[str, bytes]) -> Run:
        """Make one call in a workspace with *files*, and return the run. If the script
        asks for a Git repository, and this is known, the workspace becomes one.
        """
        run = await self._call_in_workspace(case, files, is_repository=False)
        if self.lessons.needs_repository and asks_for_repository(run):
            run = await self._call_in_workspace(case, files, is_repository=True)
        return run

    async def _call_in_workspace(
        self, case: Case, files: Mapping[str, bytes], *, is_repository: bool
    ) -> Run:
        subject = self.subject
        stated = subject.contract.run.get("timeout_seconds")
        has_own_timeout = isinstance(stated, int | float)
        timeout = min(LONGEST_CALL, max(1.0, subject.ends - time.monotonic()))
        if isinstance(stated, int | float):
            timeout = float(stated)
        files = {**subject.fixtures.workspace, **files}
        with tempfile.TemporaryDirectory(prefix="skillruntime-test-") as temporary:
            workspace = Path(temporary).resolve() / "workspace"
            workspace.mkdir()
            files = _written(workspace, files)
            of_git: dict[str, bytes] = {}
            if is_repository:
                of_git = make_repository(workspace)
            with subject.runtime.session(workspace=workspace) as session:
                response = await session.call(
                    subject.name,
                    case.arguments,
                    version=case.version,
                    timeout=timeout,
                    grants=subject.tests.grants,
                )
            after = _sizes_of_files(workspace, without_git=bool(of_git))
            places = (str(workspace), str(subject.skill.directory))
            return Run(
                case,
                subject.contract,
                response,
                files=files,
                made=frozenset(files.keys() - subject.fixtures.paths),
                after=after,
                changed=_changed_files(workspace, files | of_git, after, places),
                places=places,
                timeout=timeout,
                has_own_timeout=has_own_timeout,
                in_repository=is_repository,
            )

    async def call_traced(self, case: Case, files: Mapping[str, bytes]) -> Run:
        """Make one call, and note what the script executed. If it fails, repeat it
        without the trace, which must not be the cause.
        """
        if not self.traces:
            return await self.call_with(case, files)
        with noted_steps() as steps:
            run = await self.call_with(case, files)
        is_late = ErrorCode.TOOL_TIMEOUT in run.codes
        if is_late:
            self.traces = False
        if is_late or any(first_failure(run)):
            run = await self.call_with(case, files)
        return replace(run, steps=frozenset(steps))

    def files_of(self, case: Case) -> dict[str, bytes]:
        """Return the files that *case* names, for its workspace."""
        files: dict[str, bytes] = {}
        for name, value in case.arguments.items():
            if name in self.without_files and not case.has_outputs:
                continue
            for text in texts_of(value):
                files |= self._files_at(text)
        return files

    def fixtures_of(self, case: Case) -> dict[str, bytes]:
        """Return the skill's own files that *case* names, or whose directory it
        names.
        """
        files: dict[str, bytes] = {}
        for text in texts_of(case.arguments):
            files |= self._fixtures_at(text)
        return files

    def to_repeat_with(self, files: Mapping[str, bytes]) -> Caller:
        """Return a caller for a skill that has *files* among its own files, with the
        whole time of the test again.
        """
        subject = self.subject
        fixtures = subject.fixtures
        return Caller.of(
            replace(
                subject,
                fixtures=replace(fixtures, named={**files, **fixtures.named}),
                ends=time.monotonic() + subject.tests.seconds,
            )
        )

    def _fixtures_at(self, text: str) -> dict[str, bytes]:
        named = self.subject.fixtures.named
        if text in named:
            return {text: named[text]}
        directory = f"{text.rstrip('/')}/"
        return {
            path: data for path, data in named.items() if path.startswith(directory)
        }

    def _files_at(self, text: str) -> dict[str, bytes]:
        """Return the files for the workspace if *text* is a path."""
        if text in self.subject.fixtures.workspace:
            return {}
        own = self._fixtures_at(text)
        if own:
            return own
        if text in self.variants:
            return dict(self.variants[text])
        if text in self.lessons.directories:
            return {
                f"{text}/{path}": self.lessons.document_for(path) or data
                for path, data in self.lessons.directories[text].items()
            }
        if not is_file_name(text):
            return {}
        data = self.lessons.document_for(text)
        if data is None:
            data = sample_for(text, self.subject.samples)
        if data is None:
            data = made_file(text)
        if data is None:
            return {}
        return {text: data}

    def with_lessons(self, case: Case) -> Case:
        """Return *case* with the texts that the script seems to expect."""
        return self.lessons.applied_to(case, kept=self.variants)

    async def _called_without_a_file(self, run: Run) -> Run:
        """Return *run*, or a run that succeeded without the file of one parameter,
        which then is an output file of the script.
        """
        for name, value in run.case.arguments.items():
            if name in self.without_files or not any(
                map(is_file_name, texts_of(value))
            ):
                continue
            others = {**run.case.arguments}
            others.pop(name)
            files = self.files_of(replace(run.case, arguments=others))
            again = await self.call_traced(run.case, files)
            if again.has_ended_well:
                self.without_files.add(name)
                return again
        return run


def _written(workspace: Path, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Write *files* below *workspace*, and return those that could be written. Messages
    of scripts become paths: one may lead outside, be too long or below a file.
    """
    written = {}
    for path, data in files.items():
        target = workspace / path
        if not _stays_inside(path):
            continue
        with suppress(OSError):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            written[path] = data
    return written


def _stays_inside(path: str) -> bool:
    """Return whether *path*, relative to the workspace, leads to a place in it."""
    parts = PurePath(path).parts
    return bool(parts) and ".." not in parts and not PurePath(path).is_absolute()


def _shows_a_fault(run: Run) -> bool:
    """Return whether *run* failed a check, and nothing that was missing explains it."""
    return any(first_failure(run)) and hindrance_of(run) is None


def _changed_files(
    workspace: Path,
    files: Mapping[str, bytes],
    after: Mapping[str, int],
    places: tuple[str, ...],
) -> dict[str, str]:
    """Return the digests of new, removed and changed files, by path."""
    changed = {}
    for path in files:
        if path not in after:
            changed[path] = REMOVED
    for path, size in after.items():
        is_old = path in files and size == len(files[path])
        if is_old and (workspace / path).read_bytes() == files[path]:
            continue
        changed[path] = digest_of(workspace / path, places)
    return changed


def _sizes_of_files(workspace: Path, *, without_git: bool) -> dict[str, int]:
    """Return the size of each regular file in *workspace*, by its path; *without_git*
    leaves out Git's own files.
    """
    found = {}
    for directory, directories, names in walk(str(workspace)):
        if without_git and ".git" in directories:
            directories.remove(".git")
        for name in names:
            path = Path(directory) / name
            if path.is_file() and not path.is_symlink():
                found[path.relative_to(workspace).as_posix()] = path.stat().st_size
    return found
