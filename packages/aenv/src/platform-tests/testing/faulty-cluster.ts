import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { requiredRights } from "@aenv/sandbox";
import { createAccount, kubeconfigOf, rightsOf } from "@aenv/sandbox/test-account";
import { openTestNamespace, type TestNamespace } from "@aenv/sandbox/test-namespace";
import { BreakableProxy } from "@aenv/sandbox/test-proxy";
import { type RedisServer, startRedis } from "@aenv/testing";
import { loadBaseImage } from "../../testing/base-image.ts";
import { type ServerProcess, type Starting, startServerProcess } from "../crash/server-process.ts";
import { endProcesses, processesOf } from "../processes.ts";

export type TestPod = Awaited<ReturnType<TestNamespace["pods"]>>[number];

/** Servers on one Redis whose sandboxes are pods. Their account has the rights of the chart. What is between them can be cut. */
export class FaultyCluster implements AsyncDisposable {
  readonly namespace: TestNamespace;
  readonly redis: RedisServer;
  /** The way to the API server. */
  readonly api: BreakableProxy;
  /** The way to Redis. */
  readonly store: BreakableProxy;
  readonly servers: ServerProcess[] = [];
  readonly #home = mkdtempSync(join(tmpdir(), "aenv-cluster-"));
  readonly #started: Starting[] = [];
  readonly #flags: Readonly<Record<string, unknown>>;

  private constructor(parts: Pick<FaultyCluster, "namespace" | "redis" | "api" | "store">, flags: Readonly<Record<string, unknown>>) {
    this.namespace = parts.namespace;
    this.redis = parts.redis;
    this.api = parts.api;
    this.store = parts.store;
    this.#flags = flags;
  }

  static async open(servers: number, flags: Readonly<Record<string, unknown>> = {}): Promise<FaultyCluster> {
    const [namespace, baseImage, redis] = await Promise.all([
      openTestNamespace(),
      loadBaseImage(),
      startRedis({ appendonly: "yes", appendfsync: "always" }),
    ]);
    const [api, store] = await Promise.all([
      BreakableProxy.open(new URL(namespace.access.server)),
      BreakableProxy.open(new URL(redis.url)),
    ]);
    const pods = { engine: "kubernetes", kubeNamespace: namespace.name, baseImage, poolMin: 0, poolMax: 0 };
    const all = { ...pods, store: `redis://127.0.0.1:${store.port}`, round: "200ms", startTimeout: "30s", sandboxesReady: 0, ...flags };
    const cluster = new FaultyCluster({ namespace, redis, api, store }, all);
    const access = await createAccount(namespace, "server", rightsOf(requiredRights));
    writeFileSync(cluster.#kubeconfig, kubeconfigOf({ ...access, server: `https://127.0.0.1:${api.port}` }), { mode: 0o600 });
    await Promise.all(Array.from({ length: servers }, () => cluster.startServer()));
    return cluster;
  }

  get #kubeconfig(): string {
    return join(this.#home, "kubeconfig");
  }

  /** `flags`: settings in which it differs from the others. */
  async startServer(flags: Readonly<Record<string, unknown>> = {}): Promise<ServerProcess> {
    const starting = startServerProcess(this.#home, { flags: { ...this.#flags, kubeconfig: this.#kubeconfig, ...flags } });
    this.#started.push(starting);
    const server = await starting.ready;
    this.servers.push(server);
    return server;
  }

  /** Kills it like the OOM killer does. */
  async killServer(server: ServerProcess): Promise<void> {
    this.servers.splice(this.servers.indexOf(server), 1);
    await server.kill();
  }

  /** Those that nobody has deleted yet. */
  async pods(): Promise<readonly TestPod[]> {
    return (await this.namespace.pods()).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  }

  deletePod({ metadata }: TestPod): Promise<boolean> {
    return this.namespace.api.delete(this.namespace.path("pods", metadata.name), { graceSeconds: 0 });
  }

  /** Everything that the servers have logged. */
  log(): string {
    return this.servers.map((server) => server.log()).join("\n");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled(this.#started.map((server) => server.kill()));
    await endProcesses(await processesOf(this.#home));
    await this.api[Symbol.asyncDispose]();
    await this.store[Symbol.asyncDispose]();
    await this.redis[Symbol.asyncDispose]();
    await this.namespace[Symbol.asyncDispose]();
    rmSync(this.#home, { recursive: true, force: true });
  }
}

/** Whether it waits for a sandbox. */
export function isWaiting({ metadata }: Pick<TestPod, "metadata">): boolean {
  return metadata.labels?.["aenv.io/waiting"] !== undefined;
}
