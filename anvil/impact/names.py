"""Names in the changed lines of code, of any language: their kinds, and how they changed. By regular expressions.

Documentation has the names that users meet: functions, classes, flags, settings, environment variables, routes and the
texts of messages. The kind of a name is guessed from its line. The rarer a name is in the pages, the more it weighs.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from anvil.formats.patterns import lazy_pattern
from anvil.impact.change import FileChange, Hunk, Line
from anvil.text.query import compound_parts, words

PublicKind = Literal["flag", "variable", "setting", "route"]
"""Kinds of names that users of a program meet. ``variable``: an environment variable."""
NameKind = Literal[PublicKind, "definition", "identifier", "word", "text"]
"""``definition``: of a function, class or constant. ``word``: a string that is an identifier. ``text``: a message or
help text."""
How = Literal["removed", "renamed", "value", "added", "touched", "near"]
"""How a name changed. ``value``: its default or another literal in its line changed. ``touched``: its line was edited.
``near``: it is defined next to a changed line, or is the function around it."""

MAX_NAMES = 600
"""Names of a change that are looked up, the most significant first."""
MAX_TEXTS = 60
"""Messages and help texts of a change that are looked up."""
MAX_PROSE = 12
"""Sentences that a change adds in comments and help texts, for a search."""
MAX_ESCAPES = 10
"""Backslashes of a line of code. Of a line with more, they are ignored."""
MIN_TEXT_WORDS, MIN_TEXT_CHARS = 3, 14
"""The fewest words and characters of a string that is a text for people."""
MIN_PROSE_WORDS, MIN_PROSE_CHARS = 5, 25
"""The fewest words of a sentence, and characters of a line of prose, in comments and docstrings."""
MAX_PROSE_CHARS = 400
"""Characters of a sentence that are searched."""
MAX_NAMED_LINE_CHARS = 400
"""A longer line is data: only the flags in its first characters are read."""
MAX_NAME_CHARS = 80

_FLAG = lazy_pattern(r"(?<![\w-])--[a-zA-Z][\w.-]*[a-zA-Z0-9]\b")
_STRING = lazy_pattern(
    r'"""(.{1,600}?)"""|"((?:[^"\\\n]|\\.){1,600})"|\'((?:[^\'\\\n]|\\.){1,600})\'|`((?:[^`\\\n]|\\.){1,600})`'
)
_IDENTIFIER = lazy_pattern(r"[A-Za-z_$][\w$]*(?:-[A-Za-z][\w-]*)?")
_LITERAL = lazy_pattern(
    r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|`[^`\n]*`|\b\d[\w.]*\b|\b(?:[Tt]rue|[Ff]alse|[Nn]one|null|nil)\b'
)
_VARIABLE = lazy_pattern(r"(?<![A-Z0-9])[A-Z][A-Z0-9]+(?:_[A-Z0-9]+)+")
_ASSIGNED = lazy_pattern(
    r"\s*(?:(?:export|const|static|final|let|var|val|pub|public|private)\s+){0,4}[A-Z][A-Z0-9_]*\s*[:?]?=(?!=)"
)
_ROUTE = lazy_pattern(r"/[\w.~:@$*<>{}\[\]/-]+")
# The patterns fit many languages at once. One that fits by mistake costs little: no page has such a name.
# "def f", "pub(crate) async fn f", "func (s *Server) Serve", "export default class App"
_MODIFIERS = (
    r"^\s*(?:(?:export|default|pub(?:\([^)]*\))?|public|private|protected|internal|static|final|abstract|async|unsafe|"
    r"override|virtual|inline|extern|open|sealed|data|declare|suspend|@\w+|#define|val|var|let|const|mut)\s+)"
)
_DEFINITION = lazy_pattern(
    rf"{_MODIFIERS}*(?:def|function|fn|func|fun|sub|proc|macro_rules!|defn|defp|class|struct|enum|trait|interface|type|"
    r"object|module|record|union|protocol)\s+(?:\([^)]*\)\s*)?(?P<name>[A-Za-z_$][\w$!?]*)"
)
# "export const LIMIT = 3", "#define LIMIT 3", "static final int LIMIT = 3", "public static Map<String, User> load("
_MEMBER = lazy_pattern(rf"{_MODIFIERS}+(?:[\w<>\[\],.?&*:]+\s+){{0,4}}(?P<name>[A-Za-z_$][\w$]*)\s*(?:[:=(]|\s\S)")
_LOCAL = lazy_pattern(r"\s+(?:const|let|val|var)\s")
# "pub name: String", "readonly name?: string"
_FIELD = lazy_pattern(
    r"^\s*(?:(?:pub(?:\([^)]*\))?|readonly|public|private|protected)\s+)?[\"']?(?P<name>[A-Za-z_][\w-]*)[\"']?\??\s*:\s*\S"
)
# "name = ", "name: " and "- name: " in files of data, and the tables of TOML
_KEY = lazy_pattern(r"^\s*(?:-\s+)?[\"']?(?P<name>[A-Za-z_][\w.-]*)[\"']?\s*(?:[:=](?![=:>]))")
_TABLE = lazy_pattern(r"^\s*\[{1,2}(?P<name>[\w.-]+)\]{1,2}\s*$")
# the name of a field in files: json:"name" in Go, serde(rename = "name") in Rust
_TAG = lazy_pattern(
    r"\b(?:json|yaml|toml|mapstructure|env|flag|serde|rename|alias)\s*[:=(]\s*\\?\"(?P<name>[A-Za-z_][\w.-]*)"
)
# variable "name" of Terraform, ConfigItem.new(key: :name) of fastlane
_DECLARED = lazy_pattern(r"^\s*(?:variable\s+\"|\S*ConfigItem\.new\(key: :)(?P<name>[A-Za-z_][\w-]*)")
_ENVIRONMENT = lazy_pattern(
    r"(?i)environ|getenv|env::|process\.env|env\(|envvar|env_var|\benv\b|lookupenv|env\.|Deno\.env"
)
_COMMENT = lazy_pattern(
    r"\s*(?:#+(?![\[!]|define|include|if|pragma)|//[/!]?|/\*+|\*+/?|--(?=\s)|;+|<!--|%+|\"\"\"|''')(.*)"
)
_COMMENT_ENDS = ("*/", "-->", '"""', "'''")
_PLACEHOLDER = lazy_pattern(r"\{[^{}]*\}|\$\{[^{}]*\}|%[-+#0-9.]*[a-zA-Z]|\\[nrt]|\\\"")
_FLAG_DEFINITION = lazy_pattern(
    r"add_argument|option\(|Option\(|argument\(|Flags?\(\)|flag\.\w+\(|\.\w+VarP?\(|addOption|\.option\(|"
    r"long\s*[=(]|#\[(?:arg|clap|structopt)|Flag\(|flags?:|new Option|DEFINE_\w+\(|parser\.on|add_flag|"
    r"add_option|\.arg\(|\bnames?\s*=\s*(?:[\[{]\s*)?\"-|^\s*(?:-\w\s*\|\s*)?--[\w-]+(?:=\*)?(?:\s*\|[^()]*)?\)(?:\s|$)"
)
# clap: long = "name"; Symfony: new InputOption('name'; .NET: [Option('n', "name"; kingpin: .Flag("name"
_LONG = lazy_pattern(
    r"(?:\blong\s*[=(]|\bnew\s+InputOption\(|->addOption\(|\.Flag\(|\[Option\((?:'.',)?)\s*[\"'](?P<name>[a-z][\w.-]*)[\"']"
)
# the packages for flags of Go: StringVarP(&name, "name"
_GO_FLAG = lazy_pattern(
    r'(?:\.(?:String|Bool|Int|Int64|Uint|Float64|Duration|StringSlice|StringArray|Count)(?:Var)?P?\(|Flag\{\s*Name:\s*)(?:&[\w.]+,\s*)?"(?P<name>[a-z][\w-]*)"'
)
_ROUTE_DEFINITION = lazy_pattern(
    r"(?i)@\w*(?:route|get|post|put|patch|delete|websocket|mapping)\b|\.(?:get|post|put|patch|delete|route|handle|handlefunc|"
    r"all|use|websocket|mount|add_route|add_api_route)\s*\(|\bpath\(|\bre_path\(|Route\("
)
_STOP = frozenset(
    """
    abstract and any args array as assert async auto await bool boolean break byte case catch char class const
    continue data def default del delete dict do done double elif else end enum err error except export extends
    false final finally float fn for foreach from func function get go goto has id if impl implements import in
    index init inline int interface is it item items iter key keys kwargs lambda len let list local long loop
    main map match mod module mut name namespace new next nil node none not null num number obj object of ok
    option or out override package panic pass path print private process protected pub public raise readonly ref
    required result return returns run self set short signed sizeof some static str string struct super switch
    test then this throw throws to trait true try tuple type typeof types undefined union unit unsafe unsigned
    use using val value values var vec version virtual void where while with yield
    """.split()  # noqa: SIM905 - a list of quoted words is not read
)
"""Words of programming languages, and names that nearly each program has. Alone, they identify nothing."""


