import { expect, it } from "vitest";
import type { SandboxSpec } from "../../engine/engine.ts";
import { defaultTemplates } from "../pod/default-templates.ts";
import { type PodInput, podOf } from "../pod/pod.ts";
import type { Pod } from "../pod/types.ts";
import { claimOf, digestOf, freeName, isWaiting, kindOf, type PodKind, withKind } from "./kind.ts";

function input(spec: Partial<SandboxSpec> = {}, more: Partial<PodInput> = {}): PodInput {
  return {
    homeId: "home",
    spec: { id: "one", command: ["run"], variables: {}, labels: {}, startTimeoutMs: 1_000, ...spec },
    template: defaultTemplates.singleContainer as Pod,
    baseImage: "base:1",
    state: { format: 1, port: 8081, hasInit: true, memoryMb: null, attempt: "a", startsUntil: 0 },
    initKey: "KEY",
    egress: "none",
    ...more,
  };
}

function digest(spec: Partial<SandboxSpec> = {}, more: Partial<PodInput> = {}): string {
  return (kindOf(input(spec, more)) as PodKind).digest;
}

it("sandboxes share waiting pods if they differ in what is told to the init only", () => {
  const same = digest();
  expect(digest({ id: "two", command: ["other"], variables: { TOKEN: "x" }, labels: { server: "s" }, folder: "/f" })).toBe(same);
  expect(digest({ subject: { environment: "shop", labels: { team: "blue" } } })).toBe(same);
  const dual = defaultTemplates.dualContainer as Pod;
  const others = [
    digest({ image: "task:1" }),
    digest({ resources: { memoryMb: 512 } }),
    digest({ resources: { cpus: 1 } }),
    digest({}, { egress: "open" }),
    digest({}, { template: dual }),
    digest({}, { homeId: "other" }),
    digest({}, { initKey: "OTHER" }),
    digest({}, { runtimeClass: "gvisor" }),
    digest({ image: "task:2" }),
  ];
  expect(new Set([same, ...others]).size).toBe(others.length + 1);
});

it("no pod waits with its image's own program", () => {
  expect(kindOf(input({}, { state: { ...input().state, hasInit: false } }))).toBeNull();
});

it("a waiting pod names its pool and no sandbox, and becomes one's by a patch with its version", () => {
  const wanted = input({ labels: { server: "s1" }, subject: { environment: "shop" }, variables: { TOKEN: "x" } });
  const kind = kindOf(wanted) as PodKind;
  const waiting = kind.waiting("pool-1");
  expect([isWaiting(waiting), digestOf(waiting)]).toEqual([true, kind.digest]);
  expect(JSON.stringify(waiting)).not.toMatch(/"one"|shop|s1|aenv\.io\/sandbox/);
  const found = { ...waiting, metadata: { ...waiting.metadata, uid: "u", resourceVersion: "7" } };
  const patch = claimOf(found, podOf(wanted));
  expect(patch).toMatchObject({
    metadata: {
      uid: "u",
      resourceVersion: "7",
      labels: { "aenv.io/waiting": null, "business/aenv-name": "shop", "platform.aenv.io/server": "s1" },
      annotations: { "aenv.io/sandbox": "one" },
    },
  });
  // Everything that cannot be changed is the same already.
  expect(waiting.spec).toEqual(podOf(wanted).spec);
  const created = withKind(podOf(wanted), kind);
  expect([isWaiting(created), digestOf(created)]).toEqual([false, kind.digest]);
});

it("servers that see the same pods choose the same name", () => {
  const taken = new Set(["pool-d-1", "pool-d-2", "pool-d-4"]);
  expect(freeName("d", (name) => taken.has(name))).toBe("pool-d-3");
});
