/* Overview: a map of every GPU, the queue with reason and ETA, and the hours that come. */
import { useMemo } from 'preact/hooks';

import { may } from './api.js';
import { jobs, jobsLoaded, living, measured, nodes, now, pools, quota, reservations, useLive, waits, why } from './live.js';
import { Bar, Empty, Icon, Since, State, Tenant, tint } from './parts.jsx';
import { poolDetail } from './windows.jsx';
import { dots, gib, gpus, hour, many, number, onTheWall, span, title } from './words.js';

const FROZEN = ['freezing', 'paused', 'frozen'];
const LARGE = 32; /* up to so many GPUs each tile has words in it */

/* ---- GPUs ---- */

/** With those that pods of others have. */
export const allGpus = (node) => node.gpus.length + node.gpus_of_others;

/** What a tile shows: away (not lent, or cannot be reached), idle, or who has it. */
export function gpuState(node, gpu, known) {
  const off = node.state === 'down' ? 'down' : node.open === false ? 'not lent now' : null;
  const holders = gpu.jobs;
  const frozen = holders.length > 0 && holders.every((h) => FROZEN.includes(known.get(h.id)?.state));
  if (!holders.length) return { kind: off ? 'away' : 'idle', word: off ?? (node.state === 'drain' ? 'draining' : 'idle') };
  return { kind: frozen ? 'ice' : 'busy', word: frozen ? 'frozen' : 'in use' };
}

function label(node, gpu, s) {
  const who = gpu.jobs.map((h) => dots(h.id == null ? h.name : `${h.name} #${h.id}`, h.user, h.tenant)).join('; ');
  const load = gpu.util_percent != null ? `${Math.round(gpu.util_percent)} % busy` : '';
  return dots(`${node.name} GPU ${gpu.index}`, gpu.model || node.model, s.word, who, load);
}

function Tile({ node, gpu, known, large }) {
  const s = gpuState(node, gpu, known);
  const one = gpu.jobs[0];
  const text = label(node, gpu, s);
  const href = one?.id != null ? `#/jobs/${one.id}` : `#/nodes/${encodeURIComponent(node.name)}`;
  const busy = gpu.util_percent;
  if (!large) return <a style={busy != null && one ? { '--u': `${Math.round(busy)}%` } : undefined} class={`dot${busy != null && one ? ' measured' : ''} is-${s.kind} ${one ? tint(one.tenant) : ''}`} href={href} title={text} aria-label={text} />;
  const free = gpu.free_milli > 0 && gpu.free_milli < 1000;
  const since = measured.value?.get(`${node.name}/${gpu.index}`)?.idle_since_ms;
  const idle = since && one && now.peek() - since > 60000 && `idle for ${span(now.peek() - since)}`;
  return <a class={`tile is-${s.kind} ${one ? tint(one.tenant) : ''}`} href={href} title={text}>
    <span class="tile-top"><b><span class="hidden">{node.name} </span>GPU {gpu.index}</b><span>{s.kind === 'ice' && <Icon name="frozen" />}{s.word}</span></span>
    <span class="bar" aria-hidden="true">{gpu.jobs.map((h, i) => <i key={i} class={tint(h.tenant)} style={{ width: `${h.milli / 10}%` }} />)}</span>
    <span class="tile-who">{gpu.jobs.length === 0 ? <span class="soft">{gpu.model || node.model}</span>
      : gpu.jobs.slice(0, 2).map((h, i) => <span key={i} class={gpu.jobs.length > 1 ? 'several' : ''}><b>{h.name}</b><span class="soft">{dots(h.user, h.tenant)}</span></span>)}
      {gpu.jobs.length > 2 && <span class="soft">and {gpu.jobs.length - 2} more</span>}</span>
    {(busy != null || free) && <span class="tile-foot soft num">{dots(busy != null && `${Math.round(busy)} % busy`,
      gpu.mem_used_mib != null && gpu.mem_mib && `${gib(gpu.mem_used_mib).replace(' GiB', '')} of ${gib(gpu.mem_mib)}`, idle, free && `${number(gpu.free_milli / 10)} % free`)}</span>}
  </a>;
}

/** GPUs that pods of others have on Kubernetes: nobody says which they are. */
function OfOthers({ node, large }) {
  const text = dots(`${node.name} GPU`, 'in use by a pod of others');
  if (!large) return <span class="dot is-others" role="img" title={text} aria-label={text} />;
  return <span class="tile is-others" title={text}><span class="tile-top"><b><span class="hidden">{node.name} </span>GPU</b><span>in use</span></span>
    <span class="tile-who"><span class="soft">by a pod of others</span></span></span>;
}

