"""Names and versions in lockfiles: as the tools write them, and hostile ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil.dependencies import anvil_lock, project_dependencies
from anvil.dependencies.ecosystems import ECOSYSTEMS, Dependency
from anvil.errors import ConfigError
from tests.conftest import write

DATA = Path(__file__).parents[1] / "data" / "lockfiles"
PYTHON = ["click 8.5.1", "iniconfig 2.3.1", "markdown-it-py 4.3.0", "mdit-py-plugins 0.7.0", "mdurl 0.1.2"]
NPM = ["@types/ms 2.1.0", "debug 4.4.3", "ms 2.1.3", "once 1.4.0", "wrappy 1.0.2"]
POETRY = """\
[[package]]
name = "Backports_tarfile"
version = "1.2.0"
optional = false
python-versions = ">=3.8"
files = [{file = "backports_tarfile-1.2.0.tar.gz", hash = "sha256:00"}]

[[package]]
name = "ours"
version = "0.1.0"

[package.source]
type = "git"
url = "https://example.org/ours.git"

[metadata]
lock-version = "2.0"
"""
PDM = """\
[metadata]
groups = ["default"]
lock_version = "4.5.0"

[[package]]
name = "anyio"
version = "4.9.0"
groups = ["default"]
dependencies = ["idna>=2.8"]

[[package]]
name = "ours"
version = "0.1.0"
path = "./ours"
"""
PNPM_5 = """\
lockfileVersion: 5.4
specifiers: {debug: ^4.3.4}
dependencies: {debug: 4.3.4}
packages:
  /@types/ms/2.1.0: {dev: false}
  /debug/4.3.4_supports-color@9.0.0: {dev: false}
  github.com/acme/ours/0123: {dev: false}
"""


def of_file(name: str, text: str) -> list[Dependency]:
    """The packages with a version."""
    ecosystem = next(each for each in ECOSYSTEMS if project_dependencies.reader(each, name))
    packages = project_dependencies.parse(ecosystem, name, text, f"/x/{name}")
    return [each for each in packages if each.version is not None]


def shown(file: str) -> list[str]:
    path = DATA / file
    return [each.shown for each in of_file(path.name, path.read_text(encoding="utf-8"))]


def parsed(name: str, text: str) -> list[tuple[str, str | None, bool]]:
    return [(each.name, each.version, each.direct) for each in of_file(name, text)]


@pytest.mark.parametrize("file", ["uv.lock", "pylock.toml", "requirements.txt"])
def test_python_tools(file: str) -> None:
    assert shown(file) == PYTHON


@pytest.mark.parametrize(
    "file", ["package-lock.json", "npm1/package-lock.json", "pnpm-lock.yaml", "berry/yarn.lock", "bun.lock"]
)
def test_javascript_tools(file: str) -> None:
    assert shown(file) == NPM


def test_yarn_1() -> None:
    assert set(shown("yarn.lock")) <= set(NPM) and "debug 4.4.3" in shown("yarn.lock")
    aliased = (
        '# yarn lockfile v1\n\n"other@npm:debug@^4":\n  version "4.4.3"\n\n"@a/b@^1, @a/b@^1.2":\n  version "1.3.0"\n'
    )
    assert parsed("yarn.lock", aliased) == [("@a/b", "1.3.0", False), ("debug", "4.4.3", False)]


def test_yarn_berry_says_where_a_package_is_from() -> None:
    rows = {
        "@a/b": "npm:1.3.0::__archiveUrl=https%3A%2F%2Fnpm.corp%2Fb.tgz",
        "b": "patch:b@npm%3A1.0.0#fix.patch",
        "c": "portal:./c::locator=root%40workspace%3A.",
        "d": "git@github.com:acme/d.git#commit=00",
    }
    text = "".join(f'"{name}@x":\n  resolution: "{name}@{from_}"\n' for name, from_ in rows.items())
    locked = project_dependencies.parse("npm", "yarn.lock", f"__metadata:\n  version: 8\n{text}", "y")
    assert [(each.name, each.version) for each in locked] == [("@a/b", "1.3.0"), ("c", None), ("d", None)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "package-lock.json",
            '{"packages": {"": {"dependencies": {"old": "npm:@x/lib@^1"}}, '
            '"node_modules/@x/lib": {"version": "2.0.0"}, "node_modules/old": {"name": "@x/lib", "version": "1.0.0"}}}',
        ),
        (
            "pnpm-lock.yaml",
            "importers: {.: {dependencies: {old: {specifier: 'npm:@x/lib@^1', version: '@x/lib@1.0.0(y@2.0.0)'}}}}\n"
            "packages: {'@x/lib@1.0.0': {}, '@x/lib@2.0.0': {}}\n",
        ),
        ("pnpm-lock.yaml", "dependencies: {old: /@x/lib/1.0.0}\npackages: {/@x/lib/1.0.0: {}, /@x/lib/2.0.0: {}}\n"),
        ("yarn.lock", '"old@npm:@x/lib@^1":\n  version "1.0.0"\n'),
    ],
)
def test_an_alias_is_the_package_that_it_stands_for(name: str, text: str, tmp_path: Path) -> None:
    write(tmp_path, {name: text, "package.json": '{"dependencies": {"old": "npm:@x/lib@^1"}}'})
    assert [each.shown for each in project_dependencies.dependencies(tmp_path) if each.direct] == ["@x/lib 1.0.0"]


def test_a_workspace_of_bun() -> None:
    """A member's own version of a package is named by the member, and an alias by the package that it stands for."""
    text = (DATA / "bun" / "bun.lock").read_text(encoding="utf-8")
    assert parsed("bun.lock", text) == [
        ("debug", "3.2.7", False),
        ("debug", "4.3.4", True),
        ("ms", "1.0.0", True),
        ("ms", "2.1.2", False),
    ]
    of_member = project_dependencies.parse("npm", "bun.lock", text, "/x/bun.lock", "packages/a")
    assert [each.shown for each in of_member if each.direct] == ["@x/b", "debug 3.2.7"]
    git = '{"packages": {"ours": ["ours@github:acme/ours#0123", {}, "acme-ours-0123"], "odd": [], "none": 1,}}'
    assert parsed("bun.lock", git) == []


