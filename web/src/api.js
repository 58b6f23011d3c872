/* The public API, and who may do what in it.  Nothing else talks to the server. */
import { signal } from '@preact/signals';

const TIMEOUT_MS = 15000;

/** The server does not answer: since when, or 0. */
export const away = signal(0);
export const me = signal(null);
export const permissions = signal([]);

/** A refusal has a status, and what the server says of it; without one nobody answered. */
export class Refusal extends Error {
  constructor(status, problem) {
    super([problem.detail ?? `the server answered ${status}`, problem.hint].filter(Boolean).join(': '));
    Object.assign(this, { status, detail: problem.detail, hint: problem.hint, field: problem.field });
  }
}

export const told = (e) => (e.status ? e.message : 'The server does not answer. Nothing was changed; try again in a moment.');

export async function ask(path, options = {}) {
  let r;
  try {
    r = await fetch(path, { signal: AbortSignal.timeout(TIMEOUT_MS), ...options });
  } catch (e) {
    if (e.name !== 'AbortError' && !away.value) away.value = Date.now();
    throw e;
  }
  if (r.status >= 502) away.value ||= Date.now(); /* a proxy answers for a server that is gone */
  else away.value = 0;
  if (r.ok) return r;
  const refusal = new Refusal(r.status, await r.json().catch(() => ({})));
  if (r.status === 401) leave();
  throw refusal;
}

export const get = async (path) => (await ask(path)).json();

export async function send(method, path, body, more) {
  const r = await ask(path, { method, headers: { 'Content-Type': 'application/json', ...more }, body: body === undefined ? undefined : JSON.stringify(body) });
  return r.status === 204 ? null : r.json();
}

let leaving = false;

/** To the page to sign in on, and back here afterwards; once, however many calls are refused. */
export function leave() {
  if (leaving) return;
  leaving = true;
  location.replace(`/signin?next=${encodeURIComponent(location.pathname + location.hash)}`);
}

/* Somebody who goes back to a page that was left sees it as it is now. */
window.addEventListener('pageshow', (ev) => { if (ev.persisted) location.reload(); });

/* ---- who may ---- */

const parents = new Map();

/** Roles of leads and viewers hold in the tenants below too. */
export function learnTree(tenants) {
  for (const t of tenants) parents.set(t.name, t.parent ?? null);
}

function roleIn(tenant) {
  const { roles } = me.value;
  if (roles[tenant]) return roles[tenant];
  for (let t = parents.get(tenant); t; t = parents.get(t)) if (roles[t] === 'lead' || roles[t] === 'viewer') return roles[t];
  return null;
}

/**
 * Would the server let me?  call: 'POST /v1/jobs/:id/cancel'; about: what of {tenant, user, node} it is about.
 * Without a tenant it asks whether there is any in which I may.
 */
export function may(call, about = {}) {
  const who = me.value;
  const [method, path] = call.split(' ');
  const row = permissions.value.find((c) => c.method === method && c.path === path);
  if (!who || !row) return false;
  if (row.public) return true;
  if (row.scope && !who.scopes.includes(row.scope)) return false;
  const places = about.tenant ? [roleIn(about.tenant)] : about.node || about.user ? [] : Object.values(who.roles);
  const roles = [who.role, who.machines?.length && 'owner', ...places].filter(Boolean);
  return roles.some((role) => {
    switch (row.reach[role]) {
      case 'all': return true;
      case 'own': return about.user === undefined || about.user === who.user;
      case 'machine': return about.node === undefined || who.machines.includes(about.node);
      case 'tenant': return about.tenant === undefined || role === who.role || roleIn(about.tenant) === role;
      default: return false;
    }
  });
}
