// <anvil-search>: a box that searches the published index of a site in the browser. See docs/guides/search-page.md.
//
//   <script type="module" src="/anvil/search/search-box.js"></script>
//   <anvil-search></anvil-search>
//
// Nothing but this file is loaded before a reader uses the box. All texts of the index become text nodes, never HTML.

const PAUSE_MS = 300; // time without a key press after which the question is asked
const style = new CSSStyleSheet(); // allowed by a Content-Security-Policy that forbids inline styles
style.replaceSync(`
:host { display: block; position: relative; font: inherit; /* light or dark as the page says by its color-scheme */
  --text: light-dark(#1f2328, #e6edf3); --faint: light-dark(#59636e, #9da7b1); --ground: light-dark(#fff, #161b22);
  --line: light-dark(#d1d9e0, #3d444d); --link: light-dark(#0757ba, #79b8ff); --mark: light-dark(#fff3bf, #574500); }
input { box-sizing: border-box; width: 100%; padding: .5em .7em; font: inherit; color: var(--text); background: var(--ground);
  border: 1px solid var(--line); border-radius: 6px; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 1px; }
.panel { color: var(--text); background: var(--ground); }
:host(:not([page])) .panel { position: absolute; z-index: 100; inset-inline: 0; max-height: 70vh; overflow: auto; margin-top: 4px;
  min-width: min(28em, 90vw); border: 1px solid var(--line); border-radius: 6px; box-shadow: 0 4px 16px #0004; }
.panel[hidden] { display: none; }
[role=status] { margin: 0; padding: .5em .7em; color: var(--faint); font-size: .85em; }
[role=status]:empty { padding: 0; }
ol { list-style: none; margin: 0; padding: 0; }
li { padding: .5em .7em; border-top: 1px solid var(--line); overflow-wrap: anywhere; }
a { color: var(--link); font-weight: 600; text-decoration: none; }
a:hover { text-decoration: underline; }
p { margin: .2em 0 0; font-size: .9em; }
mark { color: inherit; background: var(--mark); border-radius: 2px; }
button { margin: .5em .7em; padding: .3em .8em; font: inherit; color: var(--text); background: transparent;
  border: 1px solid var(--line); border-radius: 6px; cursor: pointer; }
`);
const ofPage = new CSSStyleSheet();
ofPage.replaceSync('body { max-width: 46rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif; }');

/** An element with attributes, event listeners (functions) and children. Texts become text nodes. */
function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') made.addEventListener(name, value);
    else if (value !== false) made.setAttribute(name, value === true ? '' : value);
  }
  made.append(...children);
  return made;
}

class AnvilSearch extends HTMLElement {
  #asked = 0;
  #timer = 0;

  connectedCallback() {
    if (this.shadowRoot) return;
    const root = this.attachShadow({mode: 'open', delegatesFocus: true});
    root.adoptedStyleSheets = [style];
    const label = this.getAttribute('label') ?? 'Search the documentation';
    this.field = el('input', {
      type: 'search', 'aria-label': label, placeholder: this.getAttribute('placeholder') ?? label, autocomplete: 'off',
      spellcheck: 'false', maxlength: 1000, enterkeyhint: 'search',
      focus: () => this.#prepare().catch(() => {}), // the first question reports the error
      input: () => this.#later(),
    });
    this.status = el('p', {role: 'status'});
    this.list = el('ol');
    this.more = el('button', {type: 'button', hidden: true, click: () => this.#ask(true)}, 'More results');
    this.panel = el('div', {class: 'panel', hidden: true}, this.status, this.list, this.more);
    root.append(el('form', {role: 'search', submit: event => { event.preventDefault(); this.#ask(); }}, this.field), this.panel);
    root.addEventListener('keydown', event => this.#key(event));
    if (!this.hasAttribute('page')) {
      this.addEventListener('focusout', event => { if (!this.contains(event.relatedTarget)) this.#show(false); });
      this.addEventListener('focusin', () => this.#show(this.field.value.trim() !== ''));
      return;
    }
    document.adoptedStyleSheets.push(ofPage);
    this.field.value = new URLSearchParams(location.search).get('q') ?? '';
    if (this.field.value) this.#ask();
    else this.field.focus();
  }

  #show(isShown) {
    this.panel.hidden = !isShown;
  }

  #key(event) {
    const links = [this.field, ...this.list.querySelectorAll('a')];
    const at = links.indexOf(this.shadowRoot.activeElement);
    const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (event.key === 'Escape') {
      this.field.focus();
      this.#show(this.hasAttribute('page'));
    } else if (step && links[at + step]) {
      event.preventDefault();
      links[at + step].focus();
    }
  }

  /** Load the scripts and the parts of the index that every question needs, once. */
  #prepare() {
    this.search ??= (async () => {
      const src = this.getAttribute('src');
      const address = src === null ? new URL('search.json', import.meta.url) : new URL(src, document.baseURI);
      const parts = ['./ranking.js', './index-file.js', './words.js', './excerpt.js'].map(part => import(part)); // at once
      const [response, {Search}] = await Promise.all([fetch(address, {cache: 'no-cache'}).catch(() => null), ...parts]);
      const search = await Search.of(response, address);
      await search.open();
      return search;
    })().catch(error => { this.search = null; throw error; });
    return this.search;
  }

  #later() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#ask(), PAUSE_MS);
  }

  async #ask(isMore = false) {
    clearTimeout(this.#timer);
    const question = this.field.value.trim(), asked = ++this.#asked;
    if (this.hasAttribute('page')) history.replaceState(null, '', question ? `?q=${encodeURIComponent(question)}` : location.pathname);
    this.#show(question !== '');
    if (!question) return this.#render([], '');
    if (!this.list.childElementCount) this.status.textContent = 'Searching …';
    try {
      const answer = await this.#answer(question, isMore);
      if (asked === this.#asked) this.#render(answer.results, answer.note, answer.hasMore, isMore);
    } catch (error) {
      if (asked !== this.#asked) return;
      if (!error.isForReaders) console.error(error);
      this.#render([], error.isForReaders ? error.message : 'The search index is damaged. Build and publish it again.');
    }
  }

  async #answer(question, isMore) {
    try {
      return await (await this.#prepare()).answer(question, isMore);
    } catch (error) {
      if (!error.isOutdated) throw error;
      this.search = null; // the site was published again: load its new index
      return (await this.#prepare()).answer(question, isMore);
    }
  }

  #render(results, note, hasMore = false, isMore = false) {
    const before = isMore ? this.list.childElementCount : 0;
    this.status.textContent = note;
    this.list.replaceChildren(...results.map(({address, heading, excerpt}) => el('li', {},
      address ? el('a', {href: address}, heading) : heading,
      el('p', {}, ...excerpt.map(({text, isMatch}) => (isMatch ? el('mark', {}, text) : text))))));
    this.more.hidden = !hasMore;
    performance.mark('anvil-answer'); // for measurements of the time of an answer
    if (before) this.list.children[before]?.querySelector('a')?.focus();
  }
}

customElements.define('anvil-search', AnvilSearch);
