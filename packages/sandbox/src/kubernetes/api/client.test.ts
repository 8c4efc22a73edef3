import { describe, expect, it } from "vitest";
import { scriptedApi } from "../testing/scripted-api.ts";
import { KubernetesApi, type KubernetesObject } from "./client.ts";

const pod = (name: string): KubernetesObject => ({ metadata: { name } });

describe("the client of the API", () => {
  it("reads a list page by page", async () => {
    await using scripted = await scriptedApi(({ query }) => {
      const page = Number(query.get("continue") ?? "0");
      const metadata = { resourceVersion: "7", ...(page < 2 && { continue: String(page + 1) }) };
      return { status: 200, body: { metadata, items: [pod(`a${page}`), pod(`b${page}`)] } };
    });
    const { items, resourceVersion } = await scripted.api.list("/api/v1/pods", { labelSelector: "a=b" });
    expect(items.map(({ metadata }) => metadata.name)).toEqual(["a0", "b0", "a1", "b1", "a2", "b2"]);
    expect(resourceVersion).toBe("7");
    expect(scripted.requests.map(({ query }) => query.get("labelSelector"))).toEqual(["a=b", "a=b", "a=b"]);
  });

  it("sends a request again as the server asks, and counts it", async () => {
    let calls = 0;
    await using scripted = await scriptedApi(() => {
      calls++;
      if (calls === 1) return { status: 429, body: {}, headers: { "retry-after": "0" } };
      if (calls === 2) return { status: 503, body: { message: "starting" } };
      return { status: 200, body: pod("one") };
    });
    expect(await scripted.api.create("/api/v1/pods", pod("one"))).toEqual(pod("one"));
    expect(scripted.api.counters).toEqual({ calls: { create: 3 }, throttled: 1, retries: 2 });
  });

  it("reports what the server refused, with its reason", async () => {
    await using scripted = await scriptedApi(() => ({ status: 403, body: { reason: "Forbidden", message: "pods is forbidden" } }));
    await expect(scripted.api.get("/api/v1/pods/one")).rejects.toMatchObject({
      status: 403,
      reason: "Forbidden",
      message: "pods is forbidden",
    });
    expect(scripted.requests).toHaveLength(1);
  });

  it("does not read an answer that is nested deeper than 200 levels, and does not ask again", async () => {
    const deep = JSON.parse(`${"[".repeat(300)}${"]".repeat(300)}`);
    await using scripted = await scriptedApi(() => ({ status: 200, body: deep }));
    await expect(scripted.api.get("/api/v1/pods/one")).rejects.toThrow("nested deeper than 200 levels");
    expect(scripted.requests).toHaveLength(1);
  });

  it("deletes only the object it means, and finds that another or none is there", async () => {
    const statuses = [200, 404, 409];
    await using scripted = await scriptedApi(() => ({ status: statuses.shift() ?? 500, body: { reason: "Conflict" } }));
    const outcomes = [];
    for (const _ of [1, 2, 3]) outcomes.push(await scripted.api.delete("/api/v1/pods/one", { uid: "u", graceSeconds: 0 }));
    expect(outcomes).toEqual([true, false, false]);
    expect(scripted.requests[0]?.body).toMatchObject({ gracePeriodSeconds: 0, preconditions: { uid: "u" } });
  });

  it("stops when its caller gives up, also while it waits", async () => {
    const giveUp = new AbortController();
    await using scripted = await scriptedApi(() => {
      giveUp.abort(new Error("given up"));
      return { status: 429, body: {}, headers: { "retry-after": "60" } };
    });
    await expect(scripted.api.get("/api/v1/pods/one", giveUp.signal)).rejects.toThrow("given up");
  });

  it("says which server does not answer", async () => {
    const scripted = await scriptedApi(() => null);
    const { port } = scripted;
    await scripted[Symbol.asyncDispose]();
    const api = new KubernetesApi({ server: `http://127.0.0.1:${port}` });
    const message = expect.stringMatching(`API at http://127.0.0.1:${port} does not answer.*kubeconfig`);
    await expect(api.stream("/api/v1/pods", {}, new AbortController().signal)).rejects.toMatchObject({ code: "sandbox.lost", message });
    await api.close();
  });
});
