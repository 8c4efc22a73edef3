import { type KeyObject, randomBytes } from "node:crypto";
import type { InitConnection } from "../init/connection.ts";
import { connectStartingInit } from "../init/ready.ts";
import { type ContainerRecord, initAddress } from "./container.ts";
import type { SandboxNetwork } from "./network/held-network.ts";
import type { RootFile } from "./overlay/mapped.ts";

/** A container whose init is to be connected. */
export interface Connectable {
  /** Its record, in which the process appears as soon as it is known. */
  readonly current: () => ContainerRecord;
  readonly network: SandboxNetwork;
  readonly key: KeyObject;
  readonly isRunning: (record: ContainerRecord) => boolean;
}

const CONNECT_MS = 15_000;

/** Programs of the machine's own tools expect these lines, and few images have them. */
const HOSTS = "127.0.0.1 localhost\n::1 localhost\n";

/** For a container that was just started. */
export async function connectNew(
  container: Connectable,
  signal: AbortSignal,
  { isRestored, started }: { readonly isRestored: boolean; readonly started?: Promise<unknown> },
): Promise<InitConnection> {
  const init = await connect(container, signal, started);
  if (!isRestored) return init;
  // Before anything else runs a command in it.
  await init.restored({ entropy: randomBytes(64) });
  await writeNetworkFiles(init, container.current().id, container.network);
  return init;
}

export async function connect(
  { current, network, key, isRunning }: Connectable,
  signal: AbortSignal,
  started?: Promise<unknown>,
): Promise<InitConnection> {
  const given = new AbortController();
  const limit = AbortSignal.any([signal, given.signal]);
  let startedAt: number | undefined;
  const watch = setInterval(() => {
    const record = current();
    if (record.process === null) return;
    startedAt ??= performance.now();
    // An init that has ended never answers.
    if (!isRunning(record)) given.abort(new Error("the init ended before it answered"));
    else if (performance.now() - startedAt > CONNECT_MS)
      given.abort(new Error(`the init did not answer within ${CONNECT_MS / 1_000} seconds`));
  }, 100);
  try {
    return await connectStartingInit(initAddress(network), key, limit, started);
  } finally {
    clearInterval(watch);
  }
}

/** How programs of a sandbox find hosts. */
export function networkFiles(name: string, { resolvConf }: SandboxNetwork): RootFile[] {
  return [
    { path: "/etc/resolv.conf", text: resolvConf },
    { path: "/etc/hosts", text: `${HOSTS}127.0.1.1 ${name}\n` },
  ];
}

/** For a sandbox that was restored, and has those of another one. */
async function writeNetworkFiles(init: InitConnection, name: string, network: SandboxNetwork): Promise<void> {
  const write = ({ path, text }: RootFile) => init.files.write({ path, root: "/", content: Buffer.from(text), mode: 0o644, mkdirs: true });
  await Promise.all(networkFiles(name, network).map(write));
}
