import { execFileSync } from "node:child_process";
import type { EgressPolicy } from "@aenv/contract";
import { type ComponentName, describeNeeding } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { RefusedConnection, SandboxAddress, SandboxRuntime, SandboxSpec } from "../../engine/engine.ts";
import { type Actor, Machines } from "./machines.ts";

export const PORT = 8443;
/** How an address of the outside greets. */
export const OUTSIDE = `outside ${Machines.own}`;

const program = new URL("engine-actor.ts", import.meta.url);

/** What an engine needs on the machine of a test. */
export interface EgressMachine extends AsyncDisposable {
  /** The daemon's socket, for the engine docker. */
  readonly socket: string | null;
  /** What is left of a home with the daemon. */
  remains?(home: string): Promise<readonly string[]>;
}

export interface EgressCase {
  readonly component: ComponentName;
  readonly start: (namespace: string) => Promise<EgressMachine>;
  readonly runtime?: SandboxRuntime;
  /** Begins the names of what a home has in the kernel. */
  readonly prefix: (home: string) => string;
  /** What a connection and a name lead to in a sandbox that was never allowed any. */
  readonly withoutPolicy: readonly [string, string];
  /** Why a sandbox without connections cannot get any while it runs. */
  readonly notLater?: string;
  /** Claims of this engine only. */
  readonly more?: (world: EgressWorld) => void;
}

export interface Made extends AsyncDisposable {
  readonly id: string;
  readonly init: SandboxAddress;
}

/** The machine of a test, and a server with the engine on it. */
export interface EgressWorld {
  readonly machines: Machines;
  readonly socket: string | null;
  readonly server: Actor;
  make(egress: EgressPolicy, more?: Partial<SandboxSpec>): Promise<Made>;
  change(sandbox: Made, policy: EgressPolicy): Promise<void>;
  run(sandbox: Made, script: string, ...args: readonly string[]): Promise<string>;
  /** What connections lead to, in order: the greeting, or the code of the error. */
  dial(from: Made, ...targets: readonly string[]): Promise<string[]>;
  startStranger(): Promise<Actor>;
}

