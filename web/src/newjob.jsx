/* A new job: from a profile and a form, or as YAML; the server is asked at once whether it would be taken. */
import { load } from 'js-yaml';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import { get, may, me, send, told } from './api.js';
import { loadJob, nodes, profiles, quota, useLive } from './live.js';
import { Field, go, Problem, say } from './parts.jsx';
import { dots, gib, hour, many, number, onTheWall } from './words.js';

const ASK_MS = 350;

/** The form's fields as a job spec: what is empty is not there. */
function specOf(f) {
  const spec = {};
  const put = (key, value) => { if (value !== '' && value != null) spec[key] = value; };
  put('name', f.name.trim());
  put('tenant', f.tenant);
  put('profile', f.profile);
  put('command', f.command.trim());
  put('workdir', f.workdir.trim());
  put('image', f.image.trim());
  const r = {};
  if (f.gpus !== '' && !f.profile) r.gpus = Number(f.gpus);
  if (f.gpuType.trim()) r.gpu_type = f.gpuType.trim();
  if (f.cpus.trim()) r.cpus = Number(f.cpus);
  if (f.mem.trim()) r.mem = f.mem.trim();
  if (Object.keys(r).length) spec.resources = r;
  put('max_time', f.time.trim());
  if (f.priority !== 'normal') spec.priority = f.priority;
  if (f.freeze) spec.freeze = { mode: f.freeze };
  return spec;
}

const EMPTY = { name: '', tenant: '', profile: '', command: '', workdir: '', image: '', gpus: '1', gpuType: '', cpus: '', mem: '', time: '', priority: 'normal', freeze: '' };

/* Words that YAML takes as they stand; everything else is quoted as in JSON, which is YAML too. */
const plain = (s) => /^[A-Za-z/_][\w./+ -]*$/.test(s) && !/\s$|^(true|false|yes|no|on|off|null|y|n)$/i.test(s);
function toYaml(value, indent = '') {
  return Object.entries(value).map(([key, x]) => {
    const name = plain(key) ? key : JSON.stringify(key);
    if (x && typeof x === 'object' && !Array.isArray(x) && Object.keys(x).length) return `${indent}${name}:\n${toYaml(x, `${indent}  `)}`;
    if (typeof x === 'string' && x.includes('\n') && !/^\s|[^\n\x20-\x7e\u00a0-\uffff]/.test(x)) {
      return `${indent}${name}: |${x.endsWith('\n') ? '+' : '-'}\n${x.replace(/\n$/, '').split('\n').map((l) => (l ? `${indent}  ${l}` : '')).join('\n')}\n`;
    }
    const one = (v) => (typeof v === 'string' && plain(v) ? v : JSON.stringify(v));
    return `${indent}${name}: ${Array.isArray(x) ? `[${x.map(one).join(', ')}]` : one(x)}\n`;
  }).join('');
}

function readYaml(text) {
  const spec = load(text);
  if (spec === null || typeof spec !== 'object') throw new Error('A job file is a list of fields, such as command: python train.py');
  return spec;
}

/** What is free now, of what it asks for: a fact, not a promise. */
function roomText(spec, list, known) {
  const profile = known?.find((p) => p.name === spec.profile);
  const want = (spec.resources?.gpus ?? profile?.gpus ?? 0) || (spec.resources?.gpu_share ?? profile?.gpu_share ?? 0);
  const model = spec.resources?.gpu_type ?? profile?.gpu_type;
  if (!want || !list) return '';
  const fits = (g, n) => !model || model.split('|').some((m) => (g.model || n.model).includes(m));
  let free = 0;
  for (const n of list) if (n.state === 'up' && n.open !== false) for (const g of n.gpus) if (fits(g, n)) free += g.free_milli >= Math.min(1, want) * 1000 ? 1 : 0;
  const need = Math.ceil(want * (spec.replicas ?? 1));
  const fit = `${many(free, 'GPU')} that ${free === 1 ? 'fits is' : 'fit are'} free`;
  return free >= need ? `${fit} now.` : `${free ? `Only ${fit}` : 'No GPU that fits is free'} now: it will wait, and say why.`;
}

