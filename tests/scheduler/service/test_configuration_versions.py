"""Each configuration that was applied is a version with its author, and can be restored."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchpool_scheduler.contract.configuration import (
    ConfigurationEdit,
    ConfigurationRevert,
    Setting,
)
from benchpool_scheduler.errors import Forbidden, InvalidInput, NotFound, Refused, Unavailable
from benchpool_scheduler.service import Pool
from benchpool_support.pools import ADMIN, STORY, SUSAN, make_pool, opened, story
from benchpool_support.scripted import ScriptedRuntime, devices

QUOTA = ConfigurationEdit([Setting("projects.susan.quota", 1)], "less work")


def with_file(folder: Path, text: str = STORY) -> tuple[Pool, Path]:
    file = folder / "benchpool.yaml"
    file.write_text(text)
    pool = make_pool(
        folder,
        configuration=story(text),
        runtime=ScriptedRuntime(devices(9)),
        configuration_file=file,
    )
    return pool, file


async def test_set_value_is_applied_saved_and_logged(tmp_path: Path) -> None:
    pool, file = with_file(tmp_path, "# ours\n" + STORY.lstrip())
    async with opened(pool):
        done = await pool.configuration.set(ADMIN, QUOTA)
        assert (done.applied, done.version, done.file) == (True, 2, str(file))
        assert done.changes == ["Project susan (susan): guaranteed quota 2 → 1."]
        assert file.read_text().startswith("# ours\n")
        assert pool.observed.now.configuration.project("susan").project.quota == 1  # type: ignore[union-attr]
        newest, first = await pool.configuration.versions.log(ADMIN, 10)
        assert (newest.author, newest.reason, newest.way) == (ADMIN.name, "less work", "set")
        assert newest.changes == done.changes
        assert (first.number, first.way, first.author) == (1, "start", "")
        shown = await pool.configuration.versions.text(ADMIN, 1)
        assert shown.text == "# ours\n" + STORY.lstrip()


async def test_reverted_version_becomes_new_version(tmp_path: Path) -> None:
    pool, file = with_file(tmp_path)
    async with opened(pool):
        await pool.configuration.set(ADMIN, QUOTA)
        back = await pool.configuration.revert(ADMIN, ConfigurationRevert(reason="was a mistake"))
        assert (back.version, file.read_text()) == (3, STORY)
        newest = (await pool.configuration.versions.log(ADMIN, 1))[0]
        assert (newest.way, newest.reverts, newest.reason) == ("revert", 1, "was a mistake")
        await pool.configuration.revert(ADMIN, ConfigurationRevert(2))
        assert pool.observed.now.configuration.project("susan").project.quota == 1  # type: ignore[union-attr]
        with pytest.raises(NotFound, match=r"no version 77 .*benchpool config log"):
            await pool.configuration.revert(ADMIN, ConfigurationRevert(77))


async def test_start_with_changed_file_creates_version(
    tmp_path: Path,
) -> None:
    for text, versions in ((STORY, 1), (STORY, 1), (STORY.replace("grace_s: 20", "grace_s: 9"), 2)):
        pool, _ = with_file(tmp_path, text)
        async with opened(pool):
            log = await pool.configuration.versions.log(ADMIN, 10)
            assert len(log) == versions
    assert log[0].changes == ["Policy: grace_s 20 → 9."]


async def test_cluster_objects_create_version_without_author(
    tmp_path: Path,
) -> None:
    pool = make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))
    async with opened(pool):
        await pool.configuration.use(STORY, "the cluster's settings")
        other = STORY.replace("grace_s: 20", "grace_s: 9")
        await pool.configuration.use(other, "the cluster's settings")
        newest, first = await pool.configuration.versions.log(ADMIN, 10)
        assert (newest.way, newest.author, first.way) == ("objects", "", "start")
        assert newest.changes == ["Policy: grace_s 20 → 9."]
        await pool.configuration.revert(ADMIN, ConfigurationRevert(1))
        assert pool.observed.now.configuration.policy.grace_s == 20


async def test_outdated_cluster_objects_are_ignored(
    tmp_path: Path,
) -> None:
    pool = make_pool(tmp_path, runtime=ScriptedRuntime(devices(9)))
    async with opened(pool):
        await pool.configuration.use(STORY, "the cluster's settings")
        before = pool.observed.now.configuration
        older = STORY.replace("grace_s: 20", "grace_s: 9")
        changed = await pool.configuration.use(older, "objects", overtaken=lambda: True)
        assert changed is None
        assert pool.observed.now.configuration is before
        assert [it.way for it in await pool.configuration.versions.log(ADMIN, 10)] == ["start"]


async def test_revert_without_former_version_is_refused(tmp_path: Path) -> None:
    pool, _ = with_file(tmp_path)
    async with opened(pool):
        with pytest.raises(Refused, match="no version before"):
            await pool.configuration.revert(ADMIN, ConfigurationRevert())


async def test_set_keeps_manual_file_edits(tmp_path: Path) -> None:
    pool, file = with_file(tmp_path)
    async with opened(pool):
        file.write_text(STORY + "# by hand\n")
        with pytest.raises(Refused, match=f"benchpool config apply {file}"):
            await pool.configuration.set(ADMIN, QUOTA)
        assert file.read_text() == STORY + "# by hand\n"
        await pool.configuration.apply(ADMIN, file.read_text(), str(file), "by hand")
        await pool.configuration.set(ADMIN, QUOTA)
        assert file.read_text().endswith("# by hand\n")


async def test_apply_keeps_edit_saved_after_reading(
    tmp_path: Path,
) -> None:
    pool, file = with_file(tmp_path)
    async with opened(pool):
        read = file.read_text().replace("grace_s: 20", "grace_s: 9")
        file.write_text(STORY + "# saved since it was read\n")
        with pytest.raises(Refused, match="changed by hand and is not in force"):
            await pool.configuration.apply(ADMIN, read, str(file))
        assert file.read_text() == STORY + "# saved since it was read\n"
        assert pool.observed.now.configuration.policy.grace_s == 20
        assert len(await pool.configuration.versions.log(ADMIN, 10)) == 1


@pytest.mark.parametrize("way", ["apply", "set"])
async def test_write_keeps_edit_saved_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    pool, file = with_file(tmp_path)
    sync = os.fsync

    def slow(descriptor: int) -> None:
        sync(descriptor)
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith(f".{file.name}.new"):
            file.write_text(STORY + "# just now\n")

    async with opened(pool):
        monkeypatch.setattr(os, "fsync", slow)
        changing = (
            pool.configuration.set(ADMIN, QUOTA)
            if way == "set"
            else pool.configuration.apply(ADMIN, STORY + "# applied\n")
        )
        with pytest.raises(Refused, match="changed by hand"):
            await changing
        assert file.read_text() == STORY + "# just now\n"
        assert pool.observed.now.configuration.text == STORY
        assert len(await pool.configuration.versions.log(ADMIN, 10)) == 1
    assert {it.name for it in tmp_path.iterdir() if it.name.startswith(".bench")} == set()


async def test_revert_saves_manual_edits_beside_file(tmp_path: Path) -> None:
    pool, file = with_file(tmp_path)
    async with opened(pool):
        await pool.configuration.set(ADMIN, QUOTA)
        for number in (1, 2):
            file.write_text(f"# typed {number}\n")
            with pytest.raises(Refused, match="`benchpool config revert`"):
                await pool.configuration.set(ADMIN, QUOTA)
            back = await pool.configuration.revert(ADMIN, ConfigurationRevert(1))
            kept = file.with_name(f"benchpool.yaml.by-hand-{number}")
            assert back.warnings[-1].endswith(f"that text is in {kept}.")
            assert (kept.read_text(), file.read_text()) == (f"# typed {number}\n", STORY)
        assert (await pool.configuration.revert(ADMIN, ConfigurationRevert(2))).warnings == []


async def test_change_based_on_old_version_is_refused(tmp_path: Path) -> None:
    pool, _ = with_file(tmp_path)
    async with opened(pool):
        await pool.configuration.set(ADMIN, QUOTA)
        late = ConfigurationEdit([Setting("projects.joe.quota", 1)], base=1)
        with pytest.raises(Refused, match="based on version 1, version 2 is in force"):
            await pool.configuration.set(ADMIN, late)


async def test_unwritable_file_creates_no_version(tmp_path: Path) -> None:
    folder = tmp_path / "etc"
    folder.mkdir()
    pool = make_pool(
        tmp_path,
        runtime=ScriptedRuntime(devices(9)),
        configuration_file=folder / "benchpool.yaml",
    )
    async with opened(pool):
        folder.rename(tmp_path / "away")
        with pytest.raises(Unavailable, match="Nothing was changed"):
            await pool.configuration.apply(ADMIN, STORY + "# new\n")
        assert len(await pool.configuration.versions.log(ADMIN, 10)) == 1


async def test_set_wrong_value_is_refused(tmp_path: Path) -> None:
    pool, file = with_file(tmp_path)
    async with opened(pool):
        for setting, message in (
            (Setting("projects.susan.quota", -1), r"projects\[1\].quota is -1"),
            (Setting("projects.susan.qouta", 1), "did you mean `quota`"),
            (Setting("policy.grace_s", "soon"), "must be a number"),
        ):
            with pytest.raises(InvalidInput, match=message):
                await pool.configuration.set(ADMIN, ConfigurationEdit([setting]))
        assert file.read_text() == STORY


async def test_configuration_versions_require_administrator(tmp_path: Path) -> None:
    pool, _ = with_file(tmp_path)
    async with opened(pool):
        for asked in (
            pool.configuration.set(SUSAN, QUOTA),
            pool.configuration.revert(SUSAN, ConfigurationRevert()),
            pool.configuration.versions.log(SUSAN, 1),
            pool.configuration.versions.text(SUSAN, None),
        ):
            with pytest.raises(Forbidden):
                await asked


@pytest.mark.parametrize(
    ("build", "message"),
    [
        ("users:\n    susan: 10", "line 4: build.users.susan is 10 and the pool has 9 GPUs"),
        ("groups:\n    staff: 12", "line 4: build.groups.staff is 12 and the pool has 9 GPUs"),
        ("default: 30", "line 3: build.default is 30 and the pool has 9 GPUs"),
        ("reserve: 11", "line 3: build.reserve is 11; build.reserve sets aside 11 GPUs"),
        (
            "users:\n    susan: 6\n    joe: 4",
            "line 4: build.users.susan is 6; the build quotas add up to 10 GPUs and the pool has 9",
        ),
    ],
)
async def test_build_quota_above_pool_is_refused_with_position(
    tmp_path: Path, build: str, message: str
) -> None:
    pool, file = with_file(tmp_path)
    async with opened(pool):
        text = f"version: 1\nbuild:\n  {build}\n"
        with pytest.raises(InvalidInput) as refused:
            pool.configuration.check(ADMIN, text, "joe.yaml")
        assert refused.value.message.startswith(f"joe.yaml, {message}")
        with pytest.raises(InvalidInput):
            await pool.configuration.apply(ADMIN, text)
        assert file.read_text() == STORY
        allowed = text.replace("build:\n", "build:\n  oversubscribe: true\n")
        assert not pool.configuration.check(ADMIN, allowed).applied
