/* Tenants: what they are entitled to and had, who is in them, limits and budgets. */
import { useEffect, useState } from 'preact/hooks';

import { get, may, send } from './api.js';
import { Chart } from './chart.jsx';
import { nodes, quota, tenants, useLive } from './live.js';
import { Act, Bar, confirm, Empty, Icon, Problem, say, Tenant, tint } from './parts.jsx';
import { dots, gib, hour, many, number } from './words.js';

const path = (name) => `/v1/tenants/${encodeURIComponent(name)}`;
const BY = { settings: 'by the settings file', 'above or group': 'by a group or a tenant above' };
const ROLES = ['viewer', 'member', 'lead'];

/* ---- making and changing ---- */

const num = (text) => (text.trim() === '' ? null : Number(text));

function edit(name, spec = {}) {
  return confirm({
    title: name ? `Change ${name}` : 'New tenant',
    text: 'A group, a course or a person that shares the machines as one.',
    yes: name ? 'Save' : 'Make it',
    fields: [
      ...(name ? [] : [{ name: 'name', label: 'Name', required: true, maxLength: 63, placeholder: 'vision' }]),
      { name: 'help', label: 'What it is', defaultValue: spec.help ?? '', maxLength: 400 },
      { name: 'parent', label: 'Part of', defaultValue: spec.parent ?? '', options: [{ value: '', label: 'nothing' }, ...(quota.value ?? []).map((t) => t.name).filter((t) => t !== name)] },
      { name: 'weight', label: 'Weight', type: 'number', min: 0.001, step: 'any', defaultValue: spec.weight ?? '', placeholder: '1', hint: 'Its part next to the others, when all want more than there is' },
      { name: 'guarantee', half: true, label: 'Guaranteed GPUs', type: 'number', min: 0, step: 'any', defaultValue: spec.guarantee ?? '', placeholder: 'none' },
      { name: 'gpus', half: true, label: 'GPUs at once, at most', type: 'number', min: 0, step: 'any', defaultValue: spec.limit?.gpus ?? '', placeholder: 'no limit' },
      { name: 'user', half: true, label: 'GPUs at once for each user', type: 'number', min: 0, step: 'any', defaultValue: spec.user_limit?.gpus ?? '', placeholder: 'no limit' },
      { name: 'hours', half: true, label: 'Budget in GPU-hours', type: 'number', min: 0, step: 'any', defaultValue: spec.budget?.gpu_hours ?? '', placeholder: 'none' },
      { name: 'period', half: true, label: 'Budget for each', defaultValue: spec.budget?.period ?? 'month', options: ['day', 'week', 'month', 'quarter', 'year', 'once'] },
    ],
    work: async (v) => {
      const body = { help: v.help, parent: v.parent || null, weight: num(v.weight), guarantee: num(v.guarantee),
        limit: { ...spec.limit, gpus: num(v.gpus) }, user_limit: { ...spec.user_limit, gpus: num(v.user) }, budget: num(v.hours) === null ? null : { gpu_hours: num(v.hours), period: v.period } };
      if (!name) {
        for (const [k, x] of Object.entries(body)) if (x === null || x === '') delete body[k];
        if (body.limit.gpus === null) delete body.limit;
        if (body.user_limit.gpus === null) delete body.user_limit;
      }
      await send('PUT', path(name ?? v.name.trim()), body);
      say(`${name ?? v.name} is saved.`);
      tenants.soon(0);
      quota.soon(0);
    },
  });
}

/* ---- the list ---- */

function depth(t, all) {
  let n = 0;
  for (let p = t.parent; p && n < 10; p = all.find((x) => x.name === p)?.parent) n += 1;
  return n;
}

/** Children after their parents. */
function tree(all) {
  const out = [];
  const add = (parent) => all.filter((t) => (t.parent ?? null) === parent).sort((a, b) => a.name.localeCompare(b.name)).forEach((t) => { out.push(t); add(t.name); });
  const names = new Set(all.map((t) => t.name));
  add(null);
  for (const p of new Set(all.map((t) => t.parent).filter((p) => p && !names.has(p)))) add(p);
  return out;
}

function Use({ t, total }) {
  const whole = Math.max(t.limit.gpus ?? 0, total, t.used.gpus, 1);
  return <div class="use"><span class="num">{number(t.used.gpus)}</span><Bar parts={[{ part: t.used.gpus, tint: tint(t.name) }]} whole={whole} mark={t.guarantee}
    label={`${number(t.used.gpus)} GPUs in use${t.guarantee ? `, ${number(t.guarantee)} guaranteed` : ''}`} /></div>;
}

function Budget({ b }) {
  if (!b) return '–';
  const part = b.used_gpu_hours / b.gpu_hours;
  return <div class="use"><span class={`num${part >= 0.8 ? ' bad' : ''}`}>{Math.round(part * 100)} %</span><Bar parts={[{ part: b.used_gpu_hours, tint: part >= 0.8 ? 'bad' : 'main' }]} whole={b.gpu_hours} label={`${number(b.used_gpu_hours)} of ${number(b.gpu_hours)} GPU-hours`} /></div>;
}

