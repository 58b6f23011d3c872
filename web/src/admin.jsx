/* Admin: people, tokens, windows, audit and settings; each part where one may see it. */
import { useEffect, useState } from 'preact/hooks';

import { get, leave, may, me, send } from './api.js';
import { server, tokens, useLive, users } from './live.js';
import { Act, confirm, Empty, Icon, Problem, say } from './parts.jsx';
import { Windows } from './windows.jsx';
import { clock, dots, hour } from './words.js';

/* ---- people ---- */

function editUser(u) {
  return confirm({
    title: u ? `Change ${u.name}` : 'New user', yes: u ? 'Save' : 'Make',
    fields: [
      ...(u ? [] : [{ name: 'name', label: 'Name', required: true, maxLength: 200 }]),
      { name: 'full_name', half: true, label: 'Full name', defaultValue: u?.full_name ?? '', maxLength: 200 },
      { name: 'mail', half: true, label: 'Mail', type: 'email', defaultValue: u?.mail ?? '', maxLength: 200 },
      { name: 'role', label: 'Role on the whole site', options: ['none', 'viewer', 'operator', 'admin'], defaultValue: u?.role ?? 'none' },
      { name: 'password', label: 'Password', type: 'password', autocomplete: 'new-password', minLength: 10, maxLength: 1024, hint: u ? 'Empty: as it is' : 'Empty: signs in another way' },
    ],
    work: async (v) => {
      const path = `/v1/users/${encodeURIComponent(u?.name ?? v.name.trim())}`;
      const body = { full_name: v.full_name, mail: v.mail, role: v.role };
      if (!u && v.password) body.kind = 'local';
      await send('PUT', path, body);
      if (v.password) await send('POST', `${path}/password`, { password: v.password });
      users.soon(0);
    },
  });
}

function People() {
  useLive(users);
  const list = users.value;
  const admin = may('PUT /v1/users/:user');
  return <>
    {admin && <div class="buttons bar-head"><button type="button" class="main" onClick={() => editUser(null)}>New user</button></div>}
    <Problem of={users.error.value?.status ? users.error.value : null} />
    {list && <section class="card flush"><div class="scroll" tabIndex={0} role="region" aria-label="People"><table class="list"><thead><tr><th>User</th><th>Role</th><th>Tenants</th><th>Signs in by</th><th>Last seen</th>{admin && <th><span class="hidden">Actions</span></th>}</tr></thead>
      <tbody>{list.map((u) => <tr key={u.name} class={u.disabled ? 'off' : ''}><th scope="row">{u.name}<small>{dots(u.full_name, u.mail, u.disabled && 'disabled')}</small></th><td>{u.role}</td>
        <td>{Object.entries(u.tenants).map(([t, r]) => `${t} (${r})`).join(', ')}</td><td>{u.kind}</td><td>{hour(u.seen_ms)}</td>
        {admin && <td class="c-act"><button type="button" onClick={() => editUser(u)} aria-label={`Change ${u.name}`}>Change</button>
          {u.name !== me.value.user && <Act work={() => send('PUT', `/v1/users/${encodeURIComponent(u.name)}`, { disabled: !u.disabled }).then(() => users.soon(0))} aria-label={`${u.disabled ? 'Enable' : 'Disable'} ${u.name}`}>{u.disabled ? 'Enable' : 'Disable'}</Act>}</td>}</tr>)}</tbody></table></div></section>}
  </>;
}

/* ---- tokens ---- */

