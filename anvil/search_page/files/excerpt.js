// The excerpt of a section that is shown for a question: plain text in which matching words are marked.

import {beginnings, compoundParts, isCjk, token, words} from './words.js';

const CHARS = 240;
const BEFORE = 60; // characters before the first matching word

/** The text without Markdown's marks. All repetitions are bounded, so that the time is linear. */
const readable = text => text
  .replace(/[\x1f\x7f]+/g, ' ') // stand for text that readers of the page do not see
  .replace(/!?\[([^[\]]{0,200})\]\([^()\s]{0,500}(?: "[^"\n]{0,200}")?\)/g, '$1')
  .replace(/\[([^[\]]{0,200})\]\[[^[\]]{0,200}\]/g, '$1')
  .replace(/\[!\w{1,20}\]/g, ' ') // the kind of an admonition
  .replace(/^[ >]{0,20}(?:#{1,6} .{0,500}|[`~]{3,}.{0,200}|[|: -]{3,500})$/gm, '') // headings, fences, rules of tables
  .replace(/\*\*|`+/g, '')
  .replace(/^[ \t]{0,20}(?:[>|]|[-*+] )|\|/gm, ' ')
  .replace(/\\([<>*_[\]#`|\\~&])/g, '$1')
  .replace(/\s+/g, ' ').trim();

/** The spans of words with a wanted token, of their own or of a part, and of wanted pairs of CJK characters. */
function spans(text, wanted) {
  const found = [];
  let at = 0;
  for (const word of words(text)) {
    at = text.indexOf(word, at);
    const hit = [word, ...compoundParts(word), ...beginnings(word)].map(token).find(each => wanted.has(each));
    if (hit !== undefined) found.push({start: at, end: at + word.length, token: hit});
    at += word.length;
  }
  for (const pair of [...wanted.keys()].filter(isCjk)) {
    for (let start = text.indexOf(pair); start >= 0; start = text.indexOf(pair, start + 1)) {
      found.push({start, end: start + pair.length, token: pair});
    }
  }
  return found.sort((one, other) => one.start - other.start);
}

/** The best passage of a section in pieces `{text, isMatch}`. `wanted`: a map with the tokens of the question as keys. */
export function excerpt(section, wanted) {
  const text = readable(section), all = spans(text, wanted);
  const isIn = (first, {start, end}) => start >= first && end <= first + CHARS - BEFORE;
  const held = first => new Set(all.filter(span => isIn(first, span)).map(span => span.token)).size;
  const best = all.reduce((one, {start}) => (held(start) > held(one) ? start : one), all[0]?.start ?? 0);
  const start = best <= BEFORE ? 0 : text.lastIndexOf(' ', best - BEFORE / 2) + 1;
  const last = text.length <= start + CHARS ? text.length : text.lastIndexOf(' ', start + CHARS);
  const end = last > start ? last : Math.min(start + CHARS, text.length);
  const pieces = [{text: start ? '… ' : ''}];
  let at = start;
  for (const span of all) {
    if (span.start < at || span.end > end) continue;
    pieces.push({text: text.slice(at, span.start)}, {text: text.slice(span.start, span.end), isMatch: true});
    at = span.end;
  }
  pieces.push({text: text.slice(at, end)}, {text: end < text.length ? ' …' : ''});
  return pieces.filter(piece => piece.text);
}
