/* Small parts that every page uses. */
import { signal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

import { told } from './api.js';
import { colourOf, COLOURS, now } from './live.js';
import { span } from './words.js';

/* Pictures of 24 by 24, one path each. */
const ICONS = {
  overview: 'M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM13 13h7v7h-7z',
  jobs: 'M4 6h16M4 12h16M4 18h10',
  new: 'M12 5v14M5 12h14',
  nodes: 'M4 5h16v6H4zM4 13h16v6H4zM8 8h.01M8 16h.01',
  tenants: 'M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM2.5 20a6.5 6.5 0 0 1 13 0M16 4.5a3.5 3.5 0 0 1 0 6.5M18 14.5a6.5 6.5 0 0 1 3.5 5.5',
  admin: 'M4 7h10M18 7h2M4 17h4M12 17h8M16 5v4M10 15v4',
  sun: 'M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 2v2M12 20v2M4.9 4.9l1.4 1.4M17.7 17.7l1.4 1.4M2 12h2M20 12h2M4.9 19.1l1.4-1.4M17.7 6.3l1.4-1.4',
  moon: 'M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z',
  auto: 'M12 3a9 9 0 1 0 0 18zM12 3a9 9 0 0 1 0 18',
  frozen: 'M12 2v20M3.3 7l17.4 10M20.7 7L3.3 17M9 3.5l3 2.5 3-2.5M9 20.5l3-2.5 3 2.5',
  out: 'M14 4h5v16h-5M10 8l-4 4 4 4M6 12h9',
  close: 'M6 6l12 12M18 6L6 18',
  back: 'M14 6l-6 6 6 6',
  copy: 'M8 8h11v12H8zM5 16V4h11',
  search: 'M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM16 16l4.5 4.5',
};

export function Icon({ name }) {
  return <svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d={ICONS[name]} /></svg>;
}

export const go = (hash) => { location.hash = hash; };

const STATES = {
  queued: 'wait', held: 'wait', starting: 'run', running: 'run', freezing: 'ice', paused: 'ice', frozen: 'ice',
  thawing: 'run', stopping: 'wait', succeeded: 'good', failed: 'bad', cancelled: 'soft', up: 'good', drain: 'wait', down: 'bad',
};
const SAY = { drain: 'draining', up: 'up' };

export function State({ of }) {
  return <span class={`state is-${STATES[of] ?? 'soft'}`}><i />{SAY[of] ?? of}</span>;
}

export const tint = (tenant) => {
  const n = colourOf(tenant);
  return n < 0 ? 'tnone' : `t${n % COLOURS}${n % (2 * COLOURS) >= COLOURS ? ' striped' : ''}`;
};

export function Tenant({ name }) {
  return <span class="tenant"><i class={`swatch ${tint(name)}`} />{name ?? 'another tenant'}</span>;
}

/** A time that grows by itself. */
export function Since({ ms, after = '' }) {
  return ms == null ? null : <span class="num">{span(now.value - ms)}{after}</span>;
}

/** parts: [{part, tint, label}] of `whole`; mark: a line at that amount. */
export function Bar({ parts, whole, mark, label }) {
  const width = (x) => `${whole > 0 ? Math.max(0, Math.min(100, (100 * x) / whole)) : 0}%`;
  return <div class="bar" role="img" aria-label={label}>
    {parts.map((p, i) => p.part > 0 && <i key={i} class={p.tint ?? ''} style={{ width: width(p.part) }} />)}
    {mark > 0 && mark < whole && <b style={{ left: width(mark) }} />}
  </div>;
}

export function Empty({ title, children }) {
  return <div class="empty"><b>{title}</b>{children}</div>;
}

export function Problem({ of }) {
  return <p class="problem" role="alert">{of ? (of.status === undefined && of instanceof Error ? told(of) : of.message ?? String(of)) : ''}</p>;
}

/* ---- telling ---- */

const toast = signal(null);
let toastTimer = 0;
export function say(text) {
  toast.value = text;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { toast.value = null; }, 6000);
}
export function Toast() {
  return <div class="toasts" role="status" aria-live="polite">{toast.value && <p>{toast.value}</p>}</div>;
}

/* ---- asking ---- */

const question = signal(null);

/** A dialog; what it resolves to: null for no, else the fields' values.  fields: [{name, label, ...}] */
export function confirm({ title, text, yes, danger, fields = [], work }) {
  return new Promise((done) => { question.value = { title, text, yes, danger, fields, work, done, back: document.activeElement }; });
}

