// The search view: what an agent asks, and what it gets.

import {ask, copier, counted, el, fragment, letters, number, place, plainPath, sectionCall, svg, trouble} from './dom.js';
import {highlight, rendered} from './markdown.js';
import {known, within} from './pages.js';

const PAUSE = 180; // milliseconds without a key until a question is asked
const PARTS = [
  ['words', 'keyword: text', 'The words of the question in the text'],
  ['heading', 'keyword: heading', 'The share of the question that stands in title and breadcrumb'],
  ['vectors', 'semantic', 'How near the text is in meaning'],
  ['page', 'page', 'What the best section of the same page lends'],
];
const MODES = {hybrid: 'Hybrid', semantic: 'Semantic', keyword: 'Keyword'};

let view, query, mode, top, files, agent, told, results;
let asked = null; // the parameters that the shown results answer
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
  top.value = given.n ?? '5';
  files.value = given.files ?? '';
  agent.checked = 'agent' in given;
  for (const radio of mode) radio.checked = radio.value === (given.mode ?? 'hybrid');
  const wanted = JSON.stringify(wantedNow());
  if (wanted !== asked) run();
  else draw();
  window.scrollTo(0, scrolled);
  if (!query.value) query.focus({preventScroll: true});
  else rows().find(link => link.getAttribute('href') === left)?.focus({preventScroll: true});
}

export function leave() {
  scrolled = window.scrollY;
  left = document.activeElement.getAttribute?.('href');
}

export const field = () => query;
export const rows = () => [...results.querySelectorAll('.hit h2 a')];
export function toggleAgent() {
  agent.checked = !agent.checked;
  settled(false);
}
/** Ask again: the index has moved on. */
export function refresh() {
  if (view?.isConnected && query.value.trim()) run();
}

function build() {
  query = el('input', {
    id: 'q', type: 'search', autocomplete: 'off', spellcheck: 'false', maxlength: 1000, 'aria-label': 'Question',
    placeholder: 'Ask as an agent would', input: later,
  });
  const radios = Object.entries(MODES).map(([value, name]) => el('label', null,
    el('input', {type: 'radio', name: 'mode', value, change: () => settled(false)}), el('span', null, name)));
  mode = radios.map(label => label.firstChild);
  top = el('select', {id: 'n', change: () => settled(false)}, [1, 3, 5, 10, 20].map(n => el('option', {value: n}, String(n))));
  files = el('input', {id: 'files', type: 'text', autocomplete: 'off', spellcheck: 'false', placeholder: 'guides/**', input: later});
  agent = el('input', {type: 'checkbox', role: 'switch', change: () => settled(false)});
  told = el('div', {class: 'told', role: 'status'});
  results = el('div', {class: 'results'});
  return el('div', {class: 'search'},
    el('form', {role: 'search', submit: event => { event.preventDefault(); settled(true); }},
      query, el('button', {class: 'unseen', tabindex: -1}, 'Ask'), // without a button Enter asks nothing
      el('div', {class: 'controls'},
        el('fieldset', {class: 'modes'}, el('legend', {class: 'unseen'}, 'How to search'), radios),
        el('label', {class: 'short'}, 'Results ', top),
        el('label', {class: 'short'}, 'Files ', files),
        el('label', {class: 'switch'}, agent, el('span', null, 'As the agent sees it')))),
    told, results);
}

const chosen = () => mode.find(radio => radio.checked)?.value ?? 'hybrid';
const wantedNow = () => ({query: query.value.trim(), top_k: top.value, file_filter: files.value.trim(), mode: chosen()});

function later() {
  clearTimeout(timer);
  timer = setTimeout(() => settled(false), PAUSE);
}

/** Put what is wanted into the address, as a step to go back to (`step`) or in place, and ask if that is new. */
function settled(step) {
  clearTimeout(timer);
  const now = {
    q: query.value.trim() || null,
    mode: chosen() === 'hybrid' ? null : chosen(),
    n: top.value === '5' ? null : top.value,
    files: files.value.trim() || null,
    agent: agent.checked ? '' : null,
  };
  const address = fragment(now);
  if (step && address !== location.hash) history.pushState(null, '', address);
  else history.replaceState(null, '', address);
  document.querySelector('[data-view=search]').href = address; // where a way back leads
  document.title = now.q ? `${now.q} · Anvil` : 'Anvil';
  scrolled = 0;
  if (step || JSON.stringify(wantedNow()) !== asked) run();
  else draw();
}