/** What the policies of every engine lead to that restricts outgoing connections by destinations. */
export function describeEgress(name: string, engineCase: EgressCase): void {
  const { runtime, withoutPolicy, notLater, prefix } = engineCase;
  describeNeeding(engineCase.component, `outgoing connections of a sandbox of ${name}`, () =>
    describeNeeding("network-namespaces", "on a machine with neighbours", () => {
      let machines: Machines;
      let own: EgressMachine;
      let server: Actor;
      /** Runs programs in sandboxes, also while there is no server. */
      let visitor: Actor;
      let machinePort: number;
      let made = 0;

      beforeAll(async () => {
        machines = new Machines();
        const [machine, outside] = [machines.start(machines.machine), machines.start(machines.outside)];
        for (const port of [PORT, 8080]) await outside.call("listen", "0.0.0.0", port, "outside");
        machinePort = await machine.call<number>("listen", "0.0.0.0", 0, "machine");
        visitor = machines.start(machines.machine, program);
        own = await engineCase.start(machines.machine);
        server = await startServer();
      }, 120_000);

      afterAll(async () => {
        await own?.[Symbol.asyncDispose]();
        await machines?.remove();
      }, 60_000);

      async function startServer(): Promise<Actor> {
        const actor = machines.start(machines.machine, program);
        await actor.call("name", "allowed.example", "9.9.9.9");
        await actor.call("name", "other.example", "9.9.9.10");
        await actor.call("name", "rebound.example", "10.1.0.5");
        await actor.call("open", machines.home, own.socket);
        return actor;
      }

      const make: EgressWorld["make"] = async (egress, more = {}) => {
        const id = `sandbox-${++made}`;
        const spec = { ...(runtime !== undefined && { runtime }), ...more };
        const init = await server.call<SandboxAddress>("create", id, egress, spec);
        return { id, init, [Symbol.asyncDispose]: () => server.call("destroy", id) };
      };
      const change: EgressWorld["change"] = ({ id }, policy) => server.call("setEgress", id, policy);
      const run: EgressWorld["run"] = ({ init }, script, ...args) =>
        visitor.call<string>("run", machines.home, init, ["/usr/bin/node", "-e", script, ...args]);
      const dial: EgressWorld["dial"] = async (from, ...targets) => JSON.parse(await run(from, DIAL, ...targets)) as string[];

      it("lead nowhere without a policy", async () => {
        await using sandbox = await make("none");
        expect(await dial(sandbox, `9.9.9.9:${PORT}`, `allowed.example:${PORT}`)).toEqual(withoutPolicy);
      }, 60_000);

      it("lead to listed names and ports only; others fail at once, and are reported", async () => {
        await using sandbox = await make({ allow: [`allowed.example:${PORT}`, "rebound.example", "10.1.0.0/16:8080"] });
        const expected: Record<string, string> = {
          // Not before the name was looked up.
          [`9.9.9.9:${PORT}`]: "ECONNREFUSED",
          [`allowed.example:${PORT}`]: OUTSIDE,
          "allowed.example:8080": "ECONNREFUSED",
          [`other.example:${PORT}`]: "ENOTFOUND",
          [`9.9.9.10:${PORT}`]: "ECONNREFUSED",
          "10.1.0.5:8080": OUTSIDE,
          "rebound.example:8080": OUTSIDE,
          [`rebound.example:${PORT}`]: "ECONNREFUSED",
        };
        expect(await dial(sandbox, ...Object.keys(expected))).toEqual(Object.values(expected));
        const reported = [
          { sandboxId: sandbox.id, host: "other.example", port: null },
          { sandboxId: sandbox.id, host: "9.9.9.10", port: PORT },
          { sandboxId: sandbox.id, host: "9.9.9.9", port: 8080 },
        ];
        await expect.poll(() => server.call<RefusedConnection[]>("refused"), { timeout: 20_000 }).toEqual(expect.arrayContaining(reported));
      }, 60_000);

      it.each<[string, EgressPolicy]>([
        ["open", "open"],
        ["every address", { allow: ["0.0.0.0/0"] }],
      ])(
        "never lead to the machine, to metadata services or to other sandboxes: %s",
        async (_, policy) => {
          await using sandbox = await make(policy);
          await using other = await make("open");
          const addresses = JSON.parse(await run(other, LISTEN)) as string[];
          const mine = JSON.parse(await run(sandbox, ADDRESSES)) as string[];
          expect([addresses.length, mine.length]).toEqual([1, 1]);
          // This machine's ends of both.
          const ends = [...addresses, ...mine].map((address) => address.replace(/\d+$/, (last) => String(Number(last) - 1)));
          const elsewhere = [
            ...ends.map((address) => `${address}:${machinePort}`),
            `${Machines.own}:${machinePort}`,
            `169.254.169.254:${PORT}`,
            `100.100.100.200:${PORT}`,
          ];
          const forbidden = [...addresses.map((address) => `${address}:7000`), ...elsewhere];
          const isOpen = policy === "open";
          expect(await dial(sandbox, `9.9.9.10:${PORT}`, "other.example:8080", `10.1.0.5:${PORT}`)).toEqual([
            OUTSIDE,
            OUTSIDE,
            isOpen ? "ECONNREFUSED" : OUTSIDE,
          ]);
          expect(await dial(sandbox, ...forbidden)).toEqual(forbidden.map(() => "ECONNREFUSED"));
          // Without the rules they answer; other sandboxes only if the daemon lets them.
          const nft = (...words: string[]) =>
            execFileSync("nsenter", [`--net=/run/netns/${machines.machine}`, "nft", ...words], { encoding: "utf8" });
          const opened = ["from-sandbox", "forwarded"].map((chain) => {
            const place = ["inet", prefix(machines.home), chain];
            const [, handle = ""] = /# handle (\d+)/.exec(nft("--echo", "--handle", "insert", "rule", ...place, "accept")) ?? [];
            return [...place, "handle", handle];
          });
          const greetings = (await dial(sandbox, ...elsewhere)).map((greeting) => greeting.split(" ")[0]);
          // Sandboxes of the tests after this one may have networks that were prepared before, for which nobody sets the rules again.
          for (const place of opened) {
            try {
              nft("delete", "rule", ...place);
            } catch {
              // A network that was prepared meanwhile has set all rules again.
            }
          }
          expect(greetings).toEqual(["machine", "machine", "machine", "outside", "outside"]);
        },
        120_000,
      );

      it("that a new policy does not allow are cut, and others go on", async () => {
        await using sandbox = await make({ allow: ["9.9.9.9", "9.9.9.10"] });
        const said = run(sandbox, TALK, `9.9.9.9:${PORT}`, `9.9.9.10:${PORT}`);
        await expect.poll(() => run(sandbox, "console.log(fs.existsSync('/tmp/ready'))"), { timeout: 30_000 }).toBe("true");
        await change(sandbox, { allow: ["9.9.9.9"] });
        await run(sandbox, "fs.writeFileSync('/tmp/go', '')");
        expect(JSON.parse(await said)).toEqual(["again", "cut"]);
        await change(sandbox, "none");
        expect(await dial(sandbox, `9.9.9.9:${PORT}`, `allowed.example:${PORT}`)).toEqual(["ECONNREFUSED", "ENOTFOUND"]);
        await change(sandbox, { allow: ["allowed.example"] });
        expect(await dial(sandbox, `allowed.example:${PORT}`, `9.9.9.10:${PORT}`)).toEqual([OUTSIDE, "ECONNREFUSED"]);
      }, 60_000);

      it(`${notLater === undefined ? "are" : "cannot be"} allowed for a sandbox that runs without any`, async () => {
        await using sandbox = await make("none");
        const policy = { allow: [`allowed.example:${PORT}`] };
        if (notLater !== undefined) {
          expect(await server.call("problem", ["none", policy], runtime)).toContain(notLater);
          return expect(change(sandbox, policy)).rejects.toThrow(notLater);
        }
        for (const _ of [1, 2]) {
          await change(sandbox, policy);
          expect(await dial(sandbox, `allowed.example:${PORT}`, "allowed.example:8080")).toEqual([OUTSIDE, "ECONNREFUSED"]);
          await change(sandbox, "none");
          expect(await dial(sandbox, `9.9.9.9:${PORT}`, `allowed.example:${PORT}`)).toEqual(["ECONNREFUSED", "ENOTFOUND"]);
        }
      }, 60_000);

      engineCase.more?.({
        get machines() {
          return machines;
        },
        get socket() {
          return own.socket;
        },
        get server() {
          return server;
        },
        make,
        change,
        run,
        dial,
        startStranger: async () => machines.start(machines.outside, program),
      });

      it("outlive a killed server, with which the next one goes on, and leave nothing behind", async () => {
        const sandbox = await make({ allow: [`allowed.example:${PORT}`, `9.9.9.10:${PORT}`] });
        await make("none");
        await server.kill();
        const targets = [`9.9.9.10:${PORT}`, `9.9.9.9:${PORT}`];
        expect(await dial(sandbox, ...targets)).toEqual([OUTSIDE, "ECONNREFUSED"]);
        server = await startServer();
        const ids = await server.call<string[]>("list");
        expect(ids).toHaveLength(2);
        // The name server may need a moment.
        await expect.poll(() => dial(sandbox, `allowed.example:${PORT}`), { timeout: 20_000 }).toEqual([OUTSIDE]);
        expect(await dial(sandbox, ...targets, `other.example:${PORT}`)).toEqual([OUTSIDE, OUTSIDE, "ENOTFOUND"]);
        await change(sandbox, { allow: [`other.example:${PORT}`] });
        expect(await dial(sandbox, `other.example:${PORT}`, `9.9.9.9:${PORT}`)).toEqual([OUTSIDE, "ECONNREFUSED"]);
        await server.call("destroy", ...ids);
        await server.call("close");
        expect([...machines.remains(prefix(machines.home)), ...((await own.remains?.(machines.home)) ?? [])]).toEqual([]);
      }, 120_000);
    }),
  );
}

