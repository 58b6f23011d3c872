/* What the server says, kept fresh: lists are fetched when a page shows them, and again when an event says so. */
import { computed, signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

import { away, get, learnTree, may, me, permissions } from './api.js';

const EVENT_MS = 60; /* events that come together cause one look */
const RETRY_MS = 2000;
const MEASURED_MS = 5000; /* machines whose agent reports */
const GAP = 3; /* a list that took long is asked for less often: its own time, so many times */

export const ENDED = ['succeeded', 'failed', 'cancelled'];
export const WAITING = ['queued', 'frozen', 'held'];
export const ended = (j) => ENDED.includes(j.state);
export const waits = (j) => WAITING.includes(j.state);

/** The time, for what grows by itself: once a second, and not while nobody looks. */
export const now = signal(Date.now());
setInterval(() => { if (!document.hidden) now.value = Date.now(); }, 1000);

/* ---- a list ---- */

class Kept {
  constructor(path, pick, everyMs) {
    Object.assign(this, { path, pick, everyMs, users: 0, timer: 0, due: Infinity, busy: false, again: false, took: 0 });
    this.data = signal(null);
    this.error = signal(null);
  }

  get value() { return this.data.value; }

  /** In ms, or earlier when that was planned already. */
  soon(ms) {
    if (!this.users || document.hidden || !may(`GET ${this.path}`)) return;
    if (this.busy) { this.again = true; return; }
    const due = Date.now() + Math.max(ms, Math.min(10000, this.took * GAP) - (Date.now() - this.ended || 0));
    if (due >= this.due) return;
    clearTimeout(this.timer);
    this.due = due;
    this.timer = setTimeout(() => this.load(), Math.max(0, due - Date.now()));
  }

  async load() {
    const begun = Date.now();
    this.due = Infinity;
    this.busy = true;
    this.again = false;
    let next = this.everyMs;
    try {
      const value = this.pick(await get(this.path));
      this.data.value = value;
      this.error.value = null;
    } catch (e) {
      this.error.value = e;
      if (!e.status) next = RETRY_MS;
    }
    this.busy = false;
    this.ended = Date.now();
    this.took = this.ended - begun;
    if (this === nodes && this.value?.some((n) => n.reports)) next = Math.min(next, MEASURED_MS);
    this.soon(this.again ? EVENT_MS : next);
  }

  use() { this.users += 1; this.soon(0); }

  drop() { this.users -= 1; if (!this.users) { clearTimeout(this.timer); this.due = Infinity; } }
}

/* What has not changed keeps its identity, so that what shows it need not be drawn again. */
let nodeTexts = new Map();
function keepNodes({ nodes: list }) {
  const texts = new Map();
  const kept = list.map((n) => {
    const text = JSON.stringify(n);
    const old = nodeTexts.get(n.name);
    const entry = old?.text === text ? old : { text, node: n };
    texts.set(n.name, entry);
    return entry.node;
  });
  nodeTexts = texts;
  return kept;
}

function keepTenants({ tenants: list }) {
  learnTree(list);
  giveColours(list.map((x) => x.name));
  return list;
}

export const nodes = new Kept('/v1/nodes', keepNodes, 15000);
export const quota = new Kept('/v1/quota', keepTenants, 30000);
export const pools = new Kept('/v1/pools', (x) => x.pools, 60000);
export const reservations = new Kept('/v1/reservations', (x) => x.reservations, 60000);
export const profiles = new Kept('/v1/profiles', (x) => x.profiles, 300000);
export const tenants = new Kept('/v1/tenants', (x) => x.tenants, 60000);
/* What agents measure, where there are any: idle times are only here. */
export const measured = new Kept('/v1/gpus', (x) => new Map(x.gpus.map((g) => [`${g.node}/${g.index}`, g])), 10000);
export const server = new Kept('/v1/server', (x) => x, 300000);
export const users = new Kept('/v1/users', (x) => x.users, 60000);
export const tokens = new Kept('/v1/tokens', (x) => x.tokens, 60000);
const all = [measured, nodes, quota, pools, reservations, profiles, tenants, server, users, tokens];

/** Lists that a component shows: kept fresh while it is there. */
export function useLive(...lists) {
  useEffect(() => {
    lists.forEach((l) => l.use());
    return () => lists.forEach((l) => l.drop());
  }, lists);
}

/* ---- colours of tenants ---- */

export const COLOURS = 7;
const colours = signal(null); /* tenant: number */

/* By name, so that a tenant has the same colour on every page and for everybody; who meets a colour that is taken has the
 * next one.  The second seven are striped. */
function giveColours(names) {
  const given = new Map();
  const taken = new Set();
  for (const name of [...names].sort()) {
    let at = 1;
    for (const c of name) at = (at * 163 + c.codePointAt(0)) % 9973;
    at %= COLOURS;
    for (let i = 0; i < 2 * COLOURS && taken.has(at); i++) at = i === COLOURS - 1 ? COLOURS + (at + 1) % COLOURS : Math.floor(at / COLOURS) * COLOURS + (at + 1) % COLOURS;
    taken.add(at);
    given.set(name, at);
  }
  colours.value = given;
}

/** -1: not known yet, or of somebody else. */
export function colourOf(tenant) {
  const given = colours.value;
  if (tenant == null || !given) return -1;
  if (!given.has(tenant)) given.set(tenant, given.size % (2 * COLOURS)); /* one that is gone, and has jobs still */
  return given.get(tenant);
}

/* ---- jobs ---- */

const PAGE = 1000;
const PAGES_MAX = 20;
const ONE_BY_ONE = 20; /* more that changed at once: the whole list */

export const jobs = signal(new Map());
export const jobsLoaded = signal(false);
export const jobsError = signal(null);
export const moreEnded = signal(null); /* where the next page of ended ones begins; null: that was all */

export const living = computed(() => [...jobs.value.values()].filter((j) => !ended(j)));

/** Lists leave out what is known of a job that was looked at whole. */
const put = (map, list) => { for (const j of list) map.set(j.id, { spec: jobs.value.get(j.id)?.spec, ...j }); };

function keep(list) {
  const next = new Map(jobs.value);
  put(next, list);
  jobs.value = next;
}

async function getLiving() {
  const found = [];
  let before = '';
  for (let i = 0; i < PAGES_MAX; i++) {
    const page = await get(`/v1/jobs?limit=${PAGE}${before}`);
    found.push(...page.jobs);
    if (page.next == null) break;
    before = `&before=${page.next}`;
  }
  return found;
}

let reloading = null;
async function reloadJobs() {
  const [found, over] = await Promise.all([getLiving(), get(`/v1/jobs?state=${ENDED.join()}&limit=200`)]);
  const next = new Map([...jobs.value].filter(([, j]) => ended(j)));
  put(next, [...over.jobs, ...found]);
  if (moreEnded.value === null || !jobsLoaded.value) moreEnded.value = over.next;
  jobs.value = next;
  jobsLoaded.value = true;
  jobsError.value = null;
}

export function loadJobs() {
  if (!may('GET /v1/jobs')) {
    jobsLoaded.value = true;
    return Promise.resolve();
  }
  reloading ??= reloadJobs().catch((e) => {
    jobsError.value = e;
    if (!e.status) setTimeout(loadJobs, RETRY_MS);
  }).finally(() => { reloading = null; });
  return reloading;
}

let fetchingMore = false;
export async function loadMoreEnded() {
  if (fetchingMore || moreEnded.value == null) return;
  fetchingMore = true;
  try {
    const page = await get(`/v1/jobs?state=${ENDED.join()}&limit=500&before=${moreEnded.value}`);
    keep(page.jobs);
    moreEnded.value = page.next;
  } catch { /* the banner says it; scrolling on tries again */ }
  fetchingMore = false;
}

export async function loadJob(id) {
  const j = await get(`/v1/jobs/${id}`);
  keep([j]);
  return j;
}

const changed = new Set();
let jobTimer = 0;

async function fetchChanged() {
  jobTimer = 0;
  const ids = [...changed];
  changed.clear();
  if (ids.length > ONE_BY_ONE) {
    await loadJobs();
    return;
  }
  const got = await Promise.all(ids.map((id) => get(`/v1/jobs/${id}`).catch((e) => (e.status ? null : (changed.add(id), null)))));
  keep(got.filter(Boolean));
}

function jobChanged(e) {
  const j = jobs.value.get(e.job);
  /* What the event says is shown at once; the rest of the job comes right after. */
  if (j && j.state !== e.state) keep([{ ...j, state: e.state, state_ms: e.t_ms, message: e.message ?? j.message }]);
  changed.add(e.job);
  jobTimer ||= setTimeout(fetchChanged, EVENT_MS);
}

/* ---- events ---- */

let source = null;
let last = 0;

function everything() {
  loadJobs();
  for (const l of all) l.soon(0);
}

const concerns = { job: [nodes, quota], node: [nodes, pools], pool: [pools, nodes], reservation: [reservations, nodes], tenant: [tenants, quota, users], budget: [quota] };

export function listen() {
  if (source || document.hidden || !me.value) return;
  if (!may('GET /v1/events')) { /* somebody without a tenant yet: there is little to see, and nothing to hear */
    everything();
    return;
  }
  source = new EventSource(last ? `/v1/events?after=${last}` : '/v1/events');
  source.onopen = everything;
  for (const [kind, lists] of Object.entries(concerns)) {
    source.addEventListener(kind, (ev) => {
      const e = JSON.parse(ev.data);
      last = e.number;
      if (kind === 'job') jobChanged(e);
      for (const l of lists) l.soon(EVENT_MS);
    });
  }
  source.onerror = () => {
    get('/v1/server').catch(() => {}); /* is it the connection, or the server? */
    if (source?.readyState !== EventSource.CLOSED) return;
    deafen();
    setTimeout(whoAmI, RETRY_MS);
  };
}

function deafen() {
  source?.close();
  source = null;
}

/** Who is here and what they may; then listens.  Tries until there is an answer. */
export async function whoAmI() {
  try {
    const [who, table] = await Promise.all([get('/v1/whoami'), permissions.value.length ? null : get('/v1/permissions')]);
    if (who.notice) {
      location.replace(`/signin?next=${encodeURIComponent(location.pathname + location.hash)}`);
      return;
    }
    if (table) permissions.value = table.calls;
    const known = await get(`/v1/users/${encodeURIComponent(who.user)}`).catch(() => null);
    me.value = { ...who, machines: known?.machines ?? [], has_password: known?.has_password };
    listen();
  } catch (e) {
    if (e.status !== 401) setTimeout(whoAmI, RETRY_MS);
  }
}

/* Somebody who comes back to the page sees how things stand; a page that nobody sees keeps no connection. */
document.addEventListener('visibilitychange', () => {
  if (document.hidden) deafen();
  else if (me.value) { now.value = Date.now(); listen(); }
});
/* While nobody answers, ask. */
setInterval(() => { if (away.value && !document.hidden) get('/v1/server').then(everything, () => {}); }, RETRY_MS);

/* ---- why a job waits ---- */

const whys = new Map(); /* id: {signal, at} */
const WHY_MS = 20000;

/** Fetched when it is first asked for, and anew after a while. */
export function why(id) {
  let w = whys.get(id);
  if (!w) {
    if (whys.size > 500) whys.delete(whys.keys().next().value);
    whys.set(id, w = { data: signal(null), at: 0 });
  }
  if (Date.now() - w.at > WHY_MS) {
    w.at = Date.now();
    get(`/v1/jobs/${id}/why`).then((x) => { w.data.value = x; }, () => {});
  }
  return w.data;
}
