/* The live page: asks the API, draws what it says, and asks again when something has happened.
 * Names, messages and output come from jobs: they become text on the page, never markup. */

const EVENT_MS = 100; /* events that come together cause one look */
const GAP_MS = 500; /* the least between two looks */
const POLL_MS = 15000;
const RETRY_MS = 2000;
const TIMEOUT_MS = 10000;
const LOG_LINES = 2000;
const COLOURS = 7; /* .t0 to .t6 in page.css */

const HOLDING = 'starting,running,freezing,paused,thawing,stopping';
const WAITING = ['queued', 'frozen', 'held'];
const ENDED = 'succeeded,failed,cancelled';
const PRIORITIES = ['urgent', 'high', 'normal', 'low'];
const AWAY = 'The Nightshift server does not answer.';

const now = { me: null, gpus: 0 }; /* what the API said last */
const open = { id: 0, job: null, from: null, log: null }; /* the job in the panel */

/* ---- elements ---- */

const $ = (id) => document.getElementById(id);
const make = (tag) => document.createElement(tag);
const address = (hash) => history.replaceState(null, '', location.pathname + hash);
const waits = (j) => WAITING.includes(j.state);

/* A copy of a template of index.html; its parts are in .f by name. */
function copy(id) {
  const e = $(id).content.firstElementChild.cloneNode(true);
  e.f = {};
  for (const part of e.querySelectorAll('[data-f]')) e.f[part.dataset.f] = part;
  return e;
}

/* null and false are no text; page.css hides what is empty. */
function put(e, text) {
  const s = text || text === 0 ? String(text) : '';
  if (e.textContent !== s) e.textContent = s;
}

/* Makes the children of `parent` those of `items`: known keys are kept and redrawn in place. */
function sync(parent, items, key, create, draw) {
  const old = parent.kept ?? new Map();
  const focus = document.activeElement;
  parent.kept = new Map();
  items.forEach((item, i) => {
    const k = key(item, i);
    const e = old.get(k) ?? create(item);
    old.delete(k);
    parent.kept.set(k, e);
    draw(e, item);
  });
  for (const e of old.values()) e.remove();
  let at = parent.firstChild;
  for (const e of parent.kept.values()) {
    if (e === at) at = at.nextSibling;
    else parent.insertBefore(e, at);
  }
  if (focus !== document.activeElement && parent.contains(focus)) focus.focus();
}

const colours = new Map();

/* A colour for each tenant, in the order they were first seen; the second seven are striped. */
function paint(e, tenant) {
  if (tenant != null && !colours.has(tenant)) colours.set(tenant, colours.size);
  const n = colours.get(tenant) ?? -1;
  for (let i = 0; i < COLOURS; i++) e.classList.toggle(`t${i}`, n % COLOURS === i);
  e.classList.toggle('striped', n % (2 * COLOURS) >= COLOURS);
}

function fill(e, part, whole) {
  e.style.width = `${whole > 0 ? Math.min(100, (100 * part) / whole) : 0}%`;
}

/* ---- words ---- */

const number = (x) => String(Math.round((x ?? 0) * 100) / 100);
const many = (n, word) => `${n} ${word}${n === 1 ? '' : 's'}`;
const gib = (mib) => number(Math.round(mib / 102.4) / 10);
const clock = (ms) => ms && new Date(ms).toLocaleString('en-GB');
const title = (j) => (j.array == null ? j.name : `${j.name}[${j.array_index}]`);
const endText = (j) => j.end !== 'exited' && j.end?.replaceAll('_', ' ');
const words = (...list) => list.filter(Boolean).join(' · ');

function span(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  const m = Math.floor(s / 60);
  const h = Math.floor(m / 60);
  if (m < 60) return m ? `${m} min ${s % 60} s` : `${s} s`;
  return h < 24 ? `${h} h ${m % 60} min` : `${Math.floor(h / 24)} d ${h % 24} h`;
}

/* 21:40 today, 17 Nov 09:10 otherwise */
function hour(ms) {
  const day = { day: 'numeric', month: 'short' };
  const time = { hour: '2-digit', minute: '2-digit' };
  const far = new Date(ms).toDateString() !== new Date().toDateString();
  return new Date(ms).toLocaleString('en-GB', far ? { ...day, ...time } : time);
}

