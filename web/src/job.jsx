/* One job: what it is, why it waits, its life, its output, and what can be done to it. */
import { useEffect, useRef, useState } from 'preact/hooks';

import { ask, get, may, send, told } from './api.js';
import { ended, jobs, loadJob, nodes, now, quota, useLive, waits, why } from './live.js';
import { Output } from './log.js';
import { JobCharts } from './measured.jsx';
import { confirm, Act, Icon, Problem, say, Since, State, Tenant } from './parts.jsx';
import { clock, command, dots, exitText, gpus, hour, many, onTheWall, span, title, whereText } from './words.js';

/* ---- what can be done ---- */

const ACTIONS = [
  { verb: 'freeze', text: 'Freeze', done: 'is being frozen', can: (j) => j.state === 'running' && j.spec?.freeze?.mode !== 'none',
    harm: (j) => j.spec?.freeze?.mode === 'requeue' && 'It will begin again from the start.' },
  { verb: 'thaw', text: 'Thaw', done: 'goes on', can: (j) => ['paused', 'frozen'].includes(j.state) },
  { verb: 'release', text: 'Release', done: 'is in the queue', can: (j) => j.state === 'held' },
  { verb: 'hold', text: 'Hold', done: 'is held', can: (j) => j.state === 'queued' },
  { verb: 'cancel', text: 'Cancel', danger: true, done: 'is being ended', can: (j) => !ended(j) && j.state !== 'stopping',
    harm: (j) => (waits(j) ? 'It leaves the queue.' : 'Its processes are ended. What it has not saved is lost.') },
];

async function act(a, j) {
  const work = async () => {
    await send('POST', `/v1/jobs/${j.id}/${a.verb}`, {});
    say(`Job ${j.id} ${a.done}.`);
    await loadJob(j.id).catch(() => {});
  };
  const harm = a.harm?.(j);
  if (harm) await confirm({ title: `${a.text} job ${j.id}?`, text: `${title(j)}: ${harm}`, yes: `${a.text} it`, danger: a.danger, work });
  else await work();
}

function Actions({ j }) {
  const allowed = ACTIONS.filter((a) => a.can(j) && may(`POST /v1/jobs/:id/${a.verb}`, { tenant: j.tenant, user: j.user }));
  return <div class="buttons">
    {may('POST /v1/jobs') && j.spec && <a class="button" href={`#/new?like=${j.id}`}><Icon name="copy" />Clone</a>}
    {allowed.map((a) => <Act key={a.verb} class={a.danger ? 'danger' : ''} work={() => act(a, j)}>{a.text}</Act>)}
  </div>;
}

/* ---- why ---- */

function Why({ j }) {
  const w = now.value && why(j.id).value; /* a forecast that has passed is asked for anew */
  if (!w) return null;
  const before = [w.before?.own && `${many(w.before.own, 'job')} of the same user`, w.before?.users && many(w.before.users, 'other user')].filter(Boolean).join(' and ');
  return <section class="card" aria-labelledby="h-why">
    <h2 id="h-why">Why it waits</h2>
    {w.starts && <p class="eta"><b>Starts about {hour(w.starts.p50_ms)}</b><span class="soft">in nine of ten cases before {hour(w.starts.p90_ms)}{w.starts.foreseen_ms && `; it was expected at about ${hour(w.starts.foreseen_ms)}, which has passed`}</span></p>}
    <ul class="points">{(w.reasons ?? []).map((r, i) => <li key={i}>{onTheWall(r.text)}</li>)}
      {before && <li>When room comes, it is first the turn of {before}.</li>}</ul>
    {w.helps?.length > 0 && <><h3>It would start now if you</h3><ul class="points">{w.helps.map((h, i) => <li key={i}>{onTheWall(h.text)}</li>)}</ul></>}
  </section>;
}

/* ---- its life ---- */

function Life({ j }) {
  const [list, setList] = useState([]);
  useEffect(() => {
    let gone = false;
    get(`/v1/jobs/${j.id}/events?limit=1000`).then((x) => gone || setList(x.events), () => {});
    return () => { gone = true; };
  }, [j.id, j.state, j.run, waits(j) && Math.floor(now.value / 60000)]);
  const shown = list.length > 60 ? [list[0], ...list.slice(-59)] : list; /* a job that was frozen every night */
  return <section class="card" aria-labelledby="h-life"><h2 id="h-life">Timeline</h2>
    <ol class="life">{shown.map((e, i) => <li key={e.number}><span class="num soft" title={clock(e.t_ms)}>{hour(e.t_ms)}</span>
      <span><b>{e.what === 'ended' ? e.state : e.what}</b>{e.by && ` by ${e.by}`}{i > 0 && e.t_ms - shown[i - 1].t_ms > 999 && <span class="soft"> after {span(e.t_ms - shown[i - 1].t_ms)}</span>}
        {[whereText(e), e.reason_text, e.message || exitText(e)].map((t) => t && <small key={t}>{onTheWall(t)}</small>)}</span></li>)}</ol>
  </section>;
}

