// Nodes, requests to the API, and the fragment of the address. Text becomes text nodes: nothing here parses HTML.

const SVG = 'http://www.w3.org/2000/svg';

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') node.addEventListener(name, value);
    else node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.flat(2).filter(child => child !== null && child !== undefined && child !== false));
  return node;
}

export const el = (tag, attributes, ...children) => filled(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);

// --- requests

export class Failure extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

const TOKEN = 'anvil-token';
export const token = () => sessionStorage.getItem(TOKEN);
export const keepToken = value => sessionStorage.setItem(TOKEN, value);

/** Send a request to the API, for the chosen collection unless `given` names another. */
export async function ask(name, given = {}, signal = undefined) {
  const query = new URLSearchParams(Object.entries({collection: parameters().in, ...given}).filter(([, value]) => value !== '' && value != null));
  const headers = token() ? {Authorization: `Bearer ${token()}`} : {};
  let response;
  try {
    response = await fetch(`api/${name}?${query}`, {headers, signal});
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Failure('The server does not answer. Is it still running?', 0);
  }
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Failure(body.error ?? `The server answered with ${response.status}.`, response.status);
  return body;
}

// --- the fragment: the address of a view

export const parameters = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));

/** The address of a view, for the chosen collection unless `given` names another. */
export function fragment(given) {
  const spelled = value => encodeURIComponent(value).replace(/%2F/g, '/').replace(/%20/g, '+');
  const parts = Object.entries({in: parameters().in, ...given}).filter(([, value]) => value !== undefined && value !== null);
  return '#' + parts.map(([name, value]) => (value === '' ? name : `${name}=${spelled(value)}`)).join('&');
}

// --- collections

let collections = []; // {label, name, version} of each; empty if there is a single index
export const keepCollections = list => { collections = list; };
/** The collection with a label; undefined if there is a single index. */
export const collection = label => collections.find(one => one.label === label);
/** The label of a result's collection; undefined if there is a single index. */
export const labelOf = hit => collections.find(one => one.name === hit.collection && one.version === (hit.version ?? null))?.label;
/** The arguments of a tool that choose a collection. */
export function chosenBy(label) {
  const {name, version} = collection(label) ?? {};
  return {...(name && {collection: name}), ...(version && {version})};
}

// --- small parts that several views use

export const number = value => value.toLocaleString('en');
export const counted = (count, word) => `${number(count)} ${word}${count === 1 ? '' : 's'}`;
export const letters = text => [...text];

export function size(bytes) {
  return bytes < 1e6 ? `${number(Math.ceil(bytes / 1e3))} kB` : `${number(Math.round(bytes / 1e5) / 10)} MB`;
}

export function day(iso) {
  const date = new Date(iso);
  return Number.isNaN(date.getTime()) ? iso : date.toLocaleDateString('en', {day: 'numeric', month: 'short', year: 'numeric'});
}

export function copier(label, text) {
  const button = el('button', {type: 'button', class: 'quiet', click: async () => {
    let done = 'Copied';
    try {
      await navigator.clipboard.writeText(text());
    } catch {
      done = 'The browser does not allow copying';
    }
    button.textContent = done;
    setTimeout(() => { button.textContent = label; }, 1500);
  }}, label);
  return button;
}

export const plainPath = heading => heading.replace(/ \[part \d+\/\d+\]$/, '');

/** A section's full heading: the page's title and the breadcrumb, or the title alone for text before any heading. */
export function fullHeading(title, heading) {
  if (heading === '(root)') return title;
  return !title || heading === title || heading.startsWith(`${title} > `) ? heading : `${title} > ${heading}`;
}

export function sectionCall(file_path, heading_path, label) {
  return JSON.stringify({name: 'get_section', arguments: {file_path, heading_path: plainPath(heading_path), ...chosenBy(label)}});
}

/** The address of a section. `inside`: `{in: label}` if it is in another collection than the chosen one. */
export const sectionAddress = (file_path, heading_path, inside = {}) => fragment({page: file_path, section: plainPath(heading_path), ...inside});

export function errorNotice(error, again) {
  return el('div', {class: 'trouble', role: 'alert'},
    el('p', null, error.message),
    again && el('button', {type: 'button', click: again}, 'Try again'));
}
