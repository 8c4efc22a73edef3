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

test("adds up, and rewards reaching the goal", async () => {
  await env.callTool("add", { n: 1 });
  const result = await env.callTool("add", { n: 2 });
  assert.deepEqual(result.json(), { total: 3 });
  assert.equal((await env.score({ goal: 3 })).reward, 1);
  assert.equal((await env.score({ goal: 4 })).reward, 0);
});

test("names the wrong argument", async () => {
  const result = await env.callTool("add", { n: "three" });
  assert.equal(result.isError, true);
  assert.match(result.text, /n/);
});
