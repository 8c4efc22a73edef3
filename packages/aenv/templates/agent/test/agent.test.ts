import assert from "node:assert/strict";
import { test } from "node:test";
import { Environment, loadEnvironment, serve } from "aenvironment";
import { type Model, play } from "../agent.ts";

/** A scripted model that bisects the range, depending on the answer to its last guess. */
function bisectingModel(): Model {
  let [low, high, last] = [1, 10, 0];
  return async (messages) => {
    const answer = messages.at(-1)?.role === "tool" ? messages.at(-1)?.content : undefined;
    if (answer === "found") return { role: "assistant", content: `It is ${last}.` };
    if (answer === "higher") low = last + 1;
    if (answer === "lower") high = last - 1;
    last = Math.floor((low + high) / 2);
    const call = { id: `call-${last}`, type: "function", function: { name: "guess", arguments: JSON.stringify({ n: last }) } };
    return { role: "assistant", content: null, tool_calls: [call] };
  };
}

test("an agent plays the environment and earns its reward", async () => {
  const { definition } = await loadEnvironment(`${import.meta.dirname}/..`);
  const served = await serve(definition, { port: 0 });
  const env = new Environment("{{name}}", { instanceUrl: served.url });
  try {
    const { messages, components } = await play(env, bisectingModel(), "easy");
    assert.equal(components.found, 1);
    assert.match(String(messages.at(-1)?.content), /^It is \d+\.$/);
  } finally {
    await env.release();
    await served.close();
  }
});