/* ---- its output ---- */

function Log({ j }) {
  const pre = useRef();
  const [state, setState] = useState('');
  const [tries, setTries] = useState(0);
  useEffect(() => {
    if (!j.run) { setState('comes when it runs'); return undefined; }
    const stop = new AbortController();
    const output = new Output(pre.current);
    pre.current.textContent = '';
    let timer = 0;
    let some = false;
    const read = async () => {
      setState(j.ended_ms ? 'loading' : 'live');
      try {
        const r = await ask(`/v1/jobs/${j.id}/log?follow=1&format=text&tail=5000`, { signal: stop.signal });
        const reader = r.body.pipeThrough(new TextDecoderStream()).getReader();
        for (let part; !(part = await reader.read()).done;) {
          some = true;
          output.add(part.value);
          await new Promise((on) => { setTimeout(on, 30); }); /* a flood waits in the server */
        }
        setState(some ? 'complete' : 'it wrote nothing');
      } catch (e) {
        if (stop.signal.aborted) return;
        setState(e.status ? e.message : 'interrupted; trying again');
        if (!e.status) timer = setTimeout(() => setTries(tries + 1), 3000);
      }
    };
    read();
    return () => { stop.abort(); clearTimeout(timer); };
  }, [j.id, j.run, tries]);
  return <section class="card log-card" aria-labelledby="h-log">
    <div class="card-head"><h2 id="h-log">Output</h2><span class={`soft${state === 'live' ? ' is-live' : ''}`} role="status">{state}</span>
      {j.run > 0 && <a class="right" href={`/v1/jobs/${j.id}/log`} download={`job-${j.id}.log`}>Download</a>}</div>
    <div id="log" class={`log${j.ended_ms ? ' over' : ''}`} hidden={!j.run} ref={pre} tabIndex={0} role="log" aria-live="off" aria-label="Output of the job" />
  </section>;
}

/* ---- the page ---- */

function Facts({ j }) {
  const s = j.spec ?? {};
  const facts = [
    ['Tenant', <Tenant name={j.tenant} />], ['User', j.user], ['GPUs', gpus(j.gpu_milli)], ['Replicas', j.replicas > 1 && j.replicas],
    ['Where', whereText(j)], ['Priority', j.priority], ['Submitted', clock(j.submitted_ms)], ['Started', clock(j.started_ms)], ['Ended', clock(j.ended_ms)],
    ['Ran for', j.ended_ms && j.ran_ms ? span(j.ran_ms) : null], ['Exit', exitText(j)], ['Run', j.run > 1 && j.run], ['Begins', j.begin_ms && clock(j.begin_ms)],
    ['After', j.after?.join(', ')], ['Time limit', s.max_time], ['Profile', s.profile], ['Image', s.image], ['Folder', s.workdir], ['Freezing', s.freeze?.mode],
    ['Command', s.command && <code>{command(s)}</code>],
  ].filter(([, v]) => v);
  return <section class="card" aria-labelledby="h-facts"><h2 id="h-facts">Details</h2>
    <dl class="facts">{facts.map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{v}</dd></div>)}</dl></section>;
}

export function Job({ id }) {
  useLive(nodes, quota);
  const [error, setError] = useState(null);
  const j = jobs.value.get(id);
  useEffect(() => {
    let timer = 0;
    const load = () => loadJob(id).then(() => setError(null), (e) => { setError(e); if (!e.status) timer = setTimeout(load, 3000); });
    load();
    return () => clearTimeout(timer);
  }, [id]);
  if (!j) return <><div class="page-head"><h1 tabIndex={-1}>Job #{id}</h1></div><Problem of={error} /></>;
  return <>
    <div class="page-head job-head">
      <div><a class="crumb" href="#/jobs"><Icon name="back" />Jobs</a>
        <h1 tabIndex={-1}>{title(j)} <span class="soft num">#{j.id}</span></h1>
        <p class="under"><State of={j.state} /><span class="soft">{ended(j) ? hour(j.ended_ms) : <Since ms={waits(j) ? j.submitted_ms : j.state_ms} />}</span></p></div>
      <Actions j={j} />
    </div>
    <Problem of={error} />
    {j.trouble && <p class="problem" role="status">{onTheWall(j.trouble)}</p>}
    {j.message && <p class="message">{onTheWall(j.message)}</p>}
    <div class={`job${j.run ? '' : ' fresh'}`}>
      <div class="column">{waits(j) && <Why j={j} key={Math.floor(now.value / 20000)} />}<Life j={j} /><Facts j={j} /></div>
      <div class="column">{may('GET /v1/jobs/:id/log', { tenant: j.tenant, user: j.user }) ? <Log j={j} />
        : <section class="card"><h2>Output</h2><p class="soft">Its user, the lead of its tenant and administrators read it.</p></section>}<JobCharts j={j} /></div>
    </div>
  </>;
}

export { told };