def test_pnpm_11_has_its_own_versions_in_a_document_before() -> None:
    own = "---\nlockfileVersion: '9.0'\nimporters:\n  .:\n    packageManagerDependencies: {pnpm: {version: 11.0.0}}\n"
    rows = "packages:\n  ms@2.1.3: {}\n"
    project = f"importers:\n  .:\n    dependencies: {{ms: {{specifier: ^2, version: 2.1.3}}}}\n{rows}"
    assert parsed("pnpm-lock.yaml", f"{own}packages:\n  pnpm@11.0.0: {{}}\n---\n{project}") == [("ms", "2.1.3", True)]
    assert parsed("pnpm-lock.yaml", f"{own}packages:\n  pnpm@11.0.0: {{}}\n") == []


def test_what_has_no_version_of_a_registry_is_left_out() -> None:
    assert parsed("poetry.lock", POETRY) == [("backports-tarfile", "1.2.0", False)]
    assert parsed("pdm.lock", PDM) == [("anyio", "4.9.0", False)]
    assert parsed("pnpm-lock.yaml", PNPM_5) == [("@types/ms", "2.1.0", False), ("debug", "4.3.4", True)]
    git = {"lockfileVersion": 3, "packages": {"node_modules/a": {"version": "1.0.0", "resolved": "git+ssh://x"}}}
    assert parsed("package-lock.json", json.dumps(git)) == []


def test_dependencies_of_uv_that_are_no_list_are_none() -> None:
    text = '[[package]]\nname = "a"\nversion = "1"\nsource = { virtual = "." }\ndependencies = 1\n'
    assert parsed("uv.lock", text) == []


def test_sources_of_uv() -> None:
    """A package of a registry and one of a URL have a version to look up; those of git and of a folder have none."""
    kinds = (
        'registry = "https://pypi.org/simple"',
        'url = "https://example.org/b.whl"',
        'git = "https://x/c"',
        'path = "../d"',
    )
    text = "".join(
        f'[[package]]\nname = "{name}"\nversion = "1.0"\nsource = {{ {kind} }}\n\n'
        for name, kind in zip("abcd", kinds, strict=True)
    )
    assert parsed("uv.lock", text) == [("a", "1.0", False), ("b", "1.0", False)]