export function Machine({ node, known, large }) {
  /* What of the jobs concerns this machine: whether they are frozen. */
  const key = node.gpus.map((g) => g.jobs.map((h) => (FROZEN.includes(known.get(h.id)?.state) ? 1 : 0)).join('')).join();
  return useMemo(() => {
    const note = dots(node.gpus[0]?.model || node.model, node.simulated && 'simulated', node.state === 'down' && 'down', node.state === 'drain' && 'draining', node.health?.length > 0 && 'in trouble',
      node.pool && `${node.open ? 'open' : 'closed'}${node.until_ms ? ` until ${hour(node.until_ms)}` : ''}`, node.reserved && (node.reserved.from_ms <= Date.now() ? `reserved until ${hour(node.reserved.until_ms)}` : `reserved from ${hour(node.reserved.from_ms)}`));
    return <section class={`machine${large ? ' large' : ''}${allGpus(node) < 3 ? ' few' : ''}`} aria-label={node.name}
      style={large ? { flex: `${allGpus(node) || 1} 1 ${Math.max(1, allGpus(node)) * 210}px` } : undefined}>
      <h3><a href={`#/nodes/${encodeURIComponent(node.name)}`}>{node.name}</a><small>{note}</small></h3>
      <div class="tiles">{node.gpus.map((g) => <Tile key={g.index} node={node} gpu={g} known={known} large={large} />)}
        {Array.from({ length: node.gpus_of_others }, (_, i) => <OfOthers key={`others${i}`} node={node} large={large} />)}
        {!allGpus(node) && <span class="soft">no GPU</span>}</div>
    </section>;
  }, [node, key, large, large && measured.value]);
}

function Legend({ list }) {
  const held = new Map();
  for (const n of list) for (const g of n.gpus) for (const h of g.jobs) held.set(h.tenant, (held.get(h.tenant) ?? 0) + h.milli);
  const others = list.reduce((sum, n) => sum + n.gpus_of_others, 0);
  const names = [...held.keys()].sort((a, b) => held.get(b) - held.get(a));
  return <ul class="legend">{names.slice(0, 14).map((t) => <li key={t ?? ''}><Tenant name={t} /><span class="num soft">{gpus(held.get(t))}</span></li>)}
    {others > 0 && <li><span class="tenant"><i class="swatch is-others" />pods of others</span><span class="num soft">{others}</span></li>}
    <li><span class="tenant"><i class="swatch is-idle" />idle</span></li>
    {list.some((n) => n.state === 'down' || n.open === false) && <li><span class="tenant"><i class="swatch is-away" />away</span></li>}</ul>;
}

function Map_({ list }) {
  const known = jobs.value;
  const total = list.reduce((n, x) => n + allGpus(x), 0);
  const large = total <= LARGE;
  return <section class="card" aria-labelledby="h-map">
    <div class="card-head"><h2 id="h-map">GPUs</h2><Legend list={list} /></div>
    <div class={`map${large ? ' large' : ''}`}>{list.map((n) => <Machine key={n.name} node={n} known={known} large={large} />)}</div>
  </section>;
}

function Figures({ list }) {
  let total = 0; let busy = 0; let idle = 0; let off = 0; let ice = 0;
  for (const n of list) {
    total += n.gpus_of_others;
    busy += n.gpus_of_others;
    for (const g of n.gpus) {
      total += 1;
      const s = gpuState(n, g, jobs.value).kind;
      const used = (1000 - g.free_milli) / 1000;
      if (s === 'away') off += 1;
      else if (s === 'ice') ice += 1;
      else { busy += used; idle += 1 - used; }
    }
  }
  const waiting = living.value.filter(waits).length;
  const running = living.value.filter((j) => !waits(j) && !FROZEN.includes(j.state)).length;
  const figure = (value, name, of) => <div class="figure"><b class="num">{value}</b><span>{name}</span>{of && <small>{of}</small>}</div>;
  return <section class="figures" aria-label="In short">
    {figure(number(busy), 'GPUs in use', `of ${total}`)}
    {figure(number(idle), 'idle', idle > 0 && waiting > 0 ? 'see why below' : idle > 0 ? 'ready now' : '')}
    {figure(number(ice), 'frozen', off ? `${off} away` : '')}
    {figure(jobsLoaded.value ? running : '–', 'jobs running', '')}
    {figure(jobsLoaded.value ? waiting : '–', 'waiting', '')}
  </section>;
}

/* ---- the queue ---- */

const PRIORITIES = ['urgent', 'high', 'normal', 'low'];
export const queueOrder = (a, b) => (a.state === 'held') - (b.state === 'held')
  || PRIORITIES.indexOf(a.priority) - PRIORITIES.indexOf(b.priority) || a.submitted_ms - b.submitted_ms || a.id - b.id;

export function Eta({ id }) {
  const s = why(id).value?.starts;
  if (!s) return null;
  return s.p50_ms <= now.value + 60000 ? <span>starts soon</span> : <span title={`in nine of ten cases before ${hour(s.p90_ms)}`}>about {hour(s.p50_ms)}</span>;
}

