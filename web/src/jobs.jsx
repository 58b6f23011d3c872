/* Jobs: all of them, filtered; ten thousand do not lag, because only the rows that are seen are drawn. */
import { useMemo, useState } from 'preact/hooks';

import { may } from './api.js';
import { ended, ENDED, jobs, jobsError, jobsLoaded, loadMoreEnded, moreEnded, quota, useLive, waits } from './live.js';
import { Empty, Field, Icon, Problem, Rows, Since, State, Tenant, useNarrow } from './parts.jsx';
import { Eta, queueOrder } from './overview.jsx';
import { dots, exitText, gpus, hour, many, onTheWall, title, whereText } from './words.js';

const KINDS = {
  all: ['All', () => true],
  running: ['Running', (j) => !waits(j) && !ended(j)],
  waiting: ['Waiting', waits],
  ended: ['Ended', ended],
  failed: ['Failed', (j) => j.state === 'failed'],
};

const rank = (j) => (ended(j) ? 2 : waits(j) ? 1 : 0);
function order(a, b) {
  return rank(a) - rank(b) || (rank(a) === 1 ? queueOrder(a, b) : rank(a) === 2 ? b.ended_ms - a.ended_ms : b.started_ms - a.started_ms) || b.id - a.id;
}

function about(j) {
  if (waits(j)) return onTheWall(j.reason_text) || j.message;
  if (ended(j)) return dots(exitText(j), j.message);
  return whereText(j);
}

function When({ j }) {
  if (ended(j)) return <span>{hour(j.ended_ms)}</span>;
  if (waits(j)) return <><Eta id={j.id} /><span class="soft">waits <Since ms={j.submitted_ms} /></span></>;
  return <span>for <Since ms={j.started_ms ?? j.state_ms} /></span>;
}

function Wide(j) {
  return <>
    <span role="cell" class="c-name"><a href={`#/jobs/${j.id}`}>{title(j)}</a> <span class="soft num">#{j.id}</span></span>
    <span role="cell"><State of={j.state} /></span>
    <span role="cell" class="c-who"><Tenant name={j.tenant} /><span class="soft">{j.user}</span></span>
    <span role="cell" class="num">{gpus(j.gpu_milli)}</span>
    <span role="cell" class="c-about" title={about(j)}>{about(j)}</span>
    <span role="cell" class="c-when"><When j={j} /></span>
  </>;
}

function Small(j) {
  return <span role="cell" class="c-small">
    <span><a href={`#/jobs/${j.id}`}>{title(j)}</a> <span class="soft num">#{j.id}</span><State of={j.state} /></span>
    <span class="soft"><Tenant name={j.tenant} />{dots(j.user, many(j.gpu_milli / 1000, 'GPU'))}</span>
    <span class="soft c-about">{about(j)}</span>
  </span>;
}

export function Jobs({ query }) {
  useLive(quota);
  const narrow = useNarrow();
  const kind = KINDS[query.get('state')] ? query.get('state') : 'all';
  const [text, setText] = useState(query.get('find') ?? '');
  const [tenant, setTenant] = useState(query.get('tenant') ?? '');
  const list = jobs.value;
  const found = useMemo(() => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (j) => (!tenant || j.tenant === tenant) && words.every((w) => (w.startsWith('#') ? `#${j.id}` === w
      : title(j).toLowerCase().includes(w) || j.user.toLowerCase().includes(w) || j.state.startsWith(w) || String(j.id) === w));
    return [...list.values()].filter((j) => KINDS[kind][1](j) && fits(j)).sort(order);
  }, [list, kind, text, tenant]);
  const names = [...new Set([...list.values()].map((j) => j.tenant))].sort();
  const reachesEnd = kind !== 'running' && kind !== 'waiting';
  return <>
    <div class="page-head"><h1 tabIndex={-1}>Jobs</h1>
      {may('POST /v1/jobs') && <a class="button main" href="#/new"><Icon name="new" />New job</a>}</div>
    <div class="filters">
      <div class="tabs" role="group" aria-label="State">{Object.entries(KINDS).map(([id, [name]]) => <a key={id} href={id === 'all' ? '#/jobs' : `#/jobs?state=${id}`}
        aria-current={kind === id ? 'true' : undefined}>{name}</a>)}</div>
      <div class="find"><Icon name="search" /><input id="find" type="search" aria-label="Find jobs by name, user, state or number" placeholder="Name, user or number" value={text}
        onInput={(ev) => setText(ev.target.value)} /></div>
      {names.length > 1 && <Field label="Tenant" value={tenant} onChange={(ev) => setTenant(ev.target.value)}
        options={[{ value: '', label: 'All tenants' }, ...names.map((n) => ({ value: n, label: n }))]} />}
      <span class="soft num" role="status">{jobsLoaded.value ? `${found.length}${reachesEnd && moreEnded.value != null ? ' newest' : ''} ${found.length === 1 ? 'job' : 'jobs'}` : ''}</span>
    </div>
    <Problem of={jobsError.value?.status ? jobsError.value : null} />
    {!jobsLoaded.value ? <section class="card tall" /> : found.length ? <section class="card flush">
      <Rows items={found} height={narrow ? 84 : 48} row={narrow ? Small : Wide} keyOf={(j) => j.id} label="Jobs" head={narrow ? ['Job'] : ['Job', 'State', 'Tenant and user', 'GPUs', 'About', 'When']}
        onEnd={reachesEnd ? loadMoreEnded : undefined} /></section>
      : <section class="card"><Empty title={list.size ? 'No job is like that.' : 'No jobs yet.'}>
        {list.size ? <a href="#/jobs" onClick={() => { setText(''); setTenant(''); }}>Show all of them</a>
          : <>Try <code>nightshift run --gpus 1 -- nvidia-smi</code>{may('POST /v1/jobs') && <a class="button main" href="#/new">New job</a>}</>}</Empty></section>}
  </>;
}

export { ENDED };
