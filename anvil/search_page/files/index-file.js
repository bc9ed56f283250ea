// A reader of the published index: pages of an SQLite file by HTTP ranges, its trees, and the keyword index of FTS5.
// https://sqlite.org/fileformat2.html, https://sqlite.org/fts5.html#fts5_data_structures
//
// SQLite itself would request one page after the other. This reader requests all known pages at once, so a question takes
// a few round trips. The file is not trusted: wrong data raises Problem.

const WHOLE_BYTES = 1_000_000; // an index up to this size is fetched whole: one request, and none for later questions
const LIMIT_BYTES = 20_000_000; // the largest index that is fetched whole from a server without ranges
const BLOCK = 16384; // bytes of the smallest request
const GAP = 16384; // bytes between two parts that are fetched with them, because another request takes longer
const MAX_CACHED = 64e6; // bytes of cached pages
const MAX_LENGTHS = 10_000; // up to so many chunks, the numbers of their words are read when the index is opened
const MAX_LEAVES = 32; // pages of the keyword index, of 4 KB each, that are read for the beginning of a word
const FORMAT = 5;
const FIRST_LEAF = 2 ** 37; // FTS5: the ids of the pages of segment 1 follow this number
const COLUMNS = 4; // of the keyword index: content, breadcrumb, title, derived terms
const utf8 = new TextDecoder();
const encoder = new TextEncoder();

/** Bytes as a text with a character for each, which is in the same order as the bytes. */
const binary = bytes => Array.from(bytes, byte => String.fromCharCode(byte)).join('');

/** An error whose message is for readers. `isOutdated`: the site was published again after this page was loaded. */
export class Problem extends Error {
  isForReaders = true;

  constructor(message, isOutdated = false) {
    super(message);
    this.isOutdated = isOutdated;
  }
}

export const damaged = () => new Problem('The search index is damaged. Build and publish it again.');

/** [value, end] of an integer of SQLite, which has 7 bits in a byte. */
function varint(bytes, at) {
  let value = 0;
  for (let size = 1; size < 10; size += 1) {
    const byte = bytes[at];
    if (byte === undefined) throw damaged();
    at += 1;
    if (size === 9) return [value * 256 + byte, at];
    value = value * 128 + (byte & 127);
    if (byte < 128) break;
  }
  return [value, at];
}

function varints(bytes) {
  const values = [];
  for (let at = 0, value; at < bytes.length;) {
    [value, at] = varint(bytes, at);
    values.push(value);
  }
  return values;
}

const number = (bytes, at, size) => {
  if (at + size > bytes.length) throw damaged();
  let value = 0;
  for (let each = at; each < at + size; each += 1) value = value * 256 + bytes[each];
  return value;
};

/** The values of the first `count` columns of a record: numbers, texts, and blobs as bytes. */
function columns(record, count = Infinity) {
  const [size, start] = varint(record, 0);
  const values = [];
  for (let head = start, at = size, type; head < size && values.length < count;) {
    [type, head] = varint(record, head);
    const length = type >= 12 ? Math.floor((type - 12) / 2) : [0, 1, 2, 3, 4, 6, 8, 8, 0, 0][type] ?? NaN;
    if (!(at + length <= record.length)) throw damaged();
    if (type >= 12) {
      const bytes = record.subarray(at, at + length);
      values.push(type % 2 ? utf8.decode(bytes) : bytes);
    } else {
      const value = number(record, at, length);
      const isNegative = length > 0 && record[at] > 127;
      values.push(type === 0 ? null : type === 9 ? 1 : isNegative ? value - 256 ** length : value);
    }
    at += length;
  }
  return values;
}

export class IndexFile {
  #blocks = new Map(); // number -> promise of its bytes
  #nodes = new Map(); // number of a page -> promise of its cells
  #postings = new Map();
  #wanted = [];
  #whole = null;
  #etag = null;

  /** `facts`: the value of `index` in search.json. `ask`: `fetch`, or a substitute for it. */
  constructor(url, facts, ask = (...given) => fetch(...given)) {
    Object.assign(this, {url, facts, ask, block: Math.max(BLOCK, facts.page_size)});
  }