async function run() {
  running?.abort();
  const wanted = wantedNow();
  asked = JSON.stringify(wanted);
  if (!wanted.query) {
    answer = null;
    draw();
    return;
  }
  const mine = running = new AbortController();
  view.setAttribute('aria-busy', 'true');
  const started = performance.now();
  try {
    const [found] = await Promise.all([ask('search', wanted, mine.signal), known().catch(() => null)]); // its paths: what links lead to
    answer = {...found, result: JSON.parse(found.text), wanted, round: performance.now() - started};
    if (answer.result.freshness.refreshed.length) document.dispatchEvent(new CustomEvent('moved'));
  } catch (error) {
    if (error.name === 'AbortError') return;
    answer = {error, wanted};
    asked = null;
    if (error.status === 401) document.dispatchEvent(new CustomEvent('locked'));
  }
  if (running !== mine) return;
  view.removeAttribute('aria-busy');
  draw();
}

// --- what is shown

function draw() {
  if (!answer) {
    told.replaceChildren();
    results.replaceChildren(welcome());
    return;
  }
  if (answer.error) {
    told.replaceChildren();
    results.replaceChildren(trouble(answer.error, run));
    return;
  }
  const {result, text, wanted} = answer;
  told.replaceChildren(...freshness(result));
  if (agent.checked) {
    results.replaceChildren(asAgent(text, wanted));
  } else if (!result.results.length) {
    results.replaceChildren(el('div', {class: 'empty'},
      el('h1', null, 'Nothing found'),
      el('p', null, result.total_chunks ? 'No section fits. Try other words, or another mode.'
        : wanted.file_filter ? `No page fits ${wanted.file_filter}.` : 'The index holds no text yet.')));
  } else {
    results.replaceChildren(
      el('ul', {class: 'legend', 'aria-label': 'Parts of a score'}, (wanted.mode === 'semantic' ? PARTS.slice(2, 3) : PARTS)
        .map(([key, name, why]) => el('li', {title: why}, swatch(key), name))),
      el('ol', {class: 'hits'}, result.results.map((hit, at) => card(hit, answer.parts[at], at + 1, wanted))));
    fitted();
  }
}

const swatch = key => svg('svg', {class: 'swatch', viewBox: '0 0 8 8', 'aria-hidden': 'true'}, svg('rect', {class: key, width: 8, height: 8, rx: 2}));

function welcome() {
  const box = el('div', {class: 'empty'},
    el('h1', null, 'What would an agent ask?'),
    el('p', null, 'Answers are compared with the files first, so they hold what the files say now.'));
  known().then(pages => {
    const some = pages.flatMap(page => page.headings.slice(1, 3)).filter(text => text.length > 12 && text.length < 60);
    const step = Math.max(1, Math.floor(some.length / 4));
    const picked = some.filter((_, at) => at % step === 0).slice(0, 4);
    if (picked.length) box.append(el('ul', {class: 'ideas'}, picked.map(text => el('li', null, el('a', {href: fragment({q: text})}, text)))));
  }, () => {}); // the view works without them, and says so when it is asked
  return box;
}

function freshness(result) {
  const {freshness: fresh} = result;
  const server = result.query_ms < 10 ? result.query_ms.toFixed(1) : Math.round(result.query_ms);
  const line = [
    `${counted(result.results.length, 'result')} from ${counted(result.total_chunks, 'chunk')}`,
    el('span', {title: 'In the server, and there and back'}, `${server} ms, ${Math.round(answer.round)} ms round trip`),
    fresh.checked ? `compared with the ${fresh.checked} just now` : 'from the index alone: there are no files to compare with',
    fresh.commit && ['index of commit ', el('code', null, fresh.commit.slice(0, 8))],
    fresh.pending_vectors ? `${counted(fresh.pending_vectors, 'vector')} pending` : null,
  ].filter(Boolean);
  return [
    el('p', {class: 'line'}, line.map(part => el('span', null, part))),
    fresh.refreshed.length && el('p', {class: 'note fresh'}, 'Read again just now: ', fresh.refreshed.slice(0, 6).join(', '),
      fresh.refreshed.length > 6 && ` and ${number(fresh.refreshed.length - 6)} more`),
    ...fresh.notes.map(note => el('p', {class: 'note'}, note)),
  ].filter(Boolean);
}

