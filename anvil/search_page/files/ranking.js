// The ranking of `anvil search --mode keyword`, over parts of the published index. Names and order are those of
// anvil/search/ranking.py and searcher.py. All weights and limits come from search.json, into which
// anvil/search_page/publishing.py writes them.

import {excerpt} from './excerpt.js';
import {damaged, IndexFile, positions, Problem} from './index-file.js';
import {bare, compoundParts, counted, derivedWords, folded, headingCounts, isCjk, parseQuestion, stripped, token, tokens, words}
  from './words.js';

const SEPARATOR = ' > ';
const MIN_BEGUN = 3; // letters that a word must have to be completed
const MAX_COMPLETIONS = 4;
const [MIN_STEM, MAX_ENDING] = [4, 5]; // letters: for "configurat" the index has the stem "configur"
const QUALIFIED = /^([A-Za-z_][\p{L}\p{N}_]*(?:\.[A-Za-z_][\p{L}\p{N}_]*)+)(?:\(\))?$/u; // such as asyncio.TaskGroup
const sum = values => [...values].reduce((total, each) => total + each, 0);
const round = value => Math.round(value * 1e6) / 1e6;
const among = (names, wanted) => names.find(name => wanted.has(name)) ?? names[0]; // of names with the newest first
const idf = (frequency, total) => Math.log(1 + (total - frequency + 0.5) / (frequency + 0.5));

export class Search {
  /** A search made of the response to a request for search.json at `address`. `response` is null without a network. */
  static async of(response, address) {
    if (!response) throw new Problem('The search index cannot be reached. Try again when you are online.');
    if (!response.ok) throw new Problem(`There is no search index here: the server answers with ${response.status}.`);
    return new Search(await response.json(), address);
  }

  /** `data`: search.json; `base`: its address; `ask`: as for IndexFile. */
  constructor(data, base, ask) {
    this.data = data;
    this.rules = data.rules;
    this.base = base;
    this.file = new IndexFile(new URL(data.index.file, base), data.index, ask);
    const {around, families = [], spellings = {}} = data.versions ?? {};
    const known = families.map(([names, number]) => ({names, around: around[number]}));
    this.spellings = new Map(Object.entries(spellings));
    this.translations = new Map(data.translations?.flatMap(ids => ids.map(id => [id, ids]))); // page -> all its translations
    this.pages = new Map(data.pages.map((page, order) => [page.id, {
      ...page, order, words: new Set(page.words?.split(' ')), version: page.version ?? '', family: known[page.family]}]));
  }

  /** Read the parts of the index that every question needs. */
  open() {
    this.opened ??= this.file.open().catch(error => { this.opened = null; throw error; });
    return this.opened;
  }

  /** The number of chunks for the weights of words, at least FEW_CHUNKS: see anvil/search/ranking.py. */
  get total() {
    return Math.max(this.file.count, this.rules.FEW_CHUNKS);
  }

  /** The best chunks for a question, best first, with the weights of its words and phrases. */
  async rank(question) {
    await this.open();
    const {versions, others} = this.wanted(question), leftOut = this.leftOut(versions);
    const found = await this.candidates(others, leftOut);
    let {results} = found, name = question.trim().replace(/^`+|`+$/g, '').match(QUALIFIED)?.[1];
    let isExact = Boolean(name && results.length) && await this.namedFirst(results, name);
    if (name && results.length && !isExact) {
      const anchor = await this.anchorOf(results, name);
      const again = anchor === name ? [] : (await this.candidates(anchor, leftOut)).results;
      isExact = again.length > 0 && await this.namedFirst(again, anchor);
      if (isExact) results = again;
      name = anchor;
    }
    const isWeighed = !isExact && !(found.isAboutRecords && versions.size !== 1);
    results = this.oneTranslation(this.inVersion(results, versions, isWeighed));
    return {...found, results, name};
  }