class Name(NamedTuple):
    """A name in a change. ``path`` and ``line``: in the new file or, for a removed name, in the old file.
    ``defined``: whether the line defines it, so that users can meet it. ``is_new``: whether no removed line has it."""

    text: str
    kind: NameKind
    how: How
    path: str
    line: int
    defined: bool = False
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class ChangedNames:
    """The names in changed lines. ``texts``: messages and help texts, without placeholders at their ends. ``prose``:
    sentences that the change adds in comments and help texts."""

    names: tuple[Name, ...]
    texts: tuple[Name, ...]
    prose: tuple[str, ...]


HOW_ORDER: tuple[How, ...] = ("removed", "renamed", "value", "added", "touched", "near")
"""If a name changed in several ways, the first of them is kept."""


def public_kind(name: Name) -> PublicKind | None:
    """The kind of a name that users meet and that its line defines; None for other names."""
    kind = name.kind
    return kind if name.defined and kind in ("flag", "variable", "route", "setting") else None


def is_local(line: str) -> bool:
    """Whether a line of code may define a variable of a function, which only this function uses."""
    return _LOCAL.match(line) is not None


def _rank(name: Name) -> tuple[bool, int, bool]:
    """The sort key of names: the most significant first."""
    return not name.defined, HOW_ORDER.index(name.how), name.kind == "identifier"