function Tokens() {
  useLive(tokens);
  const [made, setMade] = useState(null);
  const list = tokens.value;
  const make = () => confirm({
    title: 'New token', text: 'For a program or a command line that acts as you.', yes: 'Make it',
    fields: [{ name: 'name', label: 'Name', required: true, maxLength: 64, pattern: '[A-Za-z0-9_@][A-Za-z0-9._@\\-]*', placeholder: 'laptop' },
      { name: 'scopes', label: 'It may', options: [{ value: 'read', label: 'look' }, { value: 'read,jobs', label: 'look, and steer jobs' }, { value: 'read,jobs,manage', label: 'all that you may' }], defaultValue: 'read,jobs' },
      { name: 'expires', label: 'Good for', options: [{ value: '30d', label: '30 days' }, { value: '365d', label: 'a year' }, { value: 'never', label: 'ever' }], defaultValue: '30d' }],
    work: async (v) => { setMade(await send('POST', '/v1/tokens', { name: v.name.trim(), scopes: v.scopes.split(','), expires: v.expires })); tokens.soon(0); },
  });
  return <>
    <div class="buttons bar-head">{may('POST /v1/tokens') && <button type="button" class="main" onClick={make}>New token</button>}</div>
    {made && <section class="card" role="status"><p><b>{made.name}</b> is made. It is shown this once:</p><p><code class="secret">{made.token}</code></p>
      <div class="buttons"><Act work={() => navigator.clipboard.writeText(made.token).then(() => say('Copied.'))}>Copy</Act><button type="button" onClick={() => setMade(null)}>I have it</button></div></section>}
    {list && (list.length ? <section class="card flush"><div class="scroll" tabIndex={0} role="region" aria-label="Tokens"><table class="list"><thead><tr><th>Token</th><th>User</th><th>It may</th><th>Last used</th><th>Ends</th><th><span class="hidden">Actions</span></th></tr></thead>
      <tbody>{list.map((t) => <tr key={`${t.user}/${t.name}`}><th scope="row">{t.name}</th><td>{t.user}</td><td>{t.scopes.join(', ')}</td><td>{t.used_ms ? hour(t.used_ms) : 'never'}</td><td>{t.expires_ms ? hour(t.expires_ms) : 'never'}</td>
        <td class="c-act">{may('DELETE /v1/tokens/:name', { user: t.user }) && <button type="button" class="danger" aria-label={`Delete ${t.name} of ${t.user}`} onClick={() => confirm({ title: `Delete ${t.name}?`, text: 'Whoever uses it is refused from now on.', yes: 'Delete it', danger: true,
          work: () => send('DELETE', `/v1/tokens/${encodeURIComponent(t.name)}?user=${encodeURIComponent(t.user)}`).then(() => tokens.soon(0)) })}>Delete</button>}</td></tr>)}</tbody></table></div></section>
      : <section class="card"><Empty title="No tokens.">A token lets a program act as you.</Empty></section>)}
  </>;
}

/* ---- one's own account ---- */

function changePassword() {
  return confirm({
    title: 'A new password', yes: 'Change it',
    fields: [{ name: 'old', label: 'The old one', type: 'password', autocomplete: 'current-password', required: true },
      { name: 'password', label: 'The new one', type: 'password', autocomplete: 'new-password', required: true, minLength: 10, maxLength: 1024, hint: 'At least ten characters' }],
    work: async (v) => {
      await send('POST', `/v1/users/${encodeURIComponent(me.value.user)}/password`, { old: v.old, password: v.password });
      say('It is changed.');
    },
  });
}

/** "Firefox on Linux", of what a browser says of itself. */
function browser(text) {
  const name = ['Edg', 'OPR', 'Firefox', 'Chrome', 'Safari'].find((n) => text.includes(n));
  const system = ['Android', 'iPhone', 'iPad', 'Windows', 'Mac OS', 'Linux'].find((n) => text.includes(n));
  return name ? `${{ Edg: 'Edge', OPR: 'Opera' }[name] ?? name}${system ? ` on ${system}` : ''}` : text.slice(0, 60);
}

