/* Pools: machines that are lent at times, their week as a calendar, and what changes it. */
import { signal } from '@preact/signals';

import { get, may, send } from './api.js';
import { nodes, now, pools, quota, reservations, useLive } from './live.js';
import { Act, confirm, Empty, Icon, say, Tenant } from './parts.jsx';
import { dots, hour, many } from './words.js';

const details = new Map(); /* name: {data, at, of} */

/** A pool with its week; anew when the list of pools says that it changed. */
export function poolDetail(name) {
  let d = details.get(name);
  if (!d) details.set(name, d = { data: signal(null), of: null, at: 0 });
  const row = JSON.stringify(pools.value?.find((p) => p.name === name) ?? null);
  if (d.of !== row || Date.now() - d.at > 300000) {
    Object.assign(d, { of: row, at: Date.now() });
    get(`/v1/pools/${encodeURIComponent(name)}`).then((x) => { d.data.value = x; }, () => { d.of = null; });
  }
  return d.data;
}

const DAY = 86400000;

function Week({ pool }) {
  const week = poolDetail(pool.name).value?.week ?? [];
  const start = new Date(now.value);
  start.setHours(0, 0, 0, 0);
  const days = [...Array(7)].map((_, i) => { const d = new Date(start); d.setDate(d.getDate() + i); return d.getTime(); });
  return <div class="week" role="img" aria-label={`The week of ${pool.name}: ${week.filter((w) => w.open).map((w) => `open ${hour(w.from_ms)} to ${hour(w.until_ms)}`).join(', ') || 'closed'}`}>
    {days.map((from) => <div key={from} class="day"><span>{new Date(from).toLocaleString('en-GB', { weekday: 'short' })}</span>
      <div class="track">{week.filter((w) => w.open && w.until_ms > from && w.from_ms < from + DAY).map((w) => {
        const a = Math.max(w.from_ms, from);
        const b = Math.min(w.until_ms, from + DAY);
        return <i key={w.from_ms} class="open" style={{ left: `${(100 * (a - from)) / DAY}%`, width: `${(100 * (b - a)) / DAY}%` }} />;
      })}
      {now.value >= from && now.value < from + DAY && <b style={{ left: `${(100 * (now.value - from)) / DAY}%` }} />}</div></div>)}
    <div class="day scale" aria-hidden="true"><span /><div>{[0, 6, 12, 18, 24].map((h) => <em key={h} style={{ left: `${(100 * h) / 24}%` }}>{h}</em>)}</div></div>
  </div>;
}

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone ?? 'UTC';
const put = (name, body) => send('PUT', `/v1/pools/${encodeURIComponent(name)}`, body);
const list = (text) => text.split(/[\s,]+(?![^[]*\])/).filter(Boolean);
const NIGHTS = `zone=${zone}; Mon-Sun 20:00-08:00; Sat-Sun 00:00-24:00`;

function edit(pool) {
  const known = pool?.nodes.map((n) => n.name).join(', ') ?? (nodes.value ?? []).filter((n) => !n.pool).map((n) => n.name).slice(0, 5).join(', ');
  return confirm({
    title: pool ? `The window of ${pool.name}` : 'Lend machines at certain hours',
    text: 'Outside its window a pool’s machines are their owners’: jobs there are frozen or end in time.',
    yes: pool ? 'Save' : 'Make the pool',
    fields: [
      ...(pool ? [] : [{ name: 'name', label: 'Name', required: true, maxLength: 63, placeholder: 'desks' }]),
      { name: 'window', label: 'Window', area: true, rows: 3, defaultValue: pool?.window ?? NIGHTS, hint: 'Days and hours, separated by semicolons. Empty: always open.' },
      { name: 'nodes', label: 'Machines', defaultValue: known, hint: 'Names and patterns, e.g. lab[01-12]' },
    ],
    work: async (v) => {
      const name = pool?.name ?? v.name.trim();
      await put(name, { window: v.window.trim() || null, nodes: list(v.nodes) });
      say(`${name} is saved.`);
      pools.soon(0);
    },
  });
}

function forAWhile(pool, verb) {
  return confirm({
    title: `${verb === 'open' ? 'Open' : 'Close'} ${pool.name} for a while`,
    text: verb === 'open' ? 'Its machines may work now, whatever the window says.' : 'Its machines go back to their owners now: what runs there is frozen or ended.',
    yes: verb === 'open' ? 'Open it' : 'Close it', danger: verb === 'close',
    fields: [{ name: 'for', label: 'For how long', defaultValue: '3h', required: true, hint: 'e.g. 45m, 3h, 2d' }],
    work: async (v) => {
      await send('POST', `/v1/pools/${encodeURIComponent(pool.name)}/${verb}`, { for: v.for.trim() });
      pools.soon(0);
    },
  });
}