def read(files: Iterable[FileChange]) -> ChangedNames:
    """The names in the changed lines of files, the most significant first, within the limits of this module."""
    changes = list(files)
    added, removed = set[str](), set[str]()
    hunks: list[tuple[FileChange, Hunk, list[Name], list[Name]]] = []
    for file in changes:
        for hunk in file.hunks:
            new = [name for line in hunk.added for name in _names_in_line(line, file.path)]
            old = [name for line in hunk.removed for name in _names_in_line(line, file.path)]
            hunks.append((file, hunk, new, old))
            added.update(name.text for name in new)
            removed.update(name.text for name in old)
    names: dict[tuple[str, NameKind], Name] = {}

    def keep(name: Name) -> None:
        before = names.get((name.text, name.kind))
        if before is None or _rank(name) < _rank(before):
            names[name.text, name.kind] = name

    for file, hunk, new, old in hunks:
        renames, with_new_value = _renames_and_values(hunk)
        sides: tuple[tuple[How, list[Name], set[str], Collection[str]], ...] = (
            ("removed", old, added, renames.keys()),
            ("added", new, removed, set(renames.values())),
        )
        for side_change, side, other_side, renamed in sides:
            for name in side:
                # A name on both sides was moved, or its line was edited.
                is_on_one_side, how = name.text not in other_side, side_change
                if name.text in renamed:
                    how = "renamed"
                elif not is_on_one_side:
                    how = "value" if name.text in with_new_value else "touched"
                keep(name._replace(how=how, is_new=is_on_one_side and side is new))
        for name in _names_near(hunk, file.path):
            if name.text not in added and name.text not in removed:
                keep(name)
    ranked = sorted(names.values(), key=lambda name: (_rank(name), name.path, name.line, name.text))
    return ChangedNames(
        tuple(ranked[:MAX_NAMES]), tuple(_texts(changes)[:MAX_TEXTS]), tuple(_prose(changes))[:MAX_PROSE]
    )