AT_ADDRESSES = {
    "uv.lock": '[[package]]\nname = "ours"\nversion = "1.0"\nsource = { git = "https://example.org/ours#00" }\n'
    '[[package]]\nname = "beside"\nversion = "1.0"\nsource = { path = "beside.whl" }\n',
    "poetry.lock": POETRY + '[[package]]\nname = "beside"\nversion = "1"\n[package.source]\ntype = "directory"\n',
    "pdm.lock": '[[package]]\nname = "ours"\nversion = "1.0"\ngit = "https://example.org/ours"\n'
    '[[package]]\nname = "beside"\nversion = "1.0"\npath = "./beside"\n',
    "pylock.toml": '[[packages]]\nname = "ours"\nvcs = { type = "git" }\n'
    '[[packages]]\nname = "beside"\ndirectory = { path = "beside" }\n',
    "package-lock.json": '{"packages": {"node_modules/ours": {"version": "1.0.0", "resolved": "git+ssh://x"}, '
    '"node_modules/beside": {"version": "1.0.0", "resolved": "file:beside.tgz"}}}',
    "pnpm-lock.yaml": "dependencies:\n  ours: {specifier: x, version: https://codeload.github.com/a/ours/tar.gz/00}\n"
    "  beside: {specifier: x, version: 'link:../beside'}\n  other: {specifier: 'npm:debug@4', version: debug@4.4.3}\n",
    "v1/yarn.lock": '"ours@git+https://example.org/ours.git#main":\n  version "1.0.0"\n\n'
    'beside@file:beside:\n  version "1.0.0"\n\n"theirs@acme/theirs":\n  version "1.0.0"\n',
    "yarn.lock": '__metadata: {version: 8}\n"a": {resolution: "ours@https://example.org/ours.git#commit=00"}\n'
    '"b": {resolution: "beside@workspace:beside"}\n',
}


@pytest.mark.parametrize("name", AT_ADDRESSES)
def test_a_package_at_an_address_or_in_a_folder_is_no_package_of_a_registry(name: str, tmp_path: Path) -> None:
    names = ["beside", "other", "ours"]
    project = json.dumps({"dependencies": dict.fromkeys(names, "*")})
    lockfile = name.rpartition("/")[2]
    write(tmp_path, {lockfile: AT_ADDRESSES[name], "package.json": project})
    write(tmp_path, {"pyproject.toml": f"[project]\nname = 'x'\ndependencies = {names}\n"})
    tool = "npm" if lockfile[0] == "y" or lockfile.startswith(("package", "pn")) else "pypi"
    listed = project_dependencies.dependencies(tmp_path)
    assert [each.name for each in listed if each.ecosystem == tool and each.direct] == ["other"]


def test_of_several_versions_the_one_that_the_project_gets_is_direct() -> None:
    """The others are of packages that it uses."""
    npm = {
        "": {"devDependencies": {"jsdom": "^30"}},
        "node_modules/jsdom": {"version": "30.0.1"},
        "node_modules/jest/node_modules/jsdom": {"version": "26.1.0"},
    }
    expected = [("jsdom", "26.1.0", False), ("jsdom", "30.0.1", True)]
    assert parsed("package-lock.json", json.dumps({"lockfileVersion": 3, "packages": npm})) == expected
    for written in ("{specifier: ^30, version: 30.0.1(canvas@2.0.0)}", "30.0.1_canvas@2.0.0"):
        importers = f"importers:\n  packages/a:\n    dependencies: {{jsdom: {written}}}\n"
        pnpm = f"{importers}packages:\n  jsdom@26.1.0: {{}}\n  jsdom@30.0.1: {{}}\n"
        assert parsed("pnpm-lock.yaml", pnpm) == expected
    rows = "".join(f'[[package]]\nname = "numpy"\nversion = "{version}"\n' for version in ("1.0", "2.0", "3.0"))
    own = "".join(f', {{ name = "numpy", version = "{version}" }}' for version in ("2.0", "3.0"))
    uv = f'{rows}[[package]]\nname = "own"\nsource = {{ editable = "." }}\ndependencies = [{own[2:]}]\n'
    assert parsed("uv.lock", uv) == [("numpy", "1.0", False), ("numpy", "2.0", True), ("numpy", "3.0", True)]


def test_a_lockfile_that_says_which_version_is_direct_is_believed(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"dependencies": {"jsdom": "^30", "ms": "^2"}}')
    rows = "packages:\n  jsdom@26.1.0: {}\n  jsdom@30.0.1: {}\n  ms@2.1.0: {}\n"
    (tmp_path / "pnpm-lock.yaml").write_text(f"importers:\n  .:\n    dependencies: {{jsdom: 30.0.1}}\n{rows}")
    direct = [each.shown for each in project_dependencies.dependencies(tmp_path) if each.direct]
    assert direct == ["jsdom 30.0.1", "ms 2.1.0"]