/** What the server foresees: it starts now, or about when, and why not sooner. */
function Foreseen({ of, room }) {
  if (of.starts_now) return <p><b class="good">It would start now.</b></p>;
  if (of.starts_now == null) return <p><b class="good">It would be taken.</b> {room()}</p>;
  const { starts, reasons, helps } = of;
  return <>
    <p><b>{starts ? `It would start about ${hour(starts.p50_ms)}` : 'It would wait'}</b>
      {starts && starts.p90_ms > starts.p50_ms + 60000 ? `, very likely by ${hour(starts.p90_ms)}` : ''}{reasons[0] ? `: ${onTheWall(reasons[0].text)}.` : '.'}</p>
    {helps[0] && <p class="soft">{onTheWall(helps[0].text)}</p>}
  </>;
}

function Profiles({ list, value, set }) {
  if (!list?.length) return null;
  const about = (p) => dots(p.gpus ? many(p.gpus, 'GPU') : p.gpu_share ? `${number(p.gpu_share)} GPU` : 'no GPU', p.gpu_type, p.cpus && many(p.cpus, 'CPU'), p.mem_mib && gib(p.mem_mib));
  return <fieldset class="profiles"><legend>Profile</legend>
    {[{ name: '', help: 'you say what it needs' }, ...list].map((p) => <label key={p.name} class={value === p.name ? 'on' : ''}>
      <input type="radio" name="profile" value={p.name} checked={value === p.name} onChange={() => set(p.name)} />
      <b>{p.name || 'Custom'}</b><span class="soft">{p.name ? about(p) : ''}</span><span class="soft">{p.help}</span></label>)}
  </fieldset>;
}

