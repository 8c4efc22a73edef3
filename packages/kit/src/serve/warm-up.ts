import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import * as z from "zod";
import { defineEnvironment, type EnvironmentDefinition } from "../definition/definition.ts";

/** The part of a served environment that the warm-up needs. */
interface ServedDummy extends AsyncDisposable {
  readonly url: string;
}

const { request } = process.getBuiltinModule("node:http");

const dummy = defineEnvironment({
  setup: () => ({ total: 0 }),
  tools: [{ name: "add", input: z.object({ n: z.number() }), run: ({ n }, { state }) => `${state.total} and ${n}` }],
});

/**
 * Code is slow when it runs for the first time. A process that is started in advance has time for that: it serves a dummy
 * environment, and creates, calls and deletes instances of it. No code of the author runs. Errors are ignored.
 */
export async function warmUp(serve: (definition: EnvironmentDefinition) => Promise<ServedDummy>): Promise<void> {
  await run(serve).catch(() => {});
}

async function run(serve: (definition: EnvironmentDefinition) => Promise<ServedDummy>): Promise<void> {
  await using served = await serve(dummy as EnvironmentDefinition);
  for (const id of ["first", "second"]) {
    await send(served, "POST", "/env-instance", { id, seed: 0, environment_variables: {}, arguments: [] });
    const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "add", arguments: { n: 1 } } };
    await send(served, "POST", `/env-instance/${id}/mcp`, call);
    await send(served, "DELETE", `/env-instance/${id}`);
  }
}

async function send(served: ServedDummy, method: string, path: string, body?: object): Promise<void> {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const sent = request(`${served.url}${path}`, { method, headers, agent: false });
  sent.end(body === undefined ? undefined : JSON.stringify(body));
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  await once(response.resume(), "end");
}
