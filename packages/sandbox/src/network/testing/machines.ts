import { type ChildProcess, execFile, fork, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { EgressPolicy } from "@aenv/contract";
import { prefixOf } from "../subnet.ts";

/** A network as the server of the test reports it. */
export interface TakenNetwork {
  readonly name: string;
  readonly address: string;
  readonly hostAddress: string;
  readonly namespacePath: string;
  readonly resolvConf: string;
}

/** A program in a namespace. */
export class Actor {
  readonly child: ChildProcess;
  #next = 1;

  constructor(namespace: string, program: URL) {
    this.child = fork(fileURLToPath(program), [], {
      execPath: "nsenter",
      execArgv: [`--net=/run/netns/${namespace}`, process.execPath],
    });
  }

  async call<T = unknown>(method: string, ...args: readonly unknown[]): Promise<T> {
    const id = this.#next++;
    this.child.send({ id, method, args });
    for await (const [message] of on(this.child)) {
      if (message.id !== id) continue;
      if (message.error !== undefined) throw new Error(message.error);
      return message.result as T;
    }
    throw new Error(`the program ended during ${method}`);
  }

  take(): Promise<TakenNetwork> {
    return this.call("take");
  }

  setEgress(network: TakenNetwork, policy: EgressPolicy): Promise<void> {
    return this.call("setEgress", network.name, policy);
  }

  async kill(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    this.child.kill("SIGKILL");
    await once(this.child, "exit");
  }
}

interface Reply {
  readonly id: number;
  readonly error?: string;
  readonly result?: unknown;
}

async function* on(child: ChildProcess): AsyncGenerator<[Reply]> {
  const replies: Reply[] = [];
  let wake = () => {};
  let hasEnded = false;
  const onMessage = (message: unknown) => {
    replies.push(message as Reply);
    wake();
  };
  const onExit = () => {
    hasEnded = true;
    wake();
  };
  child.on("message", onMessage);
  child.on("exit", onExit);
  try {
    while (!hasEnded) {
      const reply = replies.shift();
      if (reply !== undefined) yield [reply];
      else
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
    }
  } finally {
    child.off("message", onMessage);
    child.off("exit", onExit);
  }
}

let count = 0;

/**
 * Two machines that are namespaces of this one: `machine` runs the server, and `outside` is the rest of the world, its only way out.
 * Nothing of the real machine is reachable from them.
 */
export class Machines {
  readonly home = mkdtempSync(join(tmpdir(), "aenv-network-"));
  readonly machine: string;
  readonly outside: string;
  /** Addresses of the outside, of all kinds. */
  static readonly addresses = ["203.0.113.2", "9.9.9.9", "9.9.9.10", "10.1.0.5", "169.254.169.254", "100.100.100.200"] as const;
  /** The address of the machine on the outside's network. */
  static readonly own = "203.0.113.1";
  readonly #actors: Actor[] = [];

  /** With additional routes of the machine, as commands of `ip`. */
  constructor(...routes: readonly string[]) {
    const id = `aet${process.pid.toString(36)}${(count++).toString(36)}`;
    this.machine = `${id}m`;
    this.outside = `${id}o`;
    run("ip", ["-batch", "-"], `netns add ${this.machine}\nnetns add ${this.outside}\n`);
    run(
      "ip",
      ["-n", this.machine, "-batch", "-"],
      [
        "link set lo up",
        `link add wan type veth peer name wan netns ${this.outside}`,
        `addr add ${Machines.own}/24 dev wan`,
        "link set wan up",
        "route add default via 203.0.113.2",
        ...routes,
      ],
    );
    run(
      "ip",
      ["-n", this.outside, "-batch", "-"],
      [
        "link set lo up",
        "link set wan up",
        ...Machines.addresses.map((address) => `addr add ${address}/${address.startsWith("203") ? 24 : 32} dev wan`),
      ],
    );
  }

  start(namespace: string, program = new URL("actor.ts", import.meta.url)): Actor {
    const actor = new Actor(namespace, program);
    this.#actors.push(actor);
    return actor;
  }

  /** Ends all programs, and removes everything that they and this created, also after a failure. */
  async remove(): Promise<void> {
    for (const actor of this.#actors) await actor.kill();
    const prefix = prefixOf(this.home);
    const list = spawnSync("ip", ["netns", "list"], { encoding: "utf8" }).stdout.split("\n");
    for (const name of list.map((line) => line.split(" ")[0] ?? "").filter((one) => one.startsWith(prefix)))
      spawnSync("ip", ["netns", "del", name]);
    for (const name of [this.machine, this.outside]) spawnSync("ip", ["netns", "del", name]);
    rmSync(this.home, { recursive: true, force: true });
  }

  /** What is left in the machine: names of interfaces and namespaces, tables and routes of the home. */
  remains(prefix = prefixOf(this.home)): string[] {
    const inMachine = (...command: string[]) =>
      spawnSync("nsenter", [`--net=/run/netns/${this.machine}`, ...command], { encoding: "utf8" }).stdout.split("\n");
    const lines = [...inMachine("ip", "netns"), ...inMachine("ip", "-o", "link"), ...inMachine("nft", "list", "tables")];
    return [...lines.filter((line) => line.includes(prefix)), ...inMachine("ip", "route").filter((line) => line.includes("blackhole"))];
  }
}

/** What a program sees that connects from a namespace: the greeting, or the reason of the failure. */
export async function dial(network: TakenNetwork, host: string, port: number): Promise<string> {
  return await inSandbox(network, `exec 3<>/dev/tcp/${host}/${port} && head -n 1 <&3`);
}

/** Runs a script of bash in the namespace, with the name server of the network. */
export async function inSandbox(network: TakenNetwork, script: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "aenv-resolv-"));
  try {
    const file = join(folder, "resolv.conf");
    writeFileSync(file, network.resolvConf);
    const inside = `mount --bind ${file} /etc/resolv.conf && exec timeout 20 bash -c "$0"`;
    const args = [`--net=${network.namespacePath}`, "unshare", "--mount", "sh", "-c", inside, script];
    return await new Promise((resolve) => {
      execFile("nsenter", args, { timeout: 30_000 }, (error, stdout, stderr) => {
        resolve(error === null ? stdout.trim() : failureOf(stderr));
      });
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function failureOf(stderr: string): string {
  return (
    ["Connection refused", "Name or service not known", "Temporary failure in name resolution"].find((one) => stderr.includes(one)) ??
    `failed: ${stderr.trim()}`
  );
}

function run(command: string, args: readonly string[], input: string | readonly string[]): void {
  const { status, stderr } = spawnSync(command, args, { encoding: "utf8", input: typeof input === "string" ? input : input.join("\n") });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}: ${stderr}`);
}
