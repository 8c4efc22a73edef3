import type { Provenance } from "@aenv/contract";
import {
  type Agent,
  agentDigestOf,
  Capacity,
  configDigestOf,
  InstancePool,
  type Limits,
  type PlayOptions,
  type Prices,
  playOptions,
  RecordingServer,
} from "@aenv/rollout";
import { ownPackage } from "../project/own-package.ts";
import type { ChosenAgent } from "./chosen-agent.ts";
import type { Source } from "./source.ts";

export interface EpisodesOptions {
  readonly source: Source;
  readonly limits: Limits;
  readonly recordsDigests?: boolean;
  readonly rewardArgs?: PlayOptions["rewardArgs"];
  /** Whether agents are programs, which need a server that records what they do. */
  readonly hasPrograms?: boolean;
  readonly prices?: Prices | null;
  readonly onBusy?: (pauseMs: number) => void;
  readonly onArtifacts?: PlayOptions["onArtifacts"];
}

/** What plays an episode: the agent and its model, how long it may take, and who may cancel it. */
export interface EpisodePlayer extends Pick<ChosenAgent, "agent" | "players" | "upstream" | "modelName"> {
  readonly deadlineMs: number;
  readonly cancel: AbortSignal;
}

/** What the episodes of one environment share: instances that are used again, and the recording server. */
export class Episodes implements AsyncDisposable {
  readonly #options: EpisodesOptions;
  readonly #instances: InstancePool;
  readonly #recorder: RecordingServer | null;
  readonly #capacity = new Capacity();

  private constructor(options: EpisodesOptions, instances: InstancePool, recorder: RecordingServer | null) {
    this.#options = options;
    this.#instances = instances;
    this.#recorder = recorder;
  }

  static async open(options: EpisodesOptions): Promise<Episodes> {
    const { source, hasPrograms = false, onBusy } = options;
    const busy = onBusy && { onBusy };
    const recorder = hasPrograms ? await RecordingServer.open({ ...busy }) : null;
    const { environment, digest: environmentDigest } = source;
    return new Episodes(options, new InstancePool({ environment, environmentDigest, options: source.options, ...busy }), recorder);
  }

  /** The options with which this player plays one of them. */
  optionsFor({ agent, players, upstream, modelName, deadlineMs, cancel }: EpisodePlayer): PlayOptions {
    const { source, limits, recordsDigests, rewardArgs, prices, onArtifacts } = this.#options;
    return playOptions({
      agent,
      ...(players && { players }),
      recorder: this.#recorder,
      model: upstream,
      limits,
      deadlineMs,
      ...(recordsDigests !== undefined && { recordsDigests }),
      rewardArgs,
      acquire: (wanted, signal) => this.#instances.acquire(wanted, signal, deadlineMs),
      provenance: originOf(source, modelName),
      ...(prices !== undefined && { prices }),
      ...(onArtifacts && { onArtifacts }),
      capacity: this.#capacity,
      cancel,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#instances.close();
    await this.#recorder?.[Symbol.asyncDispose]();
  }
}

/** What is known of trajectories before an instance runs. */
export function provenanceOf(
  source: Source,
  agent: Pick<Agent, "name" | "settings">,
  limits: Limits,
  model: string | null,
): Omit<Provenance, "tools_digest" | "engine" | "isolation" | "server_version"> {
  return { ...originOf(source, model), agent: agent.name, agent_digest: agentDigestOf(agent, limits) };
}

function originOf(source: Source, model: string | null) {
  return {
    environment: source.environment,
    environment_digest: source.digest,
    config_digest: sourceConfigDigestOf(source),
    model,
    client_version: ownPackage().version,
  };
}

export function sourceConfigDigestOf({ deployConfig, options }: Source): string {
  return configDigestOf(deployConfig, options.variables ?? {});
}
