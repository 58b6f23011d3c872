/* Nodes: every machine, what it has and does, and taking it out for a while. */
import { useState } from 'preact/hooks';

import { may, send } from './api.js';
import { jobs, measured, nodes, quota, useLive } from './live.js';
import { Bar, confirm, Empty, Icon, Problem, Rows, say, State, useNarrow } from './parts.jsx';
import { Health, Load, NodeCharts } from './measured.jsx';
import { allGpus, Machine } from './overview.jsx';
import { dots, gib, hour, many, number } from './words.js';

export function windowText(n) {
  return dots(n.pool && `${n.pool}: ${n.open ? 'open' : 'closed'}${n.until_ms ? ` until ${hour(n.until_ms)}` : ''}`,
    n.reserved && `${n.reserved.name ? `${n.reserved.name}: ` : ''}reserved ${n.reserved.from_ms <= Date.now() ? `until ${hour(n.reserved.until_ms)}` : `from ${hour(n.reserved.from_ms)}`}`);
}

const used = (n) => n.gpus.reduce((s, g) => s + 1000 - g.free_milli, 0) / 1000 + n.gpus_of_others;
const model = (n) => n.gpus[0]?.model || n.model;

function steer(n, verb) {
  const drain = verb === 'drain';
  return confirm({
    title: drain ? `Drain ${n.name}?` : `Let ${n.name} take jobs again?`,
    text: drain ? 'What runs there goes on to its end; nothing new starts.' : '',
    yes: drain ? 'Drain it' : 'Resume it',
    fields: drain ? [{ name: 'reason', label: 'Why', maxLength: 200, placeholder: 'a new driver', hint: 'People who ask why their job waits read it.' }] : [],
    work: async (v) => {
      await send('POST', `/v1/nodes/${encodeURIComponent(n.name)}/${verb}`, v.reason ? { reason: v.reason } : {});
      say(drain ? `${n.name} takes nothing new.` : `${n.name} takes jobs again.`);
      nodes.soon(0);
    },
  });
}

function Steer({ n }) {
  const verb = n.state === 'drain' ? 'resume' : 'drain';
  return may(`POST /v1/nodes/:name/${verb}`, { node: n.name })
    ? <button type="button" aria-label={`${verb === 'drain' ? 'Drain' : 'Resume'} ${n.name}`} onClick={() => steer(n, verb)}>{verb === 'drain' ? 'Drain' : 'Resume'}</button> : null;
}

const link = (n) => `#/nodes/${encodeURIComponent(n.name)}`;

function Wide(n) {
  const cpu = n.cpu_milli - n.cpu_free_milli;
  const mem = n.mem_mib - n.mem_free_mib;
  return <>
    <span role="cell" class="c-name"><a href={link(n)}>{n.name}</a><small class="soft">{dots(model(n), n.simulated && 'simulated')}</small></span>
    <span role="cell"><State of={n.state} /></span>
    <span role="cell" class="c-meter"><span class="num">{number(used(n))} of {allGpus(n)}</span><Bar parts={[{ part: used(n), tint: 'main' }]} whole={allGpus(n)} label="GPUs in use" /></span>
    <span role="cell" class="c-meter"><span class="num">{number(cpu / 1000)} of {number(n.cpu_milli / 1000)}</span><Bar parts={[{ part: cpu }]} whole={n.cpu_milli} label="CPUs given out" /></span>
    <span role="cell" class="c-meter"><span class="num">{gib(mem)} of {gib(n.mem_mib)}</span><Bar parts={[{ part: mem }]} whole={n.mem_mib} label="Memory given out" /></span>
    <span role="cell" class="c-about">{n.health?.length > 0 ? <span class="bad">{n.health[0].text}</span> : n.drained_because || windowText(n) || <span class="soft">always</span>}</span>
    <span role="cell" class="c-act"><Steer n={n} /></span>
  </>;
}