WORKSPACES = {
    "uv": {
        "uv.lock": '[[package]]\nname = "kit"\nversion = "1"\nsource = { editable = "packages/kit" }\n'
        'dependencies = [{ name = "httpx" }]\n'
        '[[package]]\nname = "root"\nversion = "1"\nsource = { virtual = "." }\ndependencies = [{ name = "kit" }]\n'
        '[[package]]\nname = "httpx"\nversion = "0.28"\nsource = { registry = "https://pypi.org/simple" }\n'
        '[[package]]\nname = "anyio"\nversion = "4.0"\nsource = { registry = "https://pypi.org/simple" }\n',
        "pyproject.toml": '[project]\nname = "root"\ndependencies = ["kit"]\n',
        "packages/kit/pyproject.toml": '[project]\nname = "kit"\ndependencies = ["httpx"]\n',
    },
    "npm": {
        "package-lock.json": json.dumps(
            {
                "packages": {
                    "": {"dependencies": {"kit": "*"}},
                    "node_modules/kit": {"resolved": "packages/kit", "link": True},
                    "node_modules/httpx": {"version": "0.28.0"},
                    "node_modules/anyio": {"version": "4.0.0"},
                    "packages/kit": {"version": "1.0.0", "dependencies": {"httpx": "^0"}},
                }
            }
        ),
        "package.json": '{"dependencies": {"kit": "*"}}',
        "packages/kit/package.json": '{"name": "kit", "dependencies": {"httpx": "^0"}}',
        "node_modules/kit/package.json": '{"name": "kit", "version": "1.0.0"}',
    },
}


@pytest.mark.parametrize("tool", WORKSPACES)
def test_a_workspace_has_one_lockfile_at_its_top_and_its_members_are_no_dependencies(tool: str, tmp_path: Path) -> None:
    root = write(tmp_path / "root", {**WORKSPACES[tool], ".git/HEAD": ""})
    for base in (root, root / "packages/kit"):
        found = [
            (each.name, (each.version or "").split(".")[0], each.direct)
            for each in project_dependencies.dependencies(base)
        ]
        assert found == [("anyio", "4", False), ("httpx", "0", True)]
    other = write(
        root / "demo",
        {Path(name).name: text for name, text in WORKSPACES[tool].items() if name[0] == "p" and "/" in name},
    )
    assert [each.version for each in project_dependencies.dependencies(other) if each.direct] == [
        None
    ]  # it is no member
    (root / ".git/HEAD").unlink()
    (root / ".git").rmdir()  # what is above a folder outside of a repository may be another's
    assert [each.version for each in project_dependencies.dependencies(root / "packages/kit")] == [None]


def test_a_member_has_its_own_version(tmp_path: Path) -> None:
    lock = {
        "": {"dependencies": {"semver": "^7"}},
        "node_modules/semver": {"version": "7.8.6"},
        "packages/a": {"dependencies": {"semver": "^6"}},
        "packages/a/node_modules/semver": {"version": "6.3.2"},
    }
    files = {"package-lock.json": json.dumps({"packages": lock}), ".git/HEAD": "", "package.json": "{}"}
    member = write(tmp_path, files | {"packages/a/package.json": '{"dependencies": {"semver": "^6"}}'}) / "packages/a"
    write(
        member, {"package-lock.json": '{"packages": {"": {}, "node_modules/semver": {"version": "6.0.0"}}}'}
    )  # left over
    for base, version in ((tmp_path, "7.8.6"), (member, "6.3.2")):
        assert [each.version for each in project_dependencies.dependencies(base) if each.direct] == [version]


def test_direct_dependencies() -> None:
    uv = of_file("uv.lock", (DATA / "uv.lock").read_text())
    assert {each.name for each in uv if each.direct} == {"click", "iniconfig", "markdown-it-py"}
    npm = of_file("pnpm-lock.yaml", (DATA / "pnpm-lock.yaml").read_text())
    assert {each.name for each in npm if each.direct} == {"@types/ms", "debug", "once"}
    files = {name: (DATA / name).read_text() for name in ("pyproject.toml", "package.json")}
    named = project_dependencies.named("pypi", "pyproject.toml", files["pyproject.toml"], "p")
    assert {*named} == {"click", "iniconfig", "markdown-it-py"}
    poetry = (
        '[tool.poetry.dependencies]\npython = "^3.10"\nClick = "^8"\n[tool.poetry.group.dev.dependencies]\nruff = "*"\n'
    )
    assert {*project_dependencies.named("pypi", "pyproject.toml", poetry, "p")} == {"click", "ruff"}
    package = project_dependencies.named("npm", "package.json", files["package.json"], "p")
    assert {*package} == {"@types/ms", "debug", "once"}