function Pool({ pool }) {
  const path = `/v1/pools/${encodeURIComponent(pool.name)}`;
  return <section class="card" aria-label={pool.name}>
    <div class="card-head"><h2>{pool.name}</h2><span class="soft">{dots(many(pool.nodes.length, 'machine'), many(pool.gpus, 'GPU'),
      `${pool.open ? 'open' : 'closed'}${pool.until_ms ? ` until ${hour(pool.until_ms)}` : ''}`, pool.stage !== 'all' && `stage ${pool.stage}`, pool.owner === 'settings' && 'from the settings file')}</span></div>
    <Week pool={pool} />
    <p class="soft"><code>{pool.window ?? 'always open'}</code></p>
    {pool.exceptions.length > 0 && <ul class="points">{pool.exceptions.map((x) => <li key={x.from_ms}>{x.open ? 'Opened' : 'Closed'} from {hour(x.from_ms)} to {hour(x.until_ms)}</li>)}</ul>}
    {may('PUT /v1/pools/:name') && <div class="buttons">
      {pool.owner !== 'settings' && <button type="button" onClick={() => edit(pool)}>Change window</button>}
      <button type="button" onClick={() => forAWhile(pool, pool.open ? 'close' : 'open')}>{pool.open ? 'Close' : 'Open'} for a while</button>
      {pool.exceptions.length > 0 && <Act work={() => send('POST', `${path}/regular`, {}).then(() => pools.soon(0))}>As the window says</Act>}
      {pool.owner !== 'settings' && <button type="button" class="danger" onClick={() => confirm({ title: `Remove ${pool.name}?`, text: 'Its machines may always work then.', yes: 'Remove it', danger: true,
        work: () => send('DELETE', path).then(() => pools.soon(0)) })}>Remove</button>}
    </div>}
  </section>;
}

/* ---- reservations ---- */

const time = (ms) => { const d = new Date(ms - new Date(ms).getTimezoneOffset() * 60000); return d.toISOString().slice(0, 16); };

function reserve() {
  const next = Math.ceil(Date.now() / 3600000) * 3600000;
  return confirm({
    title: 'Reserve machines', text: 'For one tenant and a time: a class, a deadline, a demonstration.', yes: 'Reserve',
    fields: [{ name: 'name', label: 'Name', required: true, maxLength: 63, placeholder: 'class' },
      { name: 'tenant', label: 'Tenant', options: (quota.value ?? []).map((t) => t.name) },
      { name: 'from', label: 'From', type: 'datetime-local', required: true, defaultValue: time(next) },
      { name: 'for', label: 'For how long', required: true, defaultValue: '3h', hint: 'e.g. 90m, 3h, 2d' },
      { name: 'nodes', label: 'Machines', required: true, defaultValue: (nodes.value ?? []).map((n) => n.name).slice(0, 3).join(', '), hint: 'Names and patterns, e.g. lab[01-12]' }],
    work: async (v) => {
      await send('PUT', `/v1/reservations/${encodeURIComponent(v.name.trim())}`, { tenant: v.tenant, from_ms: new Date(v.from).getTime(), for: v.for.trim(), nodes: list(v.nodes) });
      reservations.soon(0);
    },
  });
}

function Reservations() {
  const all = reservations.value;
  const can = may('PUT /v1/reservations/:name');
  return <section class="card" aria-labelledby="h-kept"><div class="card-head"><h2 id="h-kept">Reservations</h2>{can && <button type="button" class="right" onClick={reserve}>Reserve</button>}</div>
    {all?.length === 0 && <p class="soft">Nothing is reserved.</p>}
    {all?.length > 0 && <ul class="people">{all.map((r) => <li key={`${r.name}${r.from_ms}`}><b>{r.name ?? 'reserved'}</b><Tenant name={r.tenant} />
      <span class="soft">{dots(`${hour(r.from_ms)} to ${hour(r.until_ms)}`, many(r.nodes.length, 'machine'), many(r.gpus, 'GPU'))}</span>
      {can && r.name && <button type="button" class="quiet" aria-label={`Give ${r.name} up`} onClick={() => confirm({ title: `Give ${r.name} up?`, text: 'Its machines are everybody’s then.', yes: 'Give it up', danger: true,
        work: () => send('DELETE', `/v1/reservations/${encodeURIComponent(r.name)}`).then(() => reservations.soon(0)) })}><Icon name="close" /></button>}</li>)}</ul>}
  </section>;
}

export function Windows() {
  useLive(pools, nodes, reservations, quota);
  const all = pools.value;
  return <>
    {may('PUT /v1/pools/:name') && <div class="buttons bar-head"><button type="button" class="main" onClick={() => edit(null)}>New pool</button></div>}
    {all?.map((p) => <Pool key={p.name} pool={p} />)}
    {all?.length === 0 && <section class="card"><Empty title="No pools yet.">Machines that people use by day and lend at night are a pool: it has a window for each day of the week.</Empty></section>}
    {all && <Reservations />}
  </>;
}