  /** `leftOut`: the pages that have no candidates of their own. */
  async candidates(question, leftOut) {
    const {rules} = this;
    const {terms, phrases} = parseQuestion(question, rules);
    const rowsOf = new Map();
    const all = [...[...terms].map(([, {word}]) => word), ...phrases.keys()];
    await Promise.all(all.map(async text => rowsOf.set(text, await this.holders(text))));
    await this.complete(question, terms, rowsOf);
    const weights = new Map();
    for (const [key, {weight, word}] of terms) {
      if (rowsOf.get(word).size) weights.set(key, weight * idf(rowsOf.get(word).size, this.total));
    }
    const held = [...phrases].map(([text, weight]) => {
      const rows = new Set([...rowsOf.get(text).keys()].slice(0, rules.MAX_PHRASE_ROWS));
      return {text, rows, weight: weight * idf(rows.size, this.total)};
    }).filter(({rows}) => rows.size);
    // With 25 versions, the best chunks are 25 copies of one. So one version of each page has candidates of its own.
    const selections = leftOut.size ? [leftOut, new Map()] : [leftOut];
    const rows = await Promise.all(selections.map(each => this.named(terms, weights, held, rowsOf, each)));
    const ids = [...new Set(rows.flat())];
    const isAboutRecords = new RegExp(rules.ABOUT_RECORDS, 'i').test(question);
    const results = await this.scored(ids, terms, weights, held, rowsOf);
    const whole = words(question).join(' '), holders = held.find(({text}) => text === whole)?.rows, title = bare(question);
    this.raise(results, ({id}) => holders?.has(id));
    this.raise(results, ({page}) => page.name === title);
    await this.order(results, isAboutRecords);
    this.confidence(results, terms, weights, held);
    return {results, weights, phrases, isAboutRecords};
  }

  /** Add words that begin with the last word, if few chunks have it: a reader may still be typing it. The most common one
   * gets the weight of a single word that all their chunks have, the others less. */
  async complete(question, terms, rowsOf) {
    const text = question.trim().normalize('NFC'), last = words(text).at(-1) ?? '';
    const parts = text.endsWith(last) ? [last, ...compoundParts(last).slice(-1)] : []; // openHarb has the part Harb
    await Promise.all(parts.map(part => this.completeWord(part, terms, rowsOf)));
  }

  async completeWord(last, terms, rowsOf) {
    const begun = folded(last), key = token(last), term = terms.get(key), known = rowsOf.get(term?.word)?.size;
    if (!term || known >= this.rules.RESULTS || isCjk(last) || begun.length < MIN_BEGUN) return;
    const found = await this.file.beginning(begun);
    found.delete(key);
    const least = known ? begun.length : Math.max(MIN_STEM, begun.length - MAX_ENDING);
    for (let length = begun.length - 1; !found.size && length >= least; length -= 1) {
      const stem = begun.slice(0, length), rows = await this.file.posting(stem);
      if (rows.size) found.set(stem, rows);
    }
    const order = ([one, rows], [other, more]) => more.size - rows.size || (one < other ? -1 : 1);
    const used = [...found].filter(([each]) => !terms.has(each)).sort(order).slice(0, MAX_COMPLETIONS);
    const together = idf(new Set(used.flatMap(([, rows]) => [...rows.keys()])).size, this.total);
    if (used.length && !known) terms.delete(key);
    for (const [each, rows] of used) {
      const share = (rows.size / used[0][1].size) * (together / idf(rows.size, this.total));
      terms.set(each, {weight: term.weight * share, word: each});
      rowsOf.set(each, rows);
    }
  }

  /** Row of a chunk with a word or a phrase -> positions of its first word. */
  async holders(text) {
    const lists = await Promise.all(tokens(text).map(each => this.file.posting(each)));
    if (lists.length < 2) return lists[0] ?? new Map();
    const found = new Map();
    for (const [row, list] of lists.reduce((one, other) => (other.size < one.size ? other : one))) {
      if (!lists.every(each => each.has(row))) continue;
      const [first, ...others] = lists.map(each => positions(each.get(row)));
      const follow = (start, at) => others.every((other, step) => other[at].includes(start + step + 1));
      const starts = first.map((column, at) => column.filter(start => follow(start, at)));
      if (starts.some(column => column.length)) found.set(row, starts);
    }
    return found;
  }

