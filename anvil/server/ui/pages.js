// The pages view: a tree of all pages, and one page with its outline and sections.

import {ask, copier, counted, day, el, errorNotice, fragment, letters, number, parameters, sectionCall} from './dom.js';
import {rendered} from './markdown.js';

const NARROW = matchMedia('(max-width: 48rem)');
let view, filter, tree, reading;
const lists = new Map(); // collection -> the promise of its page list, requested on each visit
const paths = new Map(); // collection -> the paths in its list
let drawn = null; // the path of the page on the screen

/** A promise of the list of pages of a collection. The views share it. */
export function pageList(label = parameters().in) {
  if (!lists.has(label)) {
    lists.set(label, ask('pages', {collection: label}).then(found => {
      paths.set(label, new Set(found.pages.map(page => page.file_path)));
      return found.pages;
    }, error => {
      lists.delete(label);
      throw error;
    }));
  }
  return lists.get(label);
}
export function forget() {
  lists.clear();
}

/** A function that returns the address of the page that a link on the page at `path` leads to; null if it is not indexed. */
export function linkResolver(path, label = parameters().in) {
  return target => {
    let url;
    try {
      url = new URL(target, `http://d/${path.split('/').map(encodeURIComponent).join('/')}`);
      const page = decodeURIComponent(url.pathname.slice(1));
      const anchor = decodeURIComponent(url.hash.slice(1)) || null;
      return page === path || paths.get(label)?.has(page) ? fragment({page, anchor, in: label}) : null;
    } catch {
      return null;
    }
  };
}

export const field = () => filter;
export function rows() {
  const own = [...(tree?.querySelectorAll('a') ?? [])].filter(link => link.offsetParent);
  const sections = [...(reading?.querySelectorAll('.section > .bar a') ?? [])];
  return sections.length && 'page' in parameters() && !tree.contains(document.activeElement) ? sections : own;
}
export function leave() {}

export async function show(main, given) {
  view ??= build();
  if (main.firstChild !== view) main.replaceChildren(view);
  document.title = given.page ? `${given.page} · Anvil` : 'Pages · Anvil';
  view.classList.toggle('open', Boolean(given.page));
  forget();
  const listed = list();
  if (!given.page) {
    await listed;
    const found = await pageList().catch(() => []);
    const first = found.find(page => /^(index|readme|_index)\./i.test(page.file_path)) ?? found[0];
    if (first && !('page' in parameters()) && 'pages' in parameters() && !NARROW.matches) await open({page: first.file_path});
    return;
  }
  await listed;
  await open(given);
}

function build() {
  filter = el('input', {type: 'search', autocomplete: 'off', spellcheck: 'false', placeholder: 'Filter pages', 'aria-label': 'Filter pages', input: () => list()});
  tree = el('div', {class: 'tree'});
  reading = el('article', {class: 'reading'});
  return el('div', {class: 'pages'}, el('nav', {class: 'side', 'aria-label': 'Pages'}, filter, tree), reading);
}

async function list() {
  let found;
  try {
    found = await pageList();
  } catch (error) {
    if (error.status === 401) document.dispatchEvent(new CustomEvent('locked'));
    else tree.replaceChildren(errorNotice(error, () => { forget(); list(); }));
    return;
  }
  const wanted = filter.value.trim().toLowerCase();
  const fits = page => !wanted || [page.file_path, page.title, ...page.headings].some(text => text.toLowerCase().includes(wanted));
  const chosen = found.filter(fits);
  if (!chosen.length) {
    tree.replaceChildren(el('p', {class: 'hint'}, found.length ? 'No page has this in its path, title or headings.' : 'There are no pages yet.'));
    return;
  }
  const root = {folders: new Map(), pages: [], count: 0};
  for (const page of chosen) {
    let folder = root;
    for (const name of page.file_path.split('/').slice(0, -1)) {
      if (!folder.folders.has(name)) folder.folders.set(name, {folders: new Map(), pages: [], count: 0});
      folder = folder.folders.get(name);
      folder.count += 1;
    }
    folder.pages.push(page);
  }
  const closed = new Set([...tree.querySelectorAll('details:not([open])')].map(each => each.dataset.folder));
  tree.replaceChildren(branch(root, '', wanted ? new Set() : closed));
  current();
}