function List({ all }) {
  const total = (nodes.value ?? []).reduce((n, x) => n + x.gpus.length, 0);
  return <section class="card flush"><div class="scroll" tabIndex={0} role="region" aria-label="Tenants"><table class="list"><thead><tr><th>Tenant</th><th>GPUs in use</th><th>Guaranteed</th><th>Weight</th><th>At most</th><th>Budget</th><th>Waiting</th></tr></thead>
    <tbody>{tree(all).map((t) => <tr key={t.name}>
      <th scope="row" style={{ paddingLeft: `${20 + 20 * depth(t, all)}px` }}><a href={`#/tenants/${encodeURIComponent(t.name)}`}><Tenant name={t.name} /></a></th>
      <td><Use t={t} total={total} /></td><td class="num">{t.guarantee ? number(t.guarantee) : '–'}</td><td class="num">{number(t.weight)}</td>
      <td class="num">{t.limit.gpus == null ? '–' : number(t.limit.gpus)}</td><td><Budget b={t.budget} /></td><td class="num">{t.waiting || '–'}</td></tr>)}</tbody></table></div></section>;
}

/* ---- one ---- */

const DAYS = 30;

const HOURS = ['entitled', 'got', 'lent', 'borrowed', 'frozen', 'wanted'].map((k) => `${k}_gpu_hours`);

/** A row for each day since `from`; of days without one nothing is known to have been used. */
function everyDay(rows, from) {
  if (!rows.length) return [];
  const by = new Map(rows.map((r) => [r.day, r]));
  const out = [];
  for (let t = from; t <= Date.now(); t += 86400000) {
    const day = new Date(t).toISOString().slice(0, 10);
    out.push(by.get(day) ?? { day, ...Object.fromEntries(HOURS.map((k) => [k, 0])) });
  }
  return out;
}

function History({ name }) {
  const [rows, setRows] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => {
    const from = Date.now() - DAYS * 86400000;
    get(`/v1/fairness?by=day&from_ms=${from}`).then((f) => setRows(everyDay(f.tenants.filter((r) => r.tenant === name), from)), setError);
  }, [name]);
  if (error) return <Problem of={error} />;
  if (!rows) return <div class="chart" style={{ minHeight: '250px' }} />;
  const sum = (k) => rows.reduce((n, r) => n + r[k], 0);
  if (!rows.length) return <Empty title="No history yet.">From its first job on, a day is one point here.</Empty>;
  const col = (k) => rows.map((r) => Math.round(r[k] * 100) / 100);
  return <>
    <Chart times={rows.map((r) => Date.parse(`${r.day}T00:00:00Z`) / 1000)} unit=" h" label={`GPU-hours a day of ${name}: entitled ${number(sum('entitled_gpu_hours'))}, got ${number(sum('got_gpu_hours'))} in ${rows.length} days`} series={[
      { name: 'entitled', values: col('entitled_gpu_hours'), colour: '--soft', dash: [6, 4] },
      { name: 'got', values: col('got_gpu_hours'), colour: '--accent', fill: true },
      { name: 'wanted', values: col('wanted_gpu_hours'), colour: '--warm', dash: [2, 3] },
    ]} />
    <dl class="facts across">{[['Entitled', 'entitled_gpu_hours'], ['Got', 'got_gpu_hours'], ['Lent', 'lent_gpu_hours'], ['Borrowed', 'borrowed_gpu_hours'], ['Frozen', 'frozen_gpu_hours']]
      .map(([k, f]) => <div key={k}><dt>{k}</dt><dd class="num">{number(Math.round(sum(f) * 10) / 10)} h</dd></div>)}</dl>
  </>;
}

function Users({ name }) {
  const [rows, setRows] = useState(null);
  useEffect(() => {
    get(`/v1/usage?group=tenant,user&from_ms=${Date.now() - DAYS * 86400000}`)
      .then((u) => setRows(u.rows.filter((r) => r.tenant === name).sort((a, b) => b.gpu_hours - a.gpu_hours).slice(0, 12)), () => setRows([]));
  }, [name]);
  if (!rows?.length) return null;
  const most = Math.max(...rows.map((r) => r.gpu_hours), 0.01);
  return <section class="card"><h2>Who used it, {DAYS} days</h2><dl class="facts meters">{rows.map((r) => <div key={r.user}><dt>{r.user}</dt>
    <dd><Bar parts={[{ part: r.gpu_hours, tint: tint(name) }]} whole={most} label={`GPU-hours of ${r.user}`} /><span class="num">{number(Math.round(r.gpu_hours * 10) / 10)} h</span></dd></div>)}</dl></section>;
}