def test_a_requirement_without_a_version_has_that_of_the_environment(tmp_path: Path) -> None:
    site = "app/.venv/lib/python3.12/site-packages"
    installed = {
        f"{site}/{name}-3.0.dist-info/METADATA": f"Name: {name}\nVersion: 3.0\n" for name in ("Flask", "other")
    }
    write(tmp_path, {"app/requirements.txt": "flask>=2\nclick==8.1\n", "app/.venv/pyvenv.cfg": "", **installed})
    found = project_dependencies.dependencies(tmp_path / "app")
    assert [(each.shown, each.direct) for each in found] == [("click 8.1", True), ("flask 3.0", True)]


def test_requirements_that_powershell_wrote_are_read(tmp_path: Path) -> None:
    for encoding in ("utf-16", "utf-8-sig"):
        (tmp_path / "requirements.txt").write_bytes("click==8.1.7\r\nidna==3.7\r\n".encode(encoding))
        assert [each.shown for each in project_dependencies.dependencies(tmp_path)] == ["click 8.1.7", "idna 3.7"]
    (tmp_path / "requirements.txt").write_bytes(b"click==\xff\xfe")
    with pytest.raises(ConfigError, match="is not UTF-8"):
        project_dependencies.dependencies(tmp_path)


def test_requirements_with_markers_hashes_and_other_lines() -> None:
    text = (
        "-r other.txt\n--index-url https://example.org\nDjango==5.0 ; python_version > '3'  # a comment\n"
        "templated=={{ version }}\ncommented==3.0#x\n"
        "uvicorn[standard] == 0.30.1 \\\n    --hash=sha256:00\nloose>=1\ngit+https://example.org/x\n./local\nx==1.*\n"
    )
    assert parsed("requirements-dev.txt", text) == [("django", "5.0", True), ("uvicorn", "0.30.1", True)]
    for via in (
        "\n    # via uvicorn\n",
        "  # via uvicorn\n",
    ):  # as pip-compile writes them, on lines of their own or not
        assert parsed("requirements.txt", f"click==8.1{via}") == [("click", "8.1", False)]


def test_two_versions_of_one_package() -> None:
    lock = {"packages": {"node_modules/a": {"version": "1.0.0"}, "node_modules/b/node_modules/a": {"version": "2.0.0"}}}
    assert parsed("package-lock.json", json.dumps(lock)) == [("a", "1.0.0", False), ("a", "2.0.0", False)]


NESTED = "[" * 100_000


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("uv.lock", "package = 1", "'package' is not a list of tables"),
        ("uv.lock", "[[package]]\nversion = '1'", "a package has no name"),
        ("uv.lock", "[[package]]\nname = 'a b'\nversion = '1'", "'a b' is not the name of a Python package"),
        (
            "uv.lock",
            "[[package]]\nname = 'a'\nversion = '1\\u0007'",
            "Control characters|not the version|Invalid|Illegal",
        ),
        ("uv.lock", '[[package]]\nname = "a"\nversion = "\\u001b[31m"', "is not the version of a Python package"),
        ("uv.lock", "[[package]]\nname = 'a'\nversion = 1", "'1' is not the version of a Python package"),
        ("uv.lock", f"a = {NESTED}", "nested|Invalid|recursion"),
        ("uv.lock", ".".join(["a"] * 20_000) + " = 1", "keys of too many parts"),
        ("package-lock.json", NESTED, "nested too deeply"),
        ("package-lock.json", "[]", "it is not a mapping"),
        ("package-lock.json", '{"packages": {"node_modules/a": 1}}', "the package 'node_modules/a' is not a mapping"),
        (
            "package-lock.json",
            '{"packages": {"node_modules/../x": {"version": "1"}}}',
            "is not the name of an npm package",
        ),
        ("package-lock.json", '{"dependencies": {"a": [1]}}', "the package 'a' is not a mapping"),
        ("pnpm-lock.yaml", "{" * 200, "too many levels"),
        ("pnpm-lock.yaml", "a: &a [x]\nb: [" + "*a, " * 6000 + "]", "too many levels or aliases"),
        ("pnpm-lock.yaml", "packages: [1]", "'packages' is not a mapping"),
        ("pnpm-lock.yaml", "a: [", "is not YAML"),
        ("bun.lock", '{"packages": {', "is not JSON"),
        ("yarn.lock", "nothing at all\n", "the line 'nothing at all' names no package"),
        # these take quadratic time, or more, where each end of a range is tried
        ("yarn.lock", f"a@npm:{'x' * 50_000}\n", "names no package"),
        ("yarn.lock", f"a@{':' * 50_000}x\n", "names no package"),
        ("yarn.lock", f'__metadata: {{}}\na: {{resolution: "a@npm:{"1" * 50_000}\\n"}}\n', "is not the version"),
        ("yarn.lock", "__metadata:\n  version: 8\nx: 1\n", "one of its entries is not a mapping"),
    ],
)
def test_hostile_lockfiles_are_one_message(name: str, text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as error:
        of_file(name, text)
    assert str(error.value).startswith(f"/x/{name} cannot be read: ")
    assert str(error.value).isprintable() and len(str(error.value)) < 400


def test_the_size_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anvil_lock, "MAX_BYTES", 100)
    for name in ("uv.lock", "package.json"):
        project = write(tmp_path / name, {name: "#" * 101})
        with pytest.raises(ConfigError, match="more than 100 bytes"):
            project_dependencies.dependencies(project)