function branch(folder, above, closed) {
  return el('ul', null,
    folder.pages.map(page => el('li', null, el('a', {href: fragment({page: page.file_path}), title: page.file_path},
      el('span', null, page.title), el('small', null, page.file_path.split('/').pop())))),
    [...folder.folders].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, inner]) => el('li', null,
      el('details', {open: !closed.has(above + name), 'data-folder': above + name},
        el('summary', null, name, el('small', null, number(inner.count))),
        branch(inner, `${above}${name}/`, closed)))));
}

function current() {
  const here = fragment({page: drawn ?? ''});
  for (const link of tree.querySelectorAll('a')) {
    if (drawn && link.getAttribute('href') === here) {
      link.setAttribute('aria-current', 'page');
      link.scrollIntoView({block: 'nearest'});
    } else link.removeAttribute('aria-current');
  }
}

async function open(given) {
  if (drawn !== given.page) reading.replaceChildren(el('p', {class: 'waiting'}, 'Reading …'));
  let found;
  try {
    found = await ask('page', {file_path: given.page});
  } catch (error) {
    drawn = null;
    if (error.status === 401) document.dispatchEvent(new CustomEvent('locked'));
    else reading.replaceChildren(el('a', {class: 'up', href: fragment({pages: ''})}, '← All pages'), errorNotice(error));
    return;
  }
  const {page, sections, url} = found;
  drawn = page.file_path;
  const text = letters(page.chunks.map(chunk => chunk.content).join('')); // offsets count characters, not UTF-16 units
  const made = sections.map(section => [section, part(page, section, text.slice(section.start, section.end).join(''))]);
  reading.replaceChildren(...[
    el('a', {class: 'up', href: fragment({pages: ''})}, '← All pages'),
    el('header', null,
      el('h1', null, page.title),
      el('p', {class: 'path'}, el('span', null, page.file_path),
        /^https?:\/\//i.test(url ?? '') && el('a', {href: url, rel: 'noopener noreferrer', target: '_blank'}, 'published ↗')),
      el('p', {class: 'hint'}, `${counted(page.total_chars, 'character')} in ${counted(page.chunks.length, 'chunk')}, changed ${day(page.last_modified)}`)),
    sections.length > 1 && outline(page, sections),
    text.length ? el('div', {class: 'sections'}, made.map(([, node]) => node)) : el('p', {class: 'empty'}, 'This page is empty.'),
  ].filter(Boolean));
  current();
  const wanted = made.find(([section]) => (given.section ? section.heading_path === given.section : given.anchor && section.anchor === given.anchor));
  if (wanted) {
    wanted[1].classList.add('wanted');
    wanted[1].scrollIntoView({block: 'start'});
    wanted[1].focus({preventScroll: true});
  } else {
    window.scrollTo(0, 0);
  }
}

const titled = (page, section) => (section.heading_level ? section.title : page.title);

function outline(page, sections) {
  const least = Math.min(...sections.map(section => section.heading_level || 9));
  return el('details', {class: 'outline', open: window.innerWidth > 1180},
    el('summary', null, 'Outline', el('small', null, counted(sections.length, 'section'))),
    el('ol', null, sections.map(section => el('li', {class: `l${Math.max(0, Math.min(3, section.heading_level - least))}`},
      el('a', {href: fragment({page: page.file_path, section: section.heading_path})}, titled(page, section))))));
}

function part(page, section, text) {
  const body = el('div', {class: 'prose'});
  body.append(rendered(text, linkResolver(page.file_path), section.ordinal === 0 ? page.title : null));
  return el('section', {class: 'section', tabindex: -1, 'aria-label': titled(page, section)},
    el('div', {class: 'bar'},
      el('a', {href: fragment({page: page.file_path, section: section.heading_path}), 'aria-label': `Link to ${titled(page, section)}`},
        section.start_line === null ? 'no line' : `lines ${section.start_line}–${section.end_line}`),
      el('span', null, counted(section.end - section.start, 'character')),
      copier('Copy get_section call', () => sectionCall(page.file_path, section.heading_path, parameters().in))),
    body);
}
