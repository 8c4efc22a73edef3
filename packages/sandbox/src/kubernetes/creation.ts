import { randomBytes } from "node:crypto";
import type { SandboxSpec } from "../engine/engine.ts";
import { existsAlready } from "../lifecycle/start-errors.ts";
import { APPENDED } from "../spec/listening.ts";
import type { KubernetesApi } from "./api/client.ts";
import { isKubernetesError } from "./api/error.ts";
import type { KubernetesEngineOptions } from "./options.ts";
import { mainOf, memoryLimitMb, templateCommand } from "./pod/container.ts";
import { startsEarly } from "./pod/early-start.ts";
import { ID_ANNOTATION, podName } from "./pod/names.ts";
import { BUNDLE_CACHE, bundlesIn, keepsBundles, type PodInput, PROGRAM_PORT } from "./pod/pod.ts";
import { secondOf } from "./pod/second.ts";
import { type PodState, stateOf } from "./pod/state.ts";
import { DEFAULT_TEMPLATE, DUAL_TEMPLATE, type PodTemplates } from "./pod/templates.ts";
import type { Pod } from "./pod/types.ts";
import type { PodTable } from "./pods.ts";
import { egressOf } from "./validate.ts";

export interface PodCreationOptions extends Pick<KubernetesEngineOptions, "baseImage" | "runscClass" | "runtime"> {
  readonly homeId: string;
  readonly initKey: string;
  readonly templates: PodTemplates;
  /** Whether outgoing connections are restricted. */
  readonly hasEgress: boolean;
}

/** Makes pods of specifications, and creates them. */
export class PodCreation {
  readonly #api: KubernetesApi;
  readonly #pods: PodTable;
  readonly #options: PodCreationOptions;

  constructor(api: KubernetesApi, pods: PodTable, options: PodCreationOptions) {
    this.#api = api;
    this.#pods = pods;
    this.#options = options;
  }

  templateOf(spec: SandboxSpec): Pod {
    return this.#options.templates.get(spec.template ?? (spec.second === undefined ? DEFAULT_TEMPLATE : DUAL_TEMPLATE));
  }

  ownersOf(template: string): readonly string[] {
    return this.#options.templates.ownersOf(template);
  }

  /** Everything that the pod of a sandbox is made from. */
  inputOf(spec: SandboxSpec): PodInput {
    const { homeId, initKey, baseImage, runscClass, runtime, hasEgress } = this.#options;
    const template = this.templateOf(spec);
    return {
      homeId,
      spec,
      template,
      baseImage,
      state: newState(spec, template, baseImage),
      initKey,
      egress: hasEgress ? egressOf(spec) : "open",
      ...((spec.runtime ?? runtime) === "runsc" && runscClass !== undefined && { runtimeClass: runscClass }),
    };
  }

  /** Not cancelled half-way: the API server would create the pod anyway, after this process had looked for it. */
  async create(pod: Pod, input: PodInput): Promise<Pod> {
    const made = await this.#post(pod, input);
    this.#pods.put(made);
    return made;
  }

  async #post(pod: Pod, input: PodInput): Promise<Pod> {
    const { homeId, spec } = input;
    try {
      return await this.#api.create<Pod>(this.#pods.path(), pod);
    } catch (error) {
      if (!isKubernetesError(error, 409) || error.reason !== "AlreadyExists") throw error;
      const found = await this.#api.find<Pod>(this.#pods.path(pod.metadata.name));
      // Perhaps this request was sent twice, because the answer to the first was lost.
      if (found !== null && stateOf(found)?.attempt === stateOf(pod)?.attempt) return found;
      // Two pods of one environment may have the same six letters.
      const name = podName(homeId, spec.id);
      const isOther = found !== null && found.metadata.annotations?.[ID_ANNOTATION] !== spec.id;
      if (isOther && pod.metadata.name !== name) return this.#post({ ...pod, metadata: { ...pod.metadata, name } }, input);
      throw existsAlready(spec.id);
    }
  }
}

function newState(spec: SandboxSpec, template: Pod, baseImage: string): PodState {
  const listening = spec.listening ?? APPENDED;
  // Only the node knows the program of an image. It is the init's task if the sandbox names one, or needs none.
  const hasInit = spec.command.length > 0 || listening.kind === "none" || templateCommand(template).length > 0;
  return {
    format: 1,
    port: listening.kind === "none" ? null : listening.kind === "port" ? listening.port : PROGRAM_PORT,
    hasInit,
    ...(hasInit && { bundles: bundlesIn(template, (spec.image ?? baseImage) === baseImage) }),
    ...(hasInit && keepsBundles(template) && { cache: BUNDLE_CACHE }),
    ...(startsEarly(spec) && { startsEarly: true }),
    memoryMb: memoryLimitMb(mainOf(template), spec.resources),
    ...(spec.second !== undefined && { second: secondOf(template).name }),
    attempt: randomBytes(9).toString("base64url"),
    startsUntil: Date.now() + spec.startTimeoutMs,
  };
}