/* A time that grows by itself. */
function since(e, ms, after = '') {
  Object.assign(e, { since: ms, after });
  e.classList.toggle('tick', ms != null);
  put(e, ms == null ? '' : span(Date.now() - ms) + after);
}

function exitText(j) {
  return j.exit_signal ? `signal ${j.exit_signal}` : j.exit_code != null && `exit ${j.exit_code}`;
}

function whereText(j) {
  const one = (w) => w.node + (w.gpus?.length ? `: GPU ${w.gpus.join(', ')}` : '');
  return j.where?.map(one).join('; ');
}

/* ---- the API ---- */

/* Throws a refusal as an error that has a status. */
async function ask(path, options) {
  const r = await fetch(path, { signal: AbortSignal.timeout(TIMEOUT_MS), ...options });
  if (r.ok) return r;
  const p = await r.json().catch(() => ({}));
  const text = p.detail ? words(p.detail, p.hint) : `the server answered ${r.status}`;
  throw Object.assign(new Error(text), { status: r.status });
}

const get = async (path) => (await ask(path)).json();
const told = (e) => (e.status ? e.message : AWAY);

function send(method, path, body) {
  const headers = { 'Content-Type': 'application/json' };
  return ask(path, { method, headers, body: body && JSON.stringify(body) });
}

/* ---- machines ---- */

const holderKey = (h, i) => h.id ?? `other ${i}`;

function drawHolder({ f }, h) {
  put(f.name, h.id == null ? h.name : `${h.name} #${h.id}`);
  const part = h.milli ? `${number(h.milli / 10)}%` : 'no GPU';
  put(f.owner, words(h.user, h.tenant, h.milli < 1000 && part));
  f.button.disabled = h.id == null;
  f.button.dataset.job = h.id ?? '';
}

function drawTile({ f }, g, node) {
  const free = g.free_milli > 0 && `${number(g.free_milli / 10)}% free`;
  put(f.index, `GPU ${g.index}`);
  put(f.model, words(g.model || node.model, g.mem_mib && `${gib(g.mem_mib)} GiB`));
  sync(f.bar, g.jobs, holderKey, () => make('i'), (e, h) => {
    paint(e, h.tenant);
    fill(e, h.milli, 1000);
  });
  sync(f.holders, g.jobs, holderKey, () => copy('t-holder'), drawHolder);
  put(f.free, g.jobs.length ? free : node.state === 'up' && (node.open ? 'free' : 'not lent now'));
}

function soonText(ms) {
  const near = ms - Date.now() < 6 * 86400000;
  const day = near ? { weekday: 'short' } : { day: 'numeric', month: 'short' };
  return new Date(ms).toLocaleString('en-GB', { ...day, hour: '2-digit', minute: '2-digit' });
}

/* "closed until Mon 20:00", of a machine that is lent. */
function windowText(n) {
  return n.pool && `${n.pool}: ${n.open ? 'open' : 'closed'}${n.until_ms ? ` until ${soonText(n.until_ms)}` : ''}`;
}

/* "class: reserved from Tue 10:00", or until when. */
function reservedText(n) {
  const r = n.reserved;
  const open = r && r.from_ms <= Date.now();
  return r && `${r.name ? r.name + ': ' : ''}reserved ${open ? 'until' : 'from'} ${soonText(open ? r.until_ms : r.from_ms)}`;
}

function drawMachine(e, n) {
  const { f } = e;
  const cpu = n.cpu_milli - n.cpu_free_milli;
  const mem = n.mem_mib - n.mem_free_mib;
  const states = { up: '', drain: 'draining: takes nothing new', down: 'down: cannot be reached' };
  put(f.name, n.name);
  put(f.note, words(many(n.gpus.length, 'GPU'), n.simulated && 'simulated', windowText(n), reservedText(n)));
  put(f.state, states[n.state] ?? n.state);
  e.classList.toggle('off', n.state === 'down' || n.open === false);
  fill(f.cpuBar, cpu, n.cpu_milli);
  fill(f.memBar, mem, n.mem_mib);
  put(f.cpu, `${number(cpu / 1000)} of ${number(n.cpu_milli / 1000)}`);
  put(f.mem, `${gib(mem)} of ${gib(n.mem_mib)} GiB`);
  sync(f.tiles, n.gpus, (g) => g.index, () => copy('t-tile'), (t, g) => drawTile(t, g, n));
  sync(f.others, n.jobs ?? [], holderKey, () => copy('t-holder'), drawHolder);
}

