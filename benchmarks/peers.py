"""The same pages and the same weights through another tool's own index command: seconds and bytes.

    python scripts/convert_model.py --fp32 /tmp/minilm-fp32
    python -m venv /tmp/peer && /tmp/peer/bin/pip install 'markdown-vault-mcp[embeddings]'
    python benchmarks/peers.py --peer /tmp/peer/bin/python --fp32 /tmp/minilm-fp32 [--docs FOLDER] [--pages 60]

markdown-vault-mcp keeps a keyword index in SQLite and vectors in a file of its own; its ``index`` command makes both.
It runs in its own environment, unchanged but for one thing: fastembed, which it embeds with, gets the
weights from ``--fp32`` rather than from a model hub, so that both tools embed with all-MiniLM-L6-v2 and need no
network. Without ``--fp32``, or where fastembed is missing, both are compared without vectors. Tools take turns
within a round and each round starts with nothing. Bare embedding loops are compared in embedding.py.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import corpus
from measuring import anvil, heading, ratio, run, table

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
START = """
import sys
weights = sys.argv[1]
if weights:
    import fastembed
    class Local(fastembed.TextEmbedding):
        def __init__(self, model_name, **more):
            super().__init__(model_name, specific_model_path=weights)
    fastembed.TextEmbedding = Local
from markdown_vault_mcp.cli import main
sys.argv = ["markdown-vault-mcp", *sys.argv[2:]]
main()
"""


def can_import(python: str, module: str) -> bool:
    """Whether an interpreter has a package."""
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0


def main() -> None:
    """Index, weigh, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default=sys.executable, help="the Python that markdown-vault-mcp is installed for")
    parser.add_argument("--fp32", type=Path, help="folder written by scripts/convert_model.py --fp32")
    parser.add_argument("--docs", type=Path, help="a folder of Markdown in place of the npm package")
    parser.add_argument("--pages", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    if not can_import(given.peer, "markdown_vault_mcp"):
        print(f"skipped: markdown-vault-mcp is not installed for {given.peer}. Name another Python with --peer.")
        return
    vectors = given.fp32 is not None and can_import(given.peer, "fastembed")
    if not vectors:
        print("without vectors: needs --fp32, and fastembed next to markdown-vault-mcp.", file=sys.stderr)
    weights = str(given.fp32.resolve()) if vectors else ""
    found = corpus.chosen(given.docs)
    seconds: dict[str, list[float]] = {"Anvil": [], "markdown-vault-mcp": []}
    sizes: dict[str, int] = {}
    for _ in range(given.rounds):
        with tempfile.TemporaryDirectory() as folder:
            docs, ours, theirs = (Path(folder, name) for name in ("docs", "ours", "theirs"))
            markdown = corpus.write(docs, found, given.pages)
            ours.mkdir()
            theirs.mkdir()
            provider = "local" if vectors else "none"
            command = anvil("build", "--docs", str(docs), "--index", str(ours / "index.db"), "--provider", provider)
            seconds["Anvil"].append(run([*command, "--quiet"], folder=ours).seconds)
            settings = {"MARKDOWN_VAULT_MCP_EMBEDDING_PROVIDER": "", "PYTHONPATH": ""}
            if vectors:
                settings |= {
                    "MARKDOWN_VAULT_MCP_EMBEDDING_PROVIDER": "fastembed",
                    "MARKDOWN_VAULT_MCP_FASTEMBED_MODEL": MODEL,
                    "MARKDOWN_VAULT_MCP_EMBEDDINGS_PATH": str(theirs / "vectors"),
                }
            named = ["index", "--source-dir", str(docs), "--index-path", str(theirs / "index.db")]
            done = run([given.peer, "-c", START, weights, *named], settings, theirs)
            seconds["markdown-vault-mcp"].append(done.seconds)
            for name, where in (("Anvil", ours), ("markdown-vault-mcp", theirs)):
                sizes[name] = sum(path.stat().st_size for path in where.rglob("*") if path.is_file())
    print(heading(given.rounds))
    print(f"{given.pages} pages, {markdown / 1e6:.2f} MB of Markdown, {'with' if vectors else 'without'} vectors.\n")
    rows = [
        (
            name,
            f"{statistics.median(times):.1f} s",
            f"{ratio(times, seconds['Anvil']):.2f}",
            f"{sizes[name] / 1e6:.1f} MB",
            f"{sizes[name] / markdown:.2f}",
        )
        for name, times in seconds.items()
    ]
    print(table(("tool", "first build", "x Anvil's", "on disk", "x the Markdown"), rows))


if __name__ == "__main__":
    main()
