import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import * as z from "zod";
import { defineEnvironment, type EnvironmentDefinition } from "../definition/definition.ts";

/** The part of a served environment that a rehearsal needs. */
interface WarmedUp extends AsyncDisposable {
  readonly url: string;
}

const { request } = process.getBuiltinModule("node:http");

const environment = defineEnvironment({
  setup: () => ({ total: 0 }),
  tools: [{ name: "add", input: z.object({ n: z.number() }), run: ({ n }, { state }) => `${state.total} and ${n}` }],
});

/**
 * Code is slow when it runs for the first time. A process that waits has time for that: an environment of no consequence is
 * created, called and ended in it as a real one will be. Nothing of the author's runs. Where it fails, nothing is lost but time.
 */
export async function warmUp(serve: (definition: EnvironmentDefinition) => Promise<WarmedUp>): Promise<void> {
  await play(serve).catch(() => {});
}

async function play(serve: (definition: EnvironmentDefinition) => Promise<WarmedUp>): Promise<void> {
  await using served = await serve(environment as EnvironmentDefinition);
  for (const id of ["first", "second"]) {
    await ask(served, "POST", "/env-instance", { id, seed: 0, environment_variables: {}, arguments: [] });
    const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "add", arguments: { n: 1 } } };
    await ask(served, "POST", `/env-instance/${id}/mcp`, call);
    await ask(served, "DELETE", `/env-instance/${id}`);
  }
}

async function ask(served: WarmedUp, method: string, path: string, body?: object): Promise<void> {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const asking = request(`${served.url}${path}`, { method, headers, agent: false });
  asking.end(body === undefined ? undefined : JSON.stringify(body));
  const [response] = (await once(asking, "response")) as [IncomingMessage];
  await once(response.resume(), "end");
}