/* ---- tables: heading, class, how to draw a cell ---- */

/* The parts of a cell that is made from a template. */
function cell(td, id) {
  if (!td.firstChild) td.append(copy(id));
  return td.firstChild.f;
}

function drawJob(td, j) {
  const f = cell(td, 't-job');
  f.name.dataset.job = j.id;
  put(f.name, title(j));
  put(f.id, `#${j.id}`);
  put(f.state, !`running,queued,${ENDED}`.includes(j.state) && j.state);
}

function drawTenant(td, name, parent) {
  const f = cell(td, 't-tenant');
  paint(f.swatch, name);
  put(f.name, name);
  put(f.parent, parent && `in ${parent}`);
}

/* What a tenant has of all GPUs, with a mark at what it is promised. */
function drawUse(td, t) {
  const f = cell(td, 't-use');
  paint(f.fill, t.name);
  put(f.number, number(t.used.gpus));
  fill(f.fill, t.used.gpus, now.gpus);
  fill(f.mark, t.guarantee, now.gpus);
  f.mark.hidden = !t.guarantee;
}

const WHO = [
  ['Job', 'first', drawJob],
  ['User', '', (td, j) => put(td, j.user)],
  ['Tenant', '', (td, j) => drawTenant(td, j.tenant)],
];
const GPUS = ['GPUs', 'count', (td, j) => put(td, number(j.gpu_milli / 1000))];
const COLUMNS = {
  running: [...WHO, GPUS,
    ['Where', 'text', (td, j) => put(td, whereText(j))],
    ['Running for', 'time', (td, j) => since(td, j.started_ms)]],
  waiting: [...WHO, GPUS,
    ['Why it waits', 'text', (td, j) => put(td, j.reason_text)],
    ['Waited', 'time', (td, j) => since(td, j.submitted_ms)]],
  ended: [...WHO,
    ['State', '', (td, j) => put(td, td.dataset.state = j.state)],
    ['Exit', '', (td, j) => put(td, exitText(j))],
    ['Message', 'text', (td, j) => put(td, j.message || endText(j))],
    ['Ended', 'time', (td, j) => since(td, j.ended_ms, ' ago')]],
  tenants: [
    ['Tenant', 'first', (td, t) => drawTenant(td, t.name, t.parent)],
    ['GPUs in use', 'text', drawUse],
    ['Guaranteed', 'count', (td, t) => put(td, number(t.guarantee))],
    ['Weight', 'count', (td, t) => put(td, number(t.weight))],
    ['Waiting', 'count', (td, t) => put(td, t.waiting)]],
};

function makeRow(columns, tag) {
  const tr = make('tr');
  for (const [head, name] of columns) {
    const e = make(tag);
    e.className = name;
    if (tag === 'th') e.textContent = head;
    e.dataset.label = head;
    tr.append(e);
  }
  return tr;
}

function drawTable(id, items) {
  const table = $(id);
  const columns = COLUMNS[id];
  if (!table.tHead) {
    table.createTHead().append(makeRow(columns, 'th'));
    table.createTBody();
  }
  sync(table.tBodies[0], items, (x) => x.id ?? x.name, () => makeRow(columns, 'td'), (tr, x) => {
    if (x.id) tr.dataset.job = x.id;
    columns.forEach(([, , draw], i) => draw(tr.cells[i], x));
  });
}

/* ---- the whole ---- */

function queueOrder(a, b) {
  return WAITING.indexOf(a.state) - WAITING.indexOf(b.state)
    || PRIORITIES.indexOf(a.priority) - PRIORITIES.indexOf(b.priority)
    || a.submitted_ms - b.submitted_ms || a.id - b.id;
}

