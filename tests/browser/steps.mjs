/* A browser and steps in it: sentences that are tried one after the other, told as TAP.
 *
 * Whatever our pages write to the console as an error fails the step that it came in: broken scripts, and what the
 * content security policy refuses.  Statuses that a step expects to be refused with are no errors.
 */
import assert from 'node:assert/strict';

import { chromium } from 'playwright-core';

const flags = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync'];

/** Among the statuses that a step expects: no connection, which a browser calls by a dozen names. */
export const AWAY = 'away';

/** given: {url, chromium, profile}; a browser of its own, which reaches this machine only. */
export async function open(given, more = {}) {
  const context = await chromium.launchPersistentContext(given.profile, { executablePath: given.chromium, args: flags, ...more });
  const page = context.pages()[0] ?? await context.newPage();
  const state = { context, page, url: given.url, wrong: [], expected: [], elsewhere: [] };
  context.setDefaultTimeout(300000); /* as patience.py */
  await context.route((url) => url.hostname !== '127.0.0.1', (route) => {
    state.elsewhere.push(route.request().url());
    return route.abort();
  });
  watch(state, page);
  return state;
}

function watch(state, page) {
  page.on('pageerror', (e) => state.wrong.push(`a script failed: ${e.message}`));
  page.on('console', (said) => {
    const refused = /^Failed to load resource: (?:the server responded with a status of (\d+)|net::ERR_)/.exec(said.text());
    if (said.type() !== 'error' || !said.location().url.startsWith(state.url)) return;
    const why = refused && (refused[1] ? Number(refused[1]) : AWAY);
    if (!refused || !state.expected.includes(why)) state.wrong.push(`${said.text()} (${said.location().url})`);
  });
}

/** steps: [sentence, statuses, work]; the first that fails ends it.  Returns whether all were good. */
export async function run(state, steps) {
  let good = true;
  console.log(`1..${steps.length}`);
  for (const [i, [sentence, statuses, work]] of steps.entries()) {
    state.expected = statuses;
    let why = good ? '' : 'the step before failed';
    try {
      if (good) await work();
      assert.deepEqual(state.wrong, []);
    } catch (e) {
      why = `${e.message}\nat ${state.page.url()}: ${await state.page.locator('body').innerText().catch(() => '')}`;
    }
    good = !why;
    console.log(`${good ? 'ok' : 'not ok'} ${i + 1} - ${sentence}${why.replace(/^|\n/g, '\n#   ').repeat(good ? 0 : 1)}`);
  }
  return good;
}
