/* What the agents of machines measure: now, and over time.  Where there is no agent there is nothing here. */
import { useEffect, useState } from 'preact/hooks';

import { get, may } from './api.js';
import { Chart } from './chart.jsx';
import { Bar } from './parts.jsx';
import { dots, gib, hour, number, span } from './words.js';

const LOAD_MS = 3000;
const COLOURS = ['--accent', '--warm', '--good', '--bad', '--ice', '--soft', '--ink', '--plain'];
const path = (name, what) => `/v1/nodes/${encodeURIComponent(name)}/${what}`;
const rate = (b) => (b >= 1048576 ? `${number(Math.round(b / 104857.6) / 10)} MB/s` : `${Math.round((b ?? 0) / 1024)} kB/s`);

/** Asked for again and again while it is shown; null where there is none.  key: what it is about, or nothing. */
function useAsked(key, url, everyMs) {
  const [data, setData] = useState(null);
  useEffect(() => {
    setData(null);
    if (!key) return undefined;
    let timer = 0;
    let gone = false;
    const look = () => get(url()).then((x) => !gone && setData(x), () => {}).finally(() => { if (!gone) timer = setTimeout(look, everyMs); });
    look();
    return () => { gone = true; clearTimeout(timer); };
  }, [key]);
  return data;
}

/** A GPU with nothing to do is slowed too, and nobody minds. */
const slow = (g) => (g.throttle ?? []).filter((t) => t !== 'idle').join(', ');

export function Health({ list }) {
  return list?.length ? <div role="status"><ul class="health">{list.map((h, i) => <li key={i}><b>{h.gpu == null ? 'Machine' : `GPU ${h.gpu}`}</b> {h.text} <span class="soft">since {hour(h.since_ms)}</span></li>)}</ul></div> : null;
}

export function Load({ node }) {
  const n = useAsked(may('GET /v1/nodes/:name/load') && node, () => path(node, 'load'), LOAD_MS);
  if (!n?.seen_ms) return null;
  const meter = (name, used, whole, text) => used != null && whole > 0 && <div><dt>{name}</dt><dd><Bar parts={[{ part: used, tint: 'main' }]} whole={whole} label={`${name} in use`} /><span class="num">{text}</span></dd></div>;
  return <>
    <section class="card"><div class="card-head"><h2>Right now</h2><span class="soft">{dots(n.reports ? 'measured by its agent' : `its agent was last heard of ${hour(n.seen_ms)}`)}</span></div>
      <dl class="facts meters">
        {meter('CPUs', n.cpu_milli, n.cpus_milli, `${number(Math.round(n.cpu_milli / 100) / 10)} of ${number(n.cpus_milli / 1000)} busy`)}
        {meter('Memory', n.mem_used_mib, n.mem_mib, `${gib(n.mem_used_mib)} of ${gib(n.mem_mib)}`)}
        {meter('Disk', n.disk_used_mib, n.disk_mib, `${gib(n.disk_used_mib)} of ${gib(n.disk_mib)}`)}
        <div><dt>Disk traffic</dt><dd class="num">{rate(n.read_bytes_s)} read, {rate(n.write_bytes_s)} written</dd></div>
        <div><dt>Network</dt><dd class="num">{rate(n.rx_bytes_s)} in, {rate(n.tx_bytes_s)} out</dd></div></dl></section>
    {n.gpus.length > 0 && <section class="card flush"><div class="scroll" tabIndex={0} role="region" aria-label="GPUs, measured"><table class="list"><thead><tr><th>GPU</th><th>Busy</th><th>Memory</th><th>Power</th><th>Temperature</th><th>Whose work</th><th>Remarks</th></tr></thead>
      <tbody>{n.gpus.map((g) => <tr key={g.index}><th scope="row">{g.index}</th><td class="num">{g.util_percent == null ? '–' : `${Math.round(g.util_percent)} %`}</td>
        <td class="num">{g.mem_used_mib == null ? '–' : `${gib(g.mem_used_mib)} of ${gib(g.mem_mib)}`}</td><td class="num">{g.power_w == null ? '–' : `${Math.round(g.power_w)} W`}</td><td class="num">{g.temp_c == null ? '–' : `${g.temp_c} °C`}</td>
        <td>{g.parts.filter((p) => p.kind !== 'idle').map((p) => `${p.name ?? p.kind} ${p.util_percent == null ? '' : `${Math.round(p.util_percent)} %`}`).join(', ')}</td>
        <td>{dots(slow(g) && `slowed: ${slow(g)}`, g.xid && `XID ${g.xid}`, g.ecc_uncorrected > 0 && `${g.ecc_uncorrected} memory errors`, g.idle_since_ms && `idle for ${span(Date.now() - g.idle_since_ms)}`)}</td></tr>)}</tbody></table></div></section>}
  </>;
}

const RANGES = { hour: ['An hour', 3600000], day: ['A day', 86400000], month: ['A month', 30 * 86400000] };
const when = (step) => (t) => new Date(t * 1000).toLocaleString('en-GB', step < 3600000 ? { hour: '2-digit', minute: '2-digit', ...(step < 5000 && { second: '2-digit' }) } : { day: 'numeric', month: 'short', hour: '2-digit' });

