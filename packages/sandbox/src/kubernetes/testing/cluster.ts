import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { temporaryTree } from "@aenv/testing";
import { afterAll, afterEach, beforeAll } from "vitest";
import type { SandboxSpec } from "../../engine/engine.ts";
import { TEST_PROGRAM } from "../../fixtures/test-root.ts";
import { KubernetesEngine } from "../engine.ts";
import type { KubernetesEngineOptions } from "../options.ts";
import type { KubernetesSandbox } from "../sandbox.ts";
import { openTestNamespace, type TestNamespace } from "./namespace.ts";
import { loadTestImage } from "./test-image.ts";

export const TIMEOUT_MS = 180_000;
export const START_MS = 120_000;

/** Engines on the cluster for tests, in a namespace for this test file. What a test has opened is closed at its end. */
export interface TestCluster {
  readonly namespace: TestNamespace;
  readonly image: string;
  /** Called at the end of the test, the last one first. */
  readonly ends: (() => unknown)[];
  folder(): string;
  open(options?: Partial<KubernetesEngineOptions>): KubernetesEngine;
  create(engine: KubernetesEngine, more?: Partial<SandboxSpec>): Promise<KubernetesSandbox>;
}

/** The cluster of a `describe`; to be called in its body. */
export function useTestCluster(): TestCluster {
  const { signal } = new AbortController();
  const ends: (() => unknown)[] = [];
  let namespace: TestNamespace;
  let image: string;

  beforeAll(async () => {
    [namespace, image] = await Promise.all([openTestNamespace(), loadTestImage()]);
  }, TIMEOUT_MS);

  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  }, TIMEOUT_MS);

  afterAll(async () => {
    await namespace?.[Symbol.asyncDispose]();
  }, TIMEOUT_MS);

  const folder = () => {
    const tree = temporaryTree();
    ends.push(() => rmSync(tree.path, { recursive: true, force: true }));
    return tree.path;
  };
  return {
    get namespace() {
      return namespace;
    },
    get image() {
      return image;
    },
    ends,
    folder,
    open: ({ home = folder(), ...options } = {}) => {
      const { access, name } = namespace;
      // Pods of other test files may fill the node for a while.
      const engine = new KubernetesEngine({ home, access, namespace: name, baseImage: image, unschedulableMs: 60_000, ...options });
      ends.push(async () => {
        for (const sandbox of await engine.list()) await sandbox.destroy();
        await engine.close();
      });
      return engine;
    },
    create: async (engine, more = {}) => {
      const id = `one-${randomBytes(6).toString("hex")}`;
      const command = ["/usr/bin/node", TEST_PROGRAM, "serve"];
      const spec = { id, command, variables: {}, labels: {}, startTimeoutMs: START_MS, ...more };
      return (await engine.create(spec, signal)) as KubernetesSandbox;
    },
  };
}
