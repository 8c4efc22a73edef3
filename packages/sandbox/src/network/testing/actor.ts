import { createServer } from "node:net";
import { probeSubnet } from "../../machine/probes.ts";
import type { SandboxNetwork } from "../held-network.ts";
import { Networks } from "../networks.ts";
import type { Refusal } from "../refusals.ts";

// A program in a network namespace of a test: it listens there, or is the server whose sandboxes are tested. The test calls it by messages.

let networks: Networks | null = null;
const refused: Refusal[] = [];
const names = new Map<string, string>();

const describe = ({ name, address, hostAddress, namespacePath, resolvConf }: SandboxNetwork) => ({
  name,
  address,
  hostAddress,
  namespacePath,
  resolvConf,
});

const opened = () => {
  if (networks === null) throw new Error("no networks are open");
  return networks;
};

const held = async (name: string) => {
  const network = await opened().find(name);
  if (network === null) throw new Error(`no network ${name}`);
  return network;
};

const methods: Record<string, (...args: never[]) => unknown> = {
  /** Greets each connection with who it came from. */
  listen: (address: string, port: number, greeting: string) =>
    new Promise((resolve, reject) => {
      const server = createServer((socket) => {
        socket.on("error", () => {});
        socket.write(`${greeting} ${socket.remoteAddress}\n`);
        socket.pipe(socket);
      });
      server.on("error", reject);
      server.listen(port, address, () => resolve((server.address() as { port: number }).port));
    }),
  name: (name: string, address: string) => void names.set(name, address),
  open: async (home: string, poolSize: number, subnet?: string) => {
    const resolve = async (name: string) => {
      const address = names.get(name);
      return address === undefined ? [] : [{ address, ttl: 60 }];
    };
    const chosen = subnet === undefined ? {} : { subnet };
    networks = await Networks.open({ home, poolSize, resolve, onRefused: (refusal) => refused.push(refusal), ...chosen });
    void networks.refill();
  },
  probe: (home: string, subnet?: string) => probeSubnet(home, subnet),
  take: async () => describe(await opened().take(AbortSignal.timeout(60_000))),
  find: async (name: string) => {
    const network = await opened().find(name);
    return network === null ? null : describe(network);
  },
  list: () => opened().list(),
  setEgress: async (name: string, policy: never) => (await held(name)).setEgress(policy),
  release: async (name: string) => (await held(name)).release(),
  remove: (name: string) => opened().remove(name),
  close: () => opened().close(),
  refused: async () => {
    await opened().pollRefused();
    return refused;
  },
};

process.on("message", async ({ id, method, args }: { id: number; method: string; args: never[] }) => {
  try {
    const call = methods[method];
    if (call === undefined) throw new Error(`no method ${method}`);
    process.send?.({ id, result: await call(...args) });
  } catch (error) {
    process.send?.({ id, error: error instanceof Error ? error.message : String(error) });
  }
});
// The test has ended, in whatever way.
process.on("disconnect", () => process.exit());
