import { randomBytes } from "node:crypto";
import { Environment, type EnvironmentOptions } from "@aenv/sdk";

/** Clients that call tools, each of an instance of its own, all the time. */
const CALLERS = 4;
/** A client that creates an instance, uses it and releases it, again and again. */
const CHURN_CALLS = 3;

/** A request without an answer. */
export interface Failure {
  readonly what: "create" | "call";
  readonly begunAt: number;
  readonly error: unknown;
}

/** An instance with one client. Its tool answers how often it was called. */
interface Counted {
  readonly environment: Environment;
  readonly id: string;
  sent: number;
  /** The last answer. */
  count: number;
}

/** A process that packed instances share. */
export interface SharedProcess {
  readonly pod: string;
  readonly instances: readonly string[];
}

/** Clients that use instances of an environment without a pause, and what they have seen. Its tool `count` counts. */
export class Load {
  /** A label of all instances of this load. */
  readonly tag = `load-${randomBytes(4).toString("hex")}`;
  /** Counts of what was answered since the last `countAnew`. */
  counts = { calls: 0, created: 0, released: 0 };
  readonly failures: Failure[] = [];
  /** Answers that no instance may give. */
  readonly wrong: string[] = [];
  readonly #environment: string;
  readonly #options: EnvironmentOptions;
  readonly #kept: Counted[] = [];
  #isOver = false;
  #clients: Promise<unknown> = Promise.resolve();

  constructor(environment: string, options: EnvironmentOptions) {
    this.#environment = environment;
    this.#options = { ...options, labels: { load: this.tag }, ttl: "1h" };
  }

  /** The instances that live from the start of the load to its end. */
  get keptIds(): string[] {
    return this.#kept.map(({ id }) => id).sort();
  }

  async start(): Promise<void> {
    for (let at = 0; at < CALLERS; at++) this.#kept.push(await this.#create());
    this.#clients = Promise.all([...this.#kept.map((one) => this.#callOn(one)), this.#churn()]);
  }

  countAnew(): void {
    this.counts = { calls: 0, created: 0, released: 0 };
  }

  /** Ends when all clients have the answers to their last requests. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#clients;
  }

  /** One more call to each instance that was kept: all of them are there, with all that their clients were told. */
  async checkKept(): Promise<void> {
    for (const one of this.#kept) await this.#count(one);
  }

  /** The processes with the instances that were kept, if these are packed. */
  async sharedProcesses(): Promise<SharedProcess[]> {
    const all = await Promise.all(this.#kept.map(async ({ environment }) => (await environment.callFunction("place")) as SharedProcess));
    return [...new Map(all.map((one) => [one.pod, one])).values()];
  }

  async release(): Promise<void> {
    await Promise.all(this.#kept.map(({ environment }) => environment.release()));
  }

  async #create(): Promise<Counted> {
    const environment = await Environment.create(this.#environment, this.#options);
    return { environment, id: (await environment.getEnvInfo()).instanceId, sent: 0, count: 0 };
  }

  async #callOn(one: Counted): Promise<void> {
    while (!this.#isOver) await this.#try("call", () => this.#count(one));
  }

  async #churn(): Promise<void> {
    while (!this.#isOver) {
      const one = await this.#try("create", () => this.#create());
      if (one === null) continue;
      this.counts.created++;
      for (let at = 0; at < CHURN_CALLS; at++) await this.#try("call", () => this.#count(one));
      await one.environment.release();
      this.counts.released++;
    }
  }

  /** A call without an answer may have been counted by the instance, or not. */
  async #count(one: Counted): Promise<void> {
    one.sent++;
    const { isError, text } = await one.environment.callTool("count");
    const count = Number(text);
    if (isError || !(count > one.count && count <= one.sent))
      this.wrong.push(`${one.id} answered ${text} to call ${one.sent}, after ${one.count}`);
    else one.count = count;
    this.counts.calls++;
  }

  async #try<T>(what: Failure["what"], work: () => Promise<T>): Promise<T | null> {
    const begunAt = Date.now();
    try {
      return await work();
    } catch (error) {
      this.failures.push({ what, begunAt, error });
      return null;
    }
  }
}

/** In words, with how long before or after a moment the request was begun. */
export function describeFailure({ what, begunAt, error }: Failure, moment: number): string {
  return `a ${what}, begun at ${begunAt - moment} ms: ${error}`;
}

/** Whether a client may see it when its server is killed: the connection was lost, or the platform says that it may try again. */
export function isLoss({ error }: Failure): boolean {
  const { retryable, cause } = error as { readonly retryable?: boolean; readonly cause?: unknown };
  return retryable === true || (cause instanceof Error && "wasSent" in cause && !("isTimeout" in cause && cause.isTimeout === true));
}