def name_words(name: str) -> list[str]:
    """The words of a name in lower case: ``--maxFileSize`` -> ``max``, ``file``, ``size``."""
    return [part.lower() for word in words(name) for part in (compound_parts(word) if word.isascii() else ()) or [word]]


def _limit_escapes(text: str) -> str:
    """A line for the patterns of strings. A line with many backslashes is data, and loses them: with them, the patterns
    would read it again from each open quote."""
    return text if text.count("\\") <= MAX_ESCAPES else text.replace("\\", " ")


def _strings(text: str) -> list[str]:
    return [next(part for part in match.groups() if part is not None) for match in _STRING.finditer(text)]


def _names_in_line(line: Line, path: str) -> Iterator[Name]:
    """The names in a line, each once, with its surest kind. Their ``how`` is ``near``."""
    text = _limit_escapes(line.text)
    # A comment defines nothing, but its examples show flags.
    if len(text) > MAX_NAMED_LINE_CHARS or _COMMENT.match(text):
        text = text[:MAX_NAMED_LINE_CHARS]
        for match in _FLAG.finditer(text):
            yield Name(match[0], "flag", "near", path, line.number)
        return
    seen = set[str]()
    is_data = path.endswith(_DATA_ENDINGS)
    for name, kind, is_defined in _readings(text, is_data, is_data and _OF_TOOL.search(path) is None):
        if name not in seen and _is_searchable(name, kind):
            seen.add(name)
            yield Name(name, kind, "near", path, line.number, is_defined)


_OF_TOOL = lazy_pattern(
    r"(?i)(?:^|/)(?:\.[^/]+(?:/|$)|(?:locales?|i18n|translations|crds?|gradle|templates)/|"
    r"(?:package|composer|renovate|turbo|nx|lerna|vercel|netlify|biome|cspell|tsconfig|jsconfig|release-please-config|pyproject|"
    r"cargo|dependencies|versions|deny|clippy|rustfmt|rust-toolchain|cliff|_?typos|tox|setup|pytest|mypy|ruff|mkdocs|zensical|book|antora|"
    r"azure-pipelines|appveyor|bitbucket-pipelines|cloudbuild|codecov|crowdin|dependabot|environment|pnpm-workspace|"
    r"docker-compose|compose)(?:\.[\w-]+)*\.[a-z0-9]+$)"
)
"""Files of data whose keys are no settings of this project: translations, and the configuration of other programs, such
as a package manager, CI, a linter, Gradle or Kubernetes, also in Helm's templates."""
_DATA_ENDINGS = (".yaml", ".yml", ".toml", ".json", ".ini", ".cfg", ".properties", ".env", ".jsonc", ".json5")


