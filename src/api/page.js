/* The live page: asks the API, draws what it says, and asks again when something has happened.
 * Names, messages and output come from jobs: they become text on the page, never markup. */

const EVENT_WAIT_MS = 100; /* events that come together cause one look */
const GAP_MS = 500; /* between two looks, however much happens */
const POLL_MS = 15000;
const RETRY_MS = 2000;
const TIMEOUT_MS = 10000;
const LOG_LINES = 2000;
const LOG_CHARS = 2 << 20;
const COLOURS = 7; /* .t0 to .t6 in page.css */

const HOLDING = 'starting,running,freezing,paused,thawing,stopping';
const WAITING = ['queued', 'frozen', 'held'];
const ENDED = 'succeeded,failed,cancelled';
const PRIORITIES = ['urgent', 'high', 'normal', 'low'];

const $ = (id) => document.getElementById(id);

/* ---- elements ---- */

function make(tag, name, text) {
  const e = document.createElement(tag);
  if (name) e.className = name;
  if (text) e.textContent = text;
  return e;
}

function put(e, text) {
  const s = String(text ?? '');
  if (e.textContent !== s) e.textContent = s;
}

/* Makes the children of `parent` those of `items`: known keys are kept and redrawn in place. */
function sync(parent, items, key, create, draw) {
  const old = parent.kept ?? new Map();
  const kept = new Map();
  const focus = document.activeElement;
  items.forEach((item, i) => {
    const k = key(item, i);
    const e = old.get(k) ?? create(item);
    old.delete(k);
    kept.set(k, e);
    draw(e, item);
  });
  for (const e of old.values()) e.remove();
  let at = parent.firstChild;
  for (const e of kept.values()) {
    if (e === at) at = at.nextSibling;
    else parent.insertBefore(e, at);
  }
  parent.kept = kept;
  if (focus !== document.activeElement && parent.contains(focus)) focus.focus();
}

/* ---- words ---- */

const number = (x) => String(Math.round(x * 100) / 100);
const many = (n, word) => `${number(n)} ${word}${n === 1 ? '' : 's'}`;
const gib = (mib) => (mib < 1024 ? `${mib} MiB` : `${number(Math.round(mib / 102.4) / 10)} GiB`);
const clock = (ms) => new Date(ms).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });
const title = (j) => (j.array == null ? j.name : `${j.name}[${j.array_index}]`);

function length(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  const m = Math.floor(s / 60);
  const h = Math.floor(m / 60);
  if (s < 60) return `${s} s`;
  if (m < 60) return `${m} min ${s % 60} s`;
  return h < 24 ? `${h} h ${m % 60} min` : `${Math.floor(h / 24)} d ${h % 24} h`;
}

function exitText(j) {
  if (j.end && j.end !== 'exited') return j.end.replaceAll('_', ' ');
  if (j.exit_signal) return `signal ${j.exit_signal}`;
  return j.exit_code == null ? '' : `exit ${j.exit_code}`;
}

function whereText(j) {
  return (j.where ?? []).map((w) => (w.gpus?.length ? `${w.node}: GPU ${w.gpus.join(', ')}` : w.node)).join('; ');
}

/* A time that grows by itself. */
function since(e, ms, after = '') {
  e.since = ms;
  e.after = after;
  e.classList.toggle('tick', ms != null);
  put(e, ms == null ? '' : length(Date.now() - ms) + after);
}

function tick() {
  for (const e of document.querySelectorAll('.tick')) put(e, length(Date.now() - e.since) + e.after);
}

/* ---- the API ---- */

class Problem extends Error {
  constructor(status, body) {
    super([body.detail ?? `the server answered ${status}`, body.hint].filter(Boolean).join('; '));
    this.status = status;
  }
}

async function check(r) {
  if (!r.ok) throw new Problem(r.status, await r.json().catch(() => ({})));
  return r;
}