  /** The rows of candidates in pages that are not left out. If these have few chunks, they are all chunks with one of the
   * words. Else they are the best by BM25 for the rarest words, or for all words if the rarest give too few, and for the
   * phrases alone. */
  async named(terms, weights, held, rowsOf, leftOut) {
    const {rules} = this, count = this.file.count - sum(leftOut.values());
    const size = key => rowsOf.get(terms.get(key).word).size;
    const keys = [...weights.keys()].sort((one, other) => size(one) - size(other) || (one < other ? -1 : 1));
    const texts = most => [...keys.slice(0, most).map(key => terms.get(key).word), ...held.map(({text}) => text)];
    const rowsWith = each => [...new Set(each.flatMap(text => [...rowsOf.get(text).keys()]))]
      .filter(row => !leftOut.has(this.pageOf(row)));
    if (count <= rules.MAX_WHOLE) return rowsWith(texts());
    let affordable = 0;
    for (let cost = 0; affordable < keys.length && (cost += size(keys[affordable])) <= rules.MAX_POSTINGS;) affordable += 1;
    let rows = [];
    for (const used of new Set([Math.min(Math.max(affordable, 1), keys.length), keys.length])) {
      if (rows.length < rules.CANDIDATES) rows = await this.matching(rowsWith(texts(used)), texts(used), rowsOf);
    }
    const phrases = held.map(({text}) => text);
    return [...rows, ...await this.matching(rowsWith(phrases), phrases, rowsOf)];
  }

  /** The number of the page of a chunk. */
  pageOf(row) {
    return Math.floor(row / 2 ** this.rules.CHUNK_BITS);
  }

  /** The best of `rows` for some words and phrases, by the function bm25() of FTS5. */
  async matching(rows, texts, rowsOf) {
    const {K1, B, FIELD_WEIGHTS: [title, heading, content, derived]} = this.rules;
    const weights = [content, heading, title, derived]; // in the order of the columns
    const total = this.file.count;
    const lengths = await Promise.all(rows.map(row => this.file.length(row)));
    const scored = rows.map((row, at) => {
      const norm = K1 * (1 - B + (B * lengths[at]) / this.file.averageLength);
      const score = sum(texts.map(text => {
        const list = rowsOf.get(text).get(row);
        if (!list) return 0;
        const frequency = sum(places(list).map((column, each) => weights[each] * column.length));
        const found = rowsOf.get(text).size;
        return Math.max(Math.log((total - found + 0.5) / (found + 0.5)), 1e-6) * ((frequency * (K1 + 1)) / (frequency + norm));
      }));
      return {row, score};
    });
    const best = scored.sort((one, other) => other.score - one.score || one.row - other.row);
    return best.slice(0, this.rules.CANDIDATES).map(({row}) => row);
  }

  /** The candidates with one of the words. A score is the weighted sum of BM25F, headings and links. */
  async scored(ids, terms, weights, held, rowsOf) {
    const {rules, file} = this;
    const whole = sum(weights.values()) || 1;
    const results = await Promise.all(ids.map(async id => {
      const page = this.pages.get(this.pageOf(id));
      if (!page) throw damaged();
      const length = await file.length(id);
      const found = new Map([...weights.keys()].map(key => [key, places(rowsOf.get(terms.get(key).word).get(id))]));
      const parts = text => counted(text?.split(' ') ?? []);
      const path = counted(tokens(page.path.replace(/\.[^./]+$/, '')));
      const title = parts(page.title_parts), heading = parts(page.heading_parts?.[id % 2 ** rules.CHUNK_BITS]);
      const fields = key => {
        const [content, inHeading, inTitle, derived] = found.get(key).map(column => column.length);
        const more = counts => counts.get(key) ?? 0;
        return [inTitle + more(title), inHeading + more(heading), content, derived + more(path)];
      };
      const phrases = sum(held.filter(({rows}) => rows.has(id)).map(({weight}) => weight));
      return {id, page, ...this.bm25f(weights, fields, length, phrases, whole)};
    }));
    const matched = results.filter(({words}) => words > 0);
    const best = Math.max(0, ...matched.map(({words}) => words)) || 1;
    const full = 1 + rules.HEADING_WEIGHT + (this.data.links ? rules.LINK_WEIGHT + rules.POPULAR_WEIGHT : 0);
    for (const result of matched) {
      const {page} = result;
      const linked = sum([...weights].filter(([key]) => page.words.has(key)).map(([, weight]) => weight)) / whole;
      const links = rules.LINK_WEIGHT * linked + rules.POPULAR_WEIGHT * (page.popularity ?? 0);
      result.ofLinks = links / full;
      result.score = (result.words / best + rules.HEADING_WEIGHT * result.covered + links) / full;
    }
    return matched;
  }

