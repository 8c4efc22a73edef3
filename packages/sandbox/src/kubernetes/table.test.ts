import { expect, it } from "vitest";
import { variablesIn } from "./defaults.ts";
import type { Pod } from "./pod/types.ts";
import { PodTable } from "./pods.ts";
import { type ScriptedApi, scriptedApi } from "./testing/scripted-api.ts";

function pod(name: string, uid: string, resourceVersion: string): Pod {
  return { metadata: { name, uid, resourceVersion }, spec: { containers: [] } };
}

/** A table whose watch reports nothing. */
async function openTable(items: readonly Pod[], found: () => Pod | null = () => null) {
  const gone: string[] = [];
  const scripted: ScriptedApi = await scriptedApi(({ path, query }, response) => {
    if (query.has("watch")) {
      response.writeHead(200).flushHeaders();
      return null;
    }
    if (path.endsWith("/pods")) return { status: 200, body: { metadata: { resourceVersion: "10" }, items } };
    const one = found();
    return one === null ? { status: 404, body: {} } : { status: 200, body: one };
  });
  const options = {
    namespace: "n",
    noNewsMs: 100,
    selector: "",
    onChange: () => undefined,
    onGone: ({ metadata }: Pod) => void gone.push(metadata.uid ?? ""),
  };
  const table = new PodTable(scripted.api, options);
  await table.listed();
  const close = async () => {
    await table.close();
    await scripted[Symbol.asyncDispose]();
  };
  return { table, gone, [Symbol.asyncDispose]: close };
}

it("an answer that is older than what is known changes nothing", async () => {
  await using opened = await openTable([pod("a", "1", "9")]);
  const { table, gone } = opened;
  table.put(pod("a", "1", "8"));
  expect(table.find("a")?.metadata.resourceVersion).toBe("9");
  table.remove(pod("a", "1", "11"));
  table.put(pod("a", "1", "12"));
  expect(table.find("a")).toBeNull();
  table.put(pod("a", "2", "13"));
  expect(table.find("a")?.metadata.uid).toBe("2");
  expect(gone).toEqual(["1"]);
});

it("a pod of the same name replaces the former one, which is gone", async () => {
  await using opened = await openTable([pod("a", "1", "9")]);
  opened.table.put(pod("a", "2", "12"));
  expect(opened.gone).toEqual(["1"]);
});

it("a pod that the watch does not report is read by itself", { timeout: 60_000 }, async () => {
  await using opened = await openTable([], () => pod("late", "1", "12"));
  const found = await opened.table.until("late", (one) => one ?? undefined, AbortSignal.timeout(45_000));
  expect(found.metadata.uid).toBe("1");
});

it("a pod that is slow is not read as long as the watch reports others", { timeout: 60_000 }, async () => {
  let reads = 0;
  await using scripted = await scriptedApi(({ path, query }, response) => {
    if (!query.has("watch")) {
      if (!path.endsWith("/pods")) reads++;
      return { status: 200, body: path.endsWith("/pods") ? { metadata: { resourceVersion: "10" }, items: [] } : pod("slow", "1", "11") };
    }
    response.writeHead(200).flushHeaders();
    let version = 12;
    const report = () => response.write(`${JSON.stringify({ type: "MODIFIED", object: pod("other", "2", String(version++)) })}\n`);
    const timer = setInterval(report, 50);
    response.on("close", () => clearInterval(timer));
    return null;
  });
  const table = new PodTable(scripted.api, {
    namespace: "n",
    selector: "",
    noNewsMs: 3_000,
    onChange: () => undefined,
    onGone: () => undefined,
  });
  try {
    await table.listed();
    // Longer than a silent watch is trusted.
    await expect(table.until("slow", () => undefined, AbortSignal.timeout(5_000))).rejects.toThrow();
    expect(reads).toBe(0);
  } finally {
    await table.close();
  }
});

it("the variables of process 1 are those of the image, without the address of the API", () => {
  expect(variablesIn("PATH=/bin\0KUBERNETES_PORT=1\0EMPTY=\0WITH=a=b\0HOME=/\0")).toEqual({
    PATH: "/bin",
    EMPTY: "",
    WITH: "a=b",
    HOME: "/tmp",
  });
});
