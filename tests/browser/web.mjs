/* Somebody uses every page of a real daemon, with real jobs.
 *
 *   node web.mjs '{"url": …, "chromium": …, "profile": …, "password": …}'
 *
 * Prints TAP (steps.mjs).  "# ask down" and "# ask up" are for whoever started it, who answers by a line.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

import { AWAY, open, run } from './steps.mjs';

const given = JSON.parse(process.argv[2]);
const browser = await open(given, { viewport: { width: 1280, height: 800 } });
const { context, page } = browser;
const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

const MARKUP = '<img src=x onerror="document.title=1"><b>bold</b>';
const ENDLESS = `printf '%s\\n' '${MARKUP}'; printf '\\033[31mred\\033[0m plain\\n'; i=0; while true; do i=$((i+1)); echo "tick $i"; sleep 0.2; done`;

async function outside(verb) {
  console.log(`# ask ${verb}`);
  assert.equal((await answers.next()).value, 'done');
}

/* ---- what people do ---- */

const at = (hash) => page.waitForURL((url) => url.href === `${given.url}/${hash}`);
const go = async (hash) => {
  await page.evaluate((h) => { location.hash = h; }, hash);
  await page.locator('main h1').waitFor();
};
const named = (role, name, within = page) => within.getByRole(role, { name, exact: true });
const click = (name, within) => named('button', name, within).click();
const type = (label, text, within = page) => within.getByLabel(label, { exact: true }).fill(text);
const dialog = () => page.locator('dialog[open]');
const seen = (text, within = page.locator('main')) => within.getByText(text).filter({ visible: true }).first().waitFor();
const state = (word) => page.locator('.job-head .state', { hasText: word }).waitFor();

async function signIn(user) {
  await page.locator('#user').filter({ visible: true }).waitFor();
  await page.fill('#user', user);
  await page.fill('#secret', given.password);
  await page.click('#password button');
  await page.locator('#sign-out').waitFor();
}

async function signOut() {
  await page.click('#sign-out');
  await page.waitForURL((url) => url.pathname === '/signin');
}

/** The API as the page itself would ask. */
const api = (method, path, body) => page.evaluate(async ([m, p, b]) => {
  const r = await fetch(p, { method: m, headers: { 'Content-Type': 'application/json' }, body: b && JSON.stringify(b) });
  return { status: r.status, headers: Object.fromEntries(r.headers), body: await r.json().catch(() => null) };
}, [method, path, body]);

async function submit(command, more = {}) {
  const made = await api('POST', '/v1/jobs', { tenant: 'vision', workdir: '/', command, ...more });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  return made.body.id;
}

/** What axe-core finds serious, on the page as it stands, and whether all of it is within the window. */
async function check(where) {
  await page.evaluate(axeSource);
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  const bad = found.violations.filter((v) => ['serious', 'critical'].includes(v.impact));
  assert.deepEqual(bad.map((v) => `${where}: ${v.id}: ${v.nodes.slice(0, 3).map((n) => `${n.target} ${n.failureSummary}`).join('; ')}`), []);
  const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  assert.ok(over <= 0, `${where} is ${over} pixels too wide`);
}

/** Light and wide, then dark on a phone. */
async function inBothLooks(fn) {
  for (const [scheme, width] of [['light', 1280], ['dark', 390]]) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height: 844 });
    await fn(`${scheme} ${width}`);
  }
  await page.emulateMedia({ colorScheme: null });
  await page.setViewportSize({ width: 1280, height: 800 });
}

const PLACES = ['#/', '#/jobs', '#/new', '#/nodes', '#/tenants', '#/tenants/vision', '#/admin/people', '#/admin/tokens', '#/admin/account', '#/admin/windows', '#/admin/audit',
  '#/admin/settings'];
let job = 0;