def _readings(text: str, is_data: bool, has_own_keys: bool) -> Iterator[tuple[str, NameKind, bool]]:
    """(name, its possible kind, whether the line defines it), the surest first. A name may come with several kinds.

    ``is_data``: whether the file is data and not code. ``has_own_keys``: whether its keys are settings of this project.
    """
    strings = _strings(text)
    yield from _public_readings(text, strings)
    for pattern in (_TAG, _DECLARED):
        for match in pattern.finditer(text):
            yield match["name"], "setting", True
    if is_data:
        for pattern in (_TABLE, _KEY):
            if (key := pattern.match(text)) is not None:
                yield key["name"], "setting", has_own_keys
    elif (definition := _definition(text)) is not None:
        yield definition
    for string in strings:
        if len(string) > 2 and _IDENTIFIER.fullmatch(string):
            yield string, "word", False
    for match in _IDENTIFIER.finditer(_STRING.sub(" ", text)):
        yield match[0].split("-")[0] if "-" in match[0] else match[0], "identifier", False


def _public_readings(text: str, strings: Sequence[str]) -> Iterator[tuple[str, NameKind, bool]]:
    """The names that users of a program may meet: flags, environment variables and routes."""
    defines_flag = _FLAG_DEFINITION.search(text) is not None
    for match in _FLAG.finditer(text):
        yield match[0], "flag", defines_flag
    for pattern in (_LONG, _GO_FLAG):
        for match in pattern.finditer(text):
            yield f"--{match['name']}", "flag", True
    reads_environment = _ENVIRONMENT.search(text) is not None
    defines_route = _ROUTE_DEFINITION.search(text) is not None
    for string in strings:
        if _VARIABLE.fullmatch(string):
            yield string, "variable", reads_environment
        elif len(string) > 2 and _ROUTE.fullmatch(string) and "//" not in string:
            yield string, "route", defines_route
    if reads_environment:
        assigned = _ASSIGNED.match(text)  # the constant to which the code assigns the value of the variable
        for match in _VARIABLE.finditer(text, assigned.end() if assigned else 0):
            yield match[0], "variable", "environ" in text or "env" in text


def _definition(text: str) -> tuple[str, NameKind, bool] | None:
    """The name that a line of code defines, by the surest pattern that fits."""
    if (definition := _DEFINITION.match(text) or _MEMBER.match(text)) is not None:
        return definition["name"], "definition", True
    if (field := _FIELD.match(text)) is not None:
        return field["name"], "setting", False
    return None


def _is_searchable(name: str, kind: NameKind) -> bool:
    """Whether a name can be looked up: it is long enough, and not a word of a programming language."""
    bare = name.strip("-_$/")
    if len(bare) < 3 or len(name) > MAX_NAME_CHARS or name.isdigit():
        return False
    if kind in ("flag", "variable", "route"):
        return True
    return bare.lower() not in _STOP


def _renames_and_values(hunk: Hunk) -> tuple[dict[str, str], set[str]]:
    """Old name -> new name of the renames in a hunk, and the names in lines in which only literals changed.

    A removed and an added line belong together if they differ only in literals or in one name.
    """
    renames: dict[str, str] = {}
    with_new_value = set[str]()
    by_shape: dict[str, list[str]] = defaultdict(list)
    for line in hunk.added:
        by_shape[_shape(line.text)].append(line.text)
    for line in hunk.removed:
        added_lines = by_shape.get(_shape(line.text))
        if not added_lines:
            continue
        new = added_lines.pop(0)
        if new.split() == line.text.split():
            continue
        before, after = _TOKEN.findall(_limit_escapes(line.text)), _TOKEN.findall(_limit_escapes(new))
        # not strict: lines of one shape can have other numbers of tokens, such as "a-true" with one and "x-1" with two
        differing = {(old, now) for old, now in zip(before, after, strict=False) if old != now}
        if all(_LITERAL.fullmatch(old) and _LITERAL.fullmatch(now) for old, now in differing):
            with_new_value.update(name.text for name in _names_in_line(Line(0, new), ""))
            string_names = [(_string_name(old), _string_name(now)) for old, now in differing]
            differing = {(old, now) for old, now in string_names if old and now}
        if len(differing) == 1:
            old_name, new_name = next(iter(differing))
            if _is_name(old_name) and _is_name(new_name):
                renames[old_name] = new_name
    return renames, with_new_value


