// A small Markdown renderer that builds nodes. Documents are not trusted. Unknown syntax and HTML stay text. Links go to http,
// https or another page of the index. Of an image the alternative text is shown, and it is not fetched.

import {el} from './dom.js';

const MAX_DEPTH = 12; // of nested blocks
const MAX_INLINE_CHARS = 20000; // a longer paragraph is shown without inline markup

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+.#-]*)/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]|$)/;
const RULE = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])( {1,4}|$)/;
const CELLS = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*(?:\|[ \t]*)?$/; // one way to match: else a line takes long
const blank = line => line.trim() === '';

/** The nodes of `text`. `resolve`: relative target -> address, or null. A first heading that equals `title` is left out. */
export function rendered(text, resolve, title = null) {
  const into = document.createDocumentFragment();
  blocks(text.split(/\r\n?|\n/), into, resolve, 0);
  const first = into.firstElementChild;
  if (title !== null && /^H\d$/.test(first?.tagName) && first.textContent === title) first.remove();
  return into;
}

function blocks(lines, into, resolve, depth) {
  if (depth > MAX_DEPTH) {
    into.append(el('p', null, lines.join('\n')));
    return;
  }
  for (let at = 0; at < lines.length;) {
    const line = lines[at];
    let found;
    if (blank(line)) {
      at += 1;
    } else if ((found = FENCE.exec(line))) {
      const end = new RegExp(`^ {0,3}${found[1][0]}{${found[1].length},}\\s*$`);
      const body = [];
      for (at += 1; at < lines.length && !end.test(lines[at]); at += 1) body.push(lines[at]);
      at += 1;
      into.append(el('pre', {tabindex: 0}, el('code', null, body.join('\n'))));
    } else if (/^ {4}|^\t/.test(line)) {
      const body = [];
      for (; at < lines.length && (blank(lines[at]) || /^ {4}|^\t/.test(lines[at])); at += 1) body.push(lines[at].replace(/^ {4}|^\t/, ''));
      into.append(el('pre', {tabindex: 0}, el('code', null, body.join('\n').trimEnd())));
    } else if (line.length < 1000 && (found = HEADING.exec(line))) {
      into.append(el(`h${Math.min(found[1].length + 1, 6)}`, null, inline(line.slice(found[0].length).trim().replace(/(?:^|[ \t])#+$/, '').trimEnd(), resolve)));
      at += 1;
    } else if (RULE.test(line)) {
      into.append(el('hr'));
      at += 1;
    } else if (/^ {0,3}>/.test(line)) {
      const body = [];
      for (; at < lines.length && !blank(lines[at]); at += 1) body.push(lines[at].replace(/^ {0,3}> ?/, ''));
      const quote = el('blockquote');
      blocks(body, quote, resolve, depth + 1);
      into.append(quote);
    } else if (ITEM.test(line)) {
      at = list(lines, at, into, resolve, depth);
    } else if (line.includes('|') && at + 1 < lines.length && lines[at + 1].includes('-') && CELLS.test(lines[at + 1])) {
      at = table(lines, at, into, resolve);
    } else {
      const body = [line];
      for (at += 1; at < lines.length && !starts(lines[at]); at += 1) body.push(lines[at]);
      if (at < lines.length && /^ {0,3}(=+|-+)[ \t]*$/.test(lines[at])) {
        into.append(el(lines[at].includes('=') ? 'h2' : 'h3', null, inline(body.join(' '), resolve)));
        at += 1;
      } else {
        into.append(el('p', null, inline(body.join('\n'), resolve)));
      }
    }
  }
}

const starts = line => blank(line) || FENCE.test(line) || (line.length < 1000 && HEADING.test(line)) || RULE.test(line) || ITEM.test(line)
  || /^ {0,3}(>|=+[ \t]*$|-+[ \t]*$)/.test(line);

function list(lines, first, into, resolve, depth) {
  const marker = ITEM.exec(lines[first])[2];
  const ordered = /\d/.test(marker);
  const made = el(ordered ? 'ol' : 'ul', {start: ordered && parseInt(marker, 10) !== 1 && parseInt(marker, 10)});
  let at = first;
  while (at < lines.length) {
    const found = ITEM.exec(lines[at]);
    if (!found || /\d/.test(found[2]) !== ordered || RULE.test(lines[at])) break;
    const indent = found[0].length;
    const body = [lines[at].slice(indent)];
    for (at += 1; at < lines.length; at += 1) {
      const inside = lines[at].search(/\S/) >= Math.min(indent, found[1].length + 2);
      if (!blank(lines[at]) && !inside && (ITEM.test(lines[at]) || blank(lines[at - 1]) || starts(lines[at]))) break;
      body.push(lines[at].slice(Math.min(indent, Math.max(lines[at].search(/\S/), 0))));
    }
    while (body.length && blank(body[body.length - 1])) body.pop();
    const tight = !body.some(blank);
    const item = el('li');
    const task = /^\[([ xX])\] /.exec(body[0] ?? '');
    if (task) {
      body[0] = body[0].slice(4);
    }
    blocks(body, item, resolve, depth + 1);
    if (tight) [...item.children].filter(child => child.tagName === 'P').forEach(child => child.replaceWith(...child.childNodes));
    if (task) item.prepend(el('input', {type: 'checkbox', disabled: true, checked: task[1] !== ' ', 'aria-label': task[1] === ' ' ? 'open' : 'done'}));
    made.append(item);
  }
  into.append(made);
  return at;
}

function cells(line) {
  const inner = line.trim().replace(/^\|/, '').replace(/\|$/, '');
  return inner.split(/(?<!\\)\|/).map(cell => cell.trim().replace(/\\\|/g, '|'));
}

function table(lines, first, into, resolve) {
  const row = (tag, line) => el('tr', null, cells(line).map(cell => el(tag, null, inline(cell, resolve))));
  const body = el('tbody');
  let at = first + 2;
  for (; at < lines.length && !blank(lines[at]) && lines[at].includes('|'); at += 1) body.append(row('td', lines[at]));
  into.append(el('div', {class: 'wide', tabindex: 0}, el('table', null, el('thead', null, row('th', lines[first])), body)));
  return at;
}

// --- inline markup: each kind is tried at its first character

const MARKS = [
  [/(`+)(?!`)([^]*?[^`])\1(?!`)/y, found => el('code', null, found[2].trim())],
  [/!\[([^\]]{0,500})\]\([^()\s]{0,2000}(?:\s+"[^"]{0,500}")?\)/y, found => el('span', {class: 'picture'}, found[1] || 'picture')],
  [/\[((?:[^\[\]!]|!(?!\[)|\[[^\[\]]{0,200}\]|!\[[^\]]{0,200}\]\([^)]{0,500}\)){0,1000})\]\(\s*<?((?:[^()\s<>]|\([^()\s<>]{0,200}\)){0,2000})>?(?:\s+["'(][^"')]{0,500}["')])?\s*\)/y,
    (found, resolve, depth) => link(found[2], inline(found[1], resolve, depth + 1), resolve)],
  [/<(https?:\/\/[^\s<>]{1,2000})>/y, (found, resolve) => link(found[1], [found[1]], resolve)],
  [/https?:\/\/[^\s<>()`*\]"']{1,2000}[^\s<>()`*\]"'.,;:!?]/y, (found, resolve) => link(found[0], [found[0]], resolve)],
  [/(\*\*|__)(?=\S)([^]{0,2000}?\S)\1/y, (found, resolve, depth) => el('strong', null, inline(found[2], resolve, depth + 1))],
  [/~~(?=\S)([^]{0,2000}?\S)~~/y, (found, resolve, depth) => el('del', null, inline(found[1], resolve, depth + 1))],
  [/\*(?=[^\s*])([^*]{0,2000}?[^\s*])\*(?!\*)/y, (found, resolve, depth) => el('em', null, inline(found[1], resolve, depth + 1))],
  [/\b_(?=[^\s_])([^_]{0,2000}?[^\s_])_\b/y, (found, resolve, depth) => el('em', null, inline(found[1], resolve, depth + 1))],
];
const FIRST = /[`!\[<h*_~\\]/g;

function inline(text, resolve, depth = 0) {
  if (depth > MAX_DEPTH || text.length > MAX_INLINE_CHARS) return [text];
  const nodes = [];
  let plain = 0;
  let at = 0;
  next: while (at < text.length) {
    FIRST.lastIndex = at;
    const first = FIRST.exec(text);
    if (!first) break;
    at = first.index;
    if (text[at] === '\\') {
      if (/[!-/:-@[-`{-~]/.test(text[at + 1] ?? '')) {
        nodes.push(text.slice(plain, at));
        plain = at + 1;
      }
      at += 2;
      continue;
    }
    for (const [mark, made] of MARKS) {
      mark.lastIndex = at;
      const found = mark.exec(text);
      if (found) {
        nodes.push(text.slice(plain, at), made(found, resolve, depth));
        at = plain = at + found[0].length;
        continue next;
      }
    }
    at += text[at] === '`' ? /^`+/.exec(text.slice(at, at + 100))[0].length : 1;
  }
  nodes.push(text.slice(plain));
  return nodes.filter(node => node !== '');
}

function link(target, content, resolve) {
  if (/^https?:\/\//i.test(target)) {
    return el('a', {href: target, rel: 'noopener noreferrer', target: '_blank'}, content);
  }
  const inside = /^[a-z][a-z0-9+.-]*:|^\/\//i.test(target) ? null : resolve?.(target);
  return inside ? el('a', {href: inside}, content) : el('span', {class: 'nowhere', title: target.slice(0, 200)}, content);
}

// --- the words that matched

const UNSPACED = /[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]/;

export function highlight(node, words) {
  if (!words.length) return;
  const spelled = [...words].sort((a, b) => b.length - a.length).map(word => {
    const literal = word.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
    return UNSPACED.test(word) ? literal : `(?<![\\p{L}\\p{N}_])${literal}(?![\\p{L}\\p{N}_])`;
  });
  const wanted = new RegExp(spelled.join('|'), 'gu');
  const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) texts.push(walker.currentNode);
  for (const each of texts) {
    const pieces = [];
    let last = 0;
    for (const found of each.data.matchAll(wanted)) {
      pieces.push(each.data.slice(last, found.index), el('mark', null, found[0]));
      last = found.index + found[0].length;
    }
    if (last) each.replaceWith(...pieces, each.data.slice(last));
  }
}
