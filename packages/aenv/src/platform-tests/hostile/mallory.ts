import type { RolloutResult } from "@aenv/contract";
import { type Platform, type PublishOptions, projects, publish } from "../platform.ts";
import { type HostileModel, hostileModel, modelAttacks } from "./models.ts";

type Headers = Readonly<Record<string, string>>;

/** Attacks of the environment in `fixtures/attacker` on those who read its answers. */
export const environmentAttacks = [
  "abilities without end",
  "tools nested 100,000 levels deep",
  "two million tools",
  "events without end",
  "a reset without end",
  "a reward without end",
  "a reward nested 100,000 levels deep",
  "an error without end",
] as const;

/** What Mallory's rollout plays. */
interface Attack {
  readonly variables?: Readonly<Record<string, string>>;
  readonly model?: HostileModel;
}

export interface MalloryOptions extends PublishOptions {
  /** Her token. */
  readonly headers: Headers;
  /** Names of `modelAttacks`; all by default. */
  readonly models?: readonly string[];
  /** Attacks of the environment, by the value of its variable `ATTACK`. */
  readonly attacks?: readonly string[];
  /** Images that the environment opens. */
  readonly images?: readonly string[];
}

/** An owner whose model endpoints and environment are hostile. */
export interface Mallory extends AsyncDisposable {
  /** Rollouts of one `play`. */
  readonly attacks: number;
  /** Requests one rollout for each attack, and waits for all results. */
  play(): Promise<readonly RolloutResult[]>;
}

export async function startMallory(platform: Pick<Platform, "controlUrl" | "demand">, options: MalloryOptions): Promise<Mallory> {
  const { headers, models: names = Object.keys(modelAttacks), attacks = environmentAttacks, images = [], ...published } = options;
  const environment = await publish(platform, projects.attacker, { ...published, headers });
  const models = await Promise.all(names.map((name) => hostileModel(modelAttacks[name]?.[0] ?? unknown(name))));
  const all: readonly Attack[] = [
    ...models.map((model) => ({ model })),
    ...attacks.map((name) => ({ variables: { ATTACK: name } })),
    ...images.map((image) => ({ variables: { IMAGE: image } })),
  ];
  let waves = 0;
  return {
    attacks: all.length,
    async play() {
      const wave = waves++;
      const rollouts = all.map(({ variables = {}, model }, at) => ({
        id: `${environment}-${wave}-${at}`.replace("@", "-"),
        environment,
        task: { id: "one" },
        variables,
        retries: 0,
        ...(model === undefined ? { agent: { kind: "noop" } } : { model: { base_url: model.baseUrl, name: "m" } }),
      }));
      const response = await fetch(`${platform.controlUrl}/rollouts`, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: JSON.stringify({ rollouts, stream: true }),
      });
      return resultsOf(response);
    },
    [Symbol.asyncDispose]: async () => {
      for (const model of models) await model[Symbol.asyncDispose]();
    },
  };
}

function unknown(name: string): never {
  throw new Error(`there is no attack called '${name}'`);
}

/** The results of a stream of rollouts, without pings. */
export async function resultsOf(response: Response): Promise<RolloutResult[]> {
  const text = await response.text();
  if (response.status !== 200) throw new Error(`the rollouts were answered with ${response.status}: ${text}`);
  const lines = text.split("\n").filter((line) => line !== "");
  return lines.map((line) => JSON.parse(line)).filter((one) => one.type !== "ping");
}