function Notices() {
  const [now, setNow] = useState(null);
  const [error, setError] = useState(null);
  const put = (body) => send('PUT', '/v1/notices', body).then((v) => { setNow(v); setError(null); });
  useEffect(() => { get('/v1/notices').then(setNow, setError); }, []);
  const ways = ['mail', 'webhook'];
  const where = () => confirm({
    title: 'Where to?', yes: 'Save',
    fields: [{ name: 'mail', label: 'Mail', defaultValue: now.mail ?? '', placeholder: now.record_mail, maxLength: 254 },
      { name: 'webhook', label: 'Webhook', type: 'url', defaultValue: now.webhook ?? '', maxLength: 2000 }],
    work: (v) => put({ mail: v.mail.trim() || null, webhook: v.webhook.trim() || null }),
  });
  const test = (way) => send('POST', '/v1/notices/test', { way }).then((r) => { setError(r.ok ? null : { message: r.error, hint: r.hint }); if (r.ok) say('It was taken.'); });
  return <section class="card"><div class="card-head"><h2>Notices</h2>{now && may('PUT /v1/notices') && <button type="button" class="right" onClick={where}>Where to</button>}</div>
    <Problem of={error} />
    {now?.secret && <p role="status">The webhook's secret, shown this once: <code class="secret">{now.secret}</code></p>}
    {now && <div class="scroll" tabIndex={0} role="region" aria-label="Notices"><table class="list"><thead><tr><th>When</th>{ways.map((w) => <th key={w}>{w}{now[w] && may('POST /v1/notices/test') && <> <Act work={() => test(w)} aria-label={`Try ${w}`}>Try</Act></>}</th>)}</tr></thead>
      <tbody>{Object.entries(now.kinds).map(([k, on]) => <tr key={k}><th scope="row">{now.about[k]}</th>{ways.map((w) => <td key={w}><input type="checkbox" aria-label={`${k}: ${w}`} checked={on[w]} disabled={!now[w]}
        onChange={(ev) => put({ kinds: { [k]: { [w]: ev.target.checked } } }).catch(setError)} /></td>)}</tr>)}</tbody></table></div>}</section>;
}

function Account() {
  const [list, setList] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => { get('/v1/sessions').then((s) => setList(s.sessions), setError); }, []);
  const who = me.value;
  return <>
    <section class="card"><h2>{who.full_name || who.user}</h2>
      <dl class="facts"><div><dt>Name</dt><dd>{who.user}</dd></div>{who.role !== 'none' && <div><dt>Role</dt><dd>{who.role}</dd></div>}
        <div><dt>Tenants</dt><dd>{Object.entries(who.roles).map(([t, r]) => `${t} (${r})`).join(', ') || 'none yet; an administrator or a lead takes you in'}</dd></div>
        {who.machines.length > 0 && <div><dt>Machines</dt><dd>{who.machines.join(', ')}</dd></div>}</dl>
      {who.has_password && may('POST /v1/users/:user/password', { user: who.user }) && <div class="buttons"><button type="button" onClick={changePassword}>Change password</button></div>}</section>
    <Notices />
    <section class="card"><div class="card-head"><h2>Signed in</h2>
      {may('DELETE /v1/sessions') && <button type="button" class="right" onClick={() => confirm({ title: 'Sign out everywhere?', text: 'Here too. Tokens stay.', yes: 'Sign out', work: () => send('DELETE', '/v1/sessions').then(leave) })}>Sign out everywhere</button>}</div>
      <Problem of={error} />
      <ul class="people">{[...(list ?? [])].sort((a, b) => b.this - a.this || b.created_ms - a.created_ms).slice(0, 12).map((s, i) => <li key={i} title={s.by}><b>{browser(s.by)}</b>
        <span class="soft">{dots(s.this && 'this one', `since ${hour(s.created_ms)}`, / from (\S+)$/.exec(s.by)?.[1])}</span></li>)}</ul></section>
  </>;
}

/* ---- audit ---- */

