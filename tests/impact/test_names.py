import time

import pytest

from anvil.impact import change, names
from anvil.impact.names import ChangedNames, How, Name


def read(text: str, path: str = "src/app.py") -> ChangedNames:
    """The names in a hunk whose lines are marked with ``+``, ``-`` or a space."""
    lines = text.strip("\n").split("\n")
    old = sum(line[:1] != "+" for line in lines)
    new = sum(line[:1] != "-" for line in lines)
    body = "\n".join(lines)
    return names.read(change.parse_diff(f"--- a/{path}\n+++ b/{path}\n@@ -1,{old} +1,{new} @@\n{body}\n"))


def name(found: ChangedNames, text: str) -> Name:
    (only,) = [name for name in found.names if name.text == text]
    return only


def how(found: ChangedNames) -> dict[str, How]:
    return {name.text: name.how for name in found.names}


def test_a_renamed_flag() -> None:
    found = read("""
-    parser.add_argument("--max-size", type=int)
+    parser.add_argument("--size-limit", type=int)
""")
    assert how(found)["--max-size"] == how(found)["--size-limit"] == "renamed"
    assert name(found, "--max-size").defined


def test_a_default_that_changes_is_another_value_of_what_its_line_names() -> None:
    found = read("-    max_size: int = 100\n+    max_size: int = 200")
    assert how(found)["max_size"] == "value"
    assert name(found, "max_size").kind == "setting"


def test_removed_and_added_names() -> None:
    found = read("-def old_thing():\n-    legacy_call()\n+class NewThing:\n+    fresh_call()")
    assert (how(found)["old_thing"], how(found)["NewThing"]) == ("removed", "added")
    assert (name(found, "old_thing").kind, name(found, "NewThing").kind) == ("definition", "definition")


def test_a_line_that_moves_is_edited_only() -> None:
    found = read("-    do_the_work()\n+    if ready_now:\n+        do_the_work()")
    assert how(found)["do_the_work"] == "touched"


def test_what_is_near_a_change() -> None:
    found = read(' @click.option("--deep-search",\n-    help="Look in one folder.")\n+    help="Look in all folders.")')
    assert how(found)["--deep-search"] == "near"


@pytest.mark.parametrize(
    ("line", "path", "text", "kind"),
    [
        ('x = os.environ["APP_CACHE_DIR"]', "a.py", "APP_CACHE_DIR", "variable"),
        ('std::env::var("APP_CACHE_DIR")', "a.rs", "APP_CACHE_DIR", "variable"),
        ("const dir = process.env.APP_CACHE_DIR", "a.ts", "APP_CACHE_DIR", "variable"),
        ('@app.get("/api/v1/items/{id}")', "a.py", "/api/v1/items/{id}", "route"),
        ('r.HandleFunc("/healthz", check)', "a.go", "/healthz", "route"),
        ("func (s *Server) ListenAndServe() error {", "a.go", "ListenAndServe", "definition"),
        ("pub(crate) async fn fetch_all(x: u8) {", "a.rs", "fetch_all", "definition"),
        ("export interface BuildOptions {", "a.ts", "BuildOptions", "definition"),
        ("public static List<String> readLines(File f) {", "A.java", "readLines", "definition"),
        ('    #[arg(long = "no-cache", env = "X_NO_CACHE")]', "a.rs", "--no-cache", "flag"),
        ('    cmd.Flags().StringVar(&out, "output-dir", "", "where")', "a.go", "--output-dir", "flag"),
        ('    MaxSize int `yaml:"max_size"`', "a.go", "max_size", "setting"),
        ("retry_count: 3", "defaults.yaml", "retry_count", "setting"),
        ("[tool.limits]", "a.toml", "tool.limits", "setting"),
        ('  "maxDepth": 5,', "a.json", "maxDepth", "setting"),
        ("#define MAX_BUFFER 10", "a.h", "MAX_BUFFER", "definition"),
        ("export const defaultTimeout = 5", "a.ts", "defaultTimeout", "definition"),
    ],
)
def test_kinds_of_names_in_several_languages(line: str, path: str, text: str, kind: str) -> None:
    assert name(read(f"+{line}", path), text).kind == kind