const steps = [
  ['somebody signs in and sees every GPU', [401], async () => {
    await page.goto(given.url);
    await signIn('ada');
    await page.locator('.tile').nth(3).waitFor();
    assert.equal(await page.locator('.tile.is-idle').count(), 4);
    await seen('Nobody waits.');
    await page.reload();
    await page.locator('.tile').nth(3).waitFor();
    await seen('Nobody waits.');
    const [paint, jump] = await page.evaluate(() => new Promise((done) => {
      const first = performance.getEntriesByName('first-contentful-paint')[0]?.startTime;
      new PerformanceObserver((list) => done([first, list.getEntries().reduce((n, e) => n + e.value, 0)])).observe({ type: 'layout-shift', buffered: true });
      setTimeout(() => done([first, 0]), 1000); /* there was none */
    }));
    console.log(`# first paint after ${Math.round(paint)} ms; layout shift ${jump.toFixed(3)}`);
    assert.ok(jump < 0.1, `what is seen jumps by ${jump}`);
  }],
  ['the page carries a strict policy, is kept by its tag, and asks nobody else', [], async () => {
    for (const path of ['/', '/page.js', '/page.css', '/signin']) {
      const { headers, status } = await api('GET', path);
      const policy = headers['content-security-policy'];
      assert.equal(status, 200);
      assert.match(policy, /default-src 'none'/);
      assert.match(policy, /frame-ancestors 'none'/);
      assert.doesNotMatch(policy, /unsafe|\*|http/);
    }
    const first = await fetch(`${given.url}/page.js`);
    assert.equal(first.headers.get('content-encoding'), 'gzip');
    const again = await fetch(`${given.url}/page.js`, { headers: { 'If-None-Match': first.headers.get('etag') } });
    assert.equal(again.status, 304);
    const plain = await fetch(`${given.url}/page.js`, { headers: { 'Accept-Encoding': 'identity' } });
    assert.equal(plain.headers.get('content-encoding'), null);
    assert.equal(await plain.text(), await first.text());
    assert.deepEqual(browser.elsewhere, []);
  }],
  ['a request of another site with the same cookie is refused', [403], async () => {
    const cookie = (await context.cookies()).map((c) => `${c.name}=${c.value}`).join('; ');
    const sent = await fetch(`${given.url}/v1/jobs`, { method: 'POST', body: '{"command":"true"}',
      headers: { Cookie: cookie, Origin: 'http://evil.example', 'Content-Type': 'application/json' } });
    assert.equal(sent.status, 403);
  }],
  ['a job is written as a form, and said at once to be good or not', [400, 404, 409, 422], async () => {
    await named('link', 'New job', page.locator('nav')).click();
    await type('Command', ENDLESS);
    await type('Time limit', 'soon');
    await seen('It would not be taken.');
    await type('Time limit', '1h');
    await seen('It would start now.');
    await type('Name', 'first');
    await page.getByLabel('GPUs').fill('1');
    await page.getByText('More', { exact: true }).click();
    await type('Folder', '/');
    await page.getByLabel('Tenant').selectOption('vision');
    await seen('It would start now.');
    await click('Submit');
    await page.waitForURL(/#\/jobs\/\d+$/);
    job = Number(/(\d+)$/.exec(page.url())[1]);
    await state('running');
  }],
  ['its output comes live, and markup in it is text', [], async () => {
    await seen('tick 3', page.locator('#log'));
    await seen(MARKUP, page.locator('#log'));
    assert.equal(await page.locator('#log img, #log b').count(), 0);
    assert.equal(await page.locator('#log .a1').first().innerText(), 'red');
    await seen('live', page.locator('.log-card'));
    const lines = await page.locator('#log div').count();
    await page.waitForFunction((n) => document.querySelectorAll('#log div').length > n + 3, lines);
    assert.notEqual(await page.title(), '1');
  }],
  ['it is frozen, the map shows it, and it goes on', [], async () => {
    await click('Freeze');
    await state(/paused|frozen/);
    await go('#/');
    await page.locator('.tile.is-ice').waitFor();
    await go(`#/jobs/${job}`);
    await click('Thaw');
    await state('running');
    const last = await page.locator('#log div').last().innerText();
    await page.waitForFunction((text) => document.querySelector('#log').lastElementChild.innerText !== text, last);
  }],
  ['what waits says why, when it starts and what would help', [], async () => {
    const long = await submit('sleep 600', { resources: { gpus: 3 }, max_time: '30m', name: 'long' });
    const waits = await submit('sleep 1', { resources: { gpus: 4 }, name: MARKUP.slice(0, 60) });
    await go(`#/jobs/${waits}`);
    await state('queued');
    await seen('Why it waits');
    await page.locator('.points li').first().waitFor();
    await go('#/');
    await page.locator('.queue li').waitFor();
    assert.equal(await page.locator('main img, main .queue b').count(), 0);
    await go('#/new');
    await type('Command', 'true');
    await page.getByLabel('GPUs').fill('4');
    await seen('It would start about');
    for (const id of [long, waits]) assert.equal((await api('POST', `/v1/jobs/${id}/cancel`, {})).status, 200);
    await go('#/');
    await seen('Nobody waits.');
  }],
  ['it is cancelled, after a question', [], async () => {
    await go(`#/jobs/${job}`);
    await click('Cancel');
    await click('Not now', dialog());
    await state('running');
    await click('Cancel');
    await click('Cancel it', dialog());
    await state('cancelled');
    await seen('complete', page.locator('.log-card'));
    assert.equal(await named('button', 'Cancel').count(), 0);
  }],
  ['its timeline tells all of its life, to whoever comes later', [], async () => {
    await page.reload();
    const steps = () => page.locator('.life li b').allInnerTexts();
    await page.locator('.life li').nth(6).waitFor();
    const told = await steps();
    assert.equal(told[0], 'submitted');
    for (const word of ['placed', 'started', 'freezing', 'paused', 'thawed']) assert.ok(told.includes(word), `${word}: ${told}`);
    assert.equal(told.at(-1), 'cancelled');
    await seen('by ada', page.locator('.life'));
  }],
  ['it is cloned as YAML, and a fault in that is told', [400, 422], async () => {
    await named('link', 'Clone').click();
    await page.locator('textarea').waitFor();
    await page.waitForFunction(() => /command:/.test(document.querySelector('textarea').value));
    const text = await page.inputValue('textarea');
    await page.fill('textarea', `${text}\n  broken: [`);
    await seen('It would not be taken.');
    await page.fill('textarea', `${text}\nnonsense: 1\n`);
    await seen('nonsense');
    await page.fill('textarea', text.replace(/^name:.*$/m, 'name: second'));
    await seen('It would start now.');
    await click('Submit');
    await page.waitForURL((url) => /#\/jobs\/\d+$/.test(url.href) && !url.href.endsWith(`/${job}`));
    await state('running');
    await page.locator('h1', { hasText: 'second' }).waitFor();
  }],
  ['the list shows what happens elsewhere, without a reload', [], async () => {
    await go('#/jobs');
    await seen('second');
    const begun = Date.now();
    const id = await submit('true', { name: 'from-elsewhere' });
    await page.locator(`a[href="#/jobs/${id}"]`).waitFor();
    console.log(`# shown ${Date.now() - begun} ms after the submit began`);
    await page.locator('.row', { hasText: 'from-elsewhere' }).locator('.state', { hasText: 'succeeded' }).waitFor();
    await page.fill('#find', 'second');
    await page.waitForFunction(() => document.querySelectorAll('.rows-body .row').length === 1);
    await page.fill('#find', '');
    await named('link', 'Ended').click();
    await seen('from-elsewhere');
    await page.waitForFunction(() => ![...document.querySelectorAll('.rows-body .state')].some((e) => e.innerText === 'running'));
  }],
  ['the keyboard is enough', [], async () => {
    await go('#/jobs');
    await page.locator('.rows-body .row').nth(1).waitFor();
    await page.keyboard.press('/');
    await page.waitForFunction(() => document.activeElement.id === 'find');
    await page.locator('[data-row="0"] a').focus();
    await page.keyboard.press('ArrowDown');
    const href = await page.evaluate(() => document.activeElement.getAttribute('href'));
    assert.equal(href, await page.locator('[data-row="1"] a').getAttribute('href'));
    await page.keyboard.press('Enter');
    await at(href);
    await page.waitForFunction(() => document.activeElement.tagName === 'H1');
    await page.keyboard.press('n');
    await at('#/new');
  }],
  ['a tenant is made, somebody is taken in, and its use is drawn', [], async () => {
    await go('#/tenants');
    await click('New tenant');
    await type('Name', 'physics', dialog());
    await type('Guaranteed GPUs', '1', dialog());
    await type('Budget in GPU-hours', '100', dialog());
    await click('Make it', dialog());
    await named('link', 'physics').click();
    await click('Take in');
    await type('User', 'mia', dialog());
    await click('Take in', dialog());
    await seen('mia', page.locator('.people'));
    await click('Take mia out');
    await seen('Nobody is in it yet.');
    await go('#/tenants/vision');
    await page.locator('.chart canvas').waitFor();
  }],
  ['one says where notices go and which come, tries it, and it stays so', [400, 403], async () => {
    await go('#/admin/account');
    await click('Where to');
    await type('Webhook', 'ftp://lab.example/', dialog());
    await click('Save', dialog());
    await seen('webhook', dialog());
    await type('Webhook', given.hook, dialog());
    await click('Save', dialog());
    await page.locator('code.secret').waitFor();
    await click('Try webhook');
    await seen('It was taken.', page.locator('body'));
    const box = page.getByLabel('job_failed: webhook', { exact: true });
    assert.equal(await box.isChecked(), true);
    const kept = page.waitForResponse((r) => r.url().endsWith('/v1/notices') && r.request().method() === 'PUT');
    await box.uncheck();
    assert.equal((await kept).status(), 200);
    await page.reload();
    await box.waitFor();
    assert.equal(await box.isChecked(), false);
    assert.equal(await page.locator('code.secret').count(), 0);
    const now = (await api('GET', '/v1/notices')).body;
    assert.deepEqual([now.webhook, now.kinds.job_failed.webhook], [given.hook, false]);
  }],
  ['a machine is lent at certain hours, and its week is drawn', [], async () => {
    await go('#/admin/windows');
    await click('New pool');
    await type('Name', 'desks', dialog());
    await type('Machines', 'lab[01-03]', dialog());
    await type('Window', 'sometimes', dialog());
    browser.expected = [400, 422];
    await click('Make the pool', dialog());
    await seen(/window|calendar/, dialog().locator('.problem'));
    await type('Window', 'zone=UTC; Mon-Sun 00:00-24:00', dialog());
    await click('Make the pool', dialog());
    await page.locator('.week .open').nth(6).waitFor();
    await click('Close for a while');
    await click('Close it', dialog());
    await click('As the window says');
    await click('Close for a while');
    await click('Not now', dialog());
    await click('Reserve');
    await type('Name', 'class', dialog());
    await click('Reserve', dialog());
    await click('Give class up');
    await click('Give it up', dialog());
    await seen('Nothing is reserved.');
    await go('#/');
    await page.locator('.line', { hasText: 'desks' }).locator('.open').waitFor();
  }],
  ['a machine is drained with a reason, and resumed', [], async () => {
    await go('#/nodes');
    await page.locator('.row button').click();
    await type('Why', 'a new driver', dialog());
    await click('Drain it', dialog());
    await page.locator('.row .state', { hasText: 'draining' }).waitFor();
    await page.locator('.row button').click();
    await click('Resume it', dialog());
    await page.locator('.row .state', { hasText: 'up' }).waitFor();
  }],
  ['a token is made, shown once and deleted; the audit knows it', [], async () => {
    await go('#/admin/tokens');
    await click('New token');
    await type('Name', 'laptop', dialog());
    await click('Make it', dialog());
    const secret = await page.locator('.secret').innerText();
    assert.match(secret, /^nst_/);
    await click('I have it');
    await click('Delete laptop of ada');
    await click('Delete it', dialog());
    await seen('No tokens.');
    await go('#/admin/audit');
    await seen('token.delete');
    await seen('node.drain');
    assert.equal((await page.locator('main').innerText()).includes(secret), false);
  }],
  ['no page has a serious fault for those who use it in another way', [], async () => {
    await submit('true', { name: 'a' });
    await inBothLooks(async (look) => {
      for (const place of [...PLACES, `#/jobs/${job}`]) {
        await go(place);
        await page.waitForLoadState('networkidle').catch(() => {});
        await check(`${place} ${look}`);
      }
    });
  }],
  ['light and dark can be chosen, and stay', [], async () => {
    await go('#/');
    await page.getByRole('button', { name: /^Colours: auto/ }).click();
    await page.getByRole('button', { name: /^Colours: light/ }).click();
    const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const dark = await back();
    await page.reload();
    await page.locator('h1').waitFor();
    assert.equal(await back(), dark);
    await page.getByRole('button', { name: /^Colours: dark/ }).click();
    assert.notEqual(await back(), dark);
  }],
  ['the server goes away: the page says so, and goes on when it is back', [AWAY, 503], async () => {
    await go('#/');
    await outside('down');
    await page.locator('.banner', { hasText: 'does not answer' }).waitFor();
    assert.equal(await page.locator('.tile').count(), 4);
    await outside('up');
    await page.locator('.banner p').waitFor({ state: 'detached' });
    const id = await submit('true', { name: 'after-the-break' });
    await go('#/jobs');
    await page.locator(`a[href="#/jobs/${id}"]`).waitFor();
  }],
  ['GPUs that pods of others have on Kubernetes are on the map, and are not idle', [], async () => {
    const machine = (await api('GET', '/v1/nodes')).body.nodes[0];
    const body = JSON.stringify({ nodes: [{ ...machine, gpus_of_others: 3 }, { ...machine, name: 'full', gpus: [], gpus_of_others: 4 }] });
    await page.route('**/v1/nodes', (route) => route.fulfill({ status: 200, contentType: 'application/json', body }));
    await page.goto(`${given.url}/#/`);
    await page.reload();
    await page.locator('.tile.is-others').nth(6).waitFor();
    await seen('pods of others');
    assert.match(await page.locator('.figure', { hasText: 'GPUs in use' }).innerText(), new RegExp(`of ${machine.gpus.length + 7}`));
    await inBothLooks((look) => check(`the map with GPUs of others, ${look}`));
    await go('#/nodes');
    await seen('4 of 4');
    await page.unroute('**/v1/nodes');
  }],
  ['a thousand GPUs and ten thousand jobs: only what is seen is drawn', [], async () => {
    const one = (await api('GET', `/v1/jobs/${job}`)).body;
    const machine = (await api('GET', '/v1/nodes')).body.nodes[0];
    const many = [...Array(10000)].map((_, i) => ({ ...one, id: 20000 - i, name: `job-${20000 - i}`, state: 'running', ended_ms: null, started_ms: one.started_ms - i }));
    const nodes = [...Array(125)].map((_, n) => ({ ...machine, name: `n${n}`, gpus: [...Array(8)].map((__, g) => ({ ...machine.gpus[0], index: g, free_milli: 0,
      jobs: [{ id: 20000 - n * 8 - g, name: 'x', user: 'ada', tenant: 'vision', milli: 1000 }] })) }));
    const reply = (route, body) => route.fulfill({ status: 200, contentType: 'application/json', body: JSON.stringify(body) });
    await page.route('**/v1/nodes', (route) => reply(route, { nodes }));
    await page.route('**/v1/jobs?*', (route) => {
      const url = new URL(route.request().url());
      if (url.searchParams.has('state')) return reply(route, { jobs: [], next: null });
      const from = url.searchParams.has('before') ? 20001 - Number(url.searchParams.get('before')) : 0;
      return reply(route, { jobs: many.slice(from, from + 1000), next: from + 1000 < many.length ? 20001 - (from + 1000) : null });
    });
    await page.goto(`${given.url}/#/jobs`);
    await page.reload();
    await seen('10000 jobs');
    assert.ok(await page.locator('.rows-body .row').count() < 80);
    await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
    await seen('job-10001');
    assert.ok(await page.locator('.rows-body .row').count() < 80);
    await page.fill('#find', 'job-15000');
    await page.waitForFunction(() => document.querySelectorAll('.rows-body .row').length === 1);
    await go('#/');
    await page.locator('.dot').nth(999).waitFor();
    const took = await page.evaluate(() => new Promise((done) => { const t = performance.now(); location.hash = '#/nodes'; requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - t))); }));
    console.log(`# from the map of 1,000 GPUs to the machines in ${Math.round(took)} ms`);
    await page.goto('about:blank'); /* what it still asks for must not meet the real server */
    await page.unroute('**/v1/nodes');
    await page.unroute('**/v1/jobs?*');
    await page.goto(`${given.url}/#/`);
    await page.locator('.tile').nth(3).waitFor();
  }],
  ['figures of agents are shown where there are any', [], async () => {
    const calls = (await api('GET', '/v1/permissions')).body;
    const look = calls.calls.find((c) => c.path === '/v1/nodes');
    for (const path of ['/v1/gpus', '/v1/nodes/:name/load', '/v1/nodes/:name/history']) {
      if (!calls.calls.some((c) => c.path === path)) calls.calls.push({ ...look, path });
    }
    const { nodes } = (await api('GET', '/v1/nodes')).body;
    const wrong = { rule: 'xid', gpu: 1, text: 'the driver says XID 79: <b>it fell off the bus</b>', since_ms: Date.now() };
    const gpus = nodes[0].gpus.map((g) => ({ ...g, node: nodes[0].name, util_percent: 83.4, mem_used_mib: 61440, mem_mib: 81920, power_w: 310, temp_c: 71, throttle: ['power'],
      xid: null, idle_since_ms: Date.now() - 600000, parts: [{ kind: 'other', name: null, util_percent: 83.4 }] }));
    const series = (v) => [...Array(60)].map((_, i) => (i < 5 ? null : v + i / 10));
    const answers_ = {
      permissions: calls,
      nodes: { nodes: [{ ...nodes[0], reports: true, drained_because: null, health: [wrong], gpus }] },
      gpus: { now_ms: Date.now(), gpus },
      load: { name: nodes[0].name, seen_ms: Date.now(), reports: true, health: [], cpu_milli: 4200, cpus_milli: 64000, mem_used_mib: 9000, mem_mib: 24000, disk_used_mib: 1000,
        disk_mib: 90000, read_bytes_s: 5e6, write_bytes_s: 3e3, rx_bytes_s: 0, tx_bytes_s: null, tasks: [], gpus },
      history: { from_ms: Date.now() - 3600000, step_ms: 60000, points: 60, simulated: true, node: { cpu_milli: series(4000) },
        gpus: gpus.map((g) => ({ index: g.index, uuid: g.uuid, util_percent: series(80), jobs_percent: series(0), mem_used_mib: series(61440), power_w: series(300), temp_c: series(70), sm_mhz: series(1400) })) },
    };
    const own = { from_ms: Date.now() - 3600000, step_ms: 60000, points: 60, cpu_milli: series(800), mem_mib: series(2000), gpu_percent: series(40), gpu_mem_mib: series(20000) };
    const part = { replica: 0, node: nodes[0].name, ...answers_.history, gpus: [{ ...answers_.history.gpus[0], milli: 500, whole: false }], own };
    answers_.charts = { runs: [2, 1].map((run) => ({ run, from_ms: part.from_ms, to_ms: null, replicas: [run === 2 ? part : { ...part, own: null }] })), left_out: 0 };
    const reply = (name) => (route) => route.fulfill({ status: 200, contentType: 'application/json', body: JSON.stringify(answers_[name]) });
    const paths = { permissions: '**/v1/permissions', nodes: '**/v1/nodes', gpus: '**/v1/gpus', load: '**/v1/nodes/*/load', history: '**/v1/nodes/*/history?*',
      charts: '**/v1/jobs/*/history' };
    for (const [name, path] of Object.entries(paths)) await page.route(path, reply(name));
    await page.goto(`${given.url}/#/`);
    await page.reload();
    await seen('83 % busy · 60 of 80 GiB');
    await go(`#/nodes/${nodes[0].name}`);
    await seen('<b>it fell off the bus</b>');
    await seen('4.2 of 64 busy');
    await seen('310 W');
    await page.locator('.chart canvas').nth(2).waitFor();
    await check('a measured node');
    await go(`#/jobs/${job}`);
    await seen('Its part of the GPU');
    await page.locator('.chart canvas').nth(5).waitFor();
    await check('a measured job');
    await click('Run 1');
    await seen('its own part is not kept');
    await page.goto('about:blank');
    for (const path of Object.values(paths)) await page.unroute(path);
    await page.goto(`${given.url}/#/`);
    await page.locator('.tile').nth(3).waitFor();
  }],
  ['who only looks sees nothing that would be refused', [401], async () => {
    const running = await submit(ENDLESS, { name: 'not-yours' });
    await signOut();
    await signIn('vic');
    browser.expected = [];
    for (const place of [...PLACES.filter((p) => p !== '#/new'), `#/jobs/${running}`]) {
      await go(place);
      await page.waitForLoadState('networkidle').catch(() => {});
    }
    await state('running');
    await seen('Its user, the lead of its tenant and administrators read it.');
    for (const name of ['Cancel', 'Freeze', 'Clone', 'New job', 'Drain', 'New tenant', 'New pool', 'New user', 'Take in']) {
      assert.equal(await named('button', name).or(named('link', name)).count(), 0, name);
    }
    await go('#/new');
    await page.locator('h1', { hasText: 'Overview' }).waitFor();
    await go('#/nodes');
    await page.locator('.row .state').first().waitFor();
    assert.equal(await page.locator('.row button').count(), 0);
    browser.expected = [401];
    await signOut();
  }],
  ['a member submits and steers their own jobs, and no others', [401], async () => {
    await signIn('mia');
    browser.expected = [];
    const mine = await submit('sleep 600', { name: 'mine' });
    await go(`#/jobs/${mine}`);
    await state('running');
    await named('button', 'Cancel').waitFor();
    await go('#/jobs');
    await page.locator('.row', { hasText: 'not-yours' }).locator('a').click();
    await page.locator('h1', { hasText: 'not-yours' }).waitFor();
    assert.equal(await named('button', 'Cancel').count(), 0);
    assert.equal((await api('POST', `/v1/jobs/${mine}/cancel`, {})).status, 200);
    browser.expected = [401];
    await signOut();
  }],
];

const good = await run(browser, steps);
await context.close();
process.exit(good ? 0 : 1);
