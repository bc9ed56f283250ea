// The search view: a query, its results, and the JSON that an agent gets.

import {ask, chosenBy, copier, counted, el, errorNotice, fragment, labelOf, letters, number, parameters, plainPath, sectionAddress, sectionCall, svg} from './dom.js';
import {highlight, rendered} from './markdown.js';
import {linkResolver, pageList} from './pages.js';

const NARROW = matchMedia('(max-width: 48rem)');
NARROW.addEventListener('change', () => { if (folded) folded.open = !NARROW.matches; });
window.addEventListener('resize', () => { if (view?.isConnected) requestAnimationFrame(fitted); });
const PAUSE_MS = 180; // after the last key until the query is sent
const PARTS = [
  ['words', 'keyword: text', 'The words of the question in the text'],
  ['heading', 'keyword: heading', 'The share of the words that are in title and breadcrumb'],
  ['vectors', 'semantic', 'How close the text is in meaning'],
  ['links', 'links', 'What the links of other pages call this page, and how many pages link to it'],
  ['passage', 'passage', 'How well the passage answers, word by word'],
  ['page', 'page', 'The bonus from the best section of the same page'],
];
const DEFAULT_RESULTS = '10';
const SHOWN_LINES = 3; // of text, in an excerpt
const SHOWN_SECTIONS = 3; // of one page; more are behind a click, so that the next page has room
const MODES = {hybrid: 'Hybrid', semantic: 'Semantic', keyword: 'Keyword'};

let view, query, mode, top, files, agent, told, results, folded;
let lastRequest = null; // the parameters that the shown results answer
let answer = null;
let running = null;
let timer = 0;
let scrolled = 0;
let left = null; // the address of the result that was opened

export function show(main, given) {
  view ??= build();
  if (main.firstChild !== view) main.replaceChildren(view);
  document.title = given.q ? `${given.q} · Anvil` : 'Anvil';
  if (query.value.trim() !== (given.q ?? '')) query.value = given.q ?? '';
  top.value = given.n ?? DEFAULT_RESULTS;
  files.value = given.files ?? '';
  agent.checked = 'agent' in given;
  for (const radio of mode) radio.checked = radio.value === (given.mode ?? 'hybrid');
  const wanted = JSON.stringify(currentRequest());
  if (wanted !== lastRequest) run();
  else draw();
  window.scrollTo(0, scrolled);
  if (!query.value) query.focus({preventScroll: true});
  else {
    const link = links().find(each => each.getAttribute('href') === left);
    const closed = link?.closest('details');
    if (closed) closed.open = true;
    link?.focus({preventScroll: true});
  }
}

export function leave() {
  scrolled = window.scrollY;
  left = document.activeElement.getAttribute?.('href');
}

export const field = () => query;
const links = () => [...results.querySelectorAll('.hit h2 a')];
export const rows = () => links().filter(link => link.getClientRects().length);
export function toggleAgent() {
  agent.checked = !agent.checked;
  applyQuery(false);
}
/** Search again, because the index changed. */
export function refresh() {
  if (view?.isConnected && query.value.trim()) run();
}

function build() {
  query = el('input', {
    id: 'q', type: 'search', autocomplete: 'off', spellcheck: 'false', maxlength: 1000, 'aria-label': 'Question',
    placeholder: 'Ask as an agent would', input: applyQueryLater,
  });
  const radios = Object.entries(MODES).map(([value, name]) => el('label', null,
    el('input', {type: 'radio', name: 'mode', value, change: () => applyQuery(false)}), el('span', null, name)));
  mode = radios.map(label => label.firstChild);
  top = el('select', {id: 'n', change: () => applyQuery(false)}, [1, 3, 5, 10, 20].map(n => el('option', {value: n}, String(n))));
  files = el('input', {id: 'files', type: 'text', autocomplete: 'off', spellcheck: 'false', placeholder: 'guides/**', input: applyQueryLater});
  agent = el('input', {type: 'checkbox', role: 'switch', change: () => applyQuery(false)});
  told = el('div', {class: 'told', role: 'status'});
  results = el('div', {class: 'results'});
  return el('div', {class: 'search'},
    el('form', {role: 'search', submit: event => { event.preventDefault(); applyQuery(true); }},
      query, el('button', {class: 'unseen', tabindex: -1}, 'Ask'), // without a button Enter does nothing
      folded = el('details', {class: 'options', open: !NARROW.matches}, el('summary', null, 'Options'), el('div', {class: 'controls'},
        el('fieldset', {class: 'modes'}, el('legend', {class: 'unseen'}, 'How to search'), radios),
        el('label', {class: 'short'}, 'Results ', top),
        el('label', {class: 'short'}, 'Files ', files),
        el('label', {class: 'switch'}, agent, el('span', null, 'As the agent sees it'))))),
    told, results);
}

