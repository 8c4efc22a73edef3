import { randomBytes } from "node:crypto";
import {
  KubernetesEngine,
  type KubernetesEngineOptions,
  type KubernetesObject,
  NO_EGRESS,
  probeCluster,
  type RightsRule,
  type SandboxSpec,
  type ServiceSpec,
} from "@aenv/sandbox";
import { createAccount, type Right, rightsOf } from "@aenv/sandbox/test-account";
import { loadTestImage } from "@aenv/sandbox/test-image";
import { openTestNamespace, type TestNamespace } from "@aenv/sandbox/test-namespace";
import { describeNeeding, type Tree, temporaryTree } from "@aenv/testing";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { find, render } from "./chart.ts";

const { signal } = new AbortController();
const POLICIES = "/apis/networking.k8s.io/v1";
const nameOf = ({ verb, resource }: Right) => `${verb} ${resource}`;

/** What an operation needs: an engine whose account lacks a right, and one of the same group with all rights of the chart. */
interface Engines {
  readonly limited: KubernetesEngine;
  readonly full: KubernetesEngine;
  readonly namespace: TestNamespace;
  /** Another one with the account of the limited one, in a group of its own, with waiting pods. */
  readonly withPool: () => KubernetesEngine;
  /** What the limited ones have logged. */
  readonly lines: readonly string[];
}

const sandboxOf = (): SandboxSpec => ({
  id: `rights-${randomBytes(4).toString("hex")}`,
  command: [],
  listening: { kind: "none" },
  variables: {},
  labels: {},
  startTimeoutMs: 120_000,
});

/** Without replicas: nothing has to start. */
const serviceOf = (more: Partial<ServiceSpec> = {}): ServiceSpec => ({
  id: `rights-${randomBytes(4).toString("hex")}`,
  owner: "ada",
  environment: { name: "shop", version: "1.0.0" },
  replicas: 0,
  image: "aenv.local/none:1",
  command: [],
  port: 8081,
  healthPath: null,
  variables: {},
  storage: null,
  requests: {},
  limits: {},
  ...more,
});

const applied = async ({ services }: KubernetesEngine, spec: ServiceSpec) => (await services.look(spec.id)).apply(spec);
const storage = () => ({ name: `rights-${randomBytes(4).toString("hex")}`, size: "1Mi", mountPath: null });

/** What the server does with each right of its Role. */
const operations: Readonly<Record<string, (engines: Engines) => Promise<unknown>>> = {
  "list pods": ({ limited }) => limited.list(),
  "watch pods": ({ limited }) => limited.create(sandboxOf(), signal),
  "create pods": ({ limited }) => limited.create(sandboxOf(), signal),
  "patch pods": ({ limited }) => limited.create(sandboxOf(), signal),
  // Whether a pod of the same name is that of this start, whose answer was lost.
  "get pods": async ({ limited, full }) => {
    const spec = sandboxOf();
    await full.create(spec, signal);
    return limited.create(spec, signal);
  },
  "delete pods": async ({ limited }) => (await limited.create(sandboxOf(), signal)).destroy(),
  "get pods/log": async ({ limited }) => (await limited.create(sandboxOf(), signal)).tail(1),
  // It goes on without events, and logs it.
  "create events": async ({ limited, namespace, lines }) => {
    const { id } = await limited.create(sandboxOf(), signal);
    const findRefused = () => lines.find((line) => line.startsWith("events about pods are not written"));
    const isWritten = async () => JSON.stringify(await namespace.api.list(namespace.path("events"), {})).includes(id);
    await expect.poll(async () => findRefused() !== undefined || (await isWritten()), { timeout: 60_000 }).toBe(true);
    const refused = findRefused();
    if (refused !== undefined) throw new Error(refused);
  },
  // The pool goes on without the quotas, and logs it.
  "list resourcequotas": async ({ withPool, namespace, lines }) => {
    await withPool().create(sandboxOf(), signal);
    const findRefused = () => lines.find((line) => line.startsWith(`the quotas of namespace ${namespace.name} are not known`));
    const isFilled = async () => (await namespace.pods()).some(({ metadata }) => metadata.labels?.["aenv.io/waiting"] !== undefined);
    await expect.poll(async () => findRefused() !== undefined || (await isFilled()), { timeout: 60_000 }).toBe(true);
    const refused = findRefused();
    if (refused !== undefined) throw new Error(refused);
  },
  "get networkpolicies": ({ limited }) => limited.create(sandboxOf(), signal),
  "list deployments": ({ limited }) => limited.services.look(),
  "create deployments": ({ limited }) => applied(limited, serviceOf()),
  "update deployments": async ({ limited, full }) => {
    const spec = serviceOf();
    await applied(full, spec);
    return applied(limited, { ...spec, variables: { NEW: "1" } });
  },
  "delete deployments": async ({ limited, full }) => {
    const spec = serviceOf();
    await applied(full, spec);
    return limited.services.remove(spec.id);
  },
  // Whose the Deployment is that has the name already.
  "get deployments": async ({ limited, namespace }) => {
    const spec = serviceOf();
    const labels = { app: spec.id };
    const template = { metadata: { labels }, spec: { containers: [{ name: "main", image: spec.image }] } };
    const foreign = { metadata: { name: spec.id }, spec: { replicas: 0, selector: { matchLabels: labels }, template } };
    await namespace.api.create<KubernetesObject>(`/apis/apps/v1/namespaces/${namespace.name}/deployments`, foreign);
    return applied(limited, spec);
  },
  "list services": ({ limited }) => limited.services.look(),
  "create services": ({ limited }) => applied(limited, serviceOf()),
  "update services": async ({ limited, full }) => {
    const spec = serviceOf();
    await applied(full, spec);
    return applied(limited, { ...spec, port: 9000 });
  },
  "delete services": async ({ limited, full }) => {
    const spec = serviceOf();
    await applied(full, spec);
    return limited.services.remove(spec.id);
  },
  "get services": async ({ limited, namespace }) => {
    const spec = serviceOf();
    const foreign = { metadata: { name: spec.id }, spec: { ports: [{ port: 1 }] } };
    await namespace.api.create<KubernetesObject>(namespace.path("services"), foreign);
    return applied(limited, spec);
  },
  "get persistentvolumeclaims": ({ limited }) => limited.services.admit(serviceOf({ storage: storage() })),
  "create persistentvolumeclaims": ({ limited }) => applied(limited, serviceOf({ storage: storage() })),
  "delete persistentvolumeclaims": async ({ limited, full }) => {
    const spec = serviceOf({ storage: storage() });
    await applied(full, spec);
    return limited.services.removeStorage(spec.storage?.name ?? "", spec.owner);
  },
};

