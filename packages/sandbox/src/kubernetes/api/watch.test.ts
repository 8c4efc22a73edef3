import type { ServerResponse } from "node:http";
import { expect, it } from "vitest";
import { type Answer, type ApiRequest, scriptedApi } from "../testing/scripted-api.ts";
import type { KubernetesObject } from "./client.ts";
import { ObjectWatch } from "./watch.ts";

const object = (name: string, resourceVersion: string): KubernetesObject => ({ metadata: { name, resourceVersion } });
const listOf = (version: string, ...items: KubernetesObject[]): Answer => ({
  status: 200,
  body: { metadata: { resourceVersion: version }, items },
});

/** What a watch has reported, as short words. */
function record(): {
  seen: string[];
  options: {
    onList: (items: readonly KubernetesObject[]) => void;
    onChange: (item: KubernetesObject) => void;
    onDelete: (item: KubernetesObject) => void;
  };
} {
  const seen: string[] = [];
  return {
    seen,
    options: {
      onList: (items) => seen.push(`list ${items.map(({ metadata }) => metadata.name).join(" ")}`),
      onChange: ({ metadata }) => seen.push(`change ${metadata.name}`),
      onDelete: ({ metadata }) => seen.push(`delete ${metadata.name}`),
    },
  };
}

function send(response: ServerResponse, ...events: readonly (readonly [type: string, object: object])[]): void {
  for (const [type, one] of events) response.write(`${JSON.stringify({ type, object: one })}\n`);
}

/** A server that answers lists and watches by scripts, each used once; the last watch stays open. */
async function watching(lists: Answer[], watches: ((response: ServerResponse, request: ApiRequest) => void)[]) {
  const { seen, options } = record();
  const scripted = await scriptedApi((request, response) => {
    if (request.query.get("watch") === null) return (lists.length > 1 ? lists.shift() : lists[0]) ?? null;
    response.writeHead(200).flushHeaders();
    watches.shift()?.(response, request);
    return null;
  });
  const watch = new ObjectWatch(scripted.api, { path: "/api/v1/pods", query: {}, ...options });
  const versions = () => scripted.requests.filter(({ query }) => query.has("watch")).map(({ query }) => query.get("resourceVersion"));
  const close = async () => {
    await watch.close();
    await scripted[Symbol.asyncDispose]();
  };
  return { watch, seen, versions, scripted, [Symbol.asyncDispose]: close };
}

it("lists, then reports changes, and goes on behind the last bookmark when the watch ends", async () => {
  await using run = await watching(
    [listOf("10", object("a", "3"))],
    [
      (response) => {
        send(response, ["ADDED", object("b", "11")], ["DELETED", object("a", "12")], ["BOOKMARK", object("", "20")]);
        response.end();
      },
      (response) => send(response, ["MODIFIED", object("b", "21")]),
    ],
  );
  await run.watch.listed();
  await expect.poll(() => run.seen).toEqual(["list a", "change b", "delete a", "change b"]);
  expect(run.versions()).toEqual(["10", "20"]);
});

it("goes on behind the last change when the connection is cut", async () => {
  await using run = await watching(
    [listOf("10")],
    [
      (response) => {
        send(response, ["ADDED", object("a", "11")]);
        setImmediate(() => setTimeout(() => response.destroy(), 20));
      },
      (response) => send(response, ["ADDED", object("b", "12")]),
    ],
  );
  await run.watch.listed();
  await expect.poll(() => run.seen).toEqual(["list ", "change a", "change b"]);
  expect(run.versions()).toEqual(["10", "11"]);
});

it.each([
  [
    "an event",
    (response: ServerResponse) => send(response, ["ERROR", { kind: "Status", code: 410, reason: "Expired", message: "too old" }]),
  ],
  ["an event without a status", (response: ServerResponse) => send(response, ["ERROR", { kind: "Status", reason: "Expired" }])],
])("lists again when the version is too old for the server: %s", async (_, expire) => {
  await using run = await watching(
    [listOf("10", object("a", "3")), listOf("90", object("c", "80"))],
    [expire, (response) => send(response, ["ADDED", object("d", "91")])],
  );
  await run.watch.listed();
  await expect.poll(() => run.seen).toEqual(["list a", "list c", "change d"]);
  expect(run.versions()).toEqual(["10", "90"]);
});

it("lists again from time to time", async () => {
  const { seen, options } = record();
  await using scripted = await scriptedApi((request, response) => {
    if (request.query.get("watch") === null) return listOf("10");
    response.writeHead(200).end();
    return null;
  });
  const watch = new ObjectWatch(scripted.api, { path: "/api/v1/pods", query: {}, ...options, relistEveryMs: 20 });
  await watch.listed();
  await expect.poll(() => seen.length).toBeGreaterThan(2);
  expect(watch.lists).toBeGreaterThan(2);
  await watch.close();
});

it("tells why there is no list yet, and has one when the server allows it", async () => {
  let isAllowed = false;
  const { seen, options } = record();
  await using scripted = await scriptedApi(({ query }, response) => {
    if (!isAllowed) return { status: 403, body: { reason: "Forbidden", message: "pods is forbidden" } };
    if (query.get("watch") === null) return listOf("10", object("a", "1"));
    response.writeHead(200).flushHeaders();
    return null;
  });
  const watch = new ObjectWatch(scripted.api, { path: "/api/v1/pods", query: {}, ...options });
  await expect(watch.listed()).rejects.toThrow("pods is forbidden");
  isAllowed = true;
  await expect.poll(() => watch.listed().then(() => seen, String)).toEqual(["list a"]);
  await watch.close();
});

it("tells that the account may not watch, and that it may again", { timeout: 30_000 }, async () => {
  let isAllowed = false;
  const { seen, options } = record();
  await using scripted = await scriptedApi(({ query }, response) => {
    if (query.get("watch") === null) return listOf("10");
    if (!isAllowed) return { status: 403, body: { reason: "Forbidden", message: 'cannot watch resource "pods"' } };
    response.writeHead(200).flushHeaders();
    send(response, ["ADDED", object("a", "11")]);
    return null;
  });
  const watch = new ObjectWatch(scripted.api, { path: "/api/v1/pods", query: {}, ...options });
  await watch.listed();
  await expect.poll(() => watch.listed().catch(String), { timeout: 20_000 }).toContain('cannot watch resource "pods"');
  isAllowed = true;
  await expect.poll(() => seen, { timeout: 20_000 }).toEqual(["list ", "change a"]);
  await watch.listed();
  await watch.close();
});

it("waits as long as the server asks before it watches again", { timeout: 30_000 }, async () => {
  const { options } = record();
  const watches: number[] = [];
  await using scripted = await scriptedApi(({ query }, response) => {
    if (query.get("watch") === null) return listOf("10");
    watches.push(Date.now());
    if (watches.length === 1) return { status: 429, body: { reason: "TooManyRequests" }, headers: { "retry-after": "1" } };
    response.writeHead(200).flushHeaders();
    return null;
  });
  const watch = new ObjectWatch(scripted.api, { path: "/api/v1/pods", query: {}, ...options });
  await watch.listed();
  await expect.poll(() => watches.length, { timeout: 20_000 }).toBe(2);
  expect((watches[1] ?? 0) - (watches[0] ?? 0)).toBeGreaterThanOrEqual(990);
  await watch.close();
});