export function NewJob({ query }) {
  useLive(profiles, nodes, quota);
  const mine = useMemo(() => (quota.value ?? []).map((t) => t.name).filter((t) => may('POST /v1/jobs', { tenant: t })), [quota.value]);
  const [form, setForm] = useState({ ...EMPTY });
  const [yaml, setYaml] = useState(null); /* null: the form */
  const [answer, setAnswer] = useState(null); /* {ok} or {error} of the server */
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const turn = useRef(0);
  const key = useRef(''); /* a submit whose answer was lost is not done twice */
  const set = (name) => (ev) => setForm((f) => ({ ...f, [name]: ev?.target ? ev.target.value : ev }));
  const like = query.get('like');

  useEffect(() => {
    if (like) get(`/v1/jobs/${like}`).then((j) => { if (j.spec) setYaml(toYaml(j.spec)); }, setError);
  }, [like]);
  useEffect(() => {
    if (!form.tenant && mine.length) setForm((f) => ({ ...f, tenant: mine.includes(me.value.tenants[0]) ? me.value.tenants[0] : mine[0] }));
  }, [mine.join()]);

  let spec = null;
  let broken = null;
  try { spec = yaml === null ? specOf(form) : readYaml(yaml); } catch (e) { broken = e; }
  const text = broken ? '' : JSON.stringify(spec);
  const blank = !broken && !spec.command && !spec.jobs;
  useEffect(() => {
    const mineIs = turn.current += 1;
    key.current = [...crypto.getRandomValues(new Uint32Array(4))].join('-');
    setAnswer(null);
    if (broken || blank) return undefined;
    let timer = 0;
    const look = () => send('POST', '/v1/jobs/check', JSON.parse(text)).catch((e) => ({ error: e })).then((a) => {
      if (turn.current !== mineIs) return;
      setAnswer(a);
      if (a.again_ms) timer = setTimeout(look, a.again_ms); /* it would be taken; when, nobody could say yet */
    });
    timer = setTimeout(look, ASK_MS);
    return () => clearTimeout(timer);
  }, [text]);

  const submit = async (ev) => {
    ev.preventDefault();
    if (broken || blank) return;
    setBusy(true);
    setError(null);
    try {
      const made = await send('POST', '/v1/jobs', spec, { 'Idempotency-Key': key.current });
      say(made.count > 1 ? `${made.count} jobs are submitted.` : `Job ${made.id} is submitted.`);
      loadJob(made.id).catch(() => {});
      go(made.count > 1 ? '#/jobs' : `#/jobs/${made.id}`);
    } catch (e) {
      setError(e);
    }
    setBusy(false);
  };
  const wrong = (field) => (answer?.error?.field === field ? answer.error.detail : undefined);
  const own = ['command', 'name', 'workdir', 'image', 'max_time', 'resources.gpus', 'resources.gpu_type', 'resources.cpus', 'resources.mem'];
  const told_ = broken ? broken.message : answer?.error && told(answer.error);
  return <>
    <div class="page-head"><h1 tabIndex={-1}>{like ? `New job like #${like}` : 'New job'}</h1>
      <div class="tabs" role="group" aria-label="How to write it"><button type="button" aria-pressed={yaml === null} onClick={() => setYaml(null)}>Form</button>
        <button type="button" aria-pressed={yaml !== null} onClick={() => yaml === null && setYaml(toYaml(specOf(form)))}>YAML or JSON</button></div></div>
    <form class="newjob" onSubmit={submit}>
      <section class="card">
        {yaml !== null ? <Field label="Job file" area rows={16} class="code" value={yaml} onInput={(ev) => setYaml(ev.target.value)} hint="The fields of docs/reference/job-spec, as in a file for nightshift submit" />
          : <>
            <Field label="Command" area rows={3} class="code" required value={form.command} onInput={set('command')} placeholder="python train.py --epochs 10" error={wrong('command')} hint="Run by /bin/sh" />
            <Profiles list={profiles.value} value={form.profile} set={set('profile')} />
            <div class="fields">
              {!form.profile && <Field label="GPUs" type="number" min="0" max="100000" step="any" value={form.gpus} onInput={set('gpus')} error={wrong('resources.gpus')} hint="Below 1: a share of one" />}
              <Field label="Name" value={form.name} onInput={set('name')} maxLength={200} placeholder="the program’s name" error={wrong('name')} />
              {mine.length > 1 && <Field label="Tenant" value={form.tenant} onChange={set('tenant')} options={mine} />}
              <Field label="Time limit" value={form.time} onInput={set('time')} placeholder="none" hint="e.g. 30m, 8h; with one it starts sooner" error={wrong('max_time')} />
            </div>
            <details><summary>More</summary><div class="fields">
              <Field label="Folder" value={form.workdir} onInput={set('workdir')} placeholder="your home" error={wrong('workdir')} />
              <Field label="Image" value={form.image} onInput={set('image')} placeholder="host" error={wrong('image')} hint="e.g. docker://python:3.11" />
              <Field label="GPU model" value={form.gpuType} onInput={set('gpuType')} placeholder="any" error={wrong('resources.gpu_type')} />
              <Field label="CPUs" value={form.cpus} inputMode="decimal" onInput={set('cpus')} placeholder="by the GPUs" error={wrong('resources.cpus')} />
              <Field label="Memory" value={form.mem} onInput={set('mem')} placeholder="by the CPUs" error={wrong('resources.mem')} hint="e.g. 16Gi" />
              <Field label="Priority" value={form.priority} onChange={set('priority')} options={['low', 'normal', 'high', 'urgent']} hint="Among your own jobs" />
              <Field label="Freezing" value={form.freeze} onChange={set('freeze')} options={[{ value: '', label: 'as usual here' }, 'pause', 'signal', 'requeue', 'none']} />
            </div></details>
          </>}
      </section>
      <section class="card answer" aria-live="polite">
        {blank ? <p class="soft">Type a command, and see at once whether it can run.</p>
          : told_ ? <p class="bad"><b>It would not be taken.</b> {answer?.error?.field && !own.includes(answer.error.field) ? `${answer.error.field}: ` : ''}{told_}</p>
            : answer?.ok ? <Foreseen of={answer} room={() => roomText(spec, nodes.value, profiles.value)} /> : <p class="soft">Asking…</p>}
        <Problem of={error} />
        <div class="buttons end"><button class="main" disabled={busy || blank || Boolean(broken)}>Submit</button></div>
      </section>
    </form>
  </>;
}