describeNeeding("kubernetes", "the account of the server", () => {
  describeNeeding("helm", "with the Role of the chart", () => {
    let namespace: TestNamespace;
    let baseImage: string;
    let home: Tree;
    let rights: readonly Right[];
    let full: Pick<Engines, "limited" | "withPool">;
    const lines: string[] = [];
    const opened: KubernetesEngine[] = [];

    beforeAll(async () => {
      [namespace, baseImage] = await Promise.all([openTestNamespace(), loadTestImage()]);
      home = temporaryTree();
      // The chart installs the policy, and the server only looks for it.
      await namespace.api.create(`${POLICIES}/namespaces/${namespace.name}/networkpolicies`, NO_EGRESS);
      const { rules } = find(await render({ sandboxNamespace: namespace.name }), "Role") as unknown as { rules: RightsRule[] };
      rights = rightsOf(rules);
      full = await open("all", rights);
    }, 180_000);

    afterAll(async () => {
      await Promise.allSettled(opened.map((engine) => engine.close()));
      await namespace?.[Symbol.asyncDispose]();
      home?.[Symbol.dispose]();
    }, 60_000);

    /** An engine with an account that has these rights. The API server takes a moment to know them. */
    async function open(name: string, granted: readonly Right[]): Promise<typeof full> {
      const access = await createAccount(namespace, name, granted);
      const refused = rights.filter((right) => !granted.includes(right)).map(nameOf);
      const expected =
        refused.length === 0 ? { ok: true } : { ok: false, reason: expect.stringContaining(`its account may not ${refused}`) };
      const probe = async () => expect(await probeCluster({ access, namespace: namespace.name })).toMatchObject(expected);
      await vi.waitFor(probe, { timeout: 30_000 });
      const log = (line: string) => void lines.push(line);
      const engine = (more: Partial<KubernetesEngineOptions>) => {
        const made = new KubernetesEngine({ home: home.path, access, namespace: namespace.name, baseImage, log, ...more });
        opened.push(made);
        return made;
      };
      const pool = { min: 1, max: 1, total: 1, idleMs: 3_600_000, roundMs: 500 };
      return { limited: engine({ group: "rights" }), withPool: () => engine({ group: `pool-${name}`, pool }) };
    }

    it("has no right that no operation needs", () => {
      expect(rights.map(nameOf).sort()).toEqual(Object.keys(operations).sort());
    });

    it("can do everything with the rights of the chart", { timeout: 180_000 }, async () => {
      const operated = Object.entries(operations).map(async ([name, operate]) => {
        // These two ask whose an object of the same name is, and refuse then.
        const own = await operate({ ...full, full: full.limited, namespace, lines }).then(
          () => "done",
          (error: { code?: string }) => error.code,
        );
        return [name, own];
      });
      const taken = { "get pods": "sandbox.exists", "get deployments": "service.exists", "get services": "service.exists" };
      const done = Object.fromEntries(Object.keys(operations).map((name) => [name, "done"]));
      expect(Object.fromEntries(await Promise.all(operated))).toEqual({ ...done, ...taken });
    });

    it.each(Object.keys(operations))("names the right that it lacks: %s", { timeout: 180_000 }, async (name) => {
      const [, verb, resource] = /^(\w+) (\S+)$/.exec(name) ?? [];
      lines.length = 0;
      const engines = await open(
        `no-${name.replace(/\W/g, "-")}`,
        rights.filter((right) => nameOf(right) !== name),
      );
      await expect(operations[name]?.({ ...engines, full: full.limited, namespace, lines })).rejects.toThrow(
        `cannot ${verb} resource "${resource}"`,
      );
    });
  });
});
