import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Served, serve } from "@aenv/kit";
import { describeNeeding, tau2Path } from "@aenv/testing";
import { expect, it } from "vitest";
import { domains, openDomain } from "../domains/index.ts";
import { tau2Environment } from "./environment.ts";

const TAU2_DATA_DIR = join(tau2Path, "data");

interface ListedTool {
  readonly name: string;
  readonly inputSchema: { readonly properties?: Readonly<Record<string, unknown>> };
}

async function ask(url: string, method: string, params: object = {}): Promise<string> {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const response = await fetch(`${url}/mcp`, { method: "POST", headers, body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }) });
  return response.text();
}

async function open(sandbox: Served, domain: string, isSolo = false, taskId = ""): Promise<string> {
  const variables = { TAU2_DATA_DIR, TAU2_DOMAIN: domain, TAU2_SOLO_MODE: String(isSolo), TAU2_TASK_ID: taskId };
  const { id } = await sandbox.host.create({ environment_variables: variables });
  return `${sandbox.url}/env-instance/${id}`;
}

async function list(url: string): Promise<ListedTool[]> {
  return JSON.parse(await ask(url, "tools/list")).result.tools;
}

/** The names of a side's tools, in the reference's order. */
function referenceNames(domain: string, side: "assistant" | "user"): string[] {
  const file = join(tau2Path, "golden", `tools.${domain.replace("-workflow", "")}.json`);
  const tools = JSON.parse(readFileSync(file, "utf8")) as { requestor: string; name: string; discoverable: boolean }[];
  return tools.filter(({ requestor, discoverable }) => requestor === side && !discoverable).map(({ name }) => name);
}

describeNeeding("tau2-data", "one process with instances of all domains", () => {
  const start = () => serve(tau2Environment({ domains, open: openDomain, variables: {} }), { port: 0, first: null });
  const names = (tools: readonly ListedTool[]) => tools.map(({ name }) => name);

  it.each([...domains.keys()])("lists exactly the reference's tools of %s, in its order, then 'done'", async (domain) => {
    await using sandbox = await start();
    const agents = referenceNames(domain, "assistant");
    expect(names(await list(await open(sandbox, domain)))).toEqual([...agents, "done"]);
    if (domains.get(domain)?.soloError !== null) return;
    expect(names(await list(await open(sandbox, domain, true)))).toEqual([...agents, ...referenceNames(domain, "user"), "done"]);
  });

  it("lists each domain's own tasks, and starts the one that is requested by id", async () => {
    await using sandbox = await start();
    for (const [domain, first] of [
      ["airline", "0"],
      ["retail", "0"],
      ["mock", "create_task_1"],
    ] as const) {
      const variables = { TAU2_DATA_DIR, TAU2_DOMAIN: domain, TAU2_SOLO_MODE: "false" };
      const { id, episode } = await sandbox.host.create({ task: first, environment_variables: variables });
      expect(episode.task).toMatchObject({ id: first, domain });
      const response = await fetch(`${sandbox.url}/env-instance/${id}/task/list?limit=1`);
      expect(await response.json()).toMatchObject({ data: { items: [{ id: first, domain }] } });
    }
  });

  it("describes a tool of two domains differently in each", async () => {
    await using sandbox = await start();
    const schema = async (domain: string) => (await list(await open(sandbox, domain))).find(({ name }) => name === "get_user_details");
    const [airline, retail] = [await schema("airline"), await schema("retail")];
    const [{ schema: ofAirline }, { schema: ofRetail }] = [toolNamed("airline"), toolNamed("retail")];
    expect(airline).toMatchObject({ inputSchema: parametersOf(ofAirline) });
    expect(retail).toMatchObject({ inputSchema: parametersOf(ofRetail) });
    expect(airline).not.toEqual(retail);
  });

  it("has no tool of another domain", async () => {
    await using sandbox = await start();
    const answer = await ask(await open(sandbox, "airline"), "tools/call", { name: "cancel_pending_order", arguments: {} });
    expect(answer).toContain("Tool cancel_pending_order not found");
  });

  it("shares one list between all episodes of a domain", async () => {
    await using sandbox = await start();
    for (const [domain, taskId] of [
      ["airline", "1"],
      ["airline", "2"],
      ["retail", "1"],
    ] as const)
      await open(sandbox, domain, false, taskId);
    const [first, second, other] = sandbox.host.list();
    expect(first?.tools).toBe(second?.tools);
    expect(other?.tools).not.toBe(first?.tools);
  });
});

function toolNamed(domain: string) {
  const found = domains.get(domain)?.agent.toolkit.tools.find(({ name }) => name === "get_user_details");
  if (found === undefined) throw new Error(`${domain} has no get_user_details`);
  return found;
}

function parametersOf(schema: Readonly<Record<string, unknown>>): object {
  return (schema.function as { parameters: object }).parameters;
}