  /** Raise the scores of exact matches above the others. */
  raise(results, isExact) {
    if (!results.some(isExact)) return;
    const highest = Math.max(0, ...results.filter(each => !isExact(each)).map(({score}) => score));
    const limit = Math.min(highest, this.rules.HIGHEST_INEXACT), share = limit / (highest || 1);
    for (const result of results) result.score = isExact(result) ? limit + (1 - limit) * result.score : result.score * share;
  }

  /** Weigh the scores of results by their pages, and put the best first. */
  async order(results, isAboutRecords) {
    for (const result of results) {
      result.score = round(result.score * ((isAboutRecords ? result.page.record_factor : result.page.factor) ?? 1));
    }
    const isEqual = (one, other) => one !== other && one.page === other.page && one.score === other.score;
    await Promise.all(results.filter(one => results.some(other => isEqual(one, other))).map(async result => {
      result.ordinal = (await this.file.chunk(result.id)).ordinal; // of equal results the first in the page comes first
    }));
    const before = (one, other) => one.page.order - other.page.order || one.ordinal - other.ordinal;
    results.sort((one, other) => other.score - one.score || before(one, other));
  }

  /** Set the probability that a result answers the question: see anvil/search/confidence.py. */
  confidence(results, terms, weights, held) {
    const {rules: {K1, DERIVED_SHARE, MISSING_PAIR_SHARE, CONFIDENCE: fit}} = this;
    const share = key => (isCjk(key) ? DERIVED_SHARE : 1);
    const missing = [...terms].filter(([key]) => !weights.has(key))
      .map(([key, {weight}]) => [key, weight * (isCjk(key) ? MISSING_PAIR_SHARE : 1)]);
    const perfect = (sum([...weights].map(([key, weight]) => share(key) * weight)) + sum(held.map(({weight}) => weight))
      + sum(missing.map(([key, weight]) => share(key) * weight)) * idf(0, this.total)) * (K1 + 1) || 1;
    const unknown = sum(missing.map(([, weight]) => weight)) / (sum([...terms.values()].map(({weight}) => weight)) || 1);
    for (const result of results) {
      const words = result.words / perfect;
      const odds = fit.intercept + fit.words * words * Math.sqrt(Math.min(terms.size, fit.most_words))
        + (fit.short * words) / Math.max(terms.size, 1) + fit.unknown * unknown;
      result.confidence = 1 / (1 + Math.exp(-odds));
    }
  }

  bm25f(weights, fields, length, phrases, whole) {
    const {K1, B, FIELD_WEIGHTS} = this.rules;
    const norm = K1 * (1 - B + (B * length) / Math.max(this.file.averageLength, 1));
    let score = (phrases * (K1 + 1)) / (1 + norm), covered = 0;
    for (const [key, weight] of weights) {
      const counts = fields(key);
      const frequency = sum(counts.map((count, each) => FIELD_WEIGHTS[each] * count));
      if (frequency) score += (weight * frequency * (K1 + 1)) / (frequency + norm);
      if (counts[0] || counts[1]) covered += weight;
    }
    return {words: score, covered: covered / whole};
  }

  // --- a question that is the name of an API