const DIAL = `
  const dial = (target) => new Promise((resolve) => {
    const [host, port] = target.split(":");
    const socket = require("net").connect({ host, port: Number(port), family: 4 });
    const say = (text) => (resolve(text), socket.destroy());
    socket.setTimeout(8000, () => say("no answer"));
    socket.once("data", (data) => say(String(data).trim())).once("error", ({ code }) => say(code));
  });
  (async () => {
    const seen = [];
    for (const target of process.argv.slice(1)) seen.push(await dial(target));
    console.log(JSON.stringify(seen));
  })();
`;

const ADDRESSES = `
  const all = Object.values(require("os").networkInterfaces()).flat();
  console.log(JSON.stringify(all.filter(({ internal, family }) => !internal && family === "IPv4").map(({ address }) => address)));
`;

/** Leaves a process behind that greets each connection to port 7000, and prints the addresses of the sandbox. */
export const LISTEN = `
  const greet = 'require("net").createServer((socket) => socket.end("sandbox")).listen(7000, () => console.log("listening"))';
  const child = require("child_process").spawn(process.execPath, ["-e", greet], { detached: true, stdio: ["ignore", "pipe", "ignore"] });
  child.stdout.once("data", () => {
    ${ADDRESSES}
    process.exit();
  });
`;

/** Connects, and says what the connections do once there is a file. */
const TALK = `
  const talk = (target) => new Promise((connected) => {
    const [host, port] = target.split(":");
    const socket = require("net").connect({ host, port: Number(port) });
    socket.once("data", () => connected(() => new Promise((resolve) => {
      socket.once("data", (data) => resolve(String(data))).once("error", () => resolve("cut")).once("close", () => resolve("cut"));
      socket.write("again");
    })));
  });
  (async () => {
    const all = await Promise.all(process.argv.slice(1).map(talk));
    fs.writeFileSync("/tmp/ready", "");
    while (!fs.existsSync("/tmp/go")) await new Promise((resolve) => setTimeout(resolve, 10));
    console.log(JSON.stringify(await Promise.all(all.map((one) => one()))));
    process.exit();
  })();
`;