def _shape(line: str) -> str:
    """A line with ``@`` in place of each name and literal."""
    return " ".join(_IDENTIFIER.sub("@", _LITERAL.sub("@", _limit_escapes(line))).split())


_TOKEN = lazy_pattern(f"{_LITERAL.pattern}|{_IDENTIFIER.pattern}")


def _string_name(literal: str) -> str:
    """The text of a string literal that is a name or a flag; ``""`` for other literals."""
    text = literal[1:-1] if literal[:1] in "\"'`" else ""
    return text if _is_name(text) else ""


def _is_name(text: str) -> bool:
    return bool(re.fullmatch(r"(?:--)?[A-Za-z_$/][\w$/.{}:-]*", text)) and len(text) > 2


def _names_near(hunk: Hunk, path: str) -> Iterator[Name]:
    """The names near a change: the function in its header, and definitions, flags and variables within two lines."""
    # Without added lines, the numbers of the old file are near enough to those of the context in the new file.
    changed = {line.number for line in hunk.added or hunk.removed}
    if hunk.header:
        yield from (name for name in _names_in_line(Line(0, hunk.header), path) if name.defined)
    for line in hunk.context:
        if any(line.number + step in changed for step in (-2, -1, 1, 2)):
            yield from (
                name for name in _names_in_line(line, path) if name.defined or name.kind in ("flag", "variable")
            )


def _texts(files: Sequence[FileChange]) -> list[Name]:
    """Texts for people that the pages may quote, each once."""
    texts: dict[str, Name] = {}
    for file in files:
        for line in (*file.removed, *file.added):
            for text in _fragments(line.text):
                texts.setdefault(text, Name(text, "text", "touched", file.path, line.number))
    return list(texts.values())


def _fragments(line: str) -> Iterator[str]:
    """The texts for people in a line: the longest part without a placeholder of each string."""
    for string in _strings(_limit_escapes(line)):
        longest = max(_PLACEHOLDER.split(string), key=len).strip(" .,:;!?'\"`()[]")
        if len(longest) >= MIN_TEXT_CHARS and len(words(longest)) >= MIN_TEXT_WORDS and " " in longest:
            yield longest


def _prose(files: Sequence[FileChange]) -> Iterator[str]:
    """Sentences that are added in comments, docstrings and strings, the longest first."""
    candidates: dict[str, None] = {}
    for file in files:
        block: list[str] = []
        last = -2
        for line in file.added:
            comment = _COMMENT.match(line.text)
            text = line.text.strip() if comment is None and _is_sentence(line.text) else ""
            if comment is not None:
                text = comment[1].strip()
                for end in _COMMENT_ENDS:
                    text = text.removesuffix(end).rstrip()
            if text and line.number == last + 1:  # neighbouring lines of a comment are one text
                block.append(text)
            else:
                candidates.setdefault(" ".join(block))
                block = [text] if text else []
            last = line.number
            if not text:
                candidates.update(dict.fromkeys(_fragments(line.text)))
        candidates.setdefault(" ".join(block))
    sentences = [text[:MAX_PROSE_CHARS] for text in candidates if len(words(text)) >= MIN_PROSE_WORDS]
    yield from sorted(dict.fromkeys(sentences), key=len, reverse=True)


_CODE_MARKS = lazy_pattern(r"[;{}=()\[\]<>|&]|=>|->|::")


def _is_sentence(line: str) -> bool:
    """Whether a line is prose, such as a line of a docstring: several plain words, and hardly any marks of code."""
    text = line.strip()
    if len(text) < MIN_PROSE_CHARS or text[0] in "\"'@<{":
        return False
    plain_words = [word for word in text.split() if word.strip(".,:;`'\"()").isalpha()]
    return len(plain_words) >= MIN_PROSE_WORDS and len(_CODE_MARKS.findall(text)) <= 2