  /** Move the results with a section whose anchor is `name` to the front. Returns whether there is one. */
  async namedFirst(results, name) {
    const named = await Promise.all(results.map(async ({id}) => {
      const chunk = await this.file.chunk(id);
      return (await this.sectionsOf(chunk)).some(({anchor, start}) => anchor === name && start >= chunk.start);
    }));
    const first = results.filter((_, at) => named[at]);
    first.forEach(result => { result.score = Math.max(...results.map(({score}) => score)); });
    results.splice(0, results.length, ...first, ...results.filter((_, at) => !named[at]));
    return first.length > 0;
  }

  /** The anchor of a second name in the best pages; the name itself if they do not have it. */
  async anchorOf(results, name) {
    const documents = [...new Set(results.map(({page}) => page.id))].slice(0, this.rules.MAX_NAMED_PAGES);
    const aliases = (await Promise.all(documents.map(each => this.file.metadata(each)))).map(each => each.aliases?.[name]);
    return aliases.find(each => typeof each === 'string') ?? name;
  }

  // --- versions and translations of a page: see anvil/search/page_variants.py

  /** The versions that a question names; and its words, without the name of the only version. */
  wanted(question) {
    const all = question.split(/\s+/).filter(Boolean), versionOf = word => this.spellings.get(stripped(word.toLowerCase()));
    const versions = new Set(all.map(versionOf).filter(Boolean));
    if (versions.size !== 1) return {versions, others: question};
    return {versions, others: all.filter(word => !versionOf(word)).join(' ') || question};
  }

  /** Page of which another version is searched first -> the number of its chunks. */
  leftOut(wanted) {
    const pages = [...this.pages.values()].filter(page => page.family && page.version !== among(page.family.names, wanted));
    return new Map(pages.map(({id, chunks}) => [id, chunks]));
  }

  /** The results with one version of each page. If `isWeighed`, a page in another version than the wanted one, or that
   * the newest version lacks, loses a share of its score. */
  inVersion(results, wanted, isWeighed) {
    const best = new Map(), kept = new Map(); // page or family -> its best score without links; family -> the page that stays
    for (const {page, score, ofLinks} of results) for (const each of [page, page.family]) {
      best.set(each, Math.max(score - ofLinks, best.get(each) ?? -1)); // others link to a page, not to what it says
    }
    const preference = page => 2 * wanted.has(page.version)
      + (best.get(page) >= this.rules.NEWER_SHARE * best.get(page.family))
      - page.family.names.indexOf(page.version) / page.family.names.length;
    for (const {page} of results) {
      const other = kept.get(page.family);
      if (page.family && (!other || preference(page) > preference(other))) kept.set(page.family, page);
    }
    const own = results.filter(({page}) => !page.family || kept.get(page.family) === page);
    if (!isWeighed) return own;
    for (const result of own) {
      const {names = [], around = []} = result.page.family ?? {};
      const isAsked = around.some(name => wanted.has(name)), {version} = result.page;
      const isForeign = isAsked ? !(around.includes(version) && wanted.has(version)) : around.length && !names.includes(around[0]);
      if (isForeign) result.score = round(this.rules.OTHER_SHARE * result.score);
    }
    return own.sort((one, other) => other.score - one.score);
  }

  /** The results without other translations of a page: the best one stays. */
  oneTranslation(results) {
    const kept = new Map(), of = ({id}) => this.translations.get(id) ?? id; // translations -> the best of them
    for (const {page} of results) if (!kept.has(of(page))) kept.set(of(page), page);
    return results.filter(({page}) => kept.get(of(page)) === page);
  }

  // --- shown results