def test_old_npm_lockfiles_nest() -> None:
    inner: dict[str, object] = {}
    for _ in range(300):
        inner = {"a": {"version": "1.0.0", "dependencies": inner}}
    assert parsed("package-lock.json", json.dumps({"dependencies": inner})) == [("a", "1.0.0", False)]


@given(
    st.sampled_from(["uv.lock", "package-lock.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock"]),
    st.text(),
)
def test_any_text_is_packages_or_one_error(name: str, text: str) -> None:
    try:
        found = of_file(name, text)
    except ConfigError:
        return
    assert found == sorted(found)


def test_which_files_are_lockfiles() -> None:
    names = ["uv.lock", "requirements.txt", "requirements-dev.txt", "pylock.dev.toml"]
    assert all(project_dependencies.reader("pypi", name) for name in names) and project_dependencies.reader(
        "npm", "yarn.lock"
    )
    others = ["Cargo.lock", "requirements.in", "notes.txt"]
    assert not any(project_dependencies.reader(ecosystem, name) for ecosystem in ECOSYSTEMS for name in others)


def test_a_package_of_several_files_is_listed_once(tmp_path: Path) -> None:
    write(tmp_path, {"requirements.txt": "click==8.1.7\n", "requirements-dev.txt": "click==8.1.7\npytest==8.0\n"})
    assert [row.shown for row in project_dependencies.overview(tmp_path)] == ["click 8.1.7", "pytest 8.0"]


def test_requirements_have_the_lines_of_the_files_that_they_include(tmp_path: Path) -> None:
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    files = {
        "secret.txt": "click==9.9\n",
        "repo/app/requirements.txt": "--requirement=more/base.txt # the others\nidna==3.7\n-r../../secret.txt\n"
        f"-r https://x.test/far.txt\n-r gone.txt\n-r .\n-r{' ' * 100_000}x y\n-r {'x' * 5_000}\n-r a\0b\n",
        "repo/app/more/base.txt": "flask[async]==3.0\n-r ../requirements.txt\n-r deep.txt\n",
        "repo/app/more/deep.txt": "MarkupSafe==2.1\n",
    }
    write(tmp_path, files)
    found = project_dependencies.dependencies(tmp_path / "repo" / "app")
    assert [(each.shown, each.direct) for each in found] == [
        ("flask 3.0", True),
        ("idna 3.7", True),
        ("markupsafe 2.1", True),
    ]


def test_included_requirements_have_one_limit_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "".join(f"-r {number}.txt\n" for number in range(200))
    write(tmp_path, {"requirements.txt": lines, **{f"{number}.txt": f"lib{number}==1.0\n" for number in range(200)}})
    assert len(project_dependencies.dependencies(tmp_path)) == 49  # 50 files with the one that includes them
    monkeypatch.setattr("anvil.dependencies.anvil_lock.MAX_BYTES", len(lines) + 55)
    with pytest.raises(ConfigError, match=r"5\.txt cannot be read \(it has more than 5 bytes\)\. Make it smaller"):
        project_dependencies.dependencies(tmp_path)
