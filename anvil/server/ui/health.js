// The health view: contents of the index, stale pages, and findings about the pages. The server computes them.

import {ask, counted, day, el, errorNotice, fragment, fullHeading, number, sectionAddress, size, svg} from './dom.js';

const POLL_MS = 2000; // until the next request while vectors are being made
const MAX_SHOWN = 10; // findings of a kind that are not folded

let view, redraw;

export const field = () => null;
export const rows = () => [...(view?.querySelectorAll('.findings a, .bars a') ?? [])].filter(link => link.offsetParent);
export function leave() {
  redraw?.disconnect();
}

export async function show(main) {
  view = el('div', {class: 'health'}, el('p', {class: 'waiting', role: 'status'}, 'Examining the index …'));
  main.replaceChildren(view);
  document.title = 'Health · Anvil';
  const mine = view;
  try {
    let report;
    do {
      if (report) await new Promise(done => setTimeout(done, POLL_MS));
      report = await ask('health');
      if (view !== mine || !view.isConnected) return;
      redraw?.disconnect();
      view.replaceChildren(...drawn(report));
    } while (report.status.index.pending_vectors);
  } catch (error) {
    if (error.status === 401) document.dispatchEvent(new CustomEvent('locked'));
    else if (view === mine) view.replaceChildren(errorNotice(error, () => show(main)));
  }
}

function drawn({health, status, stale, not_compared}) {
  const {index, embedding} = status;
  const kinds = findings(health);
  const many = kinds.reduce((sum, kind) => sum + kind.items.length, 0);
  return [
    el('header', null, el('h1', null, 'Index health'),
      el('p', {class: 'hint'}, many ? `${counted(many, 'thing')} worth a look.` : 'Nothing to improve in the pages.')),
    el('dl', {class: 'tiles'},
      tile('Pages', number(health.pages)), tile('Sections', number(health.sections)), tile('Chunks', number(health.chunks)),
      tile('Characters', number(health.characters)),
      tile('Vectors', embedding.dimensions ? number(health.windows - health.pending_vectors) : 'none',
        index.pending_vectors ? `${number(index.pending_vectors)} pending` : embedding.dimensions && 'complete'),
      tile('File', index.db_size_bytes ? size(index.db_size_bytes) : 'not yet')),
    el('div', {class: 'two'},
      el('section', null, el('h2', null, 'Chunk sizes'),
        el('p', {class: 'hint'}, `Characters per chunk. Sections over ${number(health.limit)} characters are split into parts.`),
        histogram(health.chunk_sizes, health.limit)),
      el('section', null, el('h2', null, 'Freshness of the file'), freshness(stale, not_compared), identity(status))),
    health.largest_pages.length && el('div', {class: 'two'},
      el('section', null, el('h2', null, 'Largest pages'), bars(health.largest_pages, health.largest_pages[0].chars)),
      health.smallest_pages.length && el('section', null, el('h2', null, 'Smallest pages'),
        bars(health.smallest_pages, health.largest_pages[0].chars))),
    el('div', {class: 'findings'}, kinds.map(kind => el('section', {class: kind.items.length ? 'some' : 'none'},
      el('h2', null, kind.title, el('span', {class: 'count'}, kind.items.length ? number(kind.items.length) : kind.missing ? '–' : '✓')),
      el('p', {class: 'hint'}, kind.missing ?? (kind.items.length ? kind.why : kind.none)),
      listed(kind.items)))),
  ].filter(Boolean);
}

const tile = (name, value, hint) => el('div', null, el('dt', null, name), el('dd', null, value, hint && el('small', null, hint)));

function spot({file_path, heading_path, line, title}) {
  return el('a', {href: sectionAddress(file_path, heading_path)}, el('span', null, fullHeading(title, heading_path).split(' > ').pop()), el('small', null, line === null ? file_path : `${file_path}:${line}`));
}

function findings(health) {
  const page = path => [el('a', {href: fragment({page: path})}, path)];
  return [
    {
      title: 'Nearly the same', why: 'Sections of different pages with nearly the same text. A search finds both. Keep one, and link to it.',
      none: 'No two sections of different pages have nearly the same text.',
      missing: health.near_duplicates ? null : 'Not examined: there are no vectors, or too many chunks.',
      items: (health.near_duplicates ?? []).map(pair => [el('strong', null, `${Math.floor(pair.similarity * 1000) / 10}%`), spot(pair.first), spot(pair.second)]),
    }, {
      title: 'The same text twice', why: 'Word for word, under another heading or on another page.', none: 'No long text is in two places.',
      items: health.duplicates.map(spots => spots.slice(0, 6).map(spot)),
    }, {
      title: 'Long sections', why: `More than ${number(health.limit)} characters. Such a section is split, and each part is found alone. Add headings.`,
      none: 'Each section fits into a chunk.',
      items: health.long_sections.map(each => [el('strong', null, number(each.chars)), spot(each)]),
    }, {
      title: 'Without headings', why: 'Their results have no breadcrumb, and headings help a search.', none: 'Each page has a heading.',
      items: health.without_headings.map(page),
    }, {
      title: 'Empty pages', why: 'They have no text.', none: 'Each page has text.', items: health.empty_pages.map(page),
    },
  ];
}

