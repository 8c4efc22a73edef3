import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describeNeeding } from "@aenv/testing";
import { afterAll, beforeAll } from "vitest";
import { type Behaviour, describeEngine } from "../conformance.ts";
import type { Sandbox } from "../engine/engine.ts";
import { TEST_PROGRAM } from "../fixtures/test-root.ts";
import { KubernetesEngine } from "./engine.ts";
import { HOME_LABEL } from "./pod/names.ts";
import type { KubernetesSandbox } from "./sandbox.ts";
import { openTestNamespace, type TestNamespace } from "./testing/namespace.ts";
import { loadTestImage } from "./testing/test-image.ts";

describeNeeding("kubernetes", "the kubernetes engine", () => {
  let namespace: TestNamespace;
  let image: string;

  beforeAll(async () => {
    [namespace, image] = await Promise.all([openTestNamespace(), loadTestImage()]);
  }, 180_000);

  afterAll(async () => {
    await namespace?.[Symbol.asyncDispose]();
  }, 60_000);

  function command(behaviour: Behaviour): readonly string[] {
    return behaviour === "missing" ? ["/nowhere/no-such-program"] : ["/usr/bin/node", TEST_PROGRAM, behaviour];
  }

  function open(home: string): KubernetesEngine {
    const { access, name } = namespace;
    // Pods of other test files may fill the node for a while.
    return new KubernetesEngine({ home, access, namespace: name, baseImage: image, unschedulableMs: 60_000 });
  }

  async function leftovers(home: string): Promise<string[]> {
    const id = readFileSync(join(home, "kubernetes/home-id"), "utf8");
    const ofHome = (await namespace.pods()).filter(({ metadata }) => metadata.labels?.[HOME_LABEL] === id);
    return ofHome.map(({ metadata }) => metadata.name);
  }

  /** Processes of a pod as the machine numbers them, if its node is this machine. */
  async function processes(sandbox: Sandbox): Promise<number[]> {
    const { uid } = sandbox as KubernetesSandbox;
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name) && groupsOf(name).includes(uid))
      .map(Number);
  }

  describeEngine("kubernetes", { open, command, processes, leftovers, startTimeoutMs: 60_000 });
});

function groupsOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cgroup`, "utf8");
  } catch {
    return "";
  }
}
