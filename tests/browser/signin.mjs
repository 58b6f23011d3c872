/* People sign in at a real daemon with a real browser.
 *
 *   node signin.mjs '{"url": …, "chromium": …, "profile": …, "setup_code": …, "notice": …, "title": …}'
 *
 * Prints TAP (steps.mjs).
 */
import assert from 'node:assert/strict';

import { open, run } from './steps.mjs';

const given = JSON.parse(process.argv[2]);
const browser = await open(given);
const { context, page } = browser;

async function ask(method, path, body, token) {
  const headers = { ...(body && { 'Content-Type': 'application/json' }), ...(token && { Authorization: `Bearer ${token}` }) };
  const answer = await fetch(given.url + path, { method, headers, body: body && JSON.stringify(body) });
  return answer.json();
}

const at = (path) => page.waitForURL((url) => url.href.startsWith(given.url) && url.pathname === path);
const shown = (selector, text) => page.locator(selector, { hasText: text }).filter({ visible: true }).waitFor();

async function livePage(user) {
  await at('/');
  await shown('#user', user);
  await page.locator('#main').waitFor();
}

async function acceptNotice() {
  await shown('#notice-text', given.notice);
  await page.click('#notice button:not([type])');
}

async function signOut() {
  await page.click('#sign-out');
  await at('/signin');
  await shown('#password h2', 'Sign in');
}

const steps = [
  ['whoever has the one-time code becomes the first administrator', [401], async () => {
    await page.goto(given.url);
    await at('/signin');
    await page.fill('#setup-code', given.setup_code);
    await page.fill('#setup-user', 'adm');
    await page.fill('#setup-password', 'correct horse');
    await page.click('#setup button');
    await acceptNotice();
    await livePage('adm');
    await signOut();
  }],
  ['a wrong password is said, and the right one leads to the machines', [401, 403], async () => {
    await page.fill('#user', 'adm');
    await page.fill('#secret', 'not this one');
    await page.click('#password button');
    await shown('#why', 'the name or the password is wrong');
    assert.equal(await page.inputValue('#secret'), '');
    await page.fill('#secret', 'correct horse');
    await page.click('#password button');
    await livePage('adm');
    await signOut();
  }],
  ['somebody signs in at the provider, accepts the notice and sees the machines', [401], async () => {
    await page.click(`text=Sign in with ${given.title}`);
    await page.fill('input[name=login]', 'eva');
    await page.fill('input[name=password]', 'typed at the provider');
    await page.click('button[type=submit]');
    await page.click('button:has-text("Continue")');
    await acceptNotice();
    await livePage('eva');
  }],
  ['the cookie of the session is not for scripts', [], async () => {
    assert.equal(await page.evaluate('document.cookie'), '');
    const cookie = (await context.cookies()).find((one) => one.name === 'nightshift');
    assert.deepEqual([cookie.httpOnly, cookie.sameSite, cookie.domain], [true, 'Lax', '127.0.0.1']);
  }],
  ['they say yes to a command line that shows a code', [], async () => {
    const begun = await ask('POST', '/v1/login', { name: 'a laptop' });
    await page.goto(begun.verification_uri_complete);
    await shown('#ap-name', 'a laptop');
    await page.click('#approve button:not([type])');
    await shown('#done-title', 'The command line is signed in');
    const told = await ask('POST', '/v1/login/poll', { device_code: begun.device_code });
    assert.equal((await ask('GET', '/v1/whoami', undefined, told.token)).user, 'eva');
  }],
  ['they sign out, and the way back is closed', [401], async () => {
    await page.click('text=To the machines');
    await livePage('eva');
    await signOut();
    await page.goBack();
    await at('/signin');
    assert.equal((await context.cookies()).find((one) => one.name === 'nightshift'), undefined);
  }],
];

const good = await run(browser, steps);
await context.close();
process.exit(good ? 0 : 1);