function Audit() {
  const [rows, setRows] = useState([]);
  const [next, setNext] = useState(0);
  const [error, setError] = useState(null);
  const [what, setWhat] = useState({ who: '', what: '' });
  const load = async (before) => {
    try {
      const query = new URLSearchParams({ limit: 100, ...(before && { before }), ...(what.who && { who: what.who }), ...(what.what && { what: what.what }) });
      const page = await get(`/v1/audit?${query}`);
      setRows((old) => [...(before ? old : []), ...page.rows]);
      setNext(page.next);
      setError(null);
    } catch (e) {
      setError(e);
    }
  };
  useEffect(() => { const t = setTimeout(load, 200); return () => clearTimeout(t); }, [what]);
  return <>
    <div class="filters"><div class="find"><Icon name="search" /><input type="search" aria-label="Who did it" placeholder="Who" value={what.who} onInput={(ev) => setWhat({ ...what, who: ev.target.value.trim() })} /></div>
      <div class="find"><Icon name="search" /><input type="search" aria-label="What was done" placeholder="What, e.g. job." value={what.what} onInput={(ev) => setWhat({ ...what, what: ev.target.value.trim() })} /></div></div>
    <Problem of={error} />
    <section class="card flush"><div class="scroll" tabIndex={0} role="region" aria-label="Audit"><table class="list"><thead><tr><th>When</th><th>Who</th><th>What</th><th>To what</th><th>Why</th><th>From</th></tr></thead>
      <tbody>{rows.map((r) => <tr key={r.number}><td class="num nowrap" title={clock(r.t_ms)}>{hour(r.t_ms)}</td><td>{r.who}</td><td><code>{r.what}</code></td><td>{r.subject}</td><td title={r.reason}><span class="two-lines">{r.reason}</span></td><td class="soft">{dots(r.via, r.address)}</td></tr>)}</tbody></table></div></section>
    {next ? <div class="buttons"><Act work={() => load(next)}>Older</Act></div> : null}
  </>;
}

/* ---- settings ---- */

function Doctor() {
  const [checks, setChecks] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => { get('/v1/doctor').then((d) => setChecks(d.checks), setError); }, []);
  return <section class="card"><h2>Health</h2><Problem of={error} />
    {checks && <ul class="checks">{checks.filter((c) => c.ok !== null).sort((a, b) => a.ok - b.ok).map((c) => <li key={c.name}><span class={c.ok ? 'good' : 'bad'} aria-hidden="true">{c.ok ? '✓' : '✗'}</span>
      <div><b>{c.name}</b><span class="hidden">{c.ok ? ' is well: ' : ' is wrong: '}</span><small>{c.found}</small>{!c.ok && <small class="bad">{c.fix}</small>}</div></li>)}</ul>}</section>;
}

function Settings() {
  useLive(server);
  const s = server.value;
  if (!s) return null;
  const value = (p) => (/_ms$/.test(p.name) && p.value % 1000 === 0 ? `${p.value / 1000} s` : String(p.value));
  return <>
    <section class="card"><h2>Server</h2><dl class="facts">{[['Version', s.version], ['Engine', dots(s.engine, s.mode)], ['Started', clock(s.started_ms)], ['It says', s.message]].filter(([, v]) => v)
      .map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{v}</dd></div>)}</dl></section>
    {may('GET /v1/doctor') && <Doctor />}
    <section class="card flush"><h2 class="pad">Policy</h2><div class="scroll" tabIndex={0} role="region" aria-label="Policy"><table class="list"><thead><tr><th>Setting</th><th>Value</th><th>Default</th><th>Meaning</th></tr></thead>
      <tbody>{s.policy.map((p) => <tr key={p.name} class={p.value === p.default ? '' : 'strong'}><th scope="row"><code>{p.name}</code></th><td class="num">{value(p)}</td><td class="num soft">{value({ ...p, value: p.default })}</td><td>{p.help}</td></tr>)}</tbody></table></div></section>
    <p class="soft">They are changed in the settings file: <code>nightshiftd --help</code>, docs/ops/configuration.</p>
  </>;
}

const PARTS = [
  ['people', 'People', () => may('GET /v1/users'), People],
  ['tokens', 'Tokens', () => may('GET /v1/tokens'), Tokens],
  ['account', 'Account', () => true, Account],
  ['windows', 'Windows', () => true, Windows],
  ['audit', 'Audit', () => may('GET /v1/audit'), Audit],
  ['settings', 'Settings', () => true, Settings],
];

export function Admin({ part }) {
  const shown = PARTS.filter(([, , can]) => can());
  const [id, , , Part] = shown.find(([x]) => x === part) ?? shown[0];
  return <>
    <div class="page-head"><h1 tabIndex={-1}>Admin</h1></div>
    <div class="filters"><div class="tabs" role="group" aria-label="Parts">{shown.map(([x, name]) => <a key={x} href={`#/admin/${x}`} aria-current={x === id ? 'true' : undefined}>{name}</a>)}</div></div>
    <Part />
  </>;
}
