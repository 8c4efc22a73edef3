import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { defineEnvironment, type EnvironmentDefinition, type ToolDefinition } from "../definition/definition.ts";
import { callTool, modernToolCall, toolCall } from "../mcp/testing/calls.ts";
import { exchange } from "../mcp/testing/exchange.ts";
import { type Served, serve } from "../serve/serve.ts";

interface Room {
  readonly kind: string;
  moves: number;
}

let described = 0;

/** Counts how often its schema is described: once per compiled list. */
const steps = {
  "~standard": {
    ...z.object({ steps: z.number() })["~standard"],
    jsonSchema: {
      input: () => {
        described++;
        return { type: "object", properties: { steps: { type: "number" } }, required: ["steps"] };
      },
      output: () => ({}),
    },
  },
} as const;

const walk: ToolDefinition<Room> = { name: "move", description: "Walks.", input: steps as never, run: (_, { state }) => ++state.moves };
const swim: ToolDefinition<Room> = {
  name: "move",
  description: "Swims.",
  input: z.object({ depth: z.number() }) as never,
  run: () => "wet",
};
const dive: ToolDefinition<Room> = { name: "dive", run: (_, { state }) => `${state.kind} dives` };
const kinds: Record<string, readonly ToolDefinition<Room>[]> = { land: [walk], water: [dive, swim] };

const rooms = defineEnvironment({
  setup: ({ task, variables }): Room => ({ kind: task?.id ?? variables.KIND ?? "land", moves: 0 }),
  tasks: () => Object.keys(kinds).map((id) => ({ id })),
  tools: [walk],
  toolsOf: ({ kind }) => kinds[kind] as readonly ToolDefinition<Room>[],
});

const open: Served[] = [];
afterEach(async () => {
  for (const served of open.splice(0)) await served.close();
});

async function start(environment: unknown, useFastPath = true): Promise<Served> {
  const served = await serve(environment as EnvironmentDefinition, {
    name: "rooms",
    version: "1.0.0",
    port: 0,
    useFastPath,
    writeLog: () => {},
  });
  open.push(served);
  return served;
}

async function create(served: Served, kind: string): Promise<string> {
  const { id } = await served.host.create({ environment_variables: { KIND: kind } });
  return `${served.url}/env-instance/${id}/mcp`;
}

async function connect(url: string): Promise<Client> {
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: "legacy" } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return client;
}

const shapesOf = async (client: Client) =>
  (await client.listTools()).tools.map(({ name, description, inputSchema }) => [
    name,
    description,
    Object.keys(inputSchema.properties ?? {}),
  ]);

describe.each([
  ["fast", true],
  ["SDK", false],
])("instances with tools of their own, on the %s path", (_, useFastPath) => {
  it("list exactly these, with their own schemas", async () => {
    const served = await start(rooms, useFastPath);
    const [land, water] = [await connect(await create(served, "land")), await connect(await create(served, "water"))];
    expect(await shapesOf(land)).toEqual([["move", "Walks.", ["steps"]]]);
    expect(await shapesOf(water)).toEqual([
      ["dive", undefined, []],
      ["move", "Swims.", ["depth"]],
    ]);
    await Promise.all([land.close(), water.close()]);
  });

  it("call these with their own schemas, and no others", async () => {
    const served = await start(rooms, useFastPath);
    const [land, water] = [await create(served, "land"), await create(served, "water")];
    expect(await callTool(land, "move", { steps: 1 })).toEqual({ content: [{ type: "text", text: "1" }] });
    expect(await callTool(land, "move", { depth: 1 })).toMatchObject({ isError: true });
    expect(await callTool(water, "move", { depth: 1 })).toEqual({ content: [{ type: "text", text: "wet" }] });
    expect(await callTool(water, "dive")).toEqual({ content: [{ type: "text", text: "water dives" }] });
    for (const call of [toolCall("dive"), modernToolCall("dive")]) {
      expect(await exchange(land, call)).toMatchObject({
        status: 200,
        messages: [{ error: { code: -32602, message: "Tool dive not found" } }],
      });
    }
  });

  it("have other tools when an episode of another kind begins, also in an existing session", async () => {
    const served = await start(rooms, useFastPath);
    const url = await create(served, "land");
    const client = await connect(url);
    expect(await shapesOf(client)).toHaveLength(1);
    const id = url.split("/").at(-2) as string;
    await served.host.reset(id, { task: "water" });
    expect((await shapesOf(client)).map(([name]) => name)).toEqual(["dive", "move"]);
    expect(await client.callTool({ name: "dive" })).toMatchObject({ content: [{ text: "water dives" }] });
    const [copy] = await served.host.fork(id, 1);
    expect([...(copy?.tools.keys() ?? [])]).toEqual(["dive", "move"]);
    await client.close();
  });
});

describe("lists of tools", () => {
  it("are compiled once, however many instances have them", async () => {
    const before = described;
    const list = [walk];
    const { host } = await start({ ...rooms, toolsOf: () => list });
    // Once for the environment as a whole, once for the first instance.
    expect(described).toBe(before + 2);
    const made = await Promise.all(Array.from({ length: 20 }, () => host.create()));
    expect(new Set(made.map(({ tools }) => tools)).size).toBe(1);
    expect(described).toBe(before + 2);
  });

  it("are the definition's if the environment has no toolsOf", async () => {
    const plain = await start({ tools: [dive] });
    const [one, other] = [await plain.host.create(), await plain.host.create()];
    expect(one.tools).toBe(plain.host.environment.tools);
    expect(other.tools).toBe(one.tools);
  });

  it("that are invalid begin no episode, and its state is torn down", async () => {
    const closed: unknown[] = [];
    const wrong = (toolsOf: () => unknown) => ({
      setup: ({ variables }: { variables: Record<string, string> }) => variables.KIND ?? "first",
      tools: [dive],
      toolsOf: (state: string) => (state === "first" ? [dive] : toolsOf()),
      teardown: (state: unknown) => void closed.push(state),
    });
    const attempt = async (toolsOf: () => unknown) => {
      const served = await start(wrong(toolsOf));
      return served.host.create({ environment_variables: { KIND: "new" } }).catch((error: Error) => error.message);
    };
    expect(await attempt(() => [dive, dive])).toContain("tool 'dive' is defined twice");
    expect(await attempt(() => undefined)).toContain("must return an array of tools");
    const fail = () => {
      throw new Error("no such kind");
    };
    expect(await attempt(fail)).toContain("toolsOf of 'rooms' failed: no such kind");
    expect(closed).toEqual(["new", "new", "new"]);
  });
});