const chosen = () => mode.find(radio => radio.checked)?.value ?? 'hybrid';
const currentRequest = () => ({query: query.value.trim(), top_k: top.value, file_filter: files.value.trim(), mode: chosen(), collection: parameters().in});

function applyQueryLater() {
  clearTimeout(timer);
  timer = setTimeout(() => applyQuery(false), PAUSE_MS);
}

/** Write the query into the address, and search if it changed. `step`: as a new entry of the browser's history. */
function applyQuery(step) {
  clearTimeout(timer);
  const now = {
    q: query.value.trim() || null,
    mode: chosen() === 'hybrid' ? null : chosen(),
    n: top.value === DEFAULT_RESULTS ? null : top.value,
    files: files.value.trim() || null,
    agent: agent.checked ? '' : null,
  };
  const address = fragment(now);
  if (step && address !== location.hash) history.pushState(null, '', address);
  else history.replaceState(null, '', address);
  document.querySelector('[data-view=search]').href = address; // the link back to this search
  document.title = now.q ? `${now.q} · Anvil` : 'Anvil';
  scrolled = 0;
  if (step || JSON.stringify(currentRequest()) !== lastRequest) run();
  else draw();
}

async function run() {
  running?.abort();
  const wanted = currentRequest();
  lastRequest = JSON.stringify(wanted);
  if (!wanted.query) {
    answer = null;
    draw();
    return;
  }
  const mine = running = new AbortController();
  view.setAttribute('aria-busy', 'true');
  const started = performance.now();
  try {
    const [found] = await Promise.all([ask('search', wanted, mine.signal), pageList().catch(() => null)]); // the page list, to resolve links
    const result = JSON.parse(found.text), round = performance.now() - started;
    await Promise.all([...new Set(result.results.map(labelOf))].map(label => label && pageList(label).catch(() => null)));
    answer = {...found, result, wanted, round};
    if (updated(answer.result.freshness).length) document.dispatchEvent(new CustomEvent('moved'));
  } catch (error) {
    if (error.name === 'AbortError') return;
    answer = {error, wanted};
    lastRequest = null;
    if (error.status === 401) document.dispatchEvent(new CustomEvent('locked'));
  }
  if (running !== mine) return;
  view.removeAttribute('aria-busy');
  draw();
}

// --- drawing

function draw() {
  if (!answer) {
    told.replaceChildren();
    results.replaceChildren(welcome());
    return;
  }
  if (answer.error) {
    told.replaceChildren();
    results.replaceChildren(errorNotice(answer.error, run));
    return;
  }
  const {result, text, wanted} = answer;
  told.replaceChildren(...freshness(result));
  if (agent.checked) {
    results.replaceChildren(asAgent(text, wanted));
  } else if (!result.results.length) {
    results.replaceChildren(el('div', {class: 'empty'},
      el('h1', null, 'Nothing found'),
      el('p', null, result.total_chunks ? 'No section matches. Try other words, or another mode.'
        : wanted.file_filter ? `No page matches ${wanted.file_filter}.` : 'The index has no text yet.')));
  } else {
    results.replaceChildren(el('ol', {class: 'hits'}, grouped(result.results, answer.parts, wanted)));
    fitted();
  }
}

const swatch = key => svg('svg', {class: 'swatch', viewBox: '0 0 8 8', 'aria-hidden': 'true'}, svg('rect', {class: key, width: 8, height: 8, rx: 2}));

/** Whether a heading is a question. */
const asks = text => text.length < 70 && text.split(' ').length > 2 && (text.endsWith('?') || /^how (do|to|can|does|should)\b/i.test(text));

function welcome() {
  const box = el('div', {class: 'empty'},
    el('h1', null, 'What would an agent ask?'),
    el('p', null, 'The index is compared with the files before each search, so results have the current text.'));
  pageList().then(pages => {
    const some = [...new Set(pages.flatMap(page => page.headings).map(text => text.split(' > ').pop()).filter(asks))];
    const step = Math.max(1, Math.floor(some.length / 4));
    const picked = some.filter((_, at) => at % step === 0).slice(0, 4);
    if (picked.length) box.append(el('ul', {class: 'ideas'}, picked.map(text => el('li', null, el('a', {href: fragment({q: text})}, text)))));
  }, () => {}); // the view works without them; a search shows the error
  return box;
}

/** [kind of change, paths] for each kind of pages that differed from the index, from the freshness of an answer. */
function updated(fresh) {
  return Object.entries(fresh).filter(([kind, value]) => Array.isArray(value) && kind !== 'notes' && value.length);
}

