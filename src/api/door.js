// The page to sign in on: by password, single sign-on or token; the first administrator; the notice; and
// saying yes to a command line.  What was asked for (next, code) goes on afterwards.
const $ = (id) => document.getElementById(id);
const cards = ['sso', 'password', 'by-token', 'setup', 'notice', 'ask-code', 'approve', 'done'];
const asked = new URLSearchParams(location.search);
let me = null;
document.documentElement.dataset.theme = localStorage.theme || 'auto'; // as the page behind has it

const can = { read: 'look', jobs: 'submit jobs and steer them', manage: 'change everything that you may change' };

function show(...ids) {
  for (const id of cards) $(id).hidden = !ids.includes(id);
  $('wait').hidden = true;
  const first = ids[0] && $(ids[0]).querySelector('input, button, a');
  if (first) first.focus();
}

function tell(text) {
  $('why').textContent = text || '';
}

async function call(method, path, body) {
  const init = { method, headers: {} };
  if (body !== undefined) {
    init.headers['Content-Type'] = 'application/json';
    init.body = JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(path, init);
  } catch {
    throw new Error('The server cannot be reached. Is it running?');
  }
  if (answer.status === 204) return null;
  const said = await answer.json().catch(() => ({}));
  if (answer.ok) return said;
  const e = new Error([said.detail || `The server says ${answer.status}.`, said.hint].filter(Boolean).join(' – '));
  e.status = answer.status;
  throw e;
}

// Only a path of this server: never to another one.
function next() {
  const path = asked.get('next') || '/';
  return /^\/(?![/\\])/.test(path) ? path : '/';
}

function finish(title, text) {
  $('done-title').textContent = title;
  $('done-text').textContent = text;
  show('done');
}

async function showCode(code) {
  const waits = await call('GET', '/v1/login/' + encodeURIComponent(code));
  $('ap-name').textContent = waits.name;
  $('ap-from').textContent = waits.from;
  $('ap-scopes').textContent = waits.scopes.map((s) => can[s] || s).join('; ');
  $('ap-user').textContent = me.full_name ? `${me.full_name} (${me.user})` : me.user;
  $('ap-code').textContent = code;
  show('approve');
}

async function signedIn() {
  me = await call('GET', '/v1/whoami');
  if (me.notice) {
    $('notice-text').textContent = me.notice;
    show('notice');
  } else if (asked.has('code')) {
    await showCode(asked.get('code').trim().toUpperCase());
  } else if (asked.has('login')) {
    show('ask-code');
  } else {
    location.replace(next());
  }
}

async function ways() {
  const w = await call('GET', '/v1/signin');
  const shown = [];
  if (w.setup) shown.push('setup');
  if (w.sso) {
    $('sso-go').textContent = `Sign in with ${w.sso}`;
    $('sso-go').href = '/v1/signin/sso?next=' + encodeURIComponent(location.pathname + location.search);
    shown.push('sso');
  }
  if (w.password && !w.setup) shown.push('password');
  if (w.titles.length > 1 || (w.titles.length === 1 && w.titles[0] !== 'Password')) {
    $('titles').textContent = 'With: ' + w.titles.join(', ');
  }
  shown.push('by-token');
  show(...shown);
}

// A form, and what it does; errors are told above.
function form(id, work) {
  $(id).onsubmit = async (ev) => {
    ev.preventDefault();
    tell('');
    const buttons = $(id).querySelectorAll('button');
    buttons.forEach((b) => { b.disabled = true; });
    try {
      await work();
    } catch (e) {
      tell(e.message);
    } finally {
      buttons.forEach((b) => { b.disabled = false; });
    }
  };
}

form('password', async () => {
  const body = { user: $('user').value.trim(), password: $('secret').value };
  $('secret').value = '';
  await call('POST', '/v1/session', body);
  await signedIn();
});
form('token-form', async () => {
  await call('POST', '/v1/session', { token: $('token').value.trim() });
  $('token').value = '';
  await signedIn();
});
form('setup', async () => {
  const body = { user: $('setup-user').value.trim(), password: $('setup-password').value };
  await call('POST', '/v1/setup', { code: $('setup-code').value.trim().toUpperCase(), ...body });
  await call('POST', '/v1/session', body);
  $('setup-password').value = '';
  await signedIn();
});
form('notice', async () => {
  await call('POST', '/v1/notice');
  await signedIn();
});
form('ask-code', () => showCode($('code').value.trim().toUpperCase()));
form('approve', async () => {
  await call('POST', `/v1/login/${encodeURIComponent($('ap-code').textContent)}/approve`);
  finish('The command line is signed in', 'You can close this page.');
});
$('deny').onclick = () => call('POST', `/v1/login/${encodeURIComponent($('ap-code').textContent)}/deny`)
  .then(() => finish('It was not signed in', 'If you did not run nightshift login, somebody tried to get in with your help.'))
  .catch((e) => tell(e.message));
$('leave').onclick = () => call('DELETE', '/v1/session').then(() => location.reload()).catch((e) => tell(e.message));

if (asked.has('why')) tell([asked.get('why'), asked.get('hint')].filter(Boolean).join(' – '));
signedIn().catch((e) => {
  if (e.status !== 401) tell(e.message);
  return ways();
}).catch((e) => {
  $('wait').hidden = true;
  tell(e.message);
});