function draw() {
  const waiting = now.live.filter(waits).sort(queueOrder);
  const running = now.live.filter((j) => !waits(j)).sort((a, b) => b.id - a.id);
  const gpus = now.nodes.filter((n) => n.state !== 'down').flatMap((n) => n.gpus);
  const lent = now.nodes.filter((n) => n.state !== 'down' && n.open !== false).flatMap((n) => n.gpus);
  const free = number(lent.reduce((sum, g) => sum + g.free_milli, 0) / 1000);
  now.gpus = gpus.length;
  const room = `${free} of ${many(now.gpus, 'GPU')} free`;
  put($('summary'), words(many(now.nodes.length, 'machine'), room));
  document.title = `Nightshift: ${room}`;
  put($('simulated'), now.server.simulated && 'GPUs are simulated');
  put($('mode'), /rootless|plain/.test(now.server.mode) && 'one user only: runs without root');
  put($('user'), words(now.me.user, now.me.role !== 'none' && now.me.role));
  drawTable('tenants', now.tenants); /* first: it gives out the colours */
  sync($('machines'), now.nodes, (n) => n.name, () => copy('t-machine'), drawMachine);
  drawTable('running', running);
  drawTable('waiting', waiting);
  drawTable('ended', now.ended);
  put($('n-running'), running.length);
  put($('n-waiting'), waiting.length);
  $('hint').hidden = now.live.length + now.ended.length > 0;
  $('main').hidden = $('me').hidden = false;
}

/* The newest 200; when there are more, those that run must not be missing. */
async function getLive() {
  const { jobs, next } = await get('/v1/jobs?limit=200');
  $('more').hidden = next == null;
  if (next == null) return jobs;
  const holding = await get(`/v1/jobs?state=${HOLDING}&limit=200`);
  return [...jobs.filter(waits), ...holding.jobs];
}

async function getAll() {
  const [server, me, { nodes }, live, ended, { tenants }] = await Promise.all([
    get('/v1/server'), get('/v1/whoami'), get('/v1/nodes'), getLive(),
    get(`/v1/jobs?state=${ENDED}&limit=20`), get('/v1/quota')]);
  ended.jobs.sort((a, b) => b.ended_ms - a.ended_ms);
  Object.assign(now, { server, me, nodes, live, ended: ended.jobs, tenants });
}

let loading = false;
let again = false;
let timer = { id: 0, due: Infinity };
let seen = 0;

/* Looks in `ms`, or earlier when that was planned already. */
function look(ms) {
  const due = Date.now() + ms;
  again ||= loading;
  if (loading || due >= timer.due) return;
  clearTimeout(timer.id);
  timer = { due, id: setTimeout(load, ms) };
}

async function load() {
  let next = POLL_MS;
  timer.due = Infinity;
  loading = true;
  again = false;
  try {
    await getAll();
    seen = Date.now();
    notice('');
    draw();
    await drawPanel();
    listen();
  } catch (e) {
    if (e.status === 401) {
      signedOut();
    } else {
      notice(told(e));
      next = RETRY_MS;
    }
  }
  loading = false;
  look(again ? GAP_MS : next);
}

function notice(text) {
  const then = seen ? ` This is how things stood at ${clock(seen)}.` : '';
  put($('notice'), text && `${text}${then} Trying again…`);
}

let events = null;

function listen() {
  if (events || document.hidden) return;
  events = new EventSource('/v1/events');
  for (const kind of ['open', 'message', 'job', 'node', 'pool', 'reservation', 'tenant'])
    events.addEventListener(kind, () => look(EVENT_MS));
  events.onerror = () => {
    const refused = events?.readyState === EventSource.CLOSED;
    if (refused) deafen();
    look(refused ? RETRY_MS : EVENT_MS);
  };
}

function deafen() {
  events?.close();
  events = null;
}

/* ---- signing in ---- */

function signedOut() {
  deafen();
  closePanel();
  notice('');
  put($('summary'), '');
  $('main').hidden = $('me').hidden = true;
  location.replace('/signin?next=' + encodeURIComponent(location.pathname + location.hash));
}

async function signIn(token) {
  try {
    await send('POST', '/v1/session', { token });
    look(0);
  } catch (e) {
    location.replace('/signin?why=' + encodeURIComponent(told(e)));
  }
}