function freshness(result) {
  const {freshness: fresh} = result;
  const server = result.query_ms < 10 ? result.query_ms.toFixed(1) : Math.round(result.query_ms);
  const line = [
    `${counted(result.results.length, 'result')} from ${counted(result.total_chunks, 'chunk')}`,
    el('span', {title: 'Time in the server, and with the network'}, `${server} ms, ${Math.round(answer.round)} ms round trip`),
    fresh.checked ? `compared with the ${fresh.checked} just now` : 'from the index only: there are no files to compare with',
    fresh.commit && ['index of commit ', el('code', null, fresh.commit.slice(0, 8))],
    fresh.pending_vectors ? `${counted(fresh.pending_vectors, 'vector')} pending` : null,
  ].filter(Boolean);
  return [
    el('p', {class: 'line'}, line.map(part => el('span', null, part))),
    ...updated(fresh).map(([kind, pages]) => el('p', {class: 'note fresh'}, `Pages ${kind} just now: `,
      pages.slice(0, 6).join(', '), pages.length > 6 && ` and ${number(pages.length - 6)} more`)),
    ...fresh.notes.map(note => el('p', {class: 'note'}, note)),
  ].filter(Boolean);
}

function asAgent(text, wanted) {
  const call = {query: wanted.query};
  if (wanted.top_k !== '5') call.top_k = Number(wanted.top_k);
  if (wanted.file_filter) call.file_filter = wanted.file_filter;
  if (wanted.mode !== 'hybrid') call.mode = wanted.mode;
  Object.assign(call, chosenBy(wanted.collection));
  const shown = el('pre', {class: 'agent', tabindex: 0}, text);
  const indent = el('input', {type: 'checkbox', role: 'switch', change: () => {
    shown.textContent = indent.checked ? JSON.stringify(JSON.parse(text), null, 2) : text;
  }});
  return el('div', null,
    el('div', {class: 'agent-head'},
      el('p', null, el('code', null, `search_docs(${JSON.stringify(call)})`), el('br'),
        'returns ', el('strong', {id: 'size'}, counted(letters(text).length, 'character')), ' of JSON'),
      el('div', {class: 'actions'}, el('label', {class: 'switch'}, indent, el('span', null, 'Indented')), copier('Copy', () => text))),
    shown);
}

/** The results by page, with pages in the order of their best result. The best section of a page has an excerpt. */
function grouped(hits, parts, wanted) {
  const groups = new Map();
  hits.forEach((hit, at) => {
    const key = JSON.stringify([labelOf(hit), hit.metadata.file_path]);
    if (!groups.has(key)) groups.set(key, {hit, cards: []});
    const {cards} = groups.get(key);
    cards.push(card(hit, parts[at], at + 1, wanted, cards.length > 0));
  });
  return [...groups.values()].map(({hit, cards}) => el('li', {class: 'group'},
    el('p', {class: 'of'}, labelOf(hit) && el('span', {class: 'of-collection'}, labelOf(hit)),
      el('a', {href: fragment({page: hit.metadata.file_path, ...inside(hit)})}, pageTitle(placeOf(hit))), el('span', {class: 'path'}, hit.metadata.file_path)),
    el('ol', null, cards.slice(0, SHOWN_SECTIONS)),
    cards.length > SHOWN_SECTIONS && el('details', {class: 'others'},
      el('summary', null, `${counted(cards.length - SHOWN_SECTIONS, 'more section')} of this page`), el('ol', null, cards.slice(SHOWN_SECTIONS)))));
}

/** The part of an address that names the collection of a result; empty if there is a single index. */
const inside = hit => (labelOf(hit) ? {in: labelOf(hit)} : {});

const ROOT = '(root)';
/** A result's metadata, with the title of its page. */
const placeOf = hit => ({...hit.metadata, title: hit.title});
const pageTitle = at => at.title ?? (at.heading_path.startsWith(ROOT) ? at.file_path.split('/').pop() : at.heading_path.split(' > ')[0]);

/** The headings below the page's title. The text before the first heading has none. */
function headings(at) {
  const crumbs = at.heading_path.split(' > ');
  if (crumbs[0].startsWith(ROOT) || plainPath(crumbs[0]) === pageTitle(at)) crumbs.shift();
  return crumbs;
}

