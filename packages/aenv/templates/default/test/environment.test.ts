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

test("rewards the goal of the task, and no other total", async () => {
  await env.reset({ task: "three" });
  const result = await env.callTool("add", { n: 3 });
  assert.deepEqual(result.json(), { total: 3 });
  assert.equal((await env.score()).reward, 1);
  await env.callTool("add", { n: 1 });
  assert.equal((await env.score()).reward, 0);
});

test("names the wrong argument", async () => {
  const result = await env.callTool("add", { n: "three" });
  assert.equal(result.isError, true);
  assert.match(result.text, /n/);
});