/* ---- one job ---- */

const ACTIONS = [
  { verb: 'cancel', text: 'Cancel', can: (j) => !ENDED.includes(j.state) && j.state !== 'stopping',
    harm: (j) => (['queued', 'held'].includes(j.state) ? 'It leaves the queue.'
      : 'Its processes are ended; what it has not saved is lost.') },
  { verb: 'freeze', text: 'Freeze',
    can: (j) => j.state === 'running' && j.spec?.freeze?.mode !== 'none',
    harm: (j) => j.spec?.freeze?.mode === 'requeue' && 'It will begin again from the start.' },
  { verb: 'thaw', text: 'Thaw', can: (j) => ['paused', 'frozen'].includes(j.state) },
  { verb: 'release', text: 'Release', can: (j) => j.state === 'held' },
];

function confirmed(text, yes) {
  const box = $('ask');
  put($('question'), text);
  put($('yes'), yes);
  box.returnValue = '';
  box.showModal();
  return new Promise((done) => { box.onclose = () => done(box.returnValue); });
}

async function act({ verb, text, harm }) {
  const j = open.job;
  const loss = harm?.(j);
  const yes = `${text} job ${j.id}`;
  if (loss && !(await confirmed(`${yes} (${title(j)})? ${loss}`, yes))) return;
  put($('panel-error'), '');
  try {
    await send('POST', `/v1/jobs/${j.id}/${verb}`, {});
  } catch (e) {
    put($('panel-error'), told(e));
  }
  look(0);
}

function drawActions(j) {
  const mine = ['admin', 'operator'].includes(now.me.role) || now.me.roles[j.tenant] === 'lead' || now.me.user === j.user;
  sync($('actions'), ACTIONS, (a) => a.verb, () => make('button'), (e, a) => {
    put(e, a.text);
    e.onclick = () => act(a);
    e.disabled = !mine || !a.can(j);
    e.title = mine ? '' : 'Its owner, the lead of its tenant or an operator can do this';
  });
}

function facts(j) {
  const s = j.spec ?? {};
  return [
    ['State', j.state], ['Exit', exitText(j)],
    ['User', j.user], ['Tenant', j.tenant], ['Priority', j.priority],
    ['GPUs', number(j.gpu_milli / 1000)], ['Replicas', j.replicas > 1 && j.replicas],
    ['Where', whereText(j)], ['Submitted', clock(j.submitted_ms)], ['Started', clock(j.started_ms)],
    ['Ended', clock(j.ended_ms)], ['Run', j.run > 1 && j.run], ['Time limit', s.max_time],
    ['Image', s.image], ['Folder', s.workdir],
    ['Command', Array.isArray(s.command) ? s.command.join(' ') : s.command],
  ].filter(([, value]) => value);
}

/* Sentences of the server have times in UTC. */
function onTheWall(text) {
  return text.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, (t) => clock(Date.parse(t)));
}

function startsText(s) {
  return s && `Starts about ${hour(s.p50_ms)}, in nine of ten cases before ${hour(s.p90_ms)}.`;
}

function beforeText(b) {
  const list = [b?.own && `${many(b.own, 'job')} of its user`, b?.users && many(b.users, 'other user')];
  const first = list.filter(Boolean).join(' and of ');
  return first && `When room comes it is first the turn of ${first}.`;
}

function drawWhy({ reasons, before, starts, helps }) {
  const line = (e, r) => put(e, onTheWall(r.text));
  sync($('reasons'), reasons ?? [], (r, i) => i, () => make('li'), line);
  sync($('helps'), helps ?? [], (h, i) => i, () => make('li'), line);
  put($('before'), beforeText(before));
  put($('starts'), startsText(starts));
}

async function drawPanel() {
  const { id } = open;
  if (!id) return;
  let j;
  let why = {};
  try {
    j = await get(`/v1/jobs/${id}`);
    if (waits(j)) why = await get(`/v1/jobs/${id}/why`);
  } catch (e) {
    if (![403, 404].includes(e.status)) throw e;
    if (id === open.id) put($('panel-error'), e.message);
    return;
  }
  if (id !== open.id) return;
  open.job = j;
  put($('title'), `${title(j)} #${j.id}`);
  put($('message'), j.message);
  drawActions(j);
  drawWhy(why);
  sync($('facts'), facts(j), ([name]) => name, () => copy('t-fact'), ({ f }, [name, value]) => {
    put(f.name, name);
    put(f.value, value);
  });
  if (!open.log || open.log.broken || open.log.run !== j.run) follow(j);
}