  /** Read the roots of the trees that each question needs, which are near each other, and small tables. */
  async open() {
    const {size, format, page_size: page, roots} = this.facts;
    if (format !== FORMAT) {
      throw new Problem(`The search index has format ${format}, and this page reads format ${FORMAT}. `
        + 'Build both with one version of Anvil.');
    }
    const needed = [roots.sections, roots.chunks, roots.chunks_fts_data, roots.chunks_fts_idx, roots.chunks_fts_docsize];
    const start = Math.floor(((Math.min(...needed) - 1) * page) / this.block) * this.block;
    const end = Math.ceil((Math.max(...needed) * page) / this.block) * this.block;
    // No other request runs at the same time, because the response to this one tells whether the server has ranges.
    await (size <= WHOLE_BYTES ? this.#fetch(0, size) : this.#fetch(start, Math.min(end, size)));
    const [, averages] = columns(await this.#row(roots.chunks_fts_data, 1));
    const [rows, ...tokens] = varints(averages);
    this.count = rows;
    this.averageLength = rows ? total(tokens.slice(0, COLUMNS)) / rows : 0;
    const entries = await this.#scan(roots.chunks_fts_idx, () => 0);
    this.terms = entries.map(({record}) => columns(record))
      .map(([, term, leaf]) => ({term: binary(term), leaf: Math.floor(leaf / 2)}));
    this.lengths = rows > MAX_LENGTHS ? null : this.#scan(roots.chunks_fts_docsize, () => 0)
      .then(found => new Map(found.map(row => [row.key, wordsIn(row)])));
    this.lengths?.catch(() => {}); // length() reports the error
  }

  // --- bytes

  /** The bytes from `start` to `end`. A server without ranges sends the whole file, which is kept. */
  async #fetch(start, end) {
    const {size, sha256} = this.facts;
    if (this.#whole) return this.#whole.subarray(start, end);
    let response;
    try { // With the hash in the address, caches keep the versions of the file apart. A browser requests parts that it may
      // cache one after the other, so only the first part may be cached. The next page of a visit needs it.
      const range = end - start < size ? {headers: {Range: `bytes=${start}-${end - 1}`}} : {};
      const cache = this.count === undefined ? 'default' : 'no-store';
      response = await this.ask(`${this.url}?${sha256.slice(0, 16)}`, {...range, cache});
    } catch {
      throw new Problem('The search index cannot be reached. Try again when you are online.');
    }
    const changed = new Problem(
      'The search index and this page are not of one build. Load the page again, or build both again.', true);
    if (response.status === 416) throw changed; // the file is shorter
    if (!response.ok) throw new Problem(`The search index cannot be read: the server answers with ${response.status}.`);
    const isPart = response.status === 206;
    const etag = response.headers.get('ETag');
    const isOfSize = response.headers.get('Content-Range')?.endsWith(`/${size}`);
    if (isPart && (!isOfSize || (this.#etag ?? etag) !== etag)) throw changed;
    this.#etag ??= etag;
    if (!isPart && size > LIMIT_BYTES) {
      response.body?.cancel();
      throw new Problem('This server does not send parts of files, '
        + `and the search index is larger than ${LIMIT_BYTES / 1e6} MB.`);
    }
    const bytes = new Uint8Array(await response.arrayBuffer());
    if (bytes.length !== (isPart ? end - start : size)) throw changed;
    if (!isPart) return (this.#whole = bytes).subarray(start, end);
    for (let at = start; at < end; at += this.block) {
      const index = at / this.block, block = bytes.subarray(at - start, at - start + this.block);
      if (!this.#blocks.has(index)) this.#blocks.set(index, Promise.resolve(block));
    }
    return bytes;
  }

  /** A block of the file. Blocks that are requested in the same turn and are near each other are fetched together. */
  #get(index) {
    if (!this.#blocks.has(index)) {
      this.#blocks.set(index, new Promise((resolve, reject) => this.#wanted.push({index, resolve, reject})));
      if (this.#wanted.length === 1) setTimeout(() => this.#send());
    }
    return this.#blocks.get(index);
  }

  #send() {
    const wanted = this.#wanted.sort((one, other) => one.index - other.index);
    this.#wanted = [];
    while (wanted.length) {
      const run = [wanted.shift()];
      while (wanted.length && (wanted[0].index - run.at(-1).index - 1) * this.block <= GAP) run.push(wanted.shift());
      const start = run[0].index * this.block;
      const part = (bytes, index) => bytes.subarray(index * this.block - start, (index + 1) * this.block - start);
      this.#fetch(start, Math.min((run.at(-1).index + 1) * this.block, this.facts.size)).then(
        bytes => run.forEach(({index, resolve}) => resolve(part(bytes, index))),
        error => run.forEach(({index, reject}) => { this.#blocks.delete(index); reject(error); }));
    }
  }

  async #page(number) {
    const start = (number - 1) * this.facts.page_size, index = Math.floor(start / this.block);
    if (!(start >= 0 && start < this.facts.size)) throw damaged();
    const bytes = await this.#get(index);
    return bytes.subarray(start - index * this.block, start - index * this.block + this.facts.page_size);
  }

  // --- trees

  /** The cells of a page of a tree. A cell has a `child` page before it, a `key` (row id or first column) and a record. */
  #node(number) {
    if (this.#nodes.size * this.facts.page_size > MAX_CACHED) this.forget();
    if (!this.#nodes.has(number)) this.#nodes.set(number, this.#page(number).then(page => this.#cells(page)));
    return this.#nodes.get(number).catch(error => { this.#nodes.delete(number); throw error; });
  }

  #cells(page) {
    const kind = page[0], isLeaf = kind === 10 || kind === 13, isTable = kind === 5 || kind === 13;
    if (!isLeaf && kind !== 2 && kind !== 5) throw damaged();
    const cells = [];
    for (let each = 0; each < number(page, 3, 2); each += 1) {
      let at = number(page, (isLeaf ? 8 : 12) + 2 * each, 2);
      const cell = {child: isLeaf ? 0 : number(page, at, 4)};
      if (!isLeaf) at += 4;
      if (isLeaf || !isTable) [cell.size, at] = varint(page, at);
      if (isTable) [cell.key, at] = varint(page, at);
      if (cell.size !== undefined) {
        const local = this.#localBytes(cell.size, isTable);
        cell.local = page.subarray(at, at + local);
        if (local < cell.size) cell.overflow = number(page, at + local, 4);
        if (!isTable) [cell.key] = columns(cell.local, 1);
      }
      cells.push(cell);
    }
    if (!isLeaf) cells.push({child: number(page, 8, 4)});
    return cells;
  }

  /** The number of bytes of a record that are in its cell. The others are in overflow pages. */
  #localBytes(size, isTable) {
    const most = isTable ? this.facts.page_size - 35 : Math.floor(((this.facts.page_size - 12) * 64) / 255) - 23;
    const least = Math.floor(((this.facts.page_size - 12) * 32) / 255) - 23;
    const fitting = least + ((size - least) % (this.facts.page_size - 4));
    return size <= most ? size : fitting <= most ? fitting : least;
  }

  async #record({size, local, overflow}) {
    if (size > this.facts.size) throw damaged();
    if (local.length === size) return local;
    const record = new Uint8Array(size);
    record.set(local);
    for (let at = local.length; at < size;) {
      const page = await this.#page(overflow);
      const part = page.subarray(4, Math.min(this.facts.page_size, 4 + size - at));
      record.set(part, at);
      at += part.length;
      overflow = number(page, 0, 4);
    }
    return record;
  }

  /** The wanted rows of a tree, in order. `place` tells whether a key is before (-1), in (0) or after (1) the wanted ones. */
  async #scan(root, place, seen = new Set()) {
    if (seen.has(root)) throw damaged(); // a tree has each page once
    seen.add(root);
    const found = [];
    let before = -1;
    for (const cell of await this.#node(root)) {
      const here = cell.key === undefined ? 1 : place(cell.key);
      if (cell.child && before <= 0 && here >= 0) found.push(this.#scan(cell.child, place, seen));
      if (cell.local && here === 0) found.push(this.#record(cell).then(record => [{key: cell.key, record}]));
      if (here > 0) break;
      before = here;
    }
    return (await Promise.all(found)).flat();
  }

  async #row(root, id) {
    const [row] = await this.#scan(root, key => Math.sign(key - id));
    if (!row) throw damaged();
    return row.record;
  }

  // --- tables

  /** A chunk, by its row. */
  async chunk(id) {
    const values = columns(await this.#row(this.facts.roots.chunks, id));
    const [, , document, ordinal, heading, , start, , , , , title, , content] = values;
    return {id, document, ordinal, heading, start, title, content};
  }

  /** The sections of a page, in order. */
  async sections(document) {
    const rows = await this.#scan(this.facts.roots.sections, key => Math.sign(key - document));
    return rows.map(({record}) => columns(record))
      .map(([, , heading, level, anchor, start, end]) => ({heading, level, anchor, start, end}));
  }

  /** The metadata of a page. */
  async metadata(document) {
    return JSON.parse(columns(await this.#row(this.facts.roots.documents, document))[12]);
  }

  /** The number of words of a chunk. */
  async length(id) {
    const known = (await this.lengths)?.get(id);
    return known ?? wordsIn({record: await this.#row(this.facts.roots.chunks_fts_docsize, id)});
  }

  // --- the keyword index

  /** Row of a chunk -> positions of a token in it, in the encoding of FTS5. In order of the rows. */
  posting(token) {
    if (!this.#postings.has(token)) this.#postings.set(token, this.#readPosting(binary(encoder.encode(`0${token}`))));
    return this.#postings.get(token).catch(error => { this.#postings.delete(token); throw error; });
  }

  async #readPosting(wanted) {
    const index = this.#leafOf(wanted);
    if (index < 0) return new Map();
    const leaves = await this.#leaves(this.terms[index].leaf, this.terms[index + 1]?.leaf);
    if (!leaves.length) throw damaged();
    for (const entries of entriesOf(leaves[0])) if (entries.term === wanted) return decoded(leaves, entries);
    return new Map();
  }

  /** Token that begins with a text -> its posting(). Empty if these tokens fill more than MAX_LEAVES pages. */
  async beginning(text) {
    const wanted = binary(encoder.encode(`0${text}`));
    const first = this.terms[Math.max(this.#leafOf(wanted), 0)]?.leaf ?? 0;
    const behind = this.terms.find(({term}) => term > `${wanted}\xff`)?.leaf; // the last entries may end in it
    const found = new Map();
    if ((behind ?? this.terms.at(-1)?.leaf ?? 0) - first >= MAX_LEAVES) return found;
    const leaves = await this.#leaves(first, behind);
    leaves.forEach((each, at) => {
      for (const entries of entriesOf(each)) {
        if (!entries.term.startsWith(wanted)) continue;
        const token = utf8.decode(Uint8Array.from(entries.term.slice(1), letter => letter.charCodeAt(0)));
        found.set(token, decoded(leaves.slice(at), entries));
      }
    });
    return found;
  }

  /** The index in `terms` of the page that may have a term; -1 if it is before the first one. */
  #leafOf(wanted) {
    return this.terms.findLastIndex(({term}) => term <= wanted);
  }

  /** The pages of the keyword index from `first` to `last`, or to the end. */
  async #leaves(first, last = 2 ** 31 - 1) {
    const place = key => (key < FIRST_LEAF + first ? -1 : key > FIRST_LEAF + last ? 1 : 0);
    const rows = await this.#scan(this.facts.roots.chunks_fts_data, place);
    return rows.map(({record}) => leaf(columns(record)[1]));
  }

  forget() {
    this.#blocks.clear();
    this.#nodes.clear();
    this.#postings.clear();
  }
}

const total = values => values.reduce((sum, each) => sum + each, 0);

/** The number of words of a chunk in all columns, from a row of FTS5's table of sizes. */
const wordsIn = ({record}) => total(varints(columns(record)[1]).slice(0, COLUMNS));

/** A page of FTS5's index: its bytes, and the offsets of the first row id, of the end of its entries, and of its terms. */
function leaf(bytes) {
  const end = number(bytes, 2, 2);
  let at = 0;
  const terms = varints(bytes.subarray(end)).map(step => (at += step));
  if (end > bytes.length || at > end) throw damaged();
  return {bytes, firstRow: number(bytes, 0, 2), end, terms};
}

/** The terms of a page in order, with the offsets of the entries of each. */
function* entriesOf({bytes, end, terms}) {
  let term = '';
  for (let each = 0; each < terms.length; each += 1) {
    let at = terms[each], kept = 0, size;
    if (each) [kept, at] = varint(bytes, at);
    [size, at] = varint(bytes, at);
    term = term.slice(0, kept) + binary(bytes.subarray(at, at + size));
    yield {term, start: at + size, end: terms[each + 1] ?? end, isLast: each === terms.length - 1};
  }
}

/** The entries of a term, which may continue in the next pages. In each page the first row id is a number, and the others
 * are differences. */
function decoded(leaves, {start, end, isLast}) {
  const parts = [leaves[0].bytes.subarray(start, end)], whole = new Set([0]);
  let size = parts[0].length;
  for (const next of isLast ? leaves.slice(1) : []) {
    if (next.firstRow && next.firstRow < (next.terms[0] ?? next.end)) whole.add(size + next.firstRow - 4);
    parts.push(next.bytes.subarray(4, next.terms[0] ?? next.end));
    size += parts.at(-1).length;
    if (next.terms.length) break;
  }
  const bytes = new Uint8Array(size);
  parts.reduce((at, part) => (bytes.set(part, at), at + part.length), 0);
  const rows = new Map();
  for (let at = 0, id = 0, value; at < size;) {
    const isWhole = whole.has(at);
    [value, at] = varint(bytes, at);
    id = isWhole ? value : id + value;
    [value, at] = varint(bytes, at);
    const length = Math.floor(value / 2); // the lowest bit marks deleted entries, which a published index does not have
    if (at + length > size) throw damaged();
    rows.set(id, bytes.subarray(at, at + length));
    at += length;
  }
  return rows;
}

/** The positions of a token in each column of a chunk. */
export function positions(list) {
  const found = Array.from({length: COLUMNS}, () => []);
  const values = varints(list);
  for (let each = 0, column = 0, at = 0; each < values.length; each += 1) {
    if (values[each] === 1) [column, at] = [values[each += 1], 0];
    else found[column]?.push(at += values[each] - 2);
  }
  return found;
}
