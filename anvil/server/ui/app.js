// The app: the current view, keys, the token, and the state of the index. The fragment (#) of the address describes the whole
// view, so links can be shared.

import {ask, collection, counted, el, fragment, keepCollections, keepToken, parameters} from './dom.js';
import * as health from './health.js';
import * as pages from './pages.js';
import * as search from './search.js';

const views = {search, pages, health};
const names = Object.keys(views);
const main = document.getElementById('main');
const banner = document.getElementById('banner');
const help = document.getElementById('help');
const chooser = document.getElementById('collection');
const POLL_MS = 1500; // between two status requests while the index is being built
let name = 'search';
let steps = 0; // the number of views that were opened after the first; Esc goes back through them
let locked = false;
let labels = []; // labels of the collections; empty if there is a single index
let chosen; // the label of the collection in the address

const wanted = given => ('page' in given ? 'pages' : names.find(view => view in given) ?? 'search');
const address = view => (view === 'search' ? '#' : fragment({[view]: ''}));

document.querySelector('nav').append(
  ...names.map(view => el('a', {href: address(view), 'data-view': view}, view[0].toUpperCase() + view.slice(1))));
document.getElementById('numbers').append(
  el('dt', null, ...names.map((_, index) => [el('kbd', null, index + 1), ' '])), el('dd', null, names.join(', ')));

/** Keep the token of the address that `anvil ui` prints, and remove it from the address. */
function takeToken() {
  const {token, ...given} = parameters();
  if (token === undefined) return;
  keepToken(token);
  history.replaceState(null, '', fragment(given));
  locked = false;
}

function route() {
  takeToken();
  if (locked) return;
  const given = parameters();
  const next = wanted(given);
  if (next !== name) views[name].leave();
  name = next;
  if (given.in !== chosen) {
    chosen = given.in;
    look();
  }
  choose(given.in);
  for (const link of document.querySelectorAll('nav [data-view]')) {
    if (link.dataset.view === name) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  views[name].show(main, given);
  if (document.activeElement === document.body) main.focus({preventScroll: true});
}

// --- the collection

/** Show which collection is chosen. Only a search can be in all collections. */
function choose(label) {
  if (!labels.length) return;
  chooser.replaceChildren(
    ...(name === 'search' ? [el('option', {value: ''}, `All ${labels.length} collections`)] : []),
    ...labels.map(each => el('option', {value: each}, each)));
  chooser.value = collection(label) ? label : name === 'search' ? '' : labels[0];
  chooser.parentElement.hidden = false;
  for (const link of document.querySelectorAll('nav [data-view]')) link.href = address(link.dataset.view);
}

chooser.addEventListener('change', () => {
  const {page, section, anchor, ...rest} = parameters();
  pages.forget();
  location.hash = fragment({...rest, ...(page !== undefined && {pages: ''}), in: chooser.value || undefined});
});

// --- the token

document.addEventListener('locked', () => {
  if (locked) return;
  locked = true;
  const field = el('input', {type: 'password', autocomplete: 'off', required: true, pattern: '[!-~]+', 'aria-label': 'Token'});
  const wrong = sessionStorage.getItem('anvil-token') !== null;
  main.replaceChildren(el('form', {class: 'empty token', submit: event => {
    event.preventDefault();
    keepToken(field.value.trim());
    locked = false;
    start();
  }},
  el('h1', null, 'This server asks for a token'),
  el('p', null, wrong ? 'The token is wrong.' : 'It was set with ANVIL_TOKEN, --token or --token-file when the server was started.'),
  el('div', null, field, el('button', null, 'Open'))));
  field.focus();
});

// --- the state of the index

let building = false;
let shown = '';
let timer = 0;

async function look() {
  clearTimeout(timer);
  try {
    const {index, embedding, server, collections} = await ask('status');
    const built = index.artifact !== null || server.docs_root === null;
    const sum = (key, all) => (collections ? collections.reduce((total, each) => total + (each[key] ?? 0), 0) : all);
    const text = `${counted(sum('total_pages', index.total_pages), 'page')} · ${counted(sum('total_chunks', index.total_chunks), 'chunk')} · ${embedding.dimensions ? embedding.model.split('/').pop() : 'keywords only'}`;
    banner.replaceChildren(...built ? [] : [el('p', {class: 'building'}, `The index is being built: ${counted(index.total_pages, 'page')} read so far. Until then, answers come from these pages.`)]);
    if (building && (built || text !== shown)) {
      pages.forget();
      if (name === 'search') search.refresh();
    }
    document.getElementById('status').textContent = shown = text;
    building = !built;
    if (building) timer = setTimeout(look, POLL_MS);
  } catch (error) {
    if (error.status === 401) document.dispatchEvent(new CustomEvent('locked'));
    else {
      banner.replaceChildren(el('p', {class: 'building'}, error.message));
      timer = setTimeout(look, POLL_MS * 4);
    }
  }
}

document.addEventListener('moved', () => { pages.forget(); look(); });

// --- light and dark

const THEME = 'anvil-theme';
const dark = () => (document.documentElement.dataset.theme ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';
function turn() {
  document.documentElement.dataset.theme = dark() ? 'light' : 'dark';
  localStorage.setItem(THEME, document.documentElement.dataset.theme);
}
const saved = localStorage.getItem(THEME);
if (saved === 'light' || saved === 'dark') document.documentElement.dataset.theme = saved;

// --- keys

const typing = target => target.matches?.('input:not([type=checkbox]):not([type=radio]), select, textarea');

function move(by) {
  const rows = views[name].rows();
  if (!rows.length) return;
  const here = rows.indexOf(document.activeElement);
  if (here === 0 && by < 0 && views[name].field()) {
    views[name].field().focus();
    return;
  }
  const next = rows[here < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, here + by))];
  next.focus({preventScroll: true});
  (next.closest('.hit, .section') ?? next).scrollIntoView({block: name === 'pages' ? 'start' : 'nearest'});
}

