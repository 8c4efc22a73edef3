import type { Server } from "node:http";
import type { Socket } from "node:net";

// Which connections a server of environments takes. The agent's programs may run in the same sandbox as the environment, and must not
// reach the API for trainers. The check is made before a request is read.
//
// The runner imports this file, so it imports nothing at run time: a start loads as little as possible.

/** Who may connect: programs of other machines and sandboxes, or those that know a key with this SHA-256 digest (hex). */
export type Callers = { readonly kind: "outside" } | { readonly kind: "key"; readonly digest: string };

/** What a caller with a key sends before its first request: this word, the key as base64url, and the end of the line. */
const GREETING = "aenv-caller ";
const GREETING_BYTES = GREETING.length + 43 + 1;
const GREETING_MS = 10_000;
/** How long a refused client has to read the answer. */
const REFUSED_MS = 1_000;

const ERROR =
  "programs in the sandbox of an environment cannot use the API of its server; use the instance through the gateway of the platform";
const BODY = JSON.stringify({ success: false, error: ERROR, errorInfo: { code: "access.denied", retryable: false } });
const REFUSAL = [
  "HTTP/1.1 403 Forbidden",
  "content-type: application/json",
  `content-length: ${Buffer.byteLength(BODY)}`,
  "connection: close",
  "",
  BODY,
].join("\r\n");

/** Refuses all other connections of a server with 403. */
export function acceptOnly(server: Server, callers: Callers): void {
  const accept = server.listeners("connection");
  server.removeAllListeners("connection");
  const decide = (socket: Socket, isAdmitted: boolean) => {
    if (!isAdmitted) return refuse(socket);
    for (const take of accept) take.call(server, socket);
  };
  server.on("connection", (socket: Socket) => {
    if (callers.kind === "outside") decide(socket, !isFromOwnMachine(socket));
    else greets(socket, callers.digest, (isAdmitted) => decide(socket, isAdmitted));
  });
}

/** Whether the other end is a program of this machine or, in a sandbox, of this sandbox. */
export function isFromOwnMachine({ remoteAddress, localAddress }: Pick<Socket, "remoteAddress" | "localAddress">): boolean {
  // It is gone already.
  if (remoteAddress === undefined) return true;
  const remote = plain(remoteAddress);
  if (remote === "::1" || remote.startsWith("127.") || remote === plain(localAddress ?? "")) return true;
  // A client can choose any address of the machine as its own.
  return Object.values(process.getBuiltinModule("node:os").networkInterfaces()).some((all) =>
    all?.some(({ address }) => plain(address) === remote),
  );
}

/** `::ffff:10.0.0.1` is the IPv4 address of a client of a server that listens on `::`, and `%eth0` the interface of an address. */
function plain(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, "").replace(/%.*$/, "");
}

/** Reads what a caller with a key sends first. The rest stays in the socket. */
function greets(socket: Socket, digest: string, onEnd: (isAdmitted: boolean) => void): void {
  const onReadable = () => {
    const greeting: Buffer | null = socket.read(GREETING_BYTES);
    if (greeting !== null) end(isKey(greeting.toString("latin1"), digest));
  };
  const fail = () => end(false);
  const timer = setTimeout(fail, GREETING_MS).unref();
  const end = (isAdmitted: boolean) => {
    clearTimeout(timer);
    socket.off("readable", onReadable).off("end", fail).off("close", fail).off("error", fail);
    onEnd(isAdmitted);
  };
  socket.on("readable", onReadable).on("end", fail).on("close", fail).on("error", fail);
}

function isKey(greeting: string, digest: string): boolean {
  if (!greeting.startsWith(GREETING) || !greeting.endsWith("\n")) return false;
  const { createHash, timingSafeEqual } = process.getBuiltinModule("node:crypto");
  const found = createHash("sha256")
    .update(Buffer.from(greeting.slice(GREETING.length, -1), "base64url"))
    .digest();
  const expected = Buffer.from(digest, "hex");
  return found.length === expected.length && timingSafeEqual(found, expected);
}

function refuse(socket: Socket): void {
  socket.on("error", ignore);
  // Unread data would reset the connection before the client has read the answer.
  socket.resume();
  socket.end(REFUSAL);
  setTimeout(() => socket.destroy(), REFUSED_MS).unref();
}

function ignore(): void {}