function openPanel(id, from) {
  if (id === open.id) return;
  closePanel();
  Object.assign(open, { id, from });
  address(`#job=${id}`);
  put($('title'), `Job #${id}`);
  $('panel').hidden = false;
  $('title').focus();
  if (now.me) drawPanel().catch(() => look(0));
  else look(0);
}

function closePanel() {
  if (!open.id) return;
  const { from } = open;
  open.log?.stop.abort();
  Object.assign(open, { id: 0, job: null, from: null, log: null });
  address('');
  $('panel').hidden = true;
  drawWhy({});
  for (const id of ['actions', 'facts']) sync($(id), []);
  for (const id of ['message', 'panel-error', 'log', 'log-state']) put($(id), '');
  if (from?.isConnected) from.focus();
}

/* ---- its output ---- */

/* A text node a line, the last LOG_LINES of them; a very long line counts as several. */
function addOutput(pre, raw) {
  const text = raw.replace(/\x1b\[[0-9;?]*[A-Za-z]/g, '').replace(/\r\n?/g, '\n');
  const atEnd = pre.scrollHeight - pre.scrollTop - pre.clientHeight < 24;
  for (const line of (text.match(/.{0,4000}\n|.{1,4000}/g) ?? []).slice(-LOG_LINES)) {
    const last = pre.lastChild;
    if (last && last.length < 4000 && !last.data.endsWith('\n')) last.appendData(line);
    else pre.append(line);
  }
  while (pre.childNodes.length > LOG_LINES) pre.firstChild.remove();
  if (atEnd) pre.scrollTop = pre.scrollHeight;
}

async function follow(j) {
  const log = { run: j.run, broken: false, stop: new AbortController() };
  const say = (text) => open.log === log && put($('log-state'), text);
  open.log?.stop.abort();
  open.log = log;
  put($('log'), '');
  say(j.ended_ms ? '' : j.run ? 'live' : 'comes when it runs');
  try {
    const path = `/v1/jobs/${j.id}/log?follow=1&format=text&tail=${LOG_LINES}`;
    const r = await ask(path, { signal: log.stop.signal });
    const reader = r.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let part; !(part = await reader.read()).done;) {
      if (open.log !== log) return;
      addOutput($('log'), part.value);
      await new Promise((on) => setTimeout(on, 30)); /* a flood waits in the server */
    }
    say($('log').firstChild ? 'complete' : 'it wrote nothing');
  } catch (e) {
    log.broken = !e.status;
    say(log.broken ? 'interrupted' : e.message);
  }
}

/* ---- begin ---- */

function begin() {
  const [, token, job] = /^#(?:token=(.+)|job=(\d+))$/.exec(location.hash) ?? [];
  if (token) address('');
  if (token) signIn(token);
  else if (job > 0) openPanel(Number(job));
  else look(0);
}

$('sign-out').onclick = () => send('DELETE', '/v1/session').finally(() => look(0)).catch(() => {});
$('close').onclick = closePanel;
$('yes').onclick = () => $('ask').close('yes');
$('no').onclick = () => $('ask').close();
document.onclick = (ev) => {
  const e = ev.target.closest('[data-job]');
  if (e?.dataset.job && getSelection().isCollapsed)
    openPanel(Number(e.dataset.job), e.matches('tr') ? e.querySelector('button') : e);
};
document.onkeydown = (ev) => {
  if (ev.key === 'Escape' && !$('ask').open) closePanel();
};
/* Browsers open few connections: a page that nobody sees keeps none. */
document.onvisibilitychange = () => (document.hidden ? deafen() : look(0));
window.onhashchange = begin;
setInterval(() => {
  for (const e of document.querySelectorAll('.tick')) put(e, span(Date.now() - e.since) + e.after);
}, 1000);
begin();