export function Asking() {
  const q = question.value;
  const box = useRef();
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  useLayoutEffect(() => {
    setError(null);
    setBusy(false);
    if (q && !box.current.open) box.current.showModal();
  }, [q]);
  if (!q) return null;
  const close = (value) => {
    box.current.close();
    question.value = null;
    q.done(value);
    if (q.back?.isConnected) q.back.focus();
  };
  const submit = async (ev) => {
    ev.preventDefault();
    const values = Object.fromEntries(new FormData(ev.target));
    setBusy(true);
    try {
      await q.work?.(values);
      close(values);
    } catch (e) {
      setError(e);
      setBusy(false);
    }
  };
  return <dialog ref={box} aria-labelledby="q-title" onCancel={(ev) => { ev.preventDefault(); close(null); }}>
    <form onSubmit={submit}>
      <h2 id="q-title">{q.title}</h2>
      {q.text && <p>{q.text}</p>}
      {q.fields.map((f) => <Field key={f.name} {...f} />)}
      <Problem of={error} />
      <div class="buttons end">
        <button type="button" onClick={() => close(null)}>Not now</button>
        <button class={q.danger ? 'danger' : 'main'} disabled={busy}>{q.yes}</button>
      </div>
    </form>
  </dialog>;
}

let ids = 0;
export function Field({ label, hint, error, options, area, name, half, ...more }) {
  const id = useRef(`f${ids += 1}`).current;
  const about = { id, name, 'aria-describedby': hint || error ? `${id}h` : undefined, 'aria-invalid': error ? 'true' : undefined, ...more };
  return <div class={`field${half ? ' half' : ''}`}>
    <label for={id}>{label}</label>
    {options ? <select {...about}>{options.map((o) => <option key={o.value ?? o} value={o.value ?? o}>{o.label ?? o}</option>)}</select>
      : area ? <textarea spellcheck={false} {...about} /> : <input autocomplete="off" spellcheck={false} {...about} />}
    {(hint || error) && <small id={`${id}h`} class={error ? 'bad' : ''}>{error || hint}</small>}
  </div>;
}

/** A button whose work may be refused: it says so. */
export function Act({ work, children, ...more }) {
  const [busy, setBusy] = useState(false);
  const run = async () => {
    setBusy(true);
    try {
      await work();
    } catch (e) {
      say(told(e));
    }
    setBusy(false);
  };
  return <button {...more} type="button" disabled={busy || more.disabled} onClick={run}>{children}</button>;
}

/* ---- long lists ---- */

/** Draws only the rows that are seen.  row: (item, index) => its cells. */
export function Rows({ items, height, row, label, head, onEnd, keyOf }) {
  const box = useRef();
  const [view, setView] = useState({ top: 0, tall: 800 });
  const look = () => {
    const e = box.current;
    if (!e) return;
    const next = { top: Math.max(0, -e.getBoundingClientRect().top), tall: window.innerHeight };
    setView((old) => (Math.abs(old.top - next.top) < height / 2 && old.tall === next.tall ? old : next));
    if (onEnd && e.getBoundingClientRect().bottom < window.innerHeight + 600) onEnd();
  };
  useEffect(() => {
    let frame = 0;
    const later = () => { frame ||= requestAnimationFrame(() => { frame = 0; look(); }); };
    window.addEventListener('scroll', later, { passive: true });
    window.addEventListener('resize', later);
    look();
    return () => { window.removeEventListener('scroll', later); window.removeEventListener('resize', later); cancelAnimationFrame(frame); };
  }, [height, onEnd]);
  useEffect(look, [items.length]);
  const first = Math.max(0, Math.floor(view.top / height) - 8);
  const end = Math.min(items.length, first + Math.ceil(view.tall / height) + 16);
  const move = (ev) => {
    const step = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1 }[ev.key];
    const at = ev.target.closest('[data-row]');
    if (!step || !at || ev.ctrlKey || ev.metaKey || ev.altKey) return;
    const next = box.current.querySelector(`[data-row="${Number(at.dataset.row) + step}"] a`);
    if (!next) return;
    ev.preventDefault();
    next.focus();
  };
  return <div class="rows" role="table" aria-label={label} aria-rowcount={items.length + 1}>
    <div class="row head" role="row" aria-rowindex={1}>{head.map((h) => <span key={h} role="columnheader">{h}</span>)}</div>
    <div ref={box} role="rowgroup" class="rows-body" style={{ height: `${items.length * height}px` }} onKeyDown={move}>
      {items.slice(first, end).map((item, i) => <div key={keyOf(item)} class="row" role="row" data-row={first + i} aria-rowindex={first + i + 2}
        style={{ transform: `translateY(${(first + i) * height}px)`, height: `${height}px` }}>{row(item)}</div>)}
    </div>
  </div>;
}

/** True while the window is at most that wide. */
export function useNarrow(width = 700) {
  const query = `(max-width: ${width}px)`;
  const [is, set] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const m = matchMedia(query);
    const on = () => set(m.matches);
    m.addEventListener('change', on);
    return () => m.removeEventListener('change', on);
  }, [query]);
  return is;
}