function back() {
  if (typing(document.activeElement)) document.activeElement.blur();
  else if (steps > 0 && name !== 'search') history.back();
  else if (name === 'pages' && 'page' in parameters()) visit('pages');
  else if (name !== 'search') visit('search');
  else search.field().focus();
}

function visit(view) {
  history.pushState(null, '', document.querySelector(`[data-view=${view}]`).getAttribute('href'));
  steps += 1;
  route();
}

const KEYS = {
  '/': () => { if (name !== 'search') visit('search'); search.field().focus(); search.field().select(); },
  f: () => views[name].field()?.focus(),
  j: () => move(1),
  k: () => move(-1),
  ArrowDown: () => move(1),
  ArrowUp: () => move(-1),
  Escape: back,
  '?': () => help.showModal(),
  a: () => name === 'search' && search.toggleAgent(),
  t: turn,
  ...Object.fromEntries(names.map((view, index) => [index + 1, () => visit(view)])),
};

document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open || locked) return;
  const typed = typing(event.target);
  if (typed && event.key !== 'Escape' && !(event.key === 'ArrowDown' && event.target.type === 'search')) return;
  if (event.key.startsWith('Arrow') && (event.target.type === 'radio' || (name !== 'search' && !event.target.closest?.('.side')))) return;
  const action = KEYS[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});

document.getElementById('theme').addEventListener('click', turn);
document.getElementById('keys').addEventListener('click', () => help.showModal());
window.addEventListener('hashchange', () => { steps += 1; route(); });

async function start() {
  takeToken();
  try {
    const found = await ask('collections', {collection: undefined});
    keepCollections(found);
    labels = found.map(each => each.label);
  } catch (error) {
    if (error.status === 401) {
      document.dispatchEvent(new CustomEvent('locked'));
      return;
    }
  }
  chosen = parameters().in;
  route();
  look();
}
start();
