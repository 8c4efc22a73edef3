import { execFileSync, spawnSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { vi } from "vitest";
import type { Architecture } from "../../../engine/architecture.ts";
import type { SandboxAddress, SandboxRuntime } from "../../../engine/engine.ts";
import { connectInit, type InitConnection } from "../../../init/connection.ts";
import { initProgram } from "../../../init/program.ts";
import type { SandboxMount } from "../../../spec/mounts.ts";
import { ociConfig } from "../../config.ts";
import { openRuntime } from "../open.ts";
import type { OciRuntime } from "../runtime.ts";

const INIT_PORT = 7_000;

export interface TestSandbox {
  readonly id: string;
  readonly bundle: string;
  readonly logPath: string;
  readonly address: SandboxAddress;
}

export interface TestRoot {
  /** `empty`: nothing but the init. `machine`: the programs of this machine. */
  readonly root: "empty" | "machine";
  readonly hostname?: string;
  readonly mounts?: readonly SandboxMount[];
  readonly memoryMb?: number;
}

/** Sandboxes of one runtime with the init as process 1, each in its own network. `close` removes all that is left of them. */
export class TestSandboxes {
  readonly folder: string;
  readonly runtime: OciRuntime;
  readonly #keys = generateKeyPairSync("ed25519");
  readonly key = this.#keys.privateKey;
  readonly #init: string;
  readonly #name = `ae${process.pid.toString(36)}`;
  readonly #networks: string[] = [];
  #count = 0;

  private constructor(folder: string, runtime: OciRuntime, init: string) {
    this.folder = folder;
    this.runtime = runtime;
    this.#init = init;
  }

  static async open(name: SandboxRuntime, program: string = name): Promise<TestSandboxes> {
    const folder = mkdtempSync(join(tmpdir(), "aenv-runtime-"));
    chmodSync(folder, 0o755);
    return new TestSandboxes(
      folder,
      await openRuntime(name, { root: join(folder, "runtime"), program }),
      await initProgram(process.arch as Architecture),
    );
  }

  /** Everything but the start. */
  prepare({ root, hostname = "inside", mounts = [], memoryMb }: TestRoot): TestSandbox {
    const id = `${this.#name}-${++this.#count}`;
    const bundle = join(this.folder, id);
    const rootPath = join(bundle, "rootfs");
    mkdirSync(rootPath, { recursive: true });
    if (root === "machine") {
      for (const name of ["bin", "lib", "lib64", "sbin"]) symlinkSync(`usr/${name}`, join(rootPath, name));
      for (const name of ["etc", "tmp", "root", "usr"]) mkdirSync(join(rootPath, name));
      writeFileSync(join(rootPath, "etc/passwd"), "root:x:0:0::/root:/bin/bash\nnobody:x:65534:65534::/:/bin/sh\n");
    }
    const network = this.#createNetwork();
    const { x = "" } = this.#keys.publicKey.export({ format: "jwk" });
    const config = ociConfig({
      runtime: this.runtime.name,
      architecture: process.arch as Architecture,
      hostname,
      rootPath,
      initPath: this.#init,
      // All addresses: a restored sandbox has another one.
      initArguments: ["--listen", `tcp:0.0.0.0:${INIT_PORT}`, "--key", Buffer.from(x, "base64url").toString("base64")],
      networkNamespace: network.namespacePath,
      userMapping: null,
      mounts: [...(root === "machine" ? [{ kind: "bind", source: "/usr", target: "/usr", isReadOnly: true } as const] : []), ...mounts],
      resources: { ...(memoryMb !== undefined && { memoryMb }) },
      groupPath: `/${this.#name}/${id}`,
    });
    writeFileSync(join(bundle, "config.json"), JSON.stringify(config));
    return { id, bundle, logPath: join(bundle, "log"), address: { kind: "tcp", host: network.address, port: INIT_PORT } };
  }

  async start(root: TestRoot): Promise<TestSandbox> {
    const sandbox = this.prepare(root);
    await this.runtime.run(sandbox.id, sandbox.bundle, { logPath: sandbox.logPath, signal: AbortSignal.timeout(60_000) });
    return sandbox;
  }

  connect({ address }: TestSandbox): Promise<InitConnection> {
    return vi.waitFor(() => connectInit(address, this.key, AbortSignal.timeout(10_000)), { timeout: 30_000, interval: 5 });
  }

  async close(): Promise<void> {
    for (const id of await this.runtime.list()) await this.runtime.remove(id);
    for (const name of this.#networks) spawnSync("ip", ["netns", "del", name]);
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** One end of a pair of interfaces is in the namespace, the other one on this machine. They disappear with the namespace. */
  #createNetwork(): { namespacePath: string; address: string } {
    const name = `${this.#name}n${this.#networks.length}`;
    this.#networks.push(name);
    // A private range that nothing else here uses: 4 addresses for each sandbox.
    const base = (process.pid % 64) * 1_024 + this.#networks.length * 4;
    const at = (offset: number) => `198.18.${((base + offset) >> 8) & 255}.${(base + offset) & 255}`;
    execFileSync("ip", ["netns", "add", name]);
    const batch = [
      `link add ${name} type veth peer name eth0 netns ${name}`,
      `address add ${at(1)}/30 dev ${name}`,
      `link set ${name} up`,
      `netns exec ${name} ip address add ${at(2)}/30 dev eth0`,
    ];
    for (const line of batch) execFileSync("ip", line.split(" "));
    execFileSync("ip", ["-n", name, "link", "set", "lo", "up"]);
    execFileSync("ip", ["-n", name, "link", "set", "eth0", "up"]);
    execFileSync("ip", ["-n", name, "route", "add", "default", "via", at(1)]);
    return { namespacePath: `/var/run/netns/${name}`, address: at(2) };
  }
}
