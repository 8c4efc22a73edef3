import type { ModelCall, ModelCallAnswer } from "@aenv/contract";
import type { PlatformLink } from "../link/link.ts";
import type { ModelCalls } from "./model.ts";

/** Calls models over the connection of the platform, which has their endpoints and keys. */
export class LinkModels implements ModelCalls {
  readonly #link: PlatformLink;

  constructor(link: PlatformLink) {
    this.#link = link;
  }

  async call(instanceId: string, name: string, call: ModelCall, signal: AbortSignal | undefined): Promise<ModelCallAnswer> {
    const content = new TextEncoder().encode(JSON.stringify(call));
    return (await this.#link.call({ path: "/model", instanceId, parameters: { model: name }, content, signal })) as ModelCallAnswer;
  }
}