function listed(items) {
  const rest = items.slice(MAX_SHOWN);
  const list = some => el('ul', null, some.map(item => el('li', null, item)));
  return [items.length > 0 && list(items.slice(0, MAX_SHOWN)),
    rest.length > 0 && el('details', null, el('summary', null, `${number(rest.length)} more`), list(rest))].filter(Boolean);
}

function freshness(stale, why) {
  if (!stale) return el('p', {class: 'note'}, why);
  const kinds = [['changed', 'changed'], ['added', 'new'], ['removed', 'gone']].filter(([kind]) => stale[kind].length);
  if (!kinds.length) return el('p', {class: 'note good'}, 'No page differs from the documents.');
  return el('div', {class: 'note'},
    el('p', null, `The file differs in ${counted(kinds.reduce((sum, [kind]) => sum + stale[kind].length, 0), 'page')}. Answers are right: these pages are read again. To update the file, run `, el('code', null, 'anvil build'), '.'),
    el('ul', null, kinds.flatMap(([kind, word]) => stale[kind].slice(0, MAX_SHOWN).map(path => el('li', null, el('em', null, word), ' ',
      kind === 'removed' ? path : el('a', {href: fragment({page: path})}, path))))));
}

function identity({index, embedding, server, git}) {
  const row = (name, value, title) => value && el('div', null, el('dt', null, name), el('dd', {title}, value));
  return el('dl', {class: 'identity'},
    row('Model', embedding.dimensions ? `${embedding.model}, ${embedding.dimensions} dimensions` : 'none: keyword search only'),
    row('Provider', embedding.provider),
    row('Digest', index.artifact && el('code', null, index.artifact.digest.replace('sha256:', '').slice(0, 16)), index.artifact?.digest),
    row('Commit', index.artifact?.commit && el('code', null, index.artifact.commit.slice(0, 12)), index.artifact?.commit),
    row('Built', index.last_indexed && day(index.last_indexed), index.last_indexed),
    row('Newest page', index.newest_document && day(index.newest_document), index.newest_document),
    row('Documents', server.docs_root),
    row('Repository', git && `${git.head_commit}${git.dirty ? ', with changes that are not committed' : ''}`),
    row('Version', server.version));
}

function bars(pages, most) {
  return el('ol', {class: 'bars'}, pages.map(page => el('li', null,
    el('a', {href: fragment({page: page.file_path}), title: page.title}, page.file_path),
    svg('svg', {viewBox: '0 0 100 6', preserveAspectRatio: 'none', 'aria-hidden': 'true'}, svg('rect', {class: 'words', width: Math.max(0.6, page.chars / most * 100), height: 6})),
    el('span', null, number(page.chars)))));
}

/** A histogram that fills the width. `bins`: the largest number of characters and the number of chunks of each. */
function histogram(bins, limit) {
  const most = Math.max(1, ...bins.map(bin => bin.chunks));
  const names = bins.map((bin, at) => `${at ? `${number(bins[at - 1].up_to + 1)}–` : '0–'}${number(bin.up_to)}`);
  const said = bins.map((bin, at) => `${counted(bin.chunks, 'chunk')} of ${names[at]} characters`).join('; ');
  const box = el('div', {class: 'histogram'});
  const draw = width => {
    const [height, base, gap] = [210, 178, width < 420 ? 4 : 10];
    const step = (width + gap) / bins.length;
    box.replaceChildren(svg('svg', {viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': `Chunk sizes: ${said}.`},
      svg('line', {class: 'axis', x1: 0, x2: width, y1: base + 0.5, y2: base + 0.5}),
      bins.map((bin, at) => {
        const tall = bin.chunks ? Math.max(2, bin.chunks / most * (base - 24)) : 0;
        const middle = at * step + (step - gap) / 2;
        return [
          svg('rect', {class: bin.up_to > limit ? 'over' : 'words', x: at * step, y: base - tall, width: step - gap, height: tall, rx: 3}, svg('title', null, `${names[at]} characters: ${counted(bin.chunks, 'chunk')}`)),
          svg('text', {class: 'value', x: middle, y: base - tall - 7, 'text-anchor': 'middle'}, number(bin.chunks)),
          svg('text', {x: middle, y: base + 20, 'text-anchor': 'middle'}, `≤ ${bin.up_to >= 10000 ? `${Math.round(bin.up_to / 1000)}k` : number(bin.up_to)}`),
        ];
      })));
  };
  draw(560);
  redraw = new ResizeObserver(([entry]) => entry.contentRect.width > 0 && draw(Math.floor(entry.contentRect.width)));
  redraw.observe(box);
  return [box, el('details', null, el('summary', null, 'As a table'), el('table', null,
    el('thead', null, el('tr', null, el('th', null, 'Characters'), el('th', null, 'Chunks'))),
    el('tbody', null, bins.map((bin, at) => el('tr', null, el('td', null, names[at]), el('td', null, number(bin.chunks)))))))];
}