function Members({ t, lead, reload }) {
  const add = () => confirm({ title: `Take somebody into ${t.name}`, yes: 'Take in',
    fields: [{ name: 'user', label: 'User', required: true, maxLength: 200 }, { name: 'role', label: 'Role', options: ROLES, defaultValue: 'member' }],
    work: async (v) => { await send('PUT', `${path(t.name)}/members/${encodeURIComponent(v.user.trim())}`, { role: v.role }); reload(); } });
  return <section class="card" aria-labelledby="h-members"><div class="card-head"><h2 id="h-members">Members</h2>{lead && <button type="button" class="right" onClick={add}>Take in</button>}</div>
    {!t.members?.length ? <Empty title="Nobody is in it yet." /> : <ul class="people">{t.members.map((m) => <li key={m.user}><b>{m.user}</b><span class="soft">{dots(m.role, BY[m.by])}</span>
      {lead && m.by === 'said' && <Act class="quiet" aria-label={`Take ${m.user} out`} work={() => send('DELETE', `${path(t.name)}/members/${encodeURIComponent(m.user)}`).then(reload)}><Icon name="close" /></Act>}</li>)}</ul>}
  </section>;
}

function One({ name }) {
  const [t, setT] = useState(null);
  const [error, setError] = useState(null);
  const reload = () => get(path(name)).then((x) => { setT(x); setError(null); }, setError);
  useEffect(() => { reload(); }, [name, tenants.value]);
  const q = quota.value?.find((x) => x.name === name);
  const admin = may('PUT /v1/tenants/:name', { tenant: name });
  const lead = may('PUT /v1/tenants/:name/members/:user', { tenant: name });
  const limits = q && [['GPUs', q.used.gpus, q.limit.gpus], ['CPUs', q.used.cpus, q.limit.cpus], ['Memory', q.used.memory_mib, q.limit.memory_mib, gib], ['Jobs', q.used.jobs, q.limit.jobs], ['Notebooks', q.used.notebooks, q.limit.notebooks]];
  const fixed = t?.of_settings;
  return <>
    <div class="page-head"><div><a class="crumb" href="#/tenants"><Icon name="back" />Tenants</a><h1 tabIndex={-1}><Tenant name={name} /></h1>
      <p class="under soft">{dots(t?.spec.help, q?.parent && `part of ${q.parent}`, t?.spec.expires && `ends ${t.spec.expires}`, fixed && 'as the settings file says')}</p></div>
      {t && admin && !fixed && <div class="buttons"><button type="button" onClick={() => edit(name, t.spec)}>Change</button>
        <button type="button" class="danger" onClick={() => confirm({ title: `Remove ${name}?`, text: 'It must run nothing. Its history stays in the journal.', yes: 'Remove it', danger: true,
          work: () => send('DELETE', path(name)).then(() => { tenants.soon(0); quota.soon(0); location.hash = '#/tenants'; }) })}>Remove</button></div>}</div>
    <Problem of={error} />
    <section class="card"><h2>GPU-hours, {DAYS} days</h2><History name={name} /></section>
    <div class="two">
      <section class="card"><h2>Now</h2>{q && <dl class="facts meters">{limits.map(([k, used, limit, as = number]) => <div key={k}><dt>{k}</dt><dd>
        {limit != null && <Bar parts={[{ part: used, tint: tint(name) }]} whole={limit} label={`${k} in use`} />}<span class="num">{as(used)}{limit != null ? ` of ${as(limit)}` : ''}</span></dd></div>)}
        {q.budget && <div><dt>Budget</dt><dd><Bar parts={[{ part: q.budget.used_gpu_hours, tint: 'main' }]} whole={q.budget.gpu_hours} label="Budget used" /><span class="num">{number(Math.round(q.budget.used_gpu_hours * 10) / 10)} of {number(q.budget.gpu_hours)} h until {hour(q.budget.until_ms)}</span></dd></div>}
        <div><dt>Weight</dt><dd class="num">{number(q.weight)}</dd></div><div><dt>Guaranteed</dt><dd class="num">{many(q.guarantee, 'GPU')}</dd></div></dl>}
      {q?.users?.length > 0 && <><h3>Users now</h3><ul class="people">{q.users.map((u) => <li key={u.name}><b>{u.name}</b><span class="soft">{dots(many(u.used.gpus, 'GPU'), u.waiting && `${u.waiting} waiting`)}</span></li>)}</ul></>}</section>
      <div class="column">{t && <Members t={t} lead={lead} reload={reload} />}<Users name={name} /></div>
    </div>
  </>;
}

export function Tenants({ name }) {
  useLive(quota, tenants, nodes);
  if (name) return <One key={name} name={name} />;
  const all = quota.value;
  return <>
    <div class="page-head"><h1 tabIndex={-1}>Tenants</h1>{may('PUT /v1/tenants/:name') && <button type="button" class="main" onClick={() => edit(null)}><Icon name="new" />New tenant</button>}</div>
    <Problem of={quota.error.value?.status ? quota.error.value : null} />
    {!all ? <section class="card tall" /> : all.length ? <List all={all} /> : <section class="card"><Empty title="You are in no tenant.">An administrator takes you in.</Empty></section>}
  </>;
}
