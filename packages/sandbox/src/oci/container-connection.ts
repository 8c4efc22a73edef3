import { type KeyObject, randomBytes } from "node:crypto";
import type { InitConnection } from "../init/connection.ts";
import { connectStartingInit } from "../init/ready.ts";
import type { SandboxNetwork } from "../network/held-network.ts";
import type { Announcement } from "./announcement.ts";
import { type ContainerRecord, initAddress } from "./container.ts";
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
/** Packets to a sandbox of this machine are not lost, and gVisor takes milliseconds for each connection. */
const NEXT_ATTEMPT_MS = 200;

/** Programs of the machine's own tools expect these lines, and few images have them. */
const HOSTS = "127.0.0.1 localhost\n::1 localhost\n";

/**
 * Connects to a container that is being started: the init often listens before the runtime has ended. If it does not announce this, the
 * connection is tried after the runtime's end: before gVisor has taken the network over, it would be lost.
 */
export async function connectStarting(
  container: Connectable,
  running: Promise<unknown>,
  { listening }: Announcement,
  signal: AbortSignal,
): Promise<InitConnection> {
  const failing = new AbortController();
  running.catch((error: unknown) => failing.abort(error));
  return connect(container, AbortSignal.any([signal, failing.signal]), listening ?? running);
}

/** Connects to a container that was just started. */
export async function connectNew(
  container: Connectable,
  signal: AbortSignal,
  { isRestored }: { readonly isRestored: boolean },
): Promise<InitConnection> {
  const init = await connect(container, signal);
  if (!isRestored) return init;
  // Both are done before anything else runs a command in it.
  const [{ generation }] = await Promise.all([
    init.restored({ entropy: randomBytes(64) }),
    writeFiles(init, networkFiles(container.current().id, container.network)),
  ]);
  // Last: programs that watch it expect that the others have changed.
  await writeFiles(init, [generationFile(generation)]);
  return init;
}

export async function connect(
  { current, network, key, isRunning }: Connectable,
  signal: AbortSignal,
  listening?: Promise<unknown>,
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
    return await connectStartingInit(initAddress(network), key, limit, {
      ...(listening !== undefined && { listening }),
      nextAttemptMs: NEXT_ATTEMPT_MS,
    });
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

/** The file by which programs of a sandbox that can be stored with its memory notice that they go on as a copy: how many copies lie behind it. */
export function generationFile(generation: number): RootFile {
  return { path: "/.aenv/generation", text: `${generation}\n` };
}

/** Writes the files of a sandbox that was restored, and has those of another one. */
async function writeFiles(init: InitConnection, files: readonly RootFile[]): Promise<void> {
  const write = ({ path, text }: RootFile) => init.files.write({ path, root: "/", content: Buffer.from(text), mode: 0o644, mkdirs: true });
  await Promise.all(files.map(write));
}