  /** The first results for a question, or with `isMore` up to MAX_RESULTS, and a note for readers. */
  async answer(question, isMore = false) {
    const {rules} = this;
    const found = await this.rank(question);
    const shown = this.shown(found.results, rules.RESULTS);
    const all = this.shown(found.results, rules.MAX_RESULTS);
    const listed = isMore ? [...shown, ...all.filter(result => !shown.includes(result))] : shown;
    const results = await Promise.all(listed.map(async result => {
      const section = await this.section(result, found);
      const heading = fullHeading(section.title, section.heading) + (result.page.version ? ` (${result.page.version})` : '');
      return {address: this.address(result.page, section.anchor), heading, excerpt: excerpt(section.text, found.weights)};
    }));
    const isLikely = shown.some(({confidence}) => confidence >= rules.UNLIKELY);
    const count = `${results.length} ${results.length === 1 ? 'result' : 'results'}.`;
    const told = isLikely ? count : `${count} Probably none of them answers this.`;
    return {results, note: results.length ? told : 'No page has these words.', hasMore: !isMore && all.length > shown.length};
  }

  /** The address of a result; null if it is not one of http or https, whatever the data say. */
  address({address}, anchor) {
    if (typeof address !== 'string') return null;
    const url = new URL(address, new URL(this.data.site, this.base));
    url.hash = anchor;
    return ['http:', 'https:'].includes(url.protocol) ? url.href : null;
  }

  /** The best `count` results. Good results of other pages are chosen before further sections of the same page. */
  shown(results, count) {
    const best = new Map();
    const enough = this.rules.FIRST_SHARE * Math.max(0, ...results.map(({score}) => score));
    for (const result of results) if (!best.has(result.page.id)) best.set(result.page.id, result);
    const first = [...best.values()].filter(({score}) => score >= enough);
    const chosen = new Set([...first, ...results.filter(result => !first.includes(result))].slice(0, count));
    return results.filter(result => chosen.has(result));
  }

  /** The sections in a chunk. */
  async sectionsOf(chunk) {
    chunk.letters ??= [...chunk.content]; // positions in the index count characters, JavaScript counts units of UTF-16
    const sections = await this.file.sections(chunk.document), end = chunk.start + chunk.letters.length;
    const first = sections.findLastIndex(({start}) => start <= chunk.start);
    return sections.slice(Math.max(first, 0)).filter(({start}) => start < end);
  }

  /** The section of a result that fits the question best, with its text: see anvil/search/result_texts.py. */
  async section({id, page}, {weights, phrases, name}) {
    // the sections are read at the same time, so that both are in one request
    const [chunk] = await Promise.all([this.file.chunk(id), this.file.sections(page.id)]);
    const sections = await this.sectionsOf(chunk);
    const own = ({start, end}) => chunk.letters.slice(Math.max(start - chunk.start, 0), Math.max(end - chunk.start, 0)).join('');
    const rarest = idf(1, this.total);
    const scores = sections.map(section => {
      const text = own(section), list = tokens(text), padded = ` ${list.join(' ')} `;
      const heading = headingCounts(section.heading.split(SEPARATOR).at(-1)), content = counted(list);
      const derived = counted(derivedWords(text).map(token));
      const fields = key => [0, heading.get(key) ?? 0, content.get(key) ?? 0, derived.get(key) ?? 0];
      const inText = [...phrases].filter(([phrase]) => padded.includes(` ${tokens(phrase).join(' ')} `));
      const held = sum(inText.map(([, weight]) => weight * rarest));
      return round(this.bm25f(weights, fields, text.split(/\s+/).filter(Boolean).length, held, 1).words);
    });
    const named = name === undefined ? undefined : sections.find(({anchor}) => anchor === name);
    const section = named ?? sections[scores.indexOf(Math.max(...scores))];
    const {heading, anchor} = section ?? {heading: chunk.heading, anchor: ''};
    return {title: chunk.title, heading, anchor, text: section ? own(section) : chunk.content};
  }
}

/** The title of the page and the headings down to the section, each once. */
function fullHeading(title, heading) {
  const headings = heading.split(SEPARATOR).filter(each => !each.startsWith('(root)'));
  return (title && headings[0] !== title ? [title, ...headings] : headings).join(' › ') || 'Untitled';
}

/** The positions in each column. `list`: a posting; for a phrase, the positions themselves. */
const places = list => (list === undefined ? [[], [], [], []] : Array.isArray(list) ? list : positions(list));
