/* The page: its frame, its addresses, and which part is shown. */
import { signal } from '@preact/signals';
import { render } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

import 'uplot/dist/uPlot.min.css';
import './style.css';
import { away, leave, may, me, send } from './api.js';
import { loadJobs, quota, server, useLive, whoAmI } from './live.js';
import { Asking, go, Icon, Toast } from './parts.jsx';
import { Admin } from './admin.jsx';
import { Job } from './job.jsx';
import { Jobs } from './jobs.jsx';
import { NewJob } from './newjob.jsx';
import { Node, Nodes } from './nodes.jsx';
import { Overview } from './overview.jsx';
import { Tenants } from './tenants.jsx';
import { hour } from './words.js';

/* ---- light and dark ---- */

const THEMES = ['auto', 'light', 'dark'];
const theme = signal(THEMES.includes(localStorage.theme) ? localStorage.theme : 'auto');
function setTheme(to) {
  theme.value = to;
  localStorage.theme = to;
  document.documentElement.dataset.theme = to;
}
setTheme(theme.value);

/* ---- addresses: #/jobs/17?state=running ---- */

const place = signal(parse());

function parse() {
  const [path, query] = location.hash.replace(/^#\/?/, '').split('?');
  return { parts: path.split('/').filter(Boolean).map((p) => { try { return decodeURIComponent(p); } catch { return p; } }), query: new URLSearchParams(query ?? '') };
}

const PAGES = [
  { id: '', icon: 'overview', name: 'Overview', show: () => <Overview /> },
  { id: 'jobs', icon: 'jobs', name: 'Jobs', show: (p) => (p.parts[1] ? <Job key={p.parts[1]} id={Number(p.parts[1])} /> : <Jobs query={p.query} />) },
  { id: 'new', icon: 'new', name: 'New job', can: () => may('POST /v1/jobs'), show: (p) => <NewJob key={p.query.get('like')} query={p.query} /> },
  { id: 'nodes', icon: 'nodes', name: 'Nodes', show: (p) => (p.parts[1] ? <Node name={p.parts[1]} /> : <Nodes />) },
  { id: 'tenants', icon: 'tenants', name: 'Tenants', can: () => may('GET /v1/quota'), show: (p) => <Tenants name={p.parts[1]} /> },
  { id: 'admin', icon: 'admin', name: 'Admin', show: (p) => <Admin part={p.parts[1]} /> },
];

function Banner() {
  const since = away.value;
  return <div class="banner" role="alert">{since > 0 &&
    <p><b>The server does not answer.</b> This is how things stood at {hour(since)}; trying again by itself.</p>}</div>;
}

function Nav({ at }) {
  return <nav aria-label="Pages"><ul>{PAGES.filter((p) => !p.can || p.can()).map((p) => <li key={p.id}>
    <a href={`#/${p.id}`} aria-current={at === p.id ? 'page' : undefined}><Icon name={p.icon} /><span>{p.name}</span></a></li>)}</ul></nav>;
}

function Theme() {
  const next = THEMES[(THEMES.indexOf(theme.value) + 1) % 3];
  const icon = { auto: 'auto', light: 'sun', dark: 'moon' }[theme.value];
  return <button type="button" class="quiet" aria-label={`Colours: ${theme.value}. Change to ${next}`} title={`Colours: ${theme.value}`}
    onClick={() => setTheme(next)}><Icon name={icon} /></button>;
}

async function signOut() {
  await send('DELETE', '/v1/session').catch(() => {});
  leave();
}

function Who() {
  const who = me.value;
  return <div class="who">
    <div><b id="user">{who.full_name || who.user}</b><small>{who.role !== 'none' ? who.role : Object.values(who.roles)[0] ?? 'guest'}</small></div>
    <Theme />
    <button type="button" class="quiet" id="sign-out" aria-label="Sign out" title="Sign out" onClick={signOut}><Icon name="out" /></button>
  </div>;
}

function Frame() {
  useLive(server, quota);
  const { parts } = place.value;
  const page = PAGES.find((p) => p.id === (parts[0] ?? '')) ?? PAGES[0];
  const main = useRef();
  const first = useRef(true);
  useEffect(() => {
    if (first.current) { first.current = false; return; }
    scrollTo(0, 0);
    main.current?.querySelector('h1')?.focus();
  }, [parts.join('/')]);
  const s = server.value;
  return <>
    <a class="skip" href="#main" onClick={(ev) => { ev.preventDefault(); main.current.focus(); }}>To the content</a>
    <header class="side">
      <a class="brand" href="#/" aria-label="Nightshift, overview"><Icon name="moon" /><span>Nightshift</span></a>
      <Nav at={page.id} />
      <div class="side-foot">
        {s?.simulated && <p class="note">GPUs are simulated</p>}
        {/rootless|plain/.test(s?.mode) && <p class="note">Runs without root, for one user</p>}
        <Who />
      </div>
    </header>
    <main id="main" ref={main} tabIndex={-1}>
      <Banner />
      {page.can && !page.can() ? <Overview /> : page.show(place.value)}
    </main>
    <Toast />
    <Asking />
  </>;
}

function App() {
  useEffect(() => { whoAmI(); }, []);
  useEffect(() => { if (me.value) loadJobs(); }, [me.value]);
  if (me.value) return <Frame />;
  return <main class="opening"><Banner /><p class="soft">{away.value ? '' : 'One moment…'}</p></main>;
}

/* ---- begin ---- */

async function withToken(token) {
  history.replaceState(null, '', location.pathname);
  place.value = parse();
  try {
    await send('POST', '/v1/session', { token });
  } catch (e) {
    location.replace(`/signin?why=${encodeURIComponent(e.message)}`);
    return false;
  }
  return true;
}

window.addEventListener('hashchange', () => {
  const old = /^#job=(\d+)$/.exec(location.hash);
  if (old) go(`#/jobs/${old[1]}`);
  else place.value = parse();
});
document.addEventListener('keydown', (ev) => {
  if (ev.target.closest('input, textarea, select, dialog') || ev.ctrlKey || ev.metaKey || ev.altKey) return;
  if (ev.key === '/') {
    ev.preventDefault();
    if (place.value.parts[0] !== 'jobs' || place.value.parts[1]) go('#/jobs');
    setTimeout(() => document.getElementById('find')?.focus(), 50);
  }
  if (ev.key === 'n' && me.value && may('POST /v1/jobs')) go('#/new');
});

const [, token] = /^#token=(.+)$/.exec(location.hash) ?? [];
if (!token || await withToken(token)) render(<App />, document.getElementById('app'));
