import type { InstanceRecord } from "@aenv/contract";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { callFunction, callTool, urlOf } from "./calls.ts";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";

/** The root has a process of its own, or shares one; all others share processes. */
describe.each(["instance", "shared"] as const)("a tree whose root has isolation '%s'", { timeout: 300_000 }, (isolation) => {
  const deepest = isolation === "instance" ? "mid/leaf" : "mid";
  let platform: Platform;
  let tree: string;
  beforeAll(async () => {
    platform = await startPlatform({ flags: { startTimeout: "5m" } });
    const leaf = await publish(platform, projects.probe, { isolation: "shared" });
    const uses = [{ name: "leaf", env: `${leaf.split("@")[0]}@^1`, reexport: ["count"] }];
    const mid = isolation === "shared" ? leaf : await publish(platform, projects.nest, { isolation: "shared", deployConfig: { uses } });
    tree = await publish(platform, projects.nest, {
      isolation,
      version: "2.0.0",
      deployConfig: {
        uses: [
          { name: "mid", env: mid, task: "same", reexport: ["*"] },
          { name: "late", env: leaf, when: "demand" },
        ],
      },
    });
  });
  afterAll(() => platform?.close());

  /** Waits for as long as a busy machine needs. */
  const create = async (ref: string, request: Readonly<Record<string, unknown>> = {}) => {
    let made = await platform.create(ref, request);
    while (made.status === "Creating") made = (await platform.demand("GET", `/env-instance/${made.id}?wait=20s`)) as InstanceRecord;
    expect(made).toMatchObject({ status: "Running" });
    return made;
  };
  const below = (id: string, path = deepest, name = "count") => callFunction(platform, id, "child", { path, function: name });
  const count = (id: string) => callTool(urlOf(platform, id), "count");
  const listed = async (query = "") =>
    ((await platform.demand("GET", `/env-instance/list?limit=1000${query}`)) as { items: InstanceRecord[] }).items.filter(
      ({ status }) => status === "Running",
    );
  const paths = async (root: string) =>
    (await listed("&tree=true")).flatMap((one) => (one.root === root && one.path ? one.path : [])).sort();
  const all = (paths: readonly string[]) => paths.filter((path) => isolation === "instance" || path !== "mid/leaf");

  it("is created, listed and deleted as one", async () => {
    const { id } = await create(tree, { seed: 4, task: "one" });
    expect(await paths(id)).toEqual(all(["mid", "mid/leaf"]));
    expect((await listed()).map((one) => one.id)).toEqual([id]);
    expect((await count(id)).text).toBe("1");
    expect(await below(id)).toBe(1);
    // The tool has called the child that is started by its first call, too.
    expect(await paths(id)).toEqual(all(["late", "mid", "mid/leaf"]));
    const one = (await listed("&tree=true")).find(({ root }) => root === id);
    expect(await platform.ask("DELETE", `/env-instance/${one?.id}`)).toMatchObject({
      error: { code: "instance.unsupported" },
    });
    await platform.demand("DELETE", `/env-instance/${id}`);
    expect(await listed("&tree=true")).toEqual([]);
  });

  it("has the re-exported tools of its children, at every level", async () => {
    const { id } = await create(tree);
    expect((await callTool(urlOf(platform, id), "mid__count")).text).toBe("1");
    if (isolation === "instance") {
      expect((await callTool(urlOf(platform, id), "mid__leaf__count")).text).toBe("2");
      const record = (await platform.demand("GET", `/env/${tree.replace("@", "/")}`)) as { metadata: { tools: { name: string }[] } };
      expect(record.metadata.tools.map(({ name }) => name)).toEqual(["count", "mid__count", "mid__leaf__count"]);
    }
    expect(await callTool(urlOf(platform, id), "mid__wait", { ms: 1_200 })).toMatchObject(
      isolation === "shared" ? { text: "waited" } : { status: 200 },
    );
    await platform.demand("DELETE", `/env-instance/${id}`);
  });

  it("is forked with all states, and the copies go on apart", async () => {
    const { id } = await create(tree, { seed: 4 });
    await count(id);
    await count(id);
    const forks = (await platform.demand("POST", `/env-instance/${id}/fork`, { count: 8 })) as { id: string }[];
    expect(new Set(forks.map((fork) => fork.id)).size).toBe(8);
    await Promise.all(forks.flatMap((fork, at) => Array.from({ length: at }, () => count(fork.id))));
    expect(await Promise.all(forks.map((fork) => callFunction(platform, fork.id, "count")))).toEqual([2, 3, 4, 5, 6, 7, 8, 9]);
    expect(await callFunction(platform, id, "count")).toBe(2);
    await Promise.all([id, ...forks.map((fork) => fork.id)].map((one) => platform.demand("DELETE", `/env-instance/${one}`)));
    expect(await listed("&tree=true")).toEqual([]);
  });

  it("begins a new episode with new children, which have the same seeds for the same seed", async () => {
    const { id } = await create(tree, { seed: 4 });
    await count(id);
    const seeds = async () =>
      (await listed("&tree=true"))
        .filter((one) => one.root === id)
        .map((one) => [one.path, one.seed])
        .sort();
    const before = (await seeds()).filter(([path]) => path !== "late");
    await platform.demand("POST", `/env-instance/${id}/reset`, { seed: 5 });
    await vi.waitFor(async () => expect(await paths(id)).toEqual(all(["mid", "mid/leaf"])));
    expect(await below(id)).toBe(0);
    expect(await seeds()).not.toEqual(before);
    await platform.demand("POST", `/env-instance/${id}/reset`, { seed: 4 });
    await vi.waitFor(async () => expect(await seeds()).toEqual(before));
    await platform.demand("DELETE", `/env-instance/${id}`);
  });

  it("is in the provenance of a trajectory, with versions and digests", async () => {
    const { id } = await create(tree, { seed: 4, task: "one" });
    const response = await fetch(urlOf(platform, id, "/episode/children"));
    const { data } = (await response.json()) as { data: { path: string; environment: string; digest: string; task: string | null }[] };
    const shown = data.map(({ path, task }) => `${path} ${task}`).sort();
    expect(shown).toEqual(all(["mid one", "mid/leaf null"].filter((one) => isolation === "instance" || one === "mid one")));
    for (const { environment, digest } of data) {
      expect(environment).toMatch(/^[a-z-]+@1\.0\.0$/);
      expect(digest).toMatch(/^sha256:[0-9a-f]{64}$/);
    }
    await platform.demand("DELETE", `/env-instance/${id}`);
  });

  it("is stored as one snapshot, from which instances start", async () => {
    const { id } = await create(tree, { seed: 4 });
    await count(id);
    await platform.demand("POST", `/env-instance/${id}/snapshot`, { name: `at-one-${isolation}` });
    await count(id);
    const copy = await create(tree, { snapshot: `at-one-${isolation}` });
    expect(await callFunction(platform, copy.id, "count")).toBe(1);
    expect((await count(copy.id)).text).toBe("2");
    expect(await below(copy.id)).toBe(2);
    expect(await platform.ask("POST", `/env-instance/${id}/snapshot`, { fidelity: "files" })).toMatchObject({ success: false });
    for (const one of [id, copy.id]) await platform.demand("DELETE", `/env-instance/${one}`);
  });
});
