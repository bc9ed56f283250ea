// Words and tokens of a text, as in anvil/text/query.py and in FTS5's tokenizer "porter unicode61 remove_diacritics 2",
// which made the keyword index. A question must be split and stemmed in the same way, or it finds nothing.

const WORD = /[\p{L}\p{N}]+(?:[\u0300-\u0331]+[\p{L}\p{N}]*)*/gu;
const CAMEL = /[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+/g;
const CJK = '\\u3040-\\u30ff\\u3400-\\u4dbf\\u4e00-\\u9fff\\uf900-\\ufaff\\uac00-\\ud7af';
const RUN = new RegExp(`[${CJK}]+`, 'g');
const IS_CJK = new RegExp(`^[${CJK}]+$`);
const BEGINNING_LETTERS = 5; // letters that the forms of a Greek or Cyrillic word have in common
const INFLECTED = /^[\u0370-\u03ff\u1f00-\u1fff\u0400-\u052f]+$/;
const ACCENTED = /[\u0370-\u03ff\u0622-\u0626\u1f00-\u1fff]/g;
const INSIDE = /(?![\p{L}\p{N}])[\u00ad\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0963\u0966-\u0dff\u200c\u200d]/gu; // characters inside a word that split it
const LATIN = /[\u00c0-\u024f\u1e00-\u1eff]/g;
const AROUND = '`\'",;:!?()[]{}<>*.';
const bytes = new TextEncoder();

export const words = text => text.match(WORD) ?? [];
/** The letters and digits of a text in lower case, which the spellings of a name share. */
export const bare = text => words(text).join('').toLowerCase();
export const isCjk = token => IS_CJK.test(token);

/** A word without punctuation around it. */
export function stripped(word) {
  let [first, last] = [0, word.length];
  while (first < last && AROUND.includes(word[first])) first += 1;
  while (first < last && AROUND.includes(word[last - 1])) last -= 1;
  return word.slice(first, last);
}

/** The parts of a compound word, such as `optimize` and `Deps` for `optimizeDeps`; empty for other words. */
export function compoundParts(word) {
  const parts = /^[\x00-\x7f]*$/.test(word) ? word.match(CAMEL) ?? [] : [];
  return parts.length > 1 ? parts : [];
}

const pairs = run => (run.length > 1 ? Array.from({length: run.length - 1}, (_, at) => run.slice(at, at + 2)) : [run]);

/** The words of a text without the characters inside them that split them: only words that the text itself lacks. */
const joinedWords = (text, own = new Set(words(text))) => words(text.replace(INSIDE, '')).filter(word => !own.has(word));

/** A word without Greek accents and Arabic hamza, and without characters that NFKC replaces, such as half-width ones. */
const plainForm = word => word.normalize('NFKC').replace(ACCENTED, letter => letter.normalize('NFD')[0]);

/** The beginning of a long Greek or Cyrillic word, such as `прило` for `приложение`; empty for other words. */
export const beginnings = word =>
  (word.length > BEGINNING_LETTERS && INFLECTED.test(word) ? [word.slice(0, BEGINNING_LETTERS).toLowerCase()] : []);

/** Further words by which a text is found: parts of compounds, pairs of CJK characters and the words between them, plain
 * forms, beginnings and joined words. */
export function derivedWords(text) {
  const own = words(text), whole = [...own, ...joinedWords(text)], plain = whole.map(plainForm);
  const runs = [...whole, ...plain].flatMap(word => word.match(RUN) ?? []);
  const others = plain.flatMap(word => words(word.replace(RUN, ' '))), parts = others.flatMap(compoundParts);
  const all = [...others, ...parts.filter(part => part.length > 1), ...others.flatMap(beginnings), ...joinedWords(text)];
  const found = new Set([...all.map(word => word.toLowerCase()), ...runs.flatMap(run => [...pairs(run), ...run])]);
  own.forEach(word => found.delete(word.toLowerCase()));
  return [...found];
}

// --- Porter's stemmer, https://tartarus.org/martin/PorterStemmer/, in FTS5's form

const size = text => bytes.encode(text).length;

/** The vowels and consonants of a word as `v` and `c`. A `y` after a consonant is a vowel. FTS5 counts bytes of UTF-8, so a
 * letter outside ASCII is several consonants. */
function shape(word) {
  let shape = '';
  for (const letter of word) {
    const isVowel = 'aeiou'.includes(letter) || (letter === 'y' && shape.endsWith('c'));
    shape += isVowel ? 'v' : 'c'.repeat(letter < '\x80' ? 1 : size(letter));
  }
  return shape;
}

const some = word => shape(word).includes('vc');
const two = word => /vc+v+c/.test(shape(word));
const one = word => /^c*v+c+v*$/.test(shape(word));
const isShort = word => shape(word).endsWith('cvc') && !/[wxy]$/.test(word);
const hasVowel = word => /[aeiou]|.y/.test(word);
const endings = text => text.split(' ').map(pair => pair.split(':'));
const STEP_2 = endings('ational:ate tional:tion enci:ence anci:ance izer:ize logi:log bli:ble alli:al entli:ent eli:e ousli:ous '
  + 'ization:ize ation:ate ator:ate alism:al iveness:ive fulness:ful ousness:ous aliti:al iviti:ive biliti:ble');
const STEP_3 = endings('ical:ic ness: icate:ic iciti:ic ful: ative: alize:al');
const STEP_4 = endings('al: ance: ence: er: ic: able: ible: ant: ement: ment: ent: ion: ou: ism: ate: iti: ous: ive: ize:');

function replaced(word, table, allowed) {
  const [ending, other] = table.find(([each]) => word.length > each.length && word.endsWith(each)) ?? [];
  if (ending === undefined) return word;
  const stem = word.slice(0, -ending.length);
  return allowed(stem) && (ending !== 'ion' || /[st]$/.test(stem)) ? stem + other : word;
}

function withoutSuffix(word) { // step 1b
  if (word.length > 3 && word.endsWith('eed')) return some(word.slice(0, -3)) ? word.slice(0, -1) : word;
  const ending = word.length > 2 && word.endsWith('ed') ? 2 : word.length > 3 && word.endsWith('ing') ? 3 : 0;
  const stem = word.slice(0, word.length - ending);
  if (!ending || !hasVowel(stem)) return word;
  if (stem.length > 2 && /(?:at|bl|iz)$/.test(stem)) return `${stem}e`;
  if (/([^aeioulsz\x80-\uffff])\1$/.test(stem)) return stem.slice(0, -1);
  return one(stem) && isShort(stem) ? `${stem}e` : stem;
}

function stem(word) {
  if (size(word) < 3 || size(word) > 64) return word;
  if (/(?:.ss|.i)es$/.test(word)) word = word.slice(0, -2);
  else if (/[^s]s$/.test(word)) word = word.slice(0, -1);
  word = withoutSuffix(word);
  if (word.endsWith('y') && hasVowel(word.slice(0, -1))) word = `${word.slice(0, -1)}i`;
  word = replaced(replaced(replaced(word, STEP_2, some), STEP_3, some), STEP_4, two);
  const start = word.slice(0, -1);
  if (word.endsWith('e') && (two(start) || (one(start) && !isShort(start)))) word = start;
  return word.endsWith('ll') && two(word.slice(0, -1)) ? word.slice(0, -1) : word;
}

/** A Latin letter without its marks, which unicode61 removes. */
function plain(letter) {
  const base = letter.normalize('NFD')[0];
  return base < '\x80' ? base : letter;
}

/** A word in lower case and without marks, before it is stemmed. */
export function folded(word) {
  return word.toLowerCase().replace(LATIN, plain).replace(/[\u0300-\u0331]/g, '').replaceAll('ς', 'σ').replaceAll('µ', 'μ');
}

const known = new Map();

/** The token of a word in the keyword index. */
export function token(word) {
  let found = known.get(word);
  if (found === undefined) {
    found = stem(folded(word));
    if (known.size > 20000) known.clear();
    known.set(word, found);
  }
  return found;
}

export const tokens = text => words(text).map(token);

/** Token -> how often a title or breadcrumb has it. Parts of compounds and joined words count, too. */
export function headingCounts(text) {
  const joined = new Set(joinedWords(text).map(word => word.toLowerCase()));
  const derived = derivedWords(text).filter(word => /^[\x00-\x7f]*$/.test(word) || joined.has(word));
  return counted([...words(text), ...derived].map(token));
}

export function counted(list) {
  const counts = new Map();
  for (const each of list) counts.set(each, (counts.get(each) ?? 0) + 1);
  return counts;
}

/** The terms (token -> weight and word) and phrases (text -> weight) of a question. `rules`: from search.json. */
export function parseQuestion(text, rules) {
  text = text.trim().slice(0, rules.MAX_QUERY_CHARACTERS).normalize('NFC').replaceAll('\0', ' ');
  const letters = [...text].filter(each => /\p{L}/u.test(each));
  const unread = letters.filter(each => !/(?![\uff00-\uffef])\p{Script=Latin}/u.test(each)).length;
  const stop = new Set(rules.STOP);
  // In a question that is not in Latin letters, words such as "this" and "for" are names of code, not stop words.
  const isUnread = unread && unread >= rules.MIN_UNREAD * letters.length;
  const terms = new Map(), stopped = new Map(), phrases = new Map();
  const add = (to, word, weight) => {
    const key = token(word);
    if (key && terms.size < rules.MAX_WORDS && (to.get(key)?.weight ?? 0) < weight) to.set(key, {weight, word});
  };
  for (const [, quoted] of text.matchAll(/["\u201c]([^"\u201c\u201d]+)["\u201d]/g)) {
    if (words(quoted).length > 1) phrases.set(words(quoted).join(' '), rules.PHRASE_WEIGHT);
  }
  const addParts = (word, weight) => {
    for (const cjk of word.match(RUN) ?? []) pairs(cjk).forEach(pair => add(terms, pair, weight));
    for (const each of word.replace(RUN, ' ').split(' ').filter(Boolean)) {
      add(stop.has(each.toLowerCase()) && !isUnread ? stopped : terms, each, weight);
      beginnings(plainForm(each)).forEach(start => add(terms, start, weight));
      for (const part of compoundParts(each)) {
        if (part.length > 1 && !stop.has(part.toLowerCase())) add(terms, part, rules.PART_WEIGHT);
      }
    }
  };
  const addWord = (word, weight) => {
    const typed = word.normalize('NFKC');
    for (const form of new Set([typed, plainForm(typed)])) {
      words(form).forEach(part => addParts(part, form === typed ? weight : rules.PART_WEIGHT));
    }
  };
  const runs = [...new Set(text.split(/\s+/))].slice(0, rules.MAX_WORDS);
  for (const run of runs) {
    const whole = [...new Set(joinedWords(run))].sort();
    whole.forEach(word => addWord(word, 1));
    words(run).forEach(word => addWord(word, whole.length ? rules.PART_WEIGHT : 1));
    for (const [, called, marked] of run.matchAll(/(?:^|[^A-Za-z])([A-Za-z]+)\(\)|`([A-Za-z]+)`/g)) {
      add(terms, called ?? marked, 1); // at() and `with` are names, not stop words
    }
    const core = stripped(run), joined = words(core);
    if (joined.length > 1 && joined.length <= 8 && !core.includes('://') && !core.match(RUN)) {
      const phrase = joined.join(' ');
      if (!phrases.has(phrase)) phrases.set(phrase, rules.PHRASE_WEIGHT / Math.sqrt(runs.length));
    }
  }
  return {terms: terms.size ? terms : stopped, phrases};
}
