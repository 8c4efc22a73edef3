import { setTimeout as pause } from "node:timers/promises";
import type { ServerProcess } from "./server-process.ts";
import type { Known, Request, World } from "./world.ts";

/** Limit of live instances: each may need a process of its own, with its memory. */
const MOST_APART = 5;
const MOST_SHARED = 12;
const WORKERS = 4;

/** Decides what happens: `Random` with a seed. */
export interface Choices {
  next(): number;
  below(limit: number): number;
  isOneIn(chances: number): boolean;
  pick<T>(choices: readonly T[]): T | undefined;
}

/** Sends requests like several concurrent clients; a request that is cut off is only recorded as sent. */
export class Load {
  readonly #servers: ServerProcess[];
  readonly #world: World;
  readonly #random: Choices;
  readonly #refs: readonly [apart: string, shared: string];
  #begun = 0;
  #isStopped = false;

  constructor(servers: readonly ServerProcess[], world: World, random: Choices, refs: readonly [string, string]) {
    if (servers.length === 0) throw new Error("there is no server to send requests to");
    this.#servers = [...servers];
    this.#world = world;
    this.#random = random;
    this.#refs = refs;
  }

  /** Runs until so many operations have begun, or no server is left; then runs `last` while others are still in progress. */
  async run(operations: number, last: () => Promise<void>): Promise<void> {
    const workers = Promise.all(Array.from({ length: WORKERS }, () => this.#work()));
    workers.catch(() => {
      this.#isStopped = true;
    });
    while (this.#begun < operations && !this.#isStopped) await pause(1);
    await last();
    this.#isStopped = true;
    await workers;
  }

  async #work(): Promise<void> {
    while (!this.#isStopped) {
      const server = this.#random.pick(this.#servers);
      if (server === undefined) return;
      this.#begun++;
      this.#world.counts.operations++;
      try {
        await this.#operate(server);
      } catch (error) {
        // A killed server cuts requests off; any other error is a fault.
        if (!isBreak(error)) throw error;
        this.#world.counts.brokenOff++;
        this.#drop(server);
      }
    }
  }

  #drop(server: ServerProcess): void {
    const at = this.#servers.indexOf(server);
    if (at >= 0) this.#servers.splice(at, 1);
    if (this.#servers.length === 0) this.#isStopped = true;
  }

  #operate(server: ServerProcess): Promise<void> {
    const one = this.#random.pick(this.#world.usable);
    const choice = this.#random.next();
    if (one === undefined || choice < 0.3) return this.#create(server);
    if (choice < 0.65) return call(server, one);
    if (choice < 0.8) return this.#fork(server, one);
    if (choice < 0.93) return remove(server, one);
    return renew(server, one);
  }

  async #create(server: ServerProcess): Promise<void> {
    const isShared = this.#random.isOneIn(2);
    const crowded = this.#crowded(isShared);
    if (crowded !== null) return remove(server, crowded);
    const body = { envName: this.#refs[isShared ? 1 : 0], ttl: "1h", wait: !this.#random.isOneIn(3) };
    await send(
      server,
      this.#world,
      this.#request("create", "/env-instance", body, () => ({ least: 0, most: 0 })),
    );
  }

  async #fork(server: ServerProcess, parent: Known): Promise<void> {
    const count = 1 + this.#random.below(parent.isShared ? 4 : 2);
    const crowded = this.#crowded(parent.isShared);
    if (crowded !== null) return remove(server, crowded);
    const least = parent.acknowledged;
    const begin = () => ({ least, most: parent.sent });
    await send(server, this.#world, this.#request("fork", `/env-instance/${parent.id}/fork`, { count }, begin));
  }

  /** An instance to end first if there are many already. */
  #crowded(isShared: boolean): Known | null {
    const alike = this.#world.usable.filter((one) => one.isShared === isShared);
    return alike.length < (isShared ? MOST_SHARED : MOST_APART) ? null : (this.#random.pick(alike) ?? null);
  }

  #request(what: string, path: string, body: Request["body"], begin: Request["begin"]): Request {
    const key = `${what}-${++keys}`;
    const request: Request = { key, path, body, answer: null, known: [], begin, checks: 0 };
    this.#world.requests.push(request);
    return request;
  }
}

let keys = 0;

/** Sends a request with an idempotency key, for the first time or again. */
export async function send(server: ServerProcess, world: World, request: Request): Promise<void> {
  const answer = await server.ask("POST", request.path, request.body, { "idempotency-key": request.key });
  if (answer.status === 429 || answer.status === 503) return;
  world.note(request, answer);
}

export async function call(server: ServerProcess, one: Known): Promise<void> {
  one.sent++;
  const { status, text } = await post(`${server.dataUrl}/env-instance/${one.id}/mcp`, {
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name: "count", arguments: {} },
  });
  if (status === 200) one.acknowledged++;
  // A server that is being stopped refuses new requests, and so does one whose store is unavailable.
  else if (!one.isDeleteSent && status !== 503) throw new Error(`a call to ${one.id} got ${status}: ${text}`);
}

export async function remove(server: ServerProcess, one: Known): Promise<void> {
  one.isDeleteSent = true;
  const answer = await server.ask("DELETE", `/env-instance/${one.id}`);
  if (answer.success) one.isDeleted = true;
  else if (answer.status !== 503) throw new Error(`${one.id} was not deleted: ${answer.status} ${answer.message}`);
}

async function renew(server: ServerProcess, one: Known): Promise<void> {
  const answer = await server.ask("POST", `/env-instance/${one.id}/renew`, { ttl: "2h" });
  if (!answer.success && !one.isDeleteSent && answer.status !== 503) throw new Error(`${one.id} was not renewed: ${answer.message}`);
}

export async function post(url: string, body: unknown): Promise<{ status: number; text: string }> {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  return { status: response.status, text: await response.text() };
}

/** Whether a request could not reach its server, or lost the connection. */
export function isBreak(error: unknown): boolean {
  return error instanceof TypeError && /fetch failed|terminated/.test(error.message);
}