async function call(method, path, body) {
  const r = await fetch(path, {
    method,
    headers: method === 'GET' ? {} : { 'Content-Type': 'application/json' },
    body: body && JSON.stringify(body),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  await check(r);
  return r.status === 204 ? null : r.json();
}

const get = (path) => call('GET', path);

/* ---- tenants' colours ---- */

const colours = new Map();

/* A colour for each tenant, in the order they were first seen; the second seven are striped. */
function paint(e, tenant) {
  if (e.tenant === tenant) return;
  e.tenant = tenant;
  e.classList.remove('striped', ...Array.from({ length: COLOURS }, (_, i) => `t${i}`));
  if (tenant == null) return;
  if (!colours.has(tenant)) colours.set(tenant, colours.size);
  const n = colours.get(tenant);
  e.classList.add(`t${n % COLOURS}`);
  e.classList.toggle('striped', n % (2 * COLOURS) >= COLOURS);
}

/* ---- machines ---- */

function makeMeter(label) {
  const e = make('div', 'meter');
  const bar = make('div', 'bar');
  e.text = make('span', 'number');
  e.fill = make('i', 'plain');
  bar.append(e.fill);
  bar.setAttribute('aria-hidden', 'true');
  e.append(make('span', 'soft', label), bar, e.text);
  return e;
}

function drawMeter(e, used, total, text) {
  e.fill.style.width = `${total ? Math.min(100, (100 * used) / total) : 0}%`;
  put(e.text, text);
}

function makeHolder() {
  const e = make('li');
  e.button = make('button', 'who');
  e.button.type = 'button';
  e.name = make('span', 'name');
  e.owner = make('span', 'soft');
  e.button.append(e.name, e.owner);
  e.append(e.button);
  return e;
}

function drawHolder(e, h) {
  const part = h.milli < 1000 && h.milli > 0 ? `${number(h.milli / 10)}%` : '';
  put(e.name, h.id == null ? h.name : `${h.name} #${h.id}`);
  put(e.owner, [h.user, h.tenant, part].filter(Boolean).join(' · '));
  e.button.disabled = h.id == null;
  e.button.dataset.job = h.id ?? '';
}

function makeTile() {
  const e = make('li', 'tile');
  const head = make('div', 'tile-head');
  e.index = make('b');
  e.model = make('span', 'soft');
  e.bar = make('div', 'bar');
  e.bar.setAttribute('aria-hidden', 'true');
  e.holders = make('ul', 'holders');
  e.free = make('span', 'free');
  head.append(e.index, e.model);
  e.append(head, e.bar, e.holders, e.free);
  return e;
}

function drawTile(e, g, node) {
  const jobs = g.jobs ?? [];
  const key = (h, i) => h.id ?? `other ${i}`;
  put(e.index, `GPU ${g.index}`);
  put(e.model, [g.model || node.model, g.mem_mib && gib(g.mem_mib)].filter(Boolean).join(' · '));
  sync(e.bar, jobs, key, () => make('i'), (seg, h) => {
    paint(seg, h.tenant);
    seg.style.width = `${(h.milli || 1000) / 10}%`;
  });
  sync(e.holders, jobs, key, makeHolder, drawHolder);
  const free = g.free_milli ?? 0;
  put(e.free, !free ? '' : free < 1000 ? `${number(free / 10)}% free` : node.state === 'up' ? 'free' : 'not in use');
  e.classList.toggle('idle', !jobs.length);
}

function makeMachine() {
  const e = make('article', 'card machine');
  const head = make('header');
  const meters = make('div', 'meters');
  e.name = make('h3');
  e.note = make('span', 'soft');
  e.state = make('span', 'badge');
  e.cpu = makeMeter('CPUs');
  e.mem = makeMeter('Memory');
  e.tiles = make('ul', 'tiles');
  e.others = make('ul', 'holders others');
  e.others.setAttribute('aria-label', 'Jobs without a GPU');
  meters.append(e.cpu, e.mem);
  head.append(e.name, e.note, e.state, meters);
  e.append(head, e.tiles, e.others);
  return e;
}

function drawMachine(e, n) {
  const words = { up: '', drain: 'draining: takes nothing new', down: 'down: cannot be reached' };
  const gpus = n.gpus ?? [];
  const cpus = (n.cpu_milli - n.cpu_free_milli) / 1000;
  put(e.name, n.name);
  put(e.note, gpus.length ? many(gpus.length, 'GPU') + (n.simulated ? ', simulated' : '') : 'no GPUs');
  put(e.state, words[n.state] ?? n.state);
  e.state.hidden = n.state === 'up';
  e.classList.toggle('off', n.state === 'down');
  e.setAttribute('aria-label', `Machine ${n.name}`);
  drawMeter(e.cpu, cpus, n.cpu_milli / 1000, `${number(cpus)} of ${number(n.cpu_milli / 1000)}`);
  drawMeter(e.mem, n.mem_mib - n.mem_free_mib, n.mem_mib,
    `${gib(n.mem_mib - n.mem_free_mib)} of ${gib(n.mem_mib)}`);
  sync(e.tiles, gpus, (g) => g.index, makeTile, (t, g) => drawTile(t, g, n));
  sync(e.others, n.jobs ?? [], (h, i) => h.id ?? `other ${i}`, makeHolder, drawHolder);
}

/* ---- tables ---- */

const JOB = { head: 'Job', name: 'job', draw(td, j) {
  if (!td.button) {
    td.button = make('button', 'link');
    td.button.type = 'button';
    td.id_ = make('span', 'soft');
    td.state = make('span', 'badge');
    td.append(td.button, td.id_, td.state);
  }
  td.button.dataset.job = j.id;
  put(td.button, title(j));
  put(td.id_, `#${j.id}`);
  const usual = ['running', 'queued'].includes(j.state) || j.ended_ms;
  td.state.hidden = Boolean(usual);
  put(td.state, usual ? '' : j.state);
} };
const USER = { head: 'User', draw: (td, j) => put(td, j.user) };
const TENANT = { head: 'Tenant', draw: (td, j) => drawTenant(td, j.tenant) };
const GPUS = { head: 'GPUs', name: 'number few', draw: (td, j) => put(td, number((j.gpu_milli ?? 0) / 1000)) };

const COLUMNS = {
  running: [JOB, USER, TENANT, GPUS,
    { head: 'Where', name: 'wide', draw: (td, j) => put(td, whereText(j)) },
    { head: 'Running for', name: 'number time', draw: (td, j) => since(td, j.started_ms) }],
  waiting: [JOB, USER, TENANT, GPUS,
    { head: 'Why it waits', name: 'wide', draw: (td, j) => put(td, j.reason_text) },
    { head: 'Waited', name: 'number time', draw: (td, j) => since(td, j.submitted_ms) }],
  ended: [JOB, USER, TENANT,
    { head: 'State', draw: drawState },
    { head: 'Exit', draw: (td, j) => put(td, exitText(j)) },
    { head: 'Message', name: 'wide', draw: (td, j) => put(td, j.message) },
    { head: 'Ended', name: 'number time', draw: (td, j) => since(td, j.ended_ms, ' ago') }],
  tenants: [
    { head: 'Tenant', name: 'job', draw: (td, t) => drawTenant(td, t.name, t.parent) },
    { head: 'GPUs in use', name: 'wide', draw: drawUse },
    { head: 'Guaranteed', name: 'number few', draw: (td, t) => put(td, number(t.guarantee ?? 0)) },
    { head: 'Weight', name: 'number few', draw: (td, t) => put(td, number(t.weight ?? 1)) },
    { head: 'Waiting', name: 'number few', draw: (td, t) => put(td, t.waiting ?? 0) }],
};

function drawTenant(td, name, parent) {
  if (!td.swatch) {
    td.swatch = make('i', 'swatch');
    td.name = make('span');
    td.parent = make('span', 'soft');
    td.swatch.setAttribute('aria-hidden', 'true');
    td.append(td.swatch, td.name, td.parent);
  }
  paint(td.swatch, name);
  put(td.name, name);
  put(td.parent, parent ? `in ${parent}` : '');
}

function drawState(td, j) {
  td.dataset.state = j.state;
  put(td, j.state);
}

/* What a tenant has of all GPUs, with a mark at what it is promised. */
function drawUse(td, t) {
  if (!td.fill) {
    td.number = make('span', 'number');
    td.bar = make('div', 'bar');
    td.fill = make('i');
    td.mark = make('b', 'mark');
    td.bar.setAttribute('aria-hidden', 'true');
    td.bar.append(td.fill, td.mark);
    const line = make('div', 'use');
    line.append(td.number, td.bar);
    td.append(line);
  }
  const percent = (x) => `${Math.min(100, (100 * x) / (t.total || 1))}%`;
  paint(td.fill, t.name);
  put(td.number, number(t.used?.gpus ?? 0));
  td.fill.style.width = percent(t.used?.gpus ?? 0);
  td.mark.style.left = percent(t.guarantee ?? 0);
  td.mark.hidden = !t.guarantee;
}

/* Roles are said aloud because narrow screens lay the rows out as blocks. */
function makeRow(columns, cell, scope) {
  const tr = make('tr');
  tr.setAttribute('role', 'row');
  for (const c of columns) {
    const e = make(cell, c.name);
    e.setAttribute('role', scope ? 'columnheader' : 'cell');
    e.dataset.label = c.head;
    if (scope) e.textContent = c.head;
    tr.append(e);
  }
  return tr;
}

function drawTable(id, items, key) {
  const table = $(id);
  const columns = COLUMNS[id];
  if (!table.tBodies.length) {
    table.setAttribute('role', 'table');
    table.createTHead().append(makeRow(columns, 'th', true));
    table.createTBody();
    table.tHead.setAttribute('role', 'rowgroup');
    table.tBodies[0].setAttribute('role', 'rowgroup');
  }
  sync(table.tBodies[0], items, key, () => makeRow(columns, 'td'), (tr, item) => {
    if (item.id) tr.dataset.job = item.id;
    tr.classList.toggle('open', item.id !== undefined && item.id === open.id);
    columns.forEach((c, i) => c.draw(tr.cells[i], item));
  });
  table.hidden = !items.length;
  $(`no-${id}`).hidden = items.length > 0;
}

/* ---- the whole ---- */

const now = { server: null, me: null, nodes: [], live: [], ended: [], tenants: [], more: false };

function queueOrder(a, b) {
  const rank = (list, x) => (list.includes(x) ? list.indexOf(x) : list.length);
  return rank(WAITING, a.state) - rank(WAITING, b.state)
    || rank(PRIORITIES, a.priority) - rank(PRIORITIES, b.priority)
    || a.submitted_ms - b.submitted_ms || a.id - b.id;
}

function draw() {
  const waiting = now.live.filter((j) => WAITING.includes(j.state)).sort(queueOrder);
  const running = now.live.filter((j) => !WAITING.includes(j.state)).sort((a, b) => b.id - a.id);
  const gpus = now.nodes.filter((n) => n.state !== 'down').flatMap((n) => n.gpus ?? []);
  const free = gpus.reduce((sum, g) => sum + (g.free_milli ?? 0), 0) / 1000;
  const machines = many(now.nodes.length, 'machine');
  const key = (j) => j.id;
  put($('summary'), gpus.length ? `${machines} · ${number(free)} of ${many(gpus.length, 'GPU')} free` : machines);
  document.title = gpus.length ? `Nightshift: ${number(free)} of ${gpus.length} free` : 'Nightshift';
  $('simulated').hidden = !now.server.simulated;
  $('mode').hidden = !['rootless', 'plain'].includes(now.server.mode);
  put($('user'), now.me.role === 'admin' ? `${now.me.user} (admin)` : now.me.user);
  for (const t of now.tenants) if (!colours.has(t.name)) colours.set(t.name, colours.size);
  sync($('machines'), now.nodes, (n) => n.name, makeMachine, drawMachine);
  $('no-machines').hidden = now.nodes.length > 0;
  drawTable('running', running, key);
  drawTable('waiting', waiting, key);
  drawTable('ended', now.ended, key);
  drawTable('tenants', now.tenants.map((t) => ({ ...t, total: gpus.length })), (t) => t.name);
  put($('n-running'), running.length || '');
  put($('n-waiting'), waiting.length || '');
  $('more').hidden = !now.more;
  $('hint').hidden = now.live.length + now.ended.length > 0;
  $('main').hidden = $('me').hidden = false;
  $('sign-in').hidden = true;
}

/* Newest first, at most 200; when there are more, those that run must not be missing. */
async function getLive() {
  const { jobs, next } = await get('/v1/jobs?limit=200');
  now.more = next != null;
  if (!now.more) return jobs;
  const held = await get(`/v1/jobs?state=${HOLDING}&limit=200`);
  return [...new Map([...jobs, ...held.jobs].map((j) => [j.id, j])).values()];
}

async function fetchAll() {
  const [server, me, nodes, live, ended, quota] = await Promise.all([
    get('/v1/server'), get('/v1/whoami'), get('/v1/nodes'), getLive(),
    get(`/v1/jobs?state=${ENDED}&limit=20`), get('/v1/quota')]);
  Object.assign(now, { server, me, live, nodes: nodes.nodes, tenants: quota.tenants });
  now.ended = ended.jobs.sort((a, b) => b.ended_ms - a.ended_ms);
}

let loading = false;
let again = false;
let timer = 0;
let seen = 0;

/* Looks in `ms`, or earlier when a look was to come earlier. */
function look(ms) {
  const due = Date.now() + ms;
  if (loading) again = true;
  else if (!timer || due < timer.due) {
    clearTimeout(timer.id);
    timer = { due, id: setTimeout(load, ms) };
  }
}

async function load() {
  let next = POLL_MS;
  timer = 0;
  loading = true;
  again = false;
  try {
    await fetchAll();
    seen = Date.now();
    away('');
    draw();
    if (open.id) await drawPanel();
    listen();
  } catch (e) {
    if (e.status === 401) {
      signedOut();
      next = 0;
    } else {
      away(e instanceof Problem ? `The server says: ${e.message}.` : 'The Nightshift server does not answer.');
      if (!(e instanceof Problem) && !['TypeError', 'TimeoutError'].includes(e.name)) console.error(e);
      next = RETRY_MS;
    }
  }
  loading = false;
  if (again || next) look(again ? GAP_MS : next);
}

function away(text) {
  const then = seen ? ` This is how things stood at ${new Date(seen).toLocaleTimeString('en-GB')}.` : '';
  document.body.classList.toggle('away', text !== '');
  put($('notice'), text && `${text}${then} Trying again…`);
  $('notice').hidden = !text;
  if (text && !seen) put($('summary'), '');
}

/* ---- events ---- */

let events = null;

function listen() {
  if (events || document.hidden) return;
  events = new EventSource('/v1/events');
  const soon = () => look(EVENT_WAIT_MS);
  for (const kind of ['open', 'message', 'job', 'node', 'tenant']) events.addEventListener(kind, soon);
  events.onerror = () => {
    if (events?.readyState === EventSource.CLOSED) deafen();
    soon();
  };
}

function deafen() {
  events?.close();
  events = null;
}

/* A browser opens few connections to one server: pages that nobody looks at keep none. */
document.addEventListener('visibilitychange', () => {
  if (document.hidden) deafen();
  else if ($('sign-in').hidden) look(0);
});

/* ---- signing in ---- */

function signedOut() {
  deafen();
  closePanel();
  away('');
  $('main').hidden = $('me').hidden = true;
  put($('summary'), '');
  if (!$('sign-in').hidden) return;
  $('sign-in').hidden = false;
  $('token').focus();
}

async function signIn(token) {
  put($('sign-in-error'), '');
  try {
    await call('POST', '/v1/session', { token });
    $('token').value = '';
  } catch (e) {
    signedOut();
    put($('sign-in-error'), e instanceof Problem ? e.message : 'The Nightshift server does not answer.');
    return;
  }
  look(0);
}

$('sign-in').addEventListener('submit', (ev) => {
  ev.preventDefault();
  signIn($('token').value.trim());
});

$('sign-out').addEventListener('click', async () => {
  await call('DELETE', '/v1/session').catch(() => {});
  look(0);
});

/* ---- one job ---- */

const open = { id: 0, job: null, from: null, log: null };

const ACTIONS = [
  { verb: 'cancel', text: 'Cancel', can: (j) => !ENDED.includes(j.state) && j.state !== 'stopping',
    ask: (j) => (WAITING.includes(j.state) && j.state !== 'frozen' ? 'It leaves the queue.'
      : 'Its processes are ended; what it has not saved is lost.') },
  { verb: 'freeze', text: 'Freeze', can: (j) => j.state === 'running' && j.spec?.freeze?.mode !== 'none',
    ask: (j) => (j.spec?.freeze?.mode === 'requeue' ? 'It will begin again from the start.' : '') },
  { verb: 'thaw', text: 'Thaw', can: (j) => ['paused', 'frozen'].includes(j.state) },
  { verb: 'release', text: 'Release', can: (j) => j.state === 'held', rare: true },
];

function ask(text, yes) {
  const box = $('ask');
  put($('question'), text);
  put($('yes'), yes);
  box.returnValue = '';
  box.showModal();
  return new Promise((done) => {
    box.addEventListener('close', () => done(box.returnValue === 'yes'), { once: true });
  });
}

async function act(action) {
  const j = open.job;
  const harm = action.ask?.(j);
  const question = `${action.text} job ${j.id} (${title(j)})? ${harm}`;
  if (harm && !(await ask(question, `${action.text} job ${j.id}`))) return;
  put($('panel-error'), '');
  try {
    await call('POST', `/v1/jobs/${j.id}/${action.verb}`, {});
  } catch (e) {
    put($('panel-error'), e instanceof Problem ? e.message : 'The server did not answer: nothing is known.');
  }
  look(0);
}

function drawActions(j) {
  const mine = now.me.role === 'admin' || now.me.user === j.user;
  sync($('actions'), ACTIONS, (a) => a.verb, (a) => {
    const b = make('button', a.verb === 'cancel' ? 'danger' : '', a.text);
    b.type = 'button';
    b.addEventListener('click', () => act(a));
    return b;
  }, (b, a) => {
    b.disabled = !mine || !a.can(j);
    b.hidden = Boolean(a.rare) && !a.can(j);
    b.title = mine ? '' : 'Its owner or an administrator can do this';
  });
}

function facts(j) {
  const s = j.spec ?? {};
  const command = Array.isArray(s.command) ? s.command.join(' ') : s.command;
  return [
    ['State', j.state], ['Exit', j.ended_ms && exitText(j)], ['User', j.user], ['Tenant', j.tenant],
    ['Priority', j.priority], ['GPUs', number((j.gpu_milli ?? 0) / 1000)],
    ['Replicas', j.replicas > 1 && j.replicas], ['Where', whereText(j)],
    ['Submitted', clock(j.submitted_ms)], ['Started', j.started_ms && clock(j.started_ms)],
    ['Ended', j.ended_ms && clock(j.ended_ms)],
    ['Ran for', j.started_ms && j.ended_ms && length(j.ended_ms - j.started_ms)],
    ['Run', j.run > 1 && j.run], ['Longest', s.max_time], ['Image', s.image], ['Folder', s.workdir],
    ['Command', command],
  ].filter(([, value]) => value);
}

async function drawPanel() {
  const id = open.id;
  let why = null;
  try {
    const job = await get(`/v1/jobs/${id}`);
    if (WAITING.includes(job.state)) why = await get(`/v1/jobs/${id}/why`);
    if (id !== open.id) return;
    open.job = job;
  } catch (e) {
    if (id !== open.id) return;
    if (!(e instanceof Problem) || e.status === 401) throw e;
    put($('panel-error'), e.message);
    return;
  }
  const j = open.job;
  put($('title'), `${title(j)} #${j.id}`);
  put($('message'), j.message);
  drawActions(j);
  sync($('facts'), facts(j), ([name]) => name, () => {
    const e = make('div');
    e.append(make('dt'), make('dd'));
    return e;
  }, (e, [name, value]) => {
    put(e.firstChild, name);
    put(e.lastChild, value);
  });
  $('why').hidden = !why?.reasons?.length;
  sync($('reasons'), why?.reasons ?? [], (_, i) => i, () => make('li'), (e, r) => put(e, r.text));
  if (!open.log || open.log.broken || open.log.run !== j.run) follow(j);
}

function openPanel(id, from) {
  if (id === open.id) return;
  closePanel();
  Object.assign(open, { id, from });
  history.replaceState(null, '', `#job=${id}`);
  put($('title'), `Job #${id}`);
  $('panel').hidden = false;
  $('title').focus();
  mark();
  look(0);
}

function closePanel() {
  if (!open.id) return;
  const from = open.from;
  const inside = $('panel').contains(document.activeElement);
  open.log?.stop.abort();
  Object.assign(open, { id: 0, job: null, from: null, log: null });
  history.replaceState(null, '', location.pathname + location.search);
  $('panel').hidden = true;
  for (const id of ['actions', 'facts', 'reasons']) sync($(id), [], null, null, null);
  for (const id of ['message', 'panel-error', 'log', 'log-state']) put($(id), '');
  $('why').hidden = true;
  if (inside && from?.isConnected) from.focus();
  mark();
}

function mark() {
  for (const tr of document.querySelectorAll('tr[data-job]'))
    tr.classList.toggle('open', Number(tr.dataset.job) === open.id);
}

document.addEventListener('click', (ev) => {
  const e = ev.target.closest('[data-job]');
  if (e?.dataset.job && getSelection().isCollapsed)
    openPanel(Number(e.dataset.job), e.matches('button') ? e : e.querySelector('button'));
});
document.addEventListener('keydown', (ev) => {
  if (ev.key === 'Escape' && !$('ask').open) closePanel();
});
$('close').addEventListener('click', closePanel);
$('yes').addEventListener('click', () => $('ask').close('yes'));
$('no').addEventListener('click', () => $('ask').close('no'));

/* ---- its output ---- */

/* The last lines of a stream of text, in one <pre>. */
class Tail {
  constructor(pre) {
    this.pre = pre;
    this.parts = []; /* text nodes, with how many lines each ends */
    this.lines = 0;
    this.chars = 0;
    pre.textContent = '';
  }

  add(raw) {
    const text = raw.replace(/\x1b\[[0-9;?]*[A-Za-z]/g, '').replace(/\r\n?/g, '\n');
    const { pre } = this;
    const atEnd = pre.scrollHeight - pre.scrollTop - pre.clientHeight < 24;
    for (let i = 0; i < text.length; i += 8192) this.addPart(text.slice(i, i + 8192));
    while (this.chars > LOG_CHARS) this.cut(this.parts[0].node.length, this.parts[0].lines);
    while (this.lines > LOG_LINES) this.cutLines(this.lines - LOG_LINES);
    if (atEnd) pre.scrollTop = pre.scrollHeight;
  }

  addPart(text) {
    let part = this.parts.at(-1);
    if (!part || part.node.length > 8192) {
      part = { node: document.createTextNode(''), lines: 0 };
      this.parts.push(part);
      this.pre.append(part.node);
    }
    const lines = text.split('\n').length - 1;
    part.node.appendData(text);
    part.lines += lines;
    this.lines += lines;
    this.chars += text.length;
  }

  cutLines(n) {
    const { node, lines } = this.parts[0];
    if (lines <= n) {
      this.cut(node.length, lines);
      return;
    }
    let at = -1;
    for (let i = 0; i < n; i++) at = node.data.indexOf('\n', at + 1);
    this.cut(at + 1, n);
  }

  cut(chars, lines) {
    const part = this.parts[0];
    part.node.deleteData(0, chars);
    part.lines -= lines;
    this.chars -= chars;
    this.lines -= lines;
    if (!part.node.length) this.parts.shift().node.remove();
  }
}

async function follow(j) {
  open.log?.stop.abort();
  const log = { run: j.run, broken: false, stop: new AbortController() };
  const say = (text) => open.log === log && put($('log-state'), text);
  open.log = log;
  say(j.ended_ms ? '' : j.run ? 'live' : 'comes when it runs');
  try {
    const path = `/v1/jobs/${j.id}/log?follow=1&format=text&tail=${LOG_LINES}`;
    const r = await check(await fetch(path, { signal: log.stop.signal }));
    const reader = r.body.pipeThrough(new TextDecoderStream()).getReader();
    const tail = new Tail($('log'));
    for (let part; !(part = await reader.read()).done;) {
      if (open.log !== log) return;
      tail.add(part.value);
      await new Promise((on) => setTimeout(on, 30)); /* a flood waits in the server */
    }
    say(tail.chars ? 'ended' : 'it wrote nothing');
  } catch (e) {
    if (open.log !== log || log.stop.signal.aborted) return;
    log.broken = !(e instanceof Problem);
    say(log.broken ? 'broken off' : e.message);
    if (log.broken) look(RETRY_MS);
  }
}

/* ---- begin ---- */

function begin() {
  const [, key, value] = /^#(token|job)=([\w-]+)$/.exec(location.hash) ?? [];
  if (key === 'token') {
    history.replaceState(null, '', location.pathname + location.search);
    signIn(value);
  } else if (key === 'job' && Number(value)) {
    openPanel(Number(value), null);
  } else {
    look(0);
  }
}

addEventListener('hashchange', begin);
setInterval(tick, 1000);
begin();
