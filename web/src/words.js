/* Numbers and times as people read them. */

export const number = (x) => String(Math.round((x ?? 0) * 100) / 100);
export const many = (n, word) => `${number(n)} ${word}${n === 1 ? '' : 's'}`;
export const gib = (mib) => {
  const g = mib / 1024;
  return g >= 1024 ? `${number(Math.round(g / 102.4) / 10)} TiB` : g >= 1 || g === 0 ? `${number(Math.round(g * 10) / 10)} GiB` : `${Math.round(mib)} MiB`;
};
export const dots = (...list) => list.filter(Boolean).join(' · ');
export const gpus = (milli) => number(milli / 1000);

/** "3 min", "2 h 10 min", "4 d 3 h": coarse, so that it does not flicker. */
export function span(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  const m = Math.floor(s / 60);
  const h = Math.floor(m / 60);
  if (s < 60) return `${s} s`;
  if (h < 1) return m < 10 ? `${m} min ${s % 60} s` : `${m} min`;
  return h < 24 ? `${h} h ${m % 60} min` : `${Math.floor(h / 24)} d ${h % 24} h`;
}

const TIME = { hour: '2-digit', minute: '2-digit' };

/** 21:40 today; Tue 09:10 within a week; 17 Nov 09:10 otherwise. */
export function hour(ms) {
  if (ms == null) return '';
  const then = new Date(ms);
  const today = new Date();
  if (then.toDateString() === today.toDateString()) return then.toLocaleString('en-GB', TIME);
  const near = Math.abs(then - today) < 6 * 86400000;
  return then.toLocaleString('en-GB', near ? { weekday: 'short', ...TIME } : { day: 'numeric', month: 'short', ...TIME });
}

/** With the day and the seconds. */
export const clock = (ms) => (ms == null ? '' : new Date(ms).toLocaleString('en-GB',
  { day: 'numeric', month: 'short', year: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit' }));

/** Sentences of the server have times in UTC: as the reader's clock has them. */
export const onTheWall = (text) => (text ?? '').replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, (t) => hour(Date.parse(t)));

export const title = (j) => (j.array == null ? j.name : `${j.name}[${j.array_index}]`);

export function exitText(j) {
  return j.exit_signal ? `signal ${j.exit_signal}` : j.exit_code != null ? `exit ${j.exit_code}` : '';
}

export function whereText(j) {
  return (j.where ?? []).map((w) => w.node + (w.gpus?.length ? `: GPU ${w.gpus.join(', ')}` : '')).join('; ');
}

export const command = (spec) => (Array.isArray(spec?.command)
  ? spec.command.map((w) => (/^[\w@%+=:,./-]+$/.test(w) ? w : `'${w.replaceAll("'", "'\\''")}'`)).join(' ')
  : spec?.command ?? '');