/** A result. `brief`: whether its text is shown only after a click. */
function card(hit, parts, rank, wanted, brief) {
  const at = placeOf(hit);
  const crumbs = headings(at);
  const title = crumbs.pop() ?? pageTitle(at);
  const text = el('div', {class: 'text prose clamped'});
  const label = labelOf(hit) ?? wanted.collection;
  fill(text, hit.content, at.file_path, plainPath(title), label);
  const rest = hit.truncated && el('button', {type: 'button', class: 'quiet', click: async () => {
    try {
      const whole = await ask('section', {file_path: at.file_path, heading_path: plainPath(at.heading_path), collection: label});
      fill(text, whole.content, at.file_path, plainPath(title), label);
      rest.remove();
    } catch (error) {
      rest.replaceWith(el('span', {role: 'alert'}, error.message));
    }
  }}, 'Show the whole section');
  const more = el('div', {class: 'more', hidden: true},
    scored(hit.score, parts, wanted.mode),
    el('div', {class: 'actions'},
      /^https?:\/\//i.test(at.url ?? '') && el('a', {href: at.url, rel: 'noopener noreferrer', target: '_blank'}, 'published ↗'),
      rest, hit.truncated && el('span', {class: 'hint'}, 'shortened to the matching lines'),
      copier('Copy get_section call', () => sectionCall(at.file_path, at.heading_path, label))));
  const sum = el('button', {type: 'button', class: 'quiet sum', 'aria-expanded': 'false', title: 'The whole text, and the parts of the score', click: () => {
    more.hidden = !more.hidden;
    text.classList.toggle('clamped', more.hidden);
    text.scrollTop = 0;
    sum.setAttribute('aria-expanded', String(!more.hidden));
    if (more.hidden) clamp(text);
  }}, el('span', {class: 'unseen'}, `Result ${rank}, score `), hit.score.toFixed(3));
  return el('li', {class: brief ? 'hit brief' : 'hit'},
    el('div', {class: 'head'},
      el('h2', null, crumbs.length > 0 && el('span', {class: 'crumbs'}, `${crumbs.join(' › ')} › `),
        el('a', {href: sectionAddress(at.file_path, at.heading_path, inside(hit))}, marked(title))),
      at.start_line !== null && el('span', {class: 'path'}, `${at.start_line}–${at.end_line}`),
      hit.confidence !== null && el('span', {class: 'path likely', title: 'How likely it is that this answers'}, `confidence ${hit.confidence.toFixed(2)}`),
      sum),
    text, more);
}

function fill(box, content, path, title, label) {
  box.replaceChildren(rendered(content, linkResolver(path, label), title));
  highlight(box, answer.words);
}

function marked(text) {
  const box = el('span', null, text);
  highlight(box, answer.words);
  return box;
}

function scored(score, parts, kind) {
  const told = kind === 'semantic' ? [['vectors', 'cosine', score]] : PARTS.map(([key, name]) => [key, name, parts[key]]);
  let x = 0;
  const bars = PARTS.map(([key]) => {
    const width = Math.max(0, parts[key]) * 100;
    const bar = svg('rect', {class: key, x, width, height: 6});
    x += width;
    return bar;
  });
  return el('div', {class: 'score'},
    svg('svg', {class: 'bar', viewBox: '0 0 100 6', preserveAspectRatio: 'none', 'aria-hidden': 'true'}, svg('rect', {class: 'track', width: 100, height: 6}), bars),
    el('dl', null, told.map(([key, name, value]) => el('div', {title: PARTS.find(part => part[0] === key)[2]},
      el('dt', null, swatch(key), name), el('dd', null, value.toFixed(2))))));
}

/** {top, bottom} of each line of a text, from the start of its content, as the browser set it. Cells of a row share lines. */
function setLines(text) {
  const from = text.getBoundingClientRect().top - text.scrollTop;
  const walker = document.createTreeWalker(text, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  const boxes = [];
  while (walker.nextNode()) {
    range.selectNodeContents(walker.currentNode);
    for (const box of range.getClientRects()) if (box.width && box.height) boxes.push({top: box.top - from, bottom: box.bottom - from});
  }
  const lines = [];
  for (const box of boxes.sort((a, b) => a.top - b.top)) {
    const last = lines.at(-1);
    if (last && box.top < (last.top + last.bottom) / 2) last.bottom = Math.max(last.bottom, box.bottom);
    else lines.push(box);
  }
  return lines;
}

/** Shorten a text to whole lines, beginning with the line of its first matching word. */
function clamp(text) {
  text.style.removeProperty('--clamped');
  text.scrollTop = 0;
  const lines = setLines(text);
  if (!lines.length) return;
  const from = text.getBoundingClientRect().top;
  const mark = text.querySelector('mark')?.getClientRects()[0];
  const at = mark ? lines.findIndex(line => line.bottom > (mark.top + mark.bottom) / 2 - from) : 0;
  const first = Math.max(0, Math.min(at, lines.length - SHOWN_LINES));
  const last = Math.min(first + SHOWN_LINES, lines.length) - 1;
  const top = Math.floor(lines[first].top);
  text.style.setProperty('--clamped', `${Math.ceil(lines[last].bottom) - top}px`);
  text.scrollTop = top;
}

function fitted() {
  for (const text of results.querySelectorAll('.hit .clamped')) clamp(text);
}
