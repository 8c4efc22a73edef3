import { type ChildProcess, spawn } from "node:child_process";
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { vi } from "vitest";
import type { SandboxAddress } from "../../engine/engine.ts";
import { connectInit, type InitConnection } from "../connection.ts";

/** An init that runs as an ordinary process of this machine, not as process 1 of a sandbox. */
export class StartedInit {
  readonly address: SandboxAddress;
  readonly key: KeyObject;
  readonly exited: Promise<number | null>;
  readonly #folder = mkdtempSync(join(tmpdir(), "aenv-init-"));
  readonly #child: ChildProcess;

  constructor(program: string) {
    const { publicKey, privateKey } = generateKeyPairSync("ed25519");
    const path = join(this.#folder, "socket");
    this.address = { kind: "unix", path };
    this.key = privateKey;
    const rawKey = Buffer.from(publicKey.export({ format: "jwk" }).x ?? "", "base64url").toString("base64");
    // With one more open file, as a container runtime may leave them.
    this.#child = spawn(program, ["--listen", `unix:${path}`, "--key", rawKey], { stdio: ["ignore", "inherit", "inherit", "pipe"] });
    this.exited = once(this.#child, "exit").then(([code]) => code);
  }

  connect(key: KeyObject = this.key): Promise<InitConnection> {
    return vi.waitFor(() => connectInit(this.address, key, AbortSignal.timeout(10_000)), { timeout: 10_000, interval: 5 });
  }

  async stop(): Promise<void> {
    this.#child.kill("SIGTERM");
    await this.exited;
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