function asAgent(text, wanted) {
  const call = {query: wanted.query};
  if (wanted.top_k !== '5') call.top_k = Number(wanted.top_k);
  if (wanted.file_filter) call.file_filter = wanted.file_filter;
  if (wanted.mode !== 'hybrid') call.mode = wanted.mode;
  const shown = el('pre', {class: 'agent', tabindex: 0}, text);
  const indent = el('input', {type: 'checkbox', role: 'switch', change: () => {
    shown.textContent = indent.checked ? JSON.stringify(JSON.parse(text), null, 2) : text;
  }});
  return el('div', null,
    el('div', {class: 'agent-head'},
      el('p', null, el('code', null, `search_docs(${JSON.stringify(call)})`), el('br'),
        'answers with ', el('strong', {id: 'size'}, counted(letters(text).length, 'character')), ' of JSON'),
      el('div', {class: 'actions'}, el('label', {class: 'switch'}, indent, el('span', null, 'Indented')), copier('Copy', () => text))),
    shown);
}

function card(hit, parts, rank, wanted) {
  const at = hit.metadata;
  const crumbs = at.heading_path.split(' > ');
  const text = el('div', {class: 'text prose clamped'});
  const title = plainPath(crumbs[crumbs.length - 1]);
  fill(text, hit.content, at.file_path, title);
  const all = el('button', {type: 'button', class: 'quiet all', hidden: true, click: () => {
    text.classList.remove('clamped');
    all.remove();
  }}, 'Show all');
  const rest = hit.truncated && el('button', {type: 'button', class: 'quiet', click: async () => {
    try {
      const whole = await ask('section', {file_path: at.file_path, heading_path: plainPath(at.heading_path)});
      fill(text, whole.content, at.file_path, title);
      text.classList.remove('clamped');
      rest.remove();
      all.remove();
    } catch (error) {
      rest.replaceWith(el('span', {role: 'alert'}, error.message));
    }
  }}, 'Show the whole section');
  return el('li', {class: 'hit'},
    el('div', {class: 'head'},
      el('div', {class: 'where'},
        crumbs.length > 1 && el('p', {class: 'crumbs'}, crumbs.slice(0, -1).join(' › ')),
        el('h2', null, el('a', {href: place(at.file_path, at.heading_path)}, marked(crumbs[crumbs.length - 1]))),
        el('p', {class: 'path'}, el('span', null, `${at.file_path}:${at.start_line}–${at.end_line}`),
          /^https?:\/\//i.test(at.url ?? '') && el('a', {href: at.url, rel: 'noopener noreferrer', target: '_blank'}, 'published ↗'))),
      scored(hit.score, parts, rank, wanted.mode)),
    text,
    el('div', {class: 'actions'}, all, rest, hit.truncated && el('span', {class: 'hint'}, 'shortened to the lines that match'),
      copier('Copy get_section call', () => sectionCall(at.file_path, at.heading_path))));
}

function fill(box, content, path, title) {
  box.replaceChildren(rendered(content, within(path), title));
  highlight(box, answer.words);
}

function marked(text) {
  const box = el('span', null, text);
  highlight(box, answer.words);
  return box;
}

function scored(score, parts, rank, kind) {
  const say = value => value.toFixed(2);
  const keyword = parts.words + parts.heading;
  const told = kind === 'semantic' ? [['cosine', score]] : [['keyword', keyword], ['semantic', parts.vectors], ['page', parts.page]];
  let x = 0;
  const bars = PARTS.map(([key]) => {
    const width = Math.max(0, parts[key]) * 100;
    const bar = svg('rect', {class: key, x, width, height: 6});
    x += width;
    return bar;
  });
  return el('div', {class: 'score'},
    el('p', {class: 'sum'}, el('span', {class: 'unseen'}, `Result ${rank}, score `), score.toFixed(3)),
    svg('svg', {class: 'bar', viewBox: '0 0 100 6', preserveAspectRatio: 'none', 'aria-hidden': 'true'}, svg('rect', {class: 'track', width: 100, height: 6}), bars),
    el('dl', null, told.filter(([name, value]) => name !== 'page' || value >= 0.005)
      .map(([name, value]) => el('div', null, el('dt', null, name), el('dd', null, say(value))))));
}

/** "Show all" where there is more than is shown. */
function fitted() {
  for (const hit of results.querySelectorAll('.hit')) {
    const text = hit.querySelector('.text');
    const over = text.scrollHeight > text.clientHeight + 8;
    text.classList.toggle('clamped', over);
    hit.querySelector('.all').hidden = !over;
  }
}
