import { createServer } from "node:net";
import { join } from "node:path";
import type { SandboxNetwork } from "../held-network.ts";
import { namespaceCables, namespacePath } from "../namespaces.ts";
import { Networks } from "../networks.ts";
import { probeSubnet } from "../probes.ts";
import type { Refusal } from "../refusals.ts";
import { answerCalls, type Methods } from "./calls.ts";

// A program in a network namespace of a test: it listens there, or is the server whose sandboxes are tested. The test calls it by messages.

let networks: Networks | null = null;
const refused: Refusal[] = [];
const names = new Map<string, string>();

const describe = ({ name, address, hostAddress, resolvConf }: SandboxNetwork) => ({
  name,
  address,
  hostAddress,
  namespacePath: namespacePath(name),
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

const methods: Methods = {
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
    const kept = { home, folder: join(home, "networks"), cables: namespaceCables };
    networks = await Networks.open({ ...kept, poolSize, resolve, onRefused: (refusal) => refused.push(refusal), ...chosen });
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

answerCalls(methods);
