import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Environment, loadEnvironment, type Served, serve } from "aenvironment";

let served: Served;
let env: Environment;

before(async () => {
  const { definition } = await loadEnvironment(`${import.meta.dirname}/..`);
  served = await serve(definition, { port: 0 });
  env = new Environment("{{name}}", { instanceUrl: served.url });
});

after(async () => {
  await env.release();
  await served.close();
});

test("rewards finding the number, and finding it quickly", async () => {
  await env.reset({ task: "easy", seed: 3 });
  assert.equal((await env.callTool("guess", { n: 2 })).text, "higher");
  assert.equal((await env.callTool("guess", { n: 4 })).text, "found");
  const { reward, components } = await env.score();
  assert.deepEqual(components, { found: 1, quick: 0.9 });
  assert.ok(Math.abs(reward - 0.98) < 1e-9);
});

test("gives the same episode for the same task and seed", async () => {
  await env.reset({ task: "hard", seed: 7 });
  const first = await env.callFunction("peek");
  await env.reset({ task: "hard", seed: 7 });
  assert.deepEqual(await env.callFunction("peek"), first);
});

test("restores a snapshot", async () => {
  await env.reset({ task: "easy", seed: 3 });
  const snapshot = await env.snapshot();
  await env.callTool("guess", { n: 1 });
  await env.restore(snapshot);
  assert.deepEqual(await env.callFunction("peek"), { secret: 4, max: 10, guesses: [] });
});