function Queue() {
  const list = living.value.filter(waits).sort(queueOrder);
  const shown = list.slice(0, 8);
  return <section class="card" aria-labelledby="h-queue">
    <div class="card-head"><h2 id="h-queue">Queue <span class="soft num">{list.length}</span></h2>
      {list.length > shown.length && <a href="#/jobs?state=waiting">All {list.length}</a>}</div>
    {!shown.length && jobsLoaded.value && <Empty title="Nobody waits.">{may('POST /v1/jobs') && <a class="button main" href="#/new">New job</a>}</Empty>}
    <ul class="queue">{shown.map((j) => <li key={j.id}>
      <i class={`swatch ${tint(j.tenant)}`} />
      <div class="queue-what"><a href={`#/jobs/${j.id}`}>{title(j)} <span class="soft num">#{j.id}</span></a>
        <span class="soft">{dots(many(j.gpu_milli / 1000, 'GPU'), j.user, j.tenant)}</span></div>
      <div class="queue-why">{j.state !== 'queued' && <State of={j.state} />}<span>{onTheWall(j.reason_text) || (j.state === 'queued' ? 'about to be looked at' : '')}</span></div>
      <div class="queue-when"><Eta id={j.id} /><span class="soft">waits <Since ms={j.submitted_ms} /></span></div>
    </li>)}</ul>
  </section>;
}

/* ---- tonight ---- */

const SPAN_MS = 18 * 3600000;

function Line({ name, href, note, children }) {
  return <li class="line"><a class="line-name" href={href}>{name}</a><div class="track">{children}</div><span class="line-note soft">{note}</span></li>;
}

function Tonight() {
  const from = Math.floor(now.value / 900000) * 900000;
  const to = from + SPAN_MS;
  const at = (ms) => `${Math.max(0, Math.min(100, (100 * (ms - from)) / SPAN_MS))}%`;
  const wide = (a, b) => `${Math.max(0.6, (100 * (Math.min(b, to) - Math.max(a, from))) / SPAN_MS)}%`;
  const hours = [];
  for (let t = Math.ceil(from / 10800000) * 10800000; t < to; t += 10800000) hours.push(t);
  const lent = (pools.value ?? []).slice(0, 12);
  const kept = (reservations.value ?? []).filter((r) => r.from_ms < to).slice(0, 8);
  const next = living.value.filter((j) => j.state === 'queued').sort(queueOrder).slice(0, 5)
    .map((j) => ({ j, s: why(j.id).value?.starts })).filter((x) => x.s && x.s.p50_ms < to);
  return <section class="card" aria-labelledby="h-tonight">
    <div class="card-head"><h2 id="h-tonight">The next hours</h2><span class="soft">windows, reservations and expected starts</span></div>
    {lent.length + kept.length + next.length === 0
      ? <Empty title="Nothing changes by itself.">Every machine may always work, and nothing is reserved.{may('PUT /v1/pools/:name') && <a href="#/admin/windows">Lend machines at certain hours</a>}</Empty>
      : <div class="timeline">
        <div class="hours" aria-hidden="true">{hours.map((t) => <span key={t} style={{ left: at(t) }}>{hour(t).slice(-5)}</span>)}</div>
        <ul>{lent.map((p) => {
          const week = poolDetail(p.name).value?.week ?? [];
          return <Line key={`p${p.name}`} name={p.name} href="#/admin/windows" note={p.until_ms ? `${p.open ? 'closes' : 'opens'} ${hour(p.until_ms)}` : p.open ? 'always open' : 'closed'}>
            {week.filter((w) => w.open && w.until_ms > from && w.from_ms < to).map((w) => <i key={w.from_ms} class="open"
              style={{ left: at(w.from_ms), width: wide(w.from_ms, w.until_ms) }} title={`open ${hour(w.from_ms)} to ${hour(w.until_ms)}`} />)}
          </Line>;
        })}
        {kept.map((r) => <Line key={`r${r.name}${r.from_ms}`} name={r.name ?? 'reserved'} href="#/nodes" note={dots(many(r.gpus, 'GPU'), r.tenant)}>
          <i class={`kept ${tint(r.tenant)}`} style={{ left: at(r.from_ms), width: wide(r.from_ms, r.until_ms) }} title={`reserved ${hour(r.from_ms)} to ${hour(r.until_ms)}`} />
        </Line>)}
        {next.map(({ j, s }) => <Line key={`j${j.id}`} name={title(j)} href={`#/jobs/${j.id}`} note={`about ${hour(s.p50_ms)}`}>
          <i class={`start ${tint(j.tenant)}`} style={{ left: at(s.p50_ms), width: wide(s.p50_ms, s.p90_ms) }} title={`${hour(s.p50_ms)} to ${hour(s.p90_ms)}`} />
        </Line>)}</ul>
      </div>}
  </section>;
}

/* ---- the page ---- */

export function Overview() {
  useLive(nodes, quota, pools, reservations, measured);
  const list = nodes.value;
  return <>
    <div class="page-head"><h1 tabIndex={-1}>Overview</h1>
      {may('POST /v1/jobs') && <a class="button main" href="#/new"><Icon name="new" />New job</a>}</div>
    {list ? <Figures list={list} /> : <section class="figures waiting" aria-label="In short" />}
    {list && (list.length ? <Map_ list={list} /> : <section class="card"><Empty title="No machine has joined yet.">
      A machine joins when its keeper or its Kubernetes node is known to this server: <code>nightshift doctor</code> tells what is missing.</Empty></section>)}
    {!list && <section class="card tall" />}
    <div class="two"><Queue /><Tonight /></div>
  </>;
}
