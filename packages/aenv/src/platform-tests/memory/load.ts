import { rolloutResult } from "@aenv/contract";
import { projects, publish } from "../platform.ts";
import type { MeasuredServer } from "./measured-server.ts";

type Headers = Readonly<Record<string, string>>;
type Kind = "scored" | "unscored" | "cancelled";

/** Rollouts by how they ended. */
export type Counts = Record<Kind, number>;

const ROLLOUTS_OF_REQUEST = 20;
/** A lane's token is revoked after so many requests, and the next owner takes over: nothing may be kept of owners and tokens either. */
const REQUESTS_OF_OWNER = 30;
const OWNERS = 5;
/** The name of a model for which the endpoint answers with an error. */
export const BROKEN_MODEL = "broken";

/** Plays rollouts until it is stopped: a trainer that uses shared processes and one that has a process for each instance, at the same time. */
export class RolloutLoad {
  readonly #server: MeasuredServer;
  readonly #model: { readonly baseUrl: string };
  readonly #counts: Counts = { scored: 0, unscored: 0, cancelled: 0 };
  readonly #admin: Headers;
  #made = 0;
  #isStopped = false;

  constructor(server: MeasuredServer, model: { readonly baseUrl: string }) {
    this.#server = server;
    this.#model = model;
    this.#admin = { authorization: `Bearer ${server.token}` };
  }

  get counts(): Readonly<Counts> {
    return { ...this.#counts };
  }

  /** Finishes the requests that have begun. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Resolves when it was stopped; rejects at once if a rollout ends as it should not. */
  async run(): Promise<void> {
    const refs = await Promise.all([this.#publish("shared"), this.#publish("instance")]);
    await Promise.all(refs.map((ref, lane) => this.#lane(lane, ref)));
  }

  async #publish(isolation: "shared" | "instance"): Promise<string> {
    const ref = await publish(this.#server, projects.echo, { isolation, headers: this.#admin });
    await this.#server.demand("POST", `/env/${ref.replace("@", "/")}/visibility`, { visibility: "public" }, this.#admin);
    return ref;
  }

  async #lane(lane: number, environment: string): Promise<void> {
    for (let turn = 0; !this.#isStopped; turn++) {
      const body = { owner: `trainer-${lane}-${turn % OWNERS}`, roles: ["trainer"] };
      const { id, token } = (await this.#server.demand("POST", "/token", body, this.#admin)) as { id: string; token: string };
      for (let n = 0; n < REQUESTS_OF_OWNER && !this.#isStopped; n++) await this.#play(environment, { authorization: `Bearer ${token}` });
      await this.#server.demand("DELETE", `/token/${id}`, undefined, this.#admin);
    }
  }

  async #play(environment: string, headers: Headers): Promise<void> {
    await this.#cancel(environment, headers);
    const rollouts = Array.from({ length: ROLLOUTS_OF_REQUEST }, (_, n) => this.#rollout(n, environment));
    const response = await fetch(`${this.#server.controlUrl}/rollouts`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ rollouts, stream: true, run: `run-${this.#made}` }),
    });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`POST /rollouts was answered with ${response.status}: ${text}`);
    for (const line of text.split("\n")) {
      if (line === "" || line.includes('"type":"ping"')) continue;
      const { id, outcome } = rolloutResult.parse(JSON.parse(line));
      const isExpected = outcome.kind === (id.startsWith("bad") ? "unscored" : "scored");
      if (!isExpected) throw new Error(`rollout ${id} ended with ${JSON.stringify(outcome)}`);
      this.#counts[outcome.kind === "scored" ? "scored" : "unscored"]++;
    }
  }

  /** A rollout that ends without being played to its end. */
  async #cancel(environment: string, headers: Headers): Promise<void> {
    const rollout = this.#rollout(0, environment);
    await this.#ask("POST", "/rollouts", headers, { rollouts: [rollout] });
    await this.#ask("DELETE", `/rollouts/${rollout.id}`, headers);
    this.#counts.cancelled++;
  }

  async #ask(method: string, path: string, headers: Headers, body?: object): Promise<void> {
    const response = await fetch(this.#server.controlUrl + path, {
      method,
      headers: { "content-type": "application/json", ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} was answered with ${response.status}: ${text}`);
  }

  /** Most are solved by a model; of each request, two fail and end their instance. */
  #rollout(n: number, environment: string): { readonly id: string } & Readonly<Record<string, unknown>> {
    const id = `good-${this.#made++}`;
    const model = { base_url: this.#model.baseUrl, api_key: `model-secret-${id}`, name: "scripted" };
    const common = { id, environment, task: { id: "greet" } };
    switch (n) {
      case 1:
        return { ...common, agent: { kind: "oracle" } };
      case 2:
        return { ...common, id: `bad-${id}`, model: { ...model, name: BROKEN_MODEL } };
      case 3:
        return { ...common, id: `bad-${id}`, agent: { kind: "oracle" }, task: { inline: { goal: 7 } } };
      case 4:
        return { ...common, model: { ...model, tokens: "auto" } };
      case 5:
        return { ...common, model: { ...model, tokens: "trainer", api: "messages" } };
      default:
        return { ...common, model: { ...model, tokens: "service" } };
    }
  }
}