function Small(n) {
  return <span role="cell" class="c-small">
    <span><a href={link(n)}>{n.name}</a><State of={n.state} /></span>
    <span class="soft">{dots(model(n), `${number(used(n))} of ${many(allGpus(n), 'GPU')} in use`)}</span>
    <span class="soft c-about">{windowText(n)}</span>
  </span>;
}

export function Nodes() {
  useLive(nodes);
  const narrow = useNarrow(900);
  const [text, setText] = useState('');
  const all = nodes.value;
  const list = (all ?? []).filter((n) => !text || dots(n.name, model(n), n.pool, n.state).toLowerCase().includes(text.toLowerCase()));
  return <>
    <div class="page-head"><h1 tabIndex={-1}>Nodes</h1></div>
    <div class="filters"><div class="find"><Icon name="search" /><input type="search" id="find" aria-label="Find machines by name, model, pool or state" placeholder="Name, model, pool or state" value={text} onInput={(ev) => setText(ev.target.value)} /></div>
      <span class="soft num" role="status">{all ? many(list.length, 'machine') : ''}</span></div>
    <Problem of={nodes.error.value?.status ? nodes.error.value : null} />
    {!all ? <section class="card tall" /> : list.length ? <section class="card flush nodes"><Rows items={list} height={narrow ? 84 : 60} row={narrow ? Small : Wide} keyOf={(n) => n.name} label="Machines"
      head={narrow ? ['Machine'] : ['Machine', 'State', 'GPUs in use', 'CPUs', 'Memory', 'Window', '']} /></section>
      : <section class="card"><Empty title={all.length ? 'No machine is like that.' : 'No machine has joined yet.'}><code>nightshift doctor</code> tells what is missing.</Empty></section>}
  </>;
}

export function Node({ name }) {
  useLive(nodes, quota, measured);
  const n = nodes.value?.find((x) => x.name === name);
  if (!n) return <><div class="page-head"><h1 tabIndex={-1}>{name}</h1></div>{nodes.value && <section class="card"><Empty title="There is no such machine."><a href="#/nodes">All machines</a></Empty></section>}</>;
  const cpu = n.cpu_milli - n.cpu_free_milli;
  const mem = n.mem_mib - n.mem_free_mib;
  return <>
    <div class="page-head"><div><a class="crumb" href="#/nodes"><Icon name="back" />Nodes</a><h1 tabIndex={-1}>{n.name}</h1>
      <p class="under"><State of={n.state} /><span class="soft">{dots(many(allGpus(n), 'GPU'), model(n), n.simulated && 'simulated', windowText(n))}</span></p></div>
      <div class="buttons"><Steer n={n} /></div></div>
    {n.drained_because && <p class="message">Drained: {n.drained_because}</p>}
    <Health list={n.health} />
    <section class="card"><h2>GPUs</h2><div class="map large one"><Machine node={n} known={jobs.value} large={true} /></div></section>
    <section class="card"><h2>Given out</h2><dl class="facts meters">
      <div><dt>CPUs</dt><dd><Bar parts={[{ part: cpu }]} whole={n.cpu_milli} label="CPUs given out" /><span class="num">{number(cpu / 1000)} of {number(n.cpu_milli / 1000)}</span></dd></div>
      <div><dt>Memory</dt><dd><Bar parts={[{ part: mem }]} whole={n.mem_mib} label="Memory given out" /><span class="num">{gib(mem)} of {gib(n.mem_mib)}</span></dd></div></dl>
      {n.jobs.length > 0 && <><h3>Jobs without a GPU</h3><ul class="points">{n.jobs.map((h, i) => <li key={i}>{h.id == null ? h.name : <a href={`#/jobs/${h.id}`}>{h.name} #{h.id}</a>} <span class="soft">{dots(h.user, h.tenant)}</span></li>)}</ul></>}
    </section>
    <Load node={n.name} />
    <NodeCharts node={n.name} />
  </>;
}