/** Utilisation and memory of GPUs of a machine. */
function Gpus({ h, name }) {
  const times = timesOf(h);
  const list = h.gpus;
  if (!list.some((g) => any(g.util_percent))) return null;
  const of = (field, scale = 1) => list.map((g, i) => ({ name: `GPU ${g.index}`, values: times.map((t, k) => (g[field][k] == null ? null : g[field][k] / scale)), colour: COLOURS[i % COLOURS.length], fill: list.length === 1 }));
  return <>
    <h3>GPUs busy</h3><Chart times={times} series={of('util_percent')} unit=" %" top={100} when={when(h.step_ms)} label={`How busy the GPUs of ${name} were`} height={170} />
    <h3>GPU memory in use</h3><Chart times={times} series={of('mem_used_mib', 1024)} unit=" GiB" when={when(h.step_ms)} label={`GPU memory in use on ${name}`} height={170} />
  </>;
}

export function NodeCharts({ node }) {
  const [range, setRange] = useState('hour');
  const h = useAsked(may('GET /v1/nodes/:name/history') && `${node} ${range}`, () => `${path(node, 'history')}?from_ms=${Date.now() - RANGES[range][1]}`, range === 'hour' ? 10000 : 60000);
  if (!h?.points) return null;
  const times = timesOf(h);
  return <section class="card"><div class="card-head"><h2>Over time</h2><div class="tabs right" role="group" aria-label="How long">{Object.entries(RANGES).map(([id, [name]]) =>
    <button key={id} type="button" aria-pressed={range === id} onClick={() => setRange(id)}>{name}</button>)}</div></div>
    <Gpus h={h} name={node} />
    {any(h.node.cpu_milli ?? []) && <><h3>CPUs busy</h3><Chart times={times} series={[{ name: 'CPUs', values: h.node.cpu_milli.map((v) => (v == null ? null : v / 1000)), colour: '--accent', fill: true }]} when={when(h.step_ms)} label={`CPUs busy on ${node}`} height={150} /></>}
  </section>;
}

const timesOf = (h) => [...Array(h.points)].map((_, i) => (h.from_ms + i * h.step_ms) / 1000);

const any = (list) => list.some((v) => v != null);

/** What a replica used itself.  memory: in MiB or GiB, as much as it is. */
function Own({ of, title, field, scale = 1, unit = '', memory, ...more }) {
  if (!any(of[field])) return null;
  const large = memory && Math.max(...of[field]) >= 1024;
  return <><h3>{title}</h3><Chart times={timesOf(of)} series={[{ name: title, values: of[field].map((v) => (v == null ? null : v / (large ? 1024 : scale))), colour: '--accent', fill: true }]}
    unit={memory ? large ? ' GiB' : ' MiB' : unit} when={when(of.step_ms)} label={title} height={150} {...more} /></>;
}

/** Of one run of a job: its GPUs while it had them, and what it used. */
export function JobCharts({ j }) {
  const [chosen, setRun] = useState(0);
  const h = useAsked(j.run > 0 && may('GET /v1/jobs/:id/history', { tenant: j.tenant, user: j.user }) && `${j.id} ${j.run} ${j.ended_ms}`,
    () => `/v1/jobs/${j.id}/history`, j.ended_ms ? 3600000 : 10000);
  const run = h?.runs.find((r) => r.run === chosen) ?? h?.runs[0];
  if (!run?.replicas.some((p) => p.gpus.some((g) => any(g.util_percent)) || (p.own && any(p.own.cpu_milli)))) return null;
  return <section class="card" aria-labelledby="h-charts"><div class="card-head"><h2 id="h-charts">Charts</h2>
    {h.runs.length > 1 && <div class="tabs right" role="group" aria-label="Which run">{h.runs.slice(0, 6).reverse().map((r) =>
      <button key={r.run} type="button" aria-pressed={r === run} onClick={() => setRun(r.run)}>Run {r.run}</button>)}</div>}</div>
    {run.replicas.map((p) => <div key={p.replica}>
      {run.replicas.length > 1 && <h3>Replica {p.replica} on {p.node}</h3>}
      <Gpus h={p} name={p.node} />
      {p.gpus.some((g) => !g.whole) && <p class="soft">{p.own ? 'It shares its GPU: what is above is of the whole GPU, its own part is below.' : 'It shares its GPU: this is of the whole GPU, and its own part is not kept.'}</p>}
      {p.own && <>{p.gpus.some((g) => !g.whole) && <><Own of={p.own} title="Its part of the GPU" field="gpu_percent" unit=" %" top={100} /><Own of={p.own} title="Its GPU memory" field="gpu_mem_mib" memory /></>}
        <Own of={p.own} title="CPUs it used" field="cpu_milli" scale={1000} least={0.1} /><Own of={p.own} title="Memory it used" field="mem_mib" memory /></>}
    </div>)}
    {h.left_out > 0 && <p class="soft">{h.left_out} more are not shown: ask with GET /v1/jobs/{j.id}/history?replica=…</p>}
  </section>;
}