@pytest.mark.parametrize(
    ("line", "path", "text", "kind"),
    [
        ("    new InputOption('no-dev', null, InputOption::VALUE_NONE, 'x'),", "A.php", "--no-dev", "flag"),
        ("    ->addOption('no-dev', null, InputOption::VALUE_NONE)", "A.php", "--no-dev", "flag"),
        ('    [Option(\'f\', "filter", HelpText = "x")]', "A.cs", "--filter", "flag"),
        ('    var file = new Option<string?>("--log-file", "-l")', "A.cs", "--log-file", "flag"),
        ('    @Parameter(names = ["--parallel"], description = "x")', "A.kt", "--parallel", "flag"),
        ('    @Option(names = {"--parallel"})', "A.java", "--parallel", "flag"),
        ("    -m | --memory=*)", "plugins/resource/limit", "--memory", "flag"),
        ('    cmd.Flag("web.listen-address", "x").String()', "a.go", "--web.listen-address", "flag"),
        ('variable "enable_sync" {', "variables.tf", "enable_sync", "setting"),
        ("  FastlaneCore::ConfigItem.new(key: :skip_sync,", "a.rb", "skip_sync", "setting"),
    ],
)
def test_what_users_meet_is_known_by_its_definition_in_more_languages(
    line: str, path: str, text: str, kind: str
) -> None:
    assert names.public_kind(name(read(f"+{line}", path), text)) == kind


@pytest.mark.parametrize(
    "line", ["    git commit --amend)", '    echo "use --force" (or not)', "    run --force || exit 1"]
)
def test_a_flag_of_a_command_that_is_called_is_not_defined(line: str) -> None:
    assert {names.public_kind(each) for each in read(f"+{line}", "install.sh").names if each.kind == "flag"} == {None}


@pytest.mark.parametrize(
    ("line", "path", "variables"),
    [
        ("HOST_GOOS := $(shell go env GOOS)", "Makefile", set()),
        ('CACHE_DIR = os.environ["APP_CACHE_DIR"]', "a.py", {"APP_CACHE_DIR"}),
        ("export const CACHE_DIR = process.env.APP_CACHE_DIR", "a.ts", {"APP_CACHE_DIR"}),
    ],
)
def test_the_name_that_an_environment_variable_is_assigned_to_is_none(
    line: str, path: str, variables: set[str]
) -> None:
    assert {name.text for name in read(f"+{line}", path).names if name.kind == "variable"} == variables


def test_words_of_a_language_are_no_names() -> None:
    assert not {"return", "self", "None", "import"} & {name.text for name in read("+    return self.x or None").names}


def test_texts_are_those_for_people_without_placeholders() -> None:
    found = read('-    raise ValueError(f"The size {size} is over the limit of the server")\n-    x = "a"')
    assert [text.text for text in found.texts] == ["is over the limit of the server"]


def test_prose_is_added_comments_and_help_texts() -> None:
    found = read("""
+    # The cache is kept for an hour,
+    # unless the server says otherwise.
+    x = 1  # short
+    option(help="Where the finished archive is written to.")
+    @returns the report of everybody on the list
+    Keep it there until the next release comes out
""")
    assert set(found.prose) == {
        "The cache is kept for an hour, unless the server says otherwise.",
        "Where the finished archive is written to",
        "Keep it there until the next release comes out",
    }


def test_parts_of_names() -> None:
    assert names.name_words("--maxFile-size_2") == ["max", "file", "size", "2"]


def test_many_names_are_bounded_and_the_telling_ones_stay() -> None:
    lines = "\n".join(f"+    some_call_{number}()" for number in range(1000))
    found = read(f'{lines}\n-    parser.add_argument("--gone-now")')
    assert len(found.names) == 600
    assert found.names[0].text == "--gone-now"


@pytest.mark.parametrize(
    "line",
    [
        '"/' + "a" * 390 + '!"',
        "# " + " " * 900 + "x",
        "public static " * 70,
        "'\\" * 300,
        '"' * 400,
        "pub(" * 200,
        "--a" * 300,
    ],
    ids=lambda line: line[:6].strip(),
)
def test_no_line_takes_long(line: str) -> None:
    text = "--- a/x.py\n+++ b/x.py\n@@ -0,0 +1,200 @@\n" + f"+{line}\n" * 200
    before = time.thread_time()
    names.read(change.parse_diff(text))
    assert time.thread_time() - before < 2


@pytest.mark.parametrize("line", ["env " + "A" * 390, "env('" + "A" * 380 + "')", "\\'" * 19 + "a" * 300])
def test_lines_of_one_construct_take_little_time(line: str) -> None:
    began = time.process_time()
    read(f"+{line}\n" * 4000)
    assert time.process_time() - began < 2
