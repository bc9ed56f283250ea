"""Textbook search, the yardstick of a ranking: BM25 with stop words and Snowball stems, and the bundled model over the
same sections of up to 1,500 characters, fused by reciprocal ranks."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import snowballstemmer

from anvil.embedding.provider import EmbeddingProvider

K1, B, RRF, MOST_CHARACTERS, LISTED = 1.2, 0.75, 60, 1500, 100
STOP = frozenset(
    """
    a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to
    was will with
    """.split()  # noqa: SIM905 - a list of quoted words is not read
)
"""Lucene's."""


def sections(text: str) -> list[str]:
    """Breadcrumb and body of each part of a page between two headings, cut at blank lines."""
    found: list[str] = []
    crumbs: list[tuple[int, str]] = []
    body: list[str] = []
    fence = ""
    for line in [*text.splitlines(), "# "]:
        mark = re.match(r" {0,3}(`{3,}|~{3,})", line)
        fence = ("" if fence == mark[1][:3] else fence or mark[1][:3]) if mark else fence
        heading = None if fence else re.match(r"(#{1,6}) (.*)", line)
        size = sum(len(each) for each in body)
        if (heading or (size > MOST_CHARACTERS and not line.strip())) and size:
            found.append(" > ".join(name for _, name in crumbs) + "\n" + "\n".join(body))
            body = []
        if heading:
            crumbs = [*(crumb for crumb in crumbs if crumb[0] < len(heading[1])), (len(heading[1]), heading[2])]
        else:
            body.append(line)
    return found


class Textbook:
    """The pages of a folder. ``cache``: where the vectors are kept."""

    def __init__(self, docs: Path, provider: EmbeddingProvider, cache: Path) -> None:
        self.stem, self.provider = snowballstemmer.stemmer("english"), provider
        pages = sorted([*docs.rglob("*.md"), *docs.rglob("*.mdx")])
        texts = {path.relative_to(docs).as_posix(): sections(path.read_text(encoding="utf-8")) for path in pages}
        self.paths = [path for path, parts in texts.items() for _ in parts]
        parts = [part for each in texts.values() for part in each]
        if not cache.exists():
            np.save(cache, provider.embed(parts).vectors.astype(np.float16))
        self.vectors = np.load(cache).astype(np.float32)
        counts = [Counter(self.terms(part)) for part in parts]
        self.lengths = np.array([sum(count.values()) for count in counts], np.float64)
        self.postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for number, count in enumerate(counts):
            for term, times in count.items():
                self.postings[term].append((number, times))

    def terms(self, text: str) -> list[str]:
        words = [word for word in re.findall(r"\w\w+", text.lower()) if word not in STOP]
        stems: list[str] = self.stem.stemWords(words)
        return stems

    def ranked(self, query: str) -> list[tuple[str, str, tuple[str, ...]]]:
        """Pages, best first, without breadcrumbs."""
        words, total = np.zeros(len(self.paths)), len(self.paths)
        for term in self.terms(query):
            held = self.postings.get(term, [])
            idf = math.log(1 + (total - len(held) + 0.5) / (len(held) + 0.5))
            for number, times in held:
                norm = K1 * (1 - B + B * self.lengths[number] / self.lengths.mean())
                words[number] += idf * times / (times + norm)
        scores: dict[str, float] = defaultdict(float)
        for values in (words, self.vectors @ self.provider.embed_query(query)):
            order = [int(number) for number in np.argsort(-values, kind="stable") if values[number] > 0]
            listed = list(dict.fromkeys(self.paths[number] for number in order))[:LISTED]
            for rank, path in enumerate(listed, 1):
                scores[path] += 1 / (RRF + rank)
        return [(path, "", ()) for path in sorted(scores, key=lambda path: (-scores[path], path))]
